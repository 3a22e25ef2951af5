"""The sources that decide: a change in one of them makes other machine code, and states that do not fit any more.

One list for both: the compile cache and the snapshots of campaigns. A test proves that it is complete.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
DECIDING = (  # relative to the package
    "_kernel/*.py",
    "_arrays.py",
    "_cached.py",
    "_check.py",
    "_delay_kernels.py",
    "_delay_kinds.py",
    "_elementary.py",
    "_forks.py",
    "_given.py",
    "delays/*.py",
    "engine/**/*.py",
    "errors.py",
    "estimators/*.py",
    "pacing/*.py",
    "person.py",
    "problem/*.py",
    "racing.py",
    "simulation/results/outcome.py",
    "simulation/scenario/*.py",
    "simulation/world/*.py",
)


@cache
def sources_digest() -> str:
    """The contents of the sources that decide."""
    return digest_of(*DECIDING)


def digest_of(*patterns: str) -> str:
    """The contents of all files of the package that fit one of these patterns."""
    digest = hashlib.sha256()
    for path in files_of(*patterns):
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def files_of(*patterns: str) -> list[Path]:
    """In a fixed order."""
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
