"""The cache of compiled programs: loaded where the code exists, compiled once where it does not.

Code is read from the user's cache folder, or from what a wheel has brought for common processors. It is run, so only
a file that belongs to this user or to root counts, in a folder into which no other user could have put it. A damaged
file is compiled anew. One process compiles while the others wait for it. Where files have no owners (Windows), folders
of users are private anyway.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from doral import _progress

if TYPE_CHECKING:
    from doral.compiled.machine import Loaded, Target
    from doral.compiled.program import Program

PREPARED = Path(__file__).parent / "prepared"  # what a wheel has brought: trusted as the sources beside it are
FOLDER = "code"  # in the folder of the cache
KEPT_FILES = 40  # of compiled code: older ones are removed beyond this many
LONG_S = 2.0  # shorter waits explain themselves
HAS_OWNERS = hasattr(os, "geteuid")
_CODE = re.compile(r".+-[0-9a-f]{24}\.(code|lock).*")  # unfinished ones of killed processes, too
_DIGEST_BYTES = 32
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_THROUGH_BY_OTHERS = stat.S_IXGRP | stat.S_IXOTH
_FOR_READING = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe in the place of a file must not keep us waiting
)

# --- programs --------------------------------------------------------------------------------------------------------


def load(program: Program) -> Loaded:
    """Return the code of a program, in memory."""
    from doral.compiled.machine import Loaded

    code = _found(program)
    if code is None:
        path = next(iter(_paths(program)[::-1]), None)
        with _only_one(path, program.label):
            code = _read(path)
            if code is None:
                code = compile_program(program)
                _keep(path, code)
    return Loaded(code)


def is_there(program: Program) -> bool:
    """Return whether machine code of the program is kept already, or came with the wheel."""
    return _found(program) is not None


def _found(program: Program) -> bytes | None:
    return next(filter(None, map(_read, _paths(program))), None) or prepared_code(program)


def compile_program(program: Program) -> bytes:
    """Return machine code for this processor."""
    from doral.compiled.machine import HOST

    announce_compiling(program.label, program.seconds)
    return _compiled(program, HOST)


def prepare(program: Program) -> Path:
    """Write the code that a wheel carries: it runs on most processors of this kind of machine."""
    from doral.compiled.machine import BASELINE

    path = PREPARED / _name(program, BASELINE)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(_with_digest(path.name, _compiled(program, BASELINE)))
    return path


def prepared_code(program: Program) -> bytes | None:
    """Return what the wheel has brought, if it is for this processor and this code."""
    from doral.compiled.machine import BASELINE, runs_baseline

    if not PREPARED.is_dir() or not runs_baseline():
        return None
    path = PREPARED / _name(program, BASELINE)
    try:
        return _whole(path.name, path.read_bytes())
    except OSError:
        return None


def _compiled(program: Program, target: Target) -> bytes:
    """A translation makes many objects that stay: to look for garbage among them would take a tenth of the time."""
    from doral.compiled.machine import check_once, to_object
    from doral.compiled.translate import translate

    check_once()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return to_object(translate(program.entries), target)
    finally:
        if was_enabled:
            gc.enable()


def _name(program: Program, target: Target) -> str:
    from doral.compiled.machine import TRIPLE

    words = f"{program.key} {TRIPLE} {target.cpu} {target.features}"
    return f"{program.name}-{hashlib.sha256(words.encode()).hexdigest()[:24]}.code"


def _with_digest(name: str, code: bytes) -> bytes:
    """The code, and before it a digest that names the program: that of another one must not be run in its place."""
    return hashlib.sha256(name.encode() + code).digest() + code


def _whole(name: str, data: bytes) -> bytes | None:
    """The code in a file, if that is not damaged."""
    code = data[_DIGEST_BYTES:]
    return code if _with_digest(name, code) == data else None


# --- files -----------------------------------------------------------------------------------------------------------


def _paths(program: Program) -> list[Path]:
    """Where the code of a program may be; the last one is for writing. None where others could have put something."""
    from doral.compiled.machine import HOST

    name = _name(program, HOST)
    return [folder / name for folder in folders() if why_not_ours(folder) is None]


def _read(path: Path | None) -> bytes | None:
    """The code in a file that no other user could have written. What is looked at is what was opened."""
    if path is None:
        return None
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, _FOR_READING)) as file:
            found = os.fstat(file.fileno())
            is_safe = not HAS_OWNERS or (_is_trusted(found.st_uid) and not found.st_mode & _BY_OTHERS)
            return _whole(path.name, file.read()) if stat.S_ISREG(found.st_mode) and is_safe else None
    except OSError:
        return None


def _keep(path: Path | None, code: bytes) -> None:
    """All of it or nothing, for us alone; a full disk only means that the next process compiles again."""
    if path is None:
        return
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
            written = Path(file.name)
            try:
                file.write(_with_digest(path.name, code))
                file.flush()
            except OSError:
                written.unlink()
                raise
        written.replace(path)
    except OSError as error:
        announce_no_cache(str(error))
    remove_oldest(path.parent)


def remove_oldest(folder: Path) -> None:
    """Keep the newest files of code; other processes may do so at the same time."""
    with suppress(OSError):
        files = [(path.lstat().st_mtime, path) for path in folder.iterdir() if _CODE.fullmatch(path.name)]
        for _, old in sorted(files, reverse=True)[2 * KEPT_FILES :]:  # each with its lock
            with suppress(OSError):
                old.unlink()


@contextmanager
def _only_one(code: Path | None, what: str) -> Iterator[None]:
    """One process at a time; where files cannot be locked, several may compile the same."""
    try:
        import fcntl

        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = -1 if code is None else os.open(code.with_suffix(".lock"), flags, 0o600)
    except (ImportError, OSError):
        descriptor = -1
    if descriptor == -1:
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


# --- the folder ------------------------------------------------------------------------------------------------------


def folders() -> list[Path]:
    """Return the folders in which code is looked for; it is written to the last one.

    Where the user's cannot be written to, that is one which lasts as long as this process: a child that compiles while
    this process interprets leaves its code there.
    """
    kept = cache_folder()
    is_writable = kept is not None and os.access(kept, os.W_OK)
    own = None if is_writable else _temporary_folder()
    return [folder for folder in (kept, own) if folder is not None]


@cache
def _temporary_folder() -> Path | None:
    """A new one each time: a name that can be foreseen could have been taken by another user."""
    try:
        root = Path(tempfile.mkdtemp(prefix="doral-")).resolve()
        (root / FOLDER).mkdir(mode=0o700)
    except OSError:
        return None
    atexit.register(_remove_in, os.getpid(), root)
    return root / FOLDER


def _remove_in(process: int, root: Path) -> None:
    """A forked process ends, too, but it has made nothing."""
    if os.getpid() == process:
        shutil.rmtree(root, ignore_errors=True)


@cache
def cache_folder() -> Path | None:
    """Return the folder of compiled code, without links on its way; None where it cannot be had, or is not ours alone.

    It is in `DORAL_CACHE_DIR`, else in the user's cache folder.
    """
    given = os.environ.get("DORAL_CACHE_DIR")
    try:
        root = (
            Path(given).expanduser()
            if given
            else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "doral"
        )
        folder = root.absolute() / FOLDER
        there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
        reason = why_not_ours(there, others_may_add=there != folder)  # before anything is made in it
        if reason is None:
            for place in reversed([one for one in (folder, *folder.parents) if not os.path.lexists(one)]):
                with suppress(FileExistsError):  # another process was quicker
                    place.mkdir(mode=0o700)  # for us alone, with any umask
            folder = folder.resolve(strict=True)
            reason = why_not_ours(folder)
    except (OSError, RuntimeError) as error:  # a user without a home is a RuntimeError
        reason = str(error)
    if reason is not None:
        announce_no_cache(reason)
    return folder if reason is None else None


def why_not_ours(folder: Path, *, others_may_add: bool = False) -> str | None:
    """What lets others decide what is in this folder; None if nothing does.

    A user who may rename a folder above it may put another in its place. So the whole path is checked, both as it is
    written and without links. Give a folder without links (`resolve`) to what opens files in it.
    `others_may_add` is for a folder in which we only make one of our own: there it is enough that others cannot rename
    ours (the sticky bit).
    """
    if not HAS_OWNERS:
        return None
    for way in dict.fromkeys((folder.absolute(), folder.resolve())):
        is_closed = False  # a folder of ours above, which no other user can pass
        for place in (*reversed(way.parents), way):
            try:
                found = place.lstat()
            except OSError as error:
                return f"{place}: {error.strerror}"
            if not _is_trusted(found.st_uid):
                return f"{place} belongs to another user ({found.st_uid})"
            if stat.S_ISLNK(found.st_mode):
                continue
            is_kept_by_owners = bool(found.st_mode & stat.S_ISVTX) and (others_may_add or place != way)
            if found.st_mode & _BY_OTHERS and not is_closed and not is_kept_by_owners:
                return f"others can write to {place} (chmod go-w would change that)"
            is_closed = is_closed or (found.st_uid == os.geteuid() and not found.st_mode & _THROUGH_BY_OTHERS)
    return None


def _is_trusted(owner: int) -> bool:
    """Root could change this process anyway; root trusts no other user."""
    return owner in (0, os.geteuid())


# --- messages --------------------------------------------------------------------------------------------------------


def announce_compiling(what: str, seconds: float) -> None:
    """Say that a compilation begins that takes about so long."""
    if seconds >= LONG_S:
        _say(f"compiling {what} for this machine, once: about {seconds:.0f} s")


def announce_waiting(what: str) -> None:
    """Say that another process compiles it."""
    _say(f"waiting for another process that compiles {what}")


def announce_no_cache(reason: str) -> None:
    """Say that every process compiles for itself: without a terminal, in the log."""
    words = f"compiled code is not kept: {reason}; set DORAL_CACHE_DIR to a folder that only you can write to"
    if not _say(words):
        logging.getLogger("doral").warning(words)


def _say(words: str) -> bool:
    """Whether there was a terminal or a notebook to say it."""
    if not _progress.is_watched():
        return False
    _progress.say(f"doral: {words}")
    return True
