"""What numbers depend on, apart from settings and seeds: workers must have the same."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version

import numpy as np

from doral._kernel.sources import digest_of
from doral._version import VERSION

REMEDY = "install the same on both sides, on processors of one kind"
_LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "polars")


@cache
def versions() -> dict[str, str]:
    """Of ourselves, of all our sources, of Python, of the libraries that compute, and of what they compute with.

    Logarithms and powers are the C library's and NumPy's: another one may round the last bit otherwise, and so may the
    same on an older processor. Products of matrices are added up in one order (`simulation.sums`).
    """
    return {
        "doral": VERSION,
        "sources of doral": digest_of("**/*.py")[:16],
        "Python": platform.python_version(),
        "processor": platform.machine(),
        "C library": " ".join(platform.libc_ver()).strip() or platform.system(),
        "last bits of exp, log and power": _last_bits(),
        **{name: version(name) for name in _LIBRARIES},
    }


def _last_bits() -> str:
    """A digest of some thousand values, by NumPy and by the C library: both have several ways, by processor."""
    x = np.linspace(0.01, 30.0, 4_001)
    by_numpy = (np.exp(-x), np.log(x), np.log1p(x), np.expm1(-x), np.power(x, -1.7))
    by_library = [[math.exp(-one), math.log(one), math.pow(one, -1.7), math.lgamma(one)] for one in x.tolist()]
    return hashlib.sha256(np.array(by_numpy).tobytes() + np.array(by_library).tobytes()).hexdigest()[:8]


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
