"""Files written whole or not at all, also after an error or a crash."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

UNFINISHED_SUFFIX = ".unfinished"


@contextmanager
def replacing(path: Path | str, *, is_private: bool = False) -> Iterator[BinaryIO]:
    """A file to write to; it takes the place of `path` when the block ends, and only if it ends well.

    An exception, Ctrl-C, a full disk or a killed process leaves the old file as it was. The folder must exist. A new
    file that `is_private` is for its owner alone; one that is replaced keeps its permissions in any case. A device, a
    pipe or a socket is never replaced.
    """
    # A link stays a link: what it points to is replaced.
    target = Path(path).resolve()
    if target.exists() and not (target.is_file() or target.is_dir()):  # root could replace /dev/null
        raise OSError(errno.EINVAL, "Not a regular file; name another to write to", str(path))
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}{UNFINISHED_SUFFIX}")
    try:
        # Exclusive, and with the permissions that any other new file would get, unless it is private.
        with open(unfinished, "xb", opener=_open_private if is_private else None) as file:
            yield file
            file.flush()
            keep_permissions(target, unfinished)
            # Without this, a power cut could leave the new name on an empty file.
            os.fsync(file.fileno())
        unfinished.replace(target)
    except OSError as error:
        _remove(unfinished)
        is_of_the_system = error.errno is not None  # others would lose their message with it
        if is_of_the_system and (error.filename is None or error.filename == str(unfinished)):
            error.filename, error.filename2 = str(path), None  # the name that the caller knows
        raise
    except BaseException:
        _remove(unfinished)
        raise
    sync_folder(target.parent)


def write_bytes(path: Path | str, data: bytes) -> None:
    """Replace the file by one with this content."""
    with replacing(path) as file:
        file.write(data)


def write_text(path: Path | str, text: str) -> None:
    """Replace the file by one with this text, in UTF-8 and with line ends as given."""
    write_bytes(path, text.encode())


def remove_unfinished(folder: Path, *, older_than_s: float, now_s: float) -> None:
    """Remove what killed processes left behind; younger files may still be written by someone."""
    for left in folder.glob(f".*{UNFINISHED_SUFFIX}"):
        with suppress(OSError):  # another process may remove it first
            if now_s - left.stat().st_mtime > older_than_s:
                left.unlink()


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def keep_permissions(target: Path, unfinished: Path) -> None:
    """Those of the file that is about to be replaced, where there is one, for what takes its place."""
    with suppress(FileNotFoundError):
        unfinished.chmod(stat.S_IMODE(target.stat().st_mode))


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def sync_folder(folder: Path) -> None:
    """Make the new name durable, where folders can be opened at all."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems refuse; the file itself is safe
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
