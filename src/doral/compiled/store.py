"""Compiled programs between processes: loaded where they are, compiled once where they are not.

A file that is damaged, or that somebody else could have written, is compiled anew. One process compiles while the
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

from doral.compiled.cache import cache_folder
from doral.compiled.notice import announce_compiling, announce_waiting
from doral.compiled.ownership import read_ours, why_not_ours
from doral.compiled.prepared import prepared_bitcode

if TYPE_CHECKING:
    from doral.compiled.machine import Loaded
    from doral.compiled.program import Program

_DIGEST_BYTES = 32


def load(program: Program) -> Loaded:
    """The code of a program, in memory."""
    from doral.compiled.machine import Loaded

    folder = cache_folder()
    if folder is None or why_not_ours(folder) is not None:
        return Loaded(compile_program(program))
    path = folder / _name(program)
    code = _read(path)
    if code is None:
        with _only_one(path.with_suffix(".lock"), program.label):
            code = _read(path)
            if code is None:
                code = compile_program(program)
                _write(path, code)
    return Loaded(code)


def _name(program: Program) -> str:
    from doral.compiled.machine import cpu_features, cpu_name

    target = f"{program.key} {cpu_name()} {cpu_features()}"
    return f"{program.name}-{hashlib.sha256(target.encode()).hexdigest()[:24]}.code"


def compile_program(program: Program) -> bytes:
    """Machine code, from prepared bitcode if this installation has brought some."""
    from doral.compiled.machine import to_object

    bitcode = prepared_bitcode(program)
    announce_compiling(program.label, program.seconds, is_prepared=bitcode is not None)
    if bitcode is None:
        bitcode = lower(program)
    return to_object(bitcode)


def lower(program: Program) -> bytes:
    """LLVM bitcode, before it is optimised."""
    with _without_collection():
        from doral.compiled.machine import to_bitcode
        from doral.compiled.translate import translate

        return to_bitcode(translate(program.entries))


@contextmanager
def _without_collection() -> Iterator[None]:
    """A compiler makes many objects that stay: looking for garbage among them would take a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(path: Path) -> bytes | None:
    """The code, if the file is there, ours and whole."""
    data = read_ours(path)
    if data is None:
        return None
    code = data[_DIGEST_BYTES:]
    return code if _digest(path, code) == data[:_DIGEST_BYTES] else None


def _digest(path: Path, code: bytes) -> bytes:
    """Of the code, and of which program's it is: that of another one must not be run in its place."""
    return hashlib.sha256(path.name.encode() + code).digest()


def _write(path: Path, code: bytes) -> None:
    """All of it or nothing, for us alone; a full disk only means that the next process compiles again."""
    with suppress(OSError):
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            written = Path(file.name)
            try:
                file.write(_digest(path, code) + code)
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
    except ImportError:
        yield
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
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
