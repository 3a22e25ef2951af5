"""Fixtures for tests of single kernels."""

from __future__ import annotations

import pytest

from doral.compiled import Kernel
from tests.engine.interpreted import call_in_python


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run kernels as Python instead of compiling them."""
    monkeypatch.setattr(Kernel, "__call__", call_in_python)
