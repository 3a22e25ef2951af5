"""Compiled programs between processes: loaded where they are, compiled once where they are not.

Code is read from the user's cache folder, or from what a wheel has brought for common processors. A damaged file,
or one that another user could have written, is compiled anew. One process compiles while the
others wait for it.
"""

from __future__ import annotations

import gc
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from doral.compiled.cache import cache_folder, remove_oldest
from doral.compiled.notice import announce_compiling, announce_waiting
from doral.compiled.ownership import read_beside, read_ours, why_not_ours

if TYPE_CHECKING:
    from doral.compiled.machine import Loaded, Target
    from doral.compiled.program import Program

PREPARED = Path(__file__).parent / "prepared"  # what a wheel has brought
_DIGEST_BYTES = 32


def load(program: Program) -> Loaded:
    """Return the code of a program, in memory."""
    from doral.compiled.machine import HOST, Loaded

    folder = cache_folder()
    path = None if folder is None or why_not_ours(folder) is not None else folder / _name(program, HOST)
    code = (None if path is None else _whole(path.name, read_ours(path))) or prepared_code(program)
    if code is None and path is not None:
        with _only_one(path.with_suffix(".lock"), program.label):
            code = _whole(path.name, read_ours(path))
            if code is None:
                code = compile_program(program)
                _write(path, code)
                remove_oldest(path.parent)
    return Loaded(compile_program(program) if code is None else code)


def is_there(program: Program) -> bool:
    """Return whether machine code of the program is kept already, or came with the wheel."""
    from doral.compiled.machine import HOST

    folder = cache_folder()
    path = None if folder is None else folder / _name(program, HOST)
    return prepared_code(program) is not None or (path is not None and _whole(path.name, read_ours(path)) is not None)


def _name(program: Program, target: Target) -> str:
    from doral.compiled.machine import TRIPLE

    words = f"{program.key} {TRIPLE} {target.cpu} {target.features}"
    return f"{program.name}-{hashlib.sha256(words.encode()).hexdigest()[:24]}.code"


def compile_program(program: Program) -> bytes:
    """Return machine code for this processor."""
    from doral.compiled.machine import HOST

    announce_compiling(program.label, program.seconds)
    return _compiled(program, HOST)


def _compiled(program: Program, target: Target) -> bytes:
    """A translation makes many objects that stay: to look for garbage among them would take a tenth of the time."""
    from doral.compiled.machine import to_object
    from doral.compiled.self_test import check_once
    from doral.compiled.translate import translate

    check_once()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return to_object(translate(program.entries), target)
    finally:
        if was_enabled:
            gc.enable()


def prepare(program: Program) -> Path:
    """Write the code that a wheel carries: it runs on most processors of this kind of machine."""
    from doral.compiled.machine import BASELINE

    path = PREPARED / _name(program, BASELINE)
    path.parent.mkdir(exist_ok=True)
    code = _compiled(program, BASELINE)
    path.write_bytes(_digest(path.name, code) + code)
    return path


def prepared_code(program: Program) -> bytes | None:
    """What the wheel has brought, if it is for this processor and this code, and only those wrote it who wrote us."""
    from doral.compiled.machine import BASELINE, runs_baseline

    if not PREPARED.is_dir() or not runs_baseline():
        return None
    path = PREPARED / _name(program, BASELINE)
    return _whole(path.name, read_beside(path, Path(__file__)))


def _whole(name: str, data: bytes | None) -> bytes | None:
    """The code in a file, if that is not damaged."""
    code = b"" if data is None else data[_DIGEST_BYTES:]
    return code if data is not None and _digest(name, code) == data[:_DIGEST_BYTES] else None


def _digest(name: str, code: bytes) -> bytes:
    """Of the code, and of which program's it is: that of another one must not be run in its place."""
    return hashlib.sha256(name.encode() + code).digest()


def _write(path: Path, code: bytes) -> None:
    """All of it or nothing, for us alone; a full disk only means that the next process compiles again."""
    with suppress(OSError):
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            written = Path(file.name)
            try:
                file.write(_digest(path.name, code) + code)
                file.flush()
            except OSError:
                written.unlink()
                raise
        written.replace(path)


@contextmanager
def _only_one(path: Path, what: str) -> Iterator[None]:
    """One process at a time; where files cannot be locked, several may compile the same."""
    try:
        import fcntl

        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                announce_waiting(what)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
