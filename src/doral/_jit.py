"""The only compile decorator, and where compiled code is kept between processes.

Numba does not notice an edit in *another* file that a kernel calls into: its cached machine code would
be silently stale. So the cache folder carries a hash of all our sources, and an edit anywhere gives a new folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

KEPT_FOLDERS = 3  # older compiled versions of ourselves are removed beyond this many


def _sources_hash() -> str:
    root = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_root() -> Path:
    """`DORAL_CACHE_DIR`, else the user's cache folder, else a private temporary one."""
    given = os.environ.get("DORAL_CACHE_DIR")
    wanted = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "doral"
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.gettempdir()) / f"doral-{os.getuid()}"
    if os.access(wanted, os.W_OK):
        return wanted
    return Path(tempfile.gettempdir()) / f"doral-{os.getuid()}"


@cache
def cache_folder() -> Path:
    """The folder of the compiled code for exactly these sources."""
    root = _cache_root()
    folder = root / f"kernels-{_sources_hash()}"
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    others = sorted(root.glob("kernels-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in others[KEPT_FOLDERS:]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def is_compiled() -> bool:
    """Whether an earlier process has left compiled code for these sources."""
    return any(cache_folder().rglob("loop.play-*.nbc"))


def _compile(function: Function, *, inline: bool, inner: bool = False) -> Function:
    earlier = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())  # read by numba when it decorates; other libraries keep theirs
    try:
        compiled: Function = numba.njit(
            cache=True,
            nogil=True,
            error_model="numpy",  # divisions are not checked: they would have to raise
            _nrt=False,  # no reference counts: five times faster with a state of many arrays, and nothing can allocate
            forceinline=inline,
            no_cfunc_wrapper=True,  # nobody takes the address of a kernel
            no_cpython_wrapper=inner,
        )(function)
    finally:
        numba.config.CACHE_DIR = earlier
    return compiled


def jit(function: Function) -> Function:
    """Compile `function` and inline it where it is called: passing a whole state costs more than most bodies.

    No fast-math: the same inputs give the same bits wherever it is inlined.
    """
    return _compile(function, inline=True)


def jit_rare(function: Function) -> Function:
    """Compile a function that is called rarely: not inlined, which keeps the code and its compile time small."""
    return _compile(function, inline=False)


def jit_inner(function: Function) -> Function:
    """Like `jit`, for what only other kernels call: without the code that unpacks a whole state from Python objects,
    which takes longer to compile than most bodies.
    """
    return _compile(function, inline=True, inner=True)


def jit_rare_inner(function: Function) -> Function:
    """Like `jit_rare`, for what only other kernels call."""
    return _compile(function, inline=False, inner=True)


_SIGN_OFF = 2**63 - 1


@jit_inner
def position(index: int) -> int:
    """The index itself, known to the compiler not to be negative: it then spares the test for indices from the end."""
    return index & _SIGN_OFF
