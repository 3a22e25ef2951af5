"""Settings of all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

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
