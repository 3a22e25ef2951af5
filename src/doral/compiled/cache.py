"""Where compiled code is kept between processes: only ever in a folder that is ours, for what is found there is run."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from doral.compiled.notice import announce_no_cache
from doral.compiled.ownership import HAS_OWNERS, holds_only_ours, why_not_ours
from doral.compiled.sources import sources_digest

LIBRARIES = ("numba", "llvmlite", "numpy")
KEPT_FOLDERS = 3  # older compiled versions of ourselves are removed beyond this many
MADE_BY_US = "made-by-doral"  # a file in each folder that we have made: no other is ever removed

_NAME = re.compile(r"kernels-[0-9a-f]{16}")


def kernels_version() -> str:
    """Sources, and what compiles them."""
    words = " ".join([sources_digest(), *(f"{name} {version(name)}" for name in LIBRARIES)])
    return hashlib.sha256(words.encode()).hexdigest()[:16]


@cache
def cache_folder() -> Path | None:
    """The folder of the compiled code for exactly these sources, without links on its way.

    It is in `DORAL_CACHE_DIR`, else in the user's cache folder. Where that cannot be used, or others could have put
    something there, it is a new one that lasts as long as this process; None where not even that can be had.
    """
    try:
        return _folder_in(_wanted_root())
    except (OSError, RuntimeError) as error:  # a user without a home is a RuntimeError
        announce_no_cache(str(error))
    try:
        return _folder_in(_temporary_root())
    except OSError:
        return None


def _wanted_root() -> Path:
    given = os.environ.get("DORAL_CACHE_DIR")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "doral"


def _temporary_root() -> Path:
    """A new one each time: a name that can be foreseen could have been taken by somebody else."""
    root = Path(tempfile.mkdtemp(prefix="doral-"))
    atexit.register(_remove_in, os.getpid(), root)
    return root


def _remove_in(process: int, root: Path) -> None:
    """A forked process ends, too, but it has made nothing."""
    if os.getpid() == process:
        shutil.rmtree(root, ignore_errors=True)


def _folder_in(root: Path) -> Path:
    """OSError if it cannot be written to, or if it is not ours alone."""
    folder = root.absolute() / f"kernels-{kernels_version()}"
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    _refuse(why_not_ours(there, others_may_add=there != folder))  # before anything is made in it
    _make(folder)
    folder = folder.resolve(strict=True)
    _refuse(why_not_ours(folder))
    if not holds_only_ours(folder):
        raise PermissionError(f"another user has put files into {folder}")
    os.utime(folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} cannot be written to")
    _tidy(folder.parent)
    return folder


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise PermissionError(reason)


def _make(folder: Path) -> None:
    """And what is missing above it, for us alone, whatever the umask."""
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    for place in reversed(missing):
        with suppress(FileExistsError):  # another process was quicker
            place.mkdir(mode=0o700)
            if place == folder:
                os.close(os.open(folder / MADE_BY_US, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _tidy(root: Path) -> None:
    """Remove what is old and ours; others may do so at the same time."""
    with suppress(OSError):
        made = [path for path in root.iterdir() if _was_made_by_us(path)]
        for old in sorted(made, key=lambda path: path.lstat().st_mtime, reverse=True)[KEPT_FOLDERS:]:
            shutil.rmtree(old, ignore_errors=True)  # does not follow links


def _was_made_by_us(folder: Path) -> bool:
    if _NAME.fullmatch(folder.name) is None:
        return False
    try:
        found, mark = folder.lstat(), (folder / MADE_BY_US).lstat()
    except OSError:
        return False
    is_whole = stat.S_ISDIR(found.st_mode) and stat.S_ISREG(mark.st_mode)
    return is_whole and (not HAS_OWNERS or found.st_uid == mark.st_uid == os.geteuid())
