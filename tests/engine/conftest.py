"""What tests of single pieces need."""

from __future__ import annotations

import pytest

from doral.compiled import Kernel
from tests.engine.interpreted import call_in_python


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile a kernel that is called from Python is not compiled."""
    monkeypatch.setattr(Kernel, "__call__", call_in_python)
