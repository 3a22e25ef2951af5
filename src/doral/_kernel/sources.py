"""The sources that decide: a change in one of them makes other machine code, and states that do not fit any more.

One list for both: the compile cache and the snapshots of campaigns. A test proves that it is complete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent
DECIDING = (  # relative to the package
    "_kernel/*.py",
    "_arrays.py",
    "_check.py",
    "_delay_kernels.py",
    "_delay_kinds.py",
    "delays/*.py",
    "engine/**/*.py",
    "errors.py",
    "estimators/*.py",
    "pacing.py",
    "problem.py",
    "racing.py",
    "simulation/logbook.py",
    "simulation/loop.py",
    "simulation/outcome.py",
    "simulation/scenario.py",
    "simulation/tape.py",
)
LIBRARIES = ("numba", "llvmlite", "numpy")


def deciding_files() -> Iterator[Path]:
    """All of them, in a fixed order."""
    for pattern in DECIDING:
        yield from sorted(ROOT.glob(pattern))


@cache
def sources_digest() -> str:
    """Their contents, and the versions of what compiles them."""
    digest = hashlib.sha256(" ".join(f"{name} {version(name)}" for name in LIBRARIES).encode())
    for path in deciding_files():
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
