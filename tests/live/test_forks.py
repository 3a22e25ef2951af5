"""Processes that are forked while other threads decide: parent and child both go on, and nothing is lost."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import doral
from doral._forks import lock_across_forks
from doral.live.campaign import Campaign
from doral.live.errors import OutcomeUnknown
from doral.live.storage import sqlite_forks
from doral.live.store import Store
from tests.live.checks import adds_up, log_is_whole
from tests.live.test_campaign import problem

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")

CHILDREN = 20
Opener = Callable[[str], Store]


def make(store: Store) -> Campaign:
    return store.create("kits", problem(budget=1e6, horizon=100_000), policy="d-linucb", seed=1, clock="rounds")


class Child:
    """A forked process that does something and says some words; killed if that takes too long."""

    def __init__(self, work: Callable[[], list[str]], within_s: int = 40) -> None:
        self._said, say = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads
            self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                signal.alarm(within_s)
                os.write(say, " ".join(work()).encode())
                code = 0
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(say)

    def words(self) -> list[str]:
        _, status = os.waitpid(self.pid, 0)
        with os.fdopen(self._said) as said:
            words = said.read().split()
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


def test_children_of_a_busy_process(url: str, open_store: Opener) -> None:
    campaign = make(open_store(url))
    mine: list[str] = []

    def decide(number: int) -> None:
        made = campaign.decide("old", key=None if number else f"key {len(mine)}")
        mine.append(made.id)
        if made.arm is not None and number == 2:
            campaign.feedback(made.id, 0.5)

    def decide_five() -> list[str]:
        return [campaign.decide("young").id for _ in range(5)]

    with threads(decide):
        children = []
        for _ in range(CHILDREN):
            before = len(mine)
            children.append(Child(decide_five))
            until = time.monotonic() + 30
            while len(mine) < before + 3 and time.monotonic() < until:
                time.sleep(0.001)
            assert len(mine) >= before + 3  # the parent goes on
        said = [child.words() for child in children]
    assert [len(words) for words in said] == [5] * CHILDREN
    theirs = [] if url == "memory://" else [one for words in said for one in words]  # which is each child's own
    assert len({*mine, *theirs}) == len(mine) + len(theirs)
    assert {one.id for one in adds_up(campaign)} == {*mine, *theirs}
    log_is_whole(campaign)


def test_a_fork_in_the_middle_of_a_batch(url: str, open_store: Opener) -> None:
    """The child finds a batch whole or not at all, and what is said about a decision with the decision."""
    campaign = make(open_store(url))
    size = 400

    def decide_many(number: int) -> None:
        made = campaign.decide_many([{"context": "old", "at": None}] * size)
        campaign.feedback_many([(one.id, 0.25) for one in made if one.arm is not None])

    def look() -> list[str]:
        if url == "memory://":  # which is its own: nobody writes to it meanwhile
            assert len(adds_up(campaign)) % size == 0
            log_is_whole(campaign)
        return [campaign.decide("old").id]

    with threads(decide_many, 1):
        children = []
        for _ in range(6):
            time.sleep(0.02)
            children.append(Child(look))
        said = [word for child in children for word in child.words()]
    assert len(set(said)) == len(said) or url == "memory://"
    assert len(adds_up(campaign)) % size == (0 if url == "memory://" else len(children))
    log_is_whole(campaign)


_pooled: list[Campaign] = []


def _decide_in_pool(context: str) -> str:
    return _pooled[0].decide(context).id


def test_a_pool_of_forked_processes(durable_url: str, open_store: Opener) -> None:
    """Its workers end in the ordinary way: what they inherited is not closed on their way out."""
    campaign = make(open_store(durable_url))
    _pooled[:] = [campaign]
    mine: list[str] = []
    with threads(lambda _: mine.append(campaign.decide("old").id), 1), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(3) as pool:
            theirs = pool.map_async(_decide_in_pool, ["young"] * 60).get(60)
            pool.close()
            pool.join()
    _pooled.clear()
    assert {one.id for one in adds_up(campaign)} == {*mine, *theirs}
    assert len(mine) + len(theirs) == len({*mine, *theirs})
    log_is_whole(campaign)


def test_a_child_that_outlives_its_parent(tmp_path: Path) -> None:
    """The parent dies; others open the file, write and leave. The child still has the locks that it needs."""
    url = f"sqlite:///{tmp_path / 'campaigns.db'}"
    go_read, go_write = os.pipe()
    said_read, said_write = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            campaign = make(doral.open(url))
            campaign.decide("old")
            if os.fork() == 0:
                signal.alarm(40)
                campaign.decide("old")
                os.write(said_write, b"ready\n")
                os.read(go_read, 1)
                for _ in range(20):
                    campaign.decide("old")
                os.write(said_write, b"done\n")
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(0)
    os.waitpid(parent, 0)
    assert os.read(said_read, 10) == b"ready\n"
    for _ in range(3):
        with doral.open(url) as store:
            store.campaign("kits").decide("old")
        files = {path.name for path in tmp_path.iterdir()}
        assert "campaigns.db-wal" in files  # who leaves last removes it: the child is still there
    os.write(go_write, b"x")
    assert os.read(said_read, 10) == b"done\n"
    with doral.open(url) as store:
        assert len(adds_up(store.campaign("kits"))) == 25
        log_is_whole(store.campaign("kits"))


def test_a_server_notices_the_death_of_a_parent_whose_child_lives(postgres_url: str, open_store: Opener) -> None:
    """Killed in a transaction: the child must not keep its connection, and with it the campaign's lock, alive."""
    campaign = make(open_store(postgres_url))
    said_read, said_write = os.pipe()
    parent = os.fork()
    if parent == 0:
        log = campaign._session._open()
        log.begin()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os.write(said_write, b"%d\n" % os.getpid())
            signal.pause()
        signal.pause()
    child = int(os.read(said_read, 20))
    try:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        started = time.monotonic()
        campaign.decide("old")
        assert time.monotonic() - started < 10
    finally:
        os.kill(child, signal.SIGKILL)


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


def test_sqlite_has_no_connection_while_a_process_is_forked(tmp_path: Path, open_store: Opener) -> None:
    campaign = make(open_store(f"sqlite:///{tmp_path / 'campaigns.db'}"))
    campaign.decide("old")

    def open_files() -> list[str]:
        links = Path("/proc/self/fd")
        names = [str(one.readlink()) for one in links.iterdir() if one.is_symlink()] if links.exists() else []
        return [Path(name).name for name in names if str(tmp_path) in name]

    assert "campaigns.db-wal" in open_files()
    assert Child(open_files).words() == []
    campaign.decide("old")
    assert campaign.report().arrivals == 2


def test_a_fork_waits_for_who_is_in_the_middle(tmp_path: Path) -> None:
    """And lets nobody in until it is over."""
    lock = lock_across_forks()
    steps: list[str] = []
    is_held = threading.Event()

    def hold() -> None:
        with lock, sqlite_forks.inside():
            is_held.set()
            time.sleep(0.3)
            steps.append("let go")

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    child = Child(lambda: [*steps[0].split(), str(lock.acquire(timeout=1))])
    steps.append("forked")
    assert child.words() == ["let", "go", "True"]
    thread.join()
    assert steps == ["let go", "forked"]


def test_a_signal_that_forks_in_the_middle_of_a_request(url: str, open_store: Opener) -> None:
    """The child, which comes back into the parent's transaction, does not end it."""
    campaign = make(open_store(url))
    session = campaign._session
    children: list[Child] = []

    def plan(log: Any, fold: Any, stamp: Any) -> Any:
        del log, fold, stamp
        if not children:
            children.append(Child(lambda: [str(session._log)]))
        return [], lambda _: None

    session.write(plan)
    assert children[0].words() == ["None"]
    campaign.decide("old")
    assert campaign.report().arrivals == 1


def test_files_are_still_whole_after_many_forks(tmp_path: Path, open_store: Opener) -> None:
    path = tmp_path / "campaigns.db"
    campaign = make(open_store(f"sqlite:///{path}"))

    def decide(_: int) -> None:
        # A child that closes the last other connection in the middle of a commit takes the write-ahead log with it.
        with contextlib.suppress(OutcomeUnknown):
            campaign.decide("old")

    with threads(decide, 2):
        for _ in range(30):
            Child(lambda: [campaign.decide("old").id]).words()
    campaign._session.close()
    with contextlib.closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    log_is_whole(campaign)


def test_a_backup_while_the_process_is_forked(
    durable_url: str, open_store: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forks again and again, each of which ends a reading: the backup is whole all the same."""
    store = open_store(durable_url)
    campaign = make(store)
    made = [one.id for one in campaign.decide_many(["old"] * 400)]
    monkeypatch.setattr("doral.live.backup._PAGE", 2)  # as long as one of a large store
    forks = []

    def fork(_: int) -> None:
        forks.append(Child(lambda: ["done"]).words())

    with threads(fork, count=1):
        for number in range(3):
            assert store.backup(tmp_path / f"{number}.db") == 1
    assert len(forks) > 1  # a large process forks slowly
    for number in range(3):
        found = open_store(f"sqlite:///{tmp_path / f'{number}.db'}").campaign("kits")
        assert [one.id for one in adds_up(found)] == made
        log_is_whole(found)
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".")]


def test_a_child_exports_after_its_parent_did(durable_url: str, tmp_path: Path, open_store: Opener) -> None:
    """The parent has used polars, whose threads the child does not have."""
    campaign = make(open_store(durable_url))
    campaign.decide_many(["old"] * 20)
    campaign.export(tmp_path / "d.parquet")
    assert pl.read_parquet(tmp_path / "d.parquet").height == 20
    child = Child(lambda: [str(campaign.export(tmp_path / "d.csv"))], within_s=20)
    assert child.words() == ["20"]
