"""Fixtures for tests of single kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doral.compiled import running_python


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Run kernels as Python instead of compiling them."""
    with running_python():
        yield
