"""A service for the tests of one file, and a client of its administrator; files that need another make their own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from tests.service.harness import Serving, serving


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def client(service: Serving) -> Iterator[httpx2.Client]:
    with service.client() as found:
        yield found
