"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# No time limit per example: the first call of a kernel compiles it, and that takes seconds.
settings.register_profile("doral", deadline=None)
settings.load_profile("doral")
