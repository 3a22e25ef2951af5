"""Settings of all tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Databases wait for the disk at every commit. Whether it keeps what it was told only a power cut could show, and tests
# cut no power: they kill processes, and files in memory survive that. So files go there, where there is enough of it
# and where programs may be run from it. TMPDIR names another place.
_MEMORY, _ENOUGH = "/dev/shm", 4 * 2**30


def _has_room(folder: str) -> bool:
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= _ENOUGH and not found.f_flag & os.ST_NOEXEC


if "TMPDIR" not in os.environ and _has_room(_MEMORY):
    os.environ["TMPDIR"] = _MEMORY  # for processes that tests start, too
    tempfile.tempdir = None  # ask again

# One composition for all policies, so that it is compiled once; processes that tests start do the same. That presets
# decide alike on the compositions of their own is tested in engine/test_presets_of_their_own.py.
os.environ.setdefault("DORAL_COMPOSE", "any")

# No time limit per example: the first call of a kernel compiles it, and that takes seconds.
settings.register_profile("doral", deadline=None)
settings.load_profile("doral")


@pytest.fixture(scope="module")
def compiled_alone() -> Iterator[None]:
    """Kernels that a module calls from Python are programs of their own: compiled in a third of the time, called
    in a multiple of it.
    """
    from doral._kernel import Kernel
    from tests.alone import call_alone

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", call_alone)
        yield
