"""The folder in which compiled code is kept between processes: only ever one that is ours, for what is there is run."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from doral.compiled.notice import announce_no_cache
from doral.compiled.ownership import holds_only_ours, why_not_ours

KEPT_FILES = 40  # of compiled code: older ones are removed beyond this many
_CODE = re.compile(r".+-[0-9a-f]{24}\.(code|lock)")


@cache
def cache_folder() -> Path | None:
    """Return the folder of compiled code, without links on its way.

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


def is_shared() -> bool:
    """Return whether other processes of this user keep their code in the same folder."""
    folder = cache_folder()
    return folder is not None and folder.parent == _wanted_root().resolve()


def _wanted_root() -> Path:
    given = os.environ.get("DORAL_CACHE_DIR")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "doral"


def _temporary_root() -> Path:
    """A new one each time: a name that can be foreseen could have been taken by another user."""
    root = Path(tempfile.mkdtemp(prefix="doral-"))
    atexit.register(_remove_in, os.getpid(), root)
    return root


def _remove_in(process: int, root: Path) -> None:
    """A forked process ends, too, but it has made nothing."""
    if os.getpid() == process:
        shutil.rmtree(root, ignore_errors=True)


def _folder_in(root: Path) -> Path:
    """OSError if it cannot be written to, or if it is not ours alone."""
    folder = root.absolute() / "code"
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    _refuse(why_not_ours(there, others_may_add=there != folder))  # before anything is made in it
    for place in reversed([one for one in (folder, *folder.parents) if not os.path.lexists(one)]):
        with suppress(FileExistsError):  # another process was quicker
            place.mkdir(mode=0o700)  # for us alone, whatever the umask
    folder = folder.resolve(strict=True)
    _refuse(why_not_ours(folder))
    if not holds_only_ours(folder):
        raise PermissionError(f"another user has put files into {folder}")
    os.utime(folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} cannot be written to")
    return folder


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise PermissionError(reason)


def remove_oldest(folder: Path) -> None:
    """Keep the newest files of code; other processes may do so at the same time."""
    with suppress(OSError):
        files = [(path.lstat().st_mtime, path) for path in folder.iterdir() if _CODE.fullmatch(path.name)]
        for _, old in sorted(files, reverse=True)[2 * KEPT_FILES :]:  # each with its lock
            with suppress(OSError):
                old.unlink()
