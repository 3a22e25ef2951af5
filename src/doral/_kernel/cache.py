"""Where compiled code is kept between processes."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from doral._kernel.sources import sources_digest

LIBRARIES = ("numba", "llvmlite", "numpy")
KEPT_FOLDERS = 3  # older compiled versions of ourselves are removed beyond this many


def _roots() -> Iterator[Path]:
    """`DORAL_CACHE_DIR`, else the user's cache folder, if there is one; else a private temporary one."""
    given = os.environ.get("DORAL_CACHE_DIR")
    with suppress(RuntimeError):  # a user without a home
        yield Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "doral"
    yield _private_temporary_folder()


def _private_temporary_folder() -> Path:
    """What is found there is run: it must be ours and nobody else's, or a new one is made."""
    if not hasattr(os, "getuid"):
        return Path(tempfile.mkdtemp(prefix="doral-"))
    folder = Path(tempfile.gettempdir()) / f"doral-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return folder
    return Path(tempfile.mkdtemp(prefix="doral-"))


def _version() -> str:
    """Sources, and what compiles them."""
    words = " ".join([sources_digest(), *(f"{name} {version(name)}" for name in LIBRARIES)])
    return hashlib.sha256(words.encode()).hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """The folder of the compiled code for exactly these sources: the first that can be written to."""
    for root in _roots():
        folder = root / f"kernels-{_version()}"
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)
            if os.access(folder, os.W_OK):
                _tidy(root)
                return folder
    return Path(tempfile.mkdtemp(prefix="doral-"))


def _tidy(root: Path) -> None:
    """Remove what is old; others may do so at the same time."""
    with suppress(OSError):
        others = sorted(root.glob("kernels-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[KEPT_FOLDERS:]:
            shutil.rmtree(old, ignore_errors=True)
