"""Fixtures for tests of single kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Run kernels as Python: integers wrap around without a warning."""
    with np.errstate(all="ignore"):
        yield
