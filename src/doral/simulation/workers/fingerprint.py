"""What numbers depend on, apart from settings and seeds: workers must have the same."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version

from doral._kernel.sources import digest_of
from doral._version import VERSION

_LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "polars")


@cache
def versions() -> dict[str, str]:
    """Of ourselves, of all our sources, of Python, of the libraries that compute, and of what they compute with.

    Logarithms and powers are the C library's: another one may round the last bit otherwise.
    """
    return {
        "doral": VERSION,
        "sources of doral": digest_of("**/*.py")[:16],
        "Python": platform.python_version(),
        "processor": platform.machine(),
        "C library": " ".join(platform.libc_ver()).strip() or platform.system(),
        **{name: version(name) for name in _LIBRARIES},
    }


def difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """What differs, both sides named; nothing where all is the same.

    >>> difference({"numpy": "2.1.0", "doral": "1"}, {"numpy": "2.2.0", "doral": "1"})
    'numpy 2.1.0 there, 2.2.0 here'
    """
    names = [name for name in ours if theirs.get(name) != ours[name]]
    return "; ".join(f"{name} {theirs.get(name, 'missing')} there, {ours[name]} here" for name in names)


def probe() -> Callable[[], dict[str, str]]:
    """A function that says what a worker has, also where that is another doral, or none."""

    def found() -> dict[str, str]:  # not importable by name, so it travels whole: the worker may not have this module
        import platform

        try:
            from doral.simulation.workers.fingerprint import versions
        except ImportError:
            try:
                from doral import _version
            except ImportError:
                return {"doral": "missing", "Python": platform.python_version()}
            return {"doral": _version.VERSION, "Python": platform.python_version()}
        return versions()

    return found
