"""A process that was forked has to open the store again: it is told so, and its parent goes on unharmed."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import doral
from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.store import Store
from tests.live.checks import adds_up, log_is_whole
from tests.live.test_campaign import problem

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")

Opener = Callable[[str], Store]


def make(store: Store) -> Campaign:
    return store.create("kits", problem(budget=1e6, horizon=100_000), policy="d-linucb", seed=1, clock="rounds")


def in_child(work: Callable[[], str], within_s: int = 40) -> str:
    """What it says in a forked process; an error of the library by its message."""
    said, say = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(within_s)
            try:
                words = work()
            except DoralError as error:
                words = f"{type(error).__name__}: {error}"
            os.write(say, words.encode())
            code = 0
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(say)
    with os.fdopen(said) as words_of_child:
        words = words_of_child.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with {status}"
    return words


@contextlib.contextmanager
def threads(work: Callable[[int], object], count: int = 3) -> Iterator[None]:
    """Threads that repeat some work until the block ends; what goes wrong in one of them goes wrong here."""
    errors: list[BaseException] = []
    is_over = threading.Event()

    def repeat(number: int) -> None:
        try:
            while not is_over.is_set():
                work(number)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    running = [threading.Thread(target=repeat, args=(number,)) for number in range(count)]
    for one in running:
        one.start()
    try:
        yield
    finally:
        is_over.set()
        for one in running:
            one.join(60)
    assert not any(one.is_alive() for one in running)
    assert errors == []


CALLS: dict[str, Callable[[Store, Campaign], object]] = {
    "decide": lambda _, campaign: campaign.decide("old"),
    "feedback": lambda _, campaign: campaign.feedback("x-1", 1.0),
    "report": lambda _, campaign: campaign.report(),
    "facts": lambda _, campaign: campaign.facts(),
    "decisions": lambda _, campaign: list(campaign.decisions()),
    "campaign": lambda store, _: store.campaign("kits"),
    "create": lambda store, _: store.create("more", problem()),
    "keys": lambda store, _: store.books.all_keys(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_child_is_told_to_open_the_store_again(url: str, open_store: Opener, call: str) -> None:
    """Whatever it asks, and whatever lock another thread of its parent holds at that moment."""
    store = open_store(url)
    campaign = make(store)

    def ask() -> str:
        CALLS[call](store, campaign)
        return "done"

    with threads(lambda _: campaign.decide("old")):
        for _ in range(3):
            said = in_child(ask)
            if url == "memory://" and call in ("create", "keys"):
                assert said in ("done", "") or "open it again" in said
            else:
                assert "StorageError: this store was opened in the process that this one was forked from" in said
    assert len(adds_up(campaign)) == campaign.report().arrivals
    log_is_whole(campaign)


def test_a_child_that_opens_postgresql_again_goes_on(postgres_url: str, open_store: Opener) -> None:
    campaign = make(open_store(postgres_url))

    def go_on() -> str:
        with doral.open(postgres_url) as store:
            return store.campaign("kits").decide("young", key="child").id

    with threads(lambda _: campaign.decide("old")):
        said = [in_child(go_on) for _ in range(5)]
    assert len(set(said)) == 1
    assert campaign.decide("young", key="child").id == said[0]
    assert len(adds_up(campaign)) == campaign.report().arrivals
    log_is_whole(campaign)


def test_a_sqlite_file_that_the_parent_had_open_is_closed_to_the_child(tmp_path: Path, open_store: Opener) -> None:
    """SQLite would believe that the child has the locks of its parent."""
    path = tmp_path / "campaigns.db"
    store = open_store(f"sqlite:///{path}")
    campaign = make(store)
    campaign.decide("old")

    def open_again() -> str:
        doral.open(f"sqlite:///{path}")
        return "opened"

    said = in_child(open_again)
    assert "StorageError" in said
    assert "spawn" in said
    store.close()

    def decide() -> str:
        with doral.open(f"sqlite:///{path}") as again:
            return again.campaign("kits").decide("old").id

    assert "-" in in_child(decide)  # nothing was open when it was forked
    assert campaign.report().arrivals == 2


def test_a_child_that_ends_leaves_its_parent_alone(durable_url: str) -> None:
    """However it ends, in the middle of the parent's transaction."""
    program = f"""
import os, sys, doral
from tests.live.test_campaign import problem
store = doral.open({durable_url!r})
campaign = store.create("kits", problem(), policy="d-linucb", seed=1, clock="rounds")
campaign.decide("old")
log = campaign._session._open()
for number, end in enumerate((lambda: os._exit(0), sys.exit, store.close), start=2):
    log.begin()
    if os.fork() == 0:
        end()
        os._exit(0)
    os.wait()
    log.rollback()
    campaign.decide("old")
    assert campaign._session._log is log, number
    assert campaign.report().arrivals == number
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_files_are_still_whole_after_many_forks(tmp_path: Path, open_store: Opener) -> None:
    path = tmp_path / "campaigns.db"
    campaign = make(open_store(f"sqlite:///{path}"))
    with threads(lambda _: campaign.decide("old"), 2):
        for _ in range(30):
            in_child(lambda: "done")
    campaign._session.close()
    with contextlib.closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    log_is_whole(campaign)
