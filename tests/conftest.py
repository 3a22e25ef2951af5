"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# One composition for all policies, so that it is compiled once; processes that tests start do the same. That presets
# decide alike on the compositions of their own is tested in engine/test_presets_of_their_own.py.
os.environ.setdefault("DORAL_COMPOSE", "any")

# No time limit per example: the first call of a kernel compiles it, and that takes seconds.
settings.register_profile("doral", deadline=None)
settings.load_profile("doral")
