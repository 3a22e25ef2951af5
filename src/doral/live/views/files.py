"""New files: there whole or not at all, for their owner alone, and never in the place of another one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from doral._files import UNFINISHED_SUFFIX, sync_folder
from doral.errors import InvalidValue, shown
from doral.live.errors import StorageError


def given_path(path: object, *, suffixes: tuple[str, ...] = (), field: str = "path", is_text: bool = False) -> Path:
    """A path that a file can have; with one of these endings, where there are some.

    One that `is_text` can be kept in a database.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidValue(field, path, "must be a string or a Path")
    try:
        name = os.fsencode(path)
        is_possible = b"\0" not in name
        if is_text:
            name.decode()
    except UnicodeError:
        is_possible = False
    if not is_possible:
        raise InvalidValue(field, path, "must not contain characters that no file name can hold")
    checked = Path(os.fsdecode(path))
    if is_text and not checked.name:
        raise InvalidValue(field, str(checked), "must name a file")
    if suffixes and checked.suffix not in suffixes:
        raise InvalidValue(field, str(checked), f"must end in {' or '.join(suffixes)}")
    return checked


_BESIDE = ("", "-journal", "-wal", "-shm")  # what SQLite may leave


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """The name of an empty file to be written meanwhile; it gets its own name if the block ends well.

    A process that is killed leaves a hidden file that ends in `.unfinished`.
    """
    refuse_if_there(path)
    target = path.parent.resolve() / path.name
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}{UNFINISHED_SUFFIX}")
    try:
        os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600))
        yield unfinished
        with unfinished.open("rb+") as written:
            os.fsync(written.fileno())
        _give_name(unfinished, target)
        sync_folder(target.parent)
    except OSError as error:
        remedy = "nothing was written: does its folder exist, has it space, and may it be written to?"
        raise StorageError(f"path = {shown(str(path))}: {error.strerror or error}; {remedy}") from error
    finally:
        for suffix in _BESIDE:
            with suppress(OSError):
                unfinished.with_name(unfinished.name + suffix).unlink()


def refuse_if_there(path: Path) -> None:
    """Whatever is there is not ours to replace."""
    if os.path.lexists(path):
        raise InvalidValue("path", str(path), "is there already, and is not replaced: name a new file, or remove it")


def _give_name(unfinished: Path, target: Path) -> None:
    """A link fails where somebody else was faster; a renaming would replace his file."""
    try:
        target.hardlink_to(unfinished)
    except FileExistsError:
        refuse_if_there(target)
        raise
    except OSError:  # a file system without links
        refuse_if_there(target)
        unfinished.rename(target)


if TYPE_CHECKING:
    import polars as pl


def write_parquet(file: BinaryIO, pages: Iterable[pl.DataFrame], schema: dict[str, Any], *, group_rows: int) -> None:
    """All pages into a file that is open; OSError where the disk fails."""
    from polars.exceptions import ComputeError
    from polars.io.plugins import register_io_source

    failed: list[BaseException] = []

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        try:
            yield from pages
        except BaseException as error:
            failed.append(error)
            raise

    try:
        register_io_source(source, schema=schema).sink_parquet(file, row_group_size=group_rows)
    except ComputeError as error:
        if failed:  # Polars has made a text of it
            raise failed[0] from None
        if "os error" not in str(error):
            raise
        raise OSError(str(error)) from error
