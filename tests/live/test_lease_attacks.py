"""Attacks on leases: several sessions of one process, forks that nobody is told of, lives that end too early."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.errors import ConnectionLost, StorageBusy, StorageError
from doral.live.held_bytes import held_bytes
from doral.live.leases.scratch import run_of
from doral.live.leases.session import LeasedSession
from doral.live.storage import postgres
from doral.live.storage.connection import AT_ONCE
from doral.live.store import Store
from doral.live.together import decision, decisions, store_together
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.test_postgres_pool import pool_of

ARMS = [doral.Arm("kit", features=[1.0, 0.0], cost=1.0), doral.Arm("visit", features=[0.0, 1.0], cost=1.0)]
PROBLEM = doral.Problem(arms=ARMS, contexts={"old": 0.4, "young": 0.6}, budget=1000.0, horizon=1000, deadline=3600)


def leased(campaign: Campaign) -> LeasedSession:
    """As beside others in a campaign that is not young, and without looking at what they do."""
    session = campaign.session
    assert isinstance(session, LeasedSession)
    session._met_at, session.merge_every_s, session.unheard_share = math.inf, math.inf, 1e9
    return session


def spend_what_is_free(judge: Campaign) -> None:
    """Nothing is left but what is leased."""
    ledger = judge.ledger()
    assert ledger.leased
    judge.record("old", "kit", time.time(), cost=float(ledger.left - ledger.leased), spend=True)


def make_hot(store: Store, n: int = 60) -> Campaign:
    """A campaign, and a lease for about twice so many."""
    campaign = store.create("hot", PROBLEM, seed=3)
    leased(campaign)
    campaign.decide_many(["old"] * n)
    return campaign


def test_two_sessions_of_one_process(postgres_url: str, tmp_path: Path) -> None:
    """A campaign that was deleted and restored is opened anew, and whoever had it goes on with what he has."""
    with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url) as judging:
        one = make_hot(store)
        store.backup(tmp_path / "backup.db")
        store.delete("hot")
        store.restore(tmp_path / "backup.db")
        other = store.campaign("hot")
        leased(other)
        for campaign in (other, one):
            campaign.decide_many(["old"] * 8)
            campaign.decide_many(["old"] * 8)
        judge = judging.campaign("hot")
        spend_what_is_free(judge)
        for _ in range(20):
            for campaign in (one, other):
                campaign.decide_many(["old"] * 8)
        assert 0 <= judge.ledger().left < 8
        adds_up(judge)
        log_is_whole(judge)


def in_a_child_that_python_does_not_know_of(work: Callable[[], object]) -> int:
    """Forked by something else, such as a library in C; its exit code."""
    pid = int(ctypes.CDLL(None).fork())
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_fork_that_nobody_is_told_of_has_no_lease(postgres_url: str) -> None:
    with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url) as judging:
        campaign = make_hot(store)
        campaign.decide_many(["old"] * 8)
        assert leased(campaign)._scratch is not None
        judge = judging.campaign("hot")
        spend_what_is_free(judge)
        assert in_a_child_that_python_does_not_know_of(lambda: campaign.decide_many(["old"] * 8)) == 0
        for _ in range(30):
            campaign.decide_many(["old"] * 8)
        adds_up(judge)
        log_is_whole(judge)


def end_life(store: Store, admin: psycopg.Connection[Any]) -> None:
    """The server ends the connection by which others see that this process lives, and no other."""
    life = pool_of(store)._life
    assert life is not None
    admin.execute("SELECT pg_terminate_backend(%s, 5000)", (life._connection.info.backend_pid,))


def test_decisions_do_not_depend_on_the_sign_of_life(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server gives no connection for it: others may take the lease away, and all else goes on."""
    with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url) as judging:
        campaign = make_hot(store)
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            end_life(store, admin)

        def refuse() -> None:
            raise ConnectionLost("too many clients")

        monkeypatch.setattr(pool_of(store), "_connect", refuse)
        for n in (8, 60, 8):
            assert len(campaign.decide_many(["old"] * n)) == n
        adds_up(judging.campaign("hot"))


def test_a_life_is_known_again_after_its_connection_ended(postgres_url: str) -> None:
    """Also where somebody was just looking for it, and has its lock."""
    with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url, leases=True) as beside:
        campaign = make_hot(store)
        other = beside.campaign("hot")
        leased(other)
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            end_life(store, admin)
            writer, locked = leased(campaign).writer, pool_of(store)._life_number
            admin.execute("SELECT pg_advisory_lock(%s::bigint)", (locked,))
            campaign.decide_many(["old"] * 4)
            admin.execute("SELECT pg_advisory_unlock(%s::bigint)", (locked,))
        campaign.decide_many(["old"] * 4)
        for _ in range(4):
            other.decide_many(["old"] * 4)
        assert fold_of(other).leases.has(writer)


def test_what_was_archived_before_its_answer_came_is_not_decided_again(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks right after a commit, and before another one is made all of it has moved to a file."""
    with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url) as judging:
        campaign = make_hot(store, 8)
        campaign.decide_many(["old"] * 2)
        judge = judging.campaign("hot")
        log = leased(campaign)._log
        assert log is not None
        commit = log.commit

        def lose_answer() -> None:
            commit()
            judge.feedback_many([(one.id, 1.0) for one in judge.decisions() if one.arm is not None])
            assert judge.archive(tmp_path / "old.parquet") > 12
            raise ConnectionLost("it broke")

        monkeypatch.setattr(log, "commit", lose_answer)
        told = campaign.decide_many(["old"] * 2)
        there = list(judge.decisions())
        assert len(there) == 12
        assert [one.id for one in there[-2:]] == [one.id for one in told]


@pytest.mark.parametrize(
    "trap",
    [
        "CREATE RULE trap AS ON UPDATE TO doral.campaigns DO INSTEAD NOTHING",
        "CREATE TRIGGER trap BEFORE UPDATE ON doral.campaigns FOR EACH ROW EXECUTE FUNCTION no()",
        "CREATE TRIGGER trap BEFORE INSERT ON doral.events FOR EACH ROW WHEN (NEW.sequence % 7 = 3) "
        "EXECUTE FUNCTION no()",
    ],
)
def test_what_was_not_stored_is_not_acknowledged(trap: str, postgres_url: str) -> None:
    with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url) as judging:
        campaign, judge = make_hot(store, 12), judging.campaign("hot")
        told = campaign.decide_many(["old"] * 12)
        before = judge.report().events
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(
                "CREATE OR REPLACE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
            )
            admin.execute(trap)
            with pytest.raises(StorageError, match=r"stored \d+ of 12 rows.*nothing was changed|cannot perform UPDATE"):
                campaign.decide_many(["old"] * 12)
            assert judge.report().events == before
            kind, table = trap.split()[1], "events" if "INSERT" in trap else "campaigns"
            admin.execute(f"DROP {kind} trap ON doral.{table}")
        told += campaign.decide_many(["old"] * 12)
        assert [one.id for one in judge.decisions()][-24:] == [one.id for one in told]
        log_is_whole(judge)


def test_statements_that_the_server_has_forgotten_are_prepared_again(postgres_url: str) -> None:
    """The driver deallocates all of them at times."""
    with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url) as judging:
        campaign = make_hot(store, 12)
        for _ in range(3):
            told = campaign.decide_many(["old"] * 12)
            connection = pool_of(store).take()
            connection.execute("DEALLOCATE ALL")
            pool_of(store).give(connection, threading.get_ident())
        assert [one.id for one in judging.campaign("hot").decisions()][-12:] == [one.id for one in told]


@pytest.mark.parametrize("leases", [True, False])
def test_who_is_stopped_with_the_lock_keeps_others_out_for_a_while_only(
    postgres_url: str, leases: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then does again what nobody has heard of."""
    monkeypatch.setattr(postgres, "STOPPED_S", 1.0)
    with doral.open(postgres_url, leases=leases) as store, doral.open(postgres_url, lock_timeout_s=10) as judging:
        campaign, judge = store.create("hot", PROBLEM, seed=3), judging.campaign("hot")
        if leases:
            leased(campaign)
        campaign.decide_many(["old"] * 8)
        campaign.decide_many(["old"] * 2)
        log = campaign.session._log
        assert log is not None
        commit, is_stopped, goes_on = log.commit, threading.Event(), threading.Event()

        def stop() -> None:
            is_stopped.set()
            goes_on.wait(30)
            commit()

        monkeypatch.setattr(log, "commit", stop)
        told: list[str] = []
        thread = threading.Thread(target=lambda: told.extend(one.id for one in campaign.decide_many(["old"] * 2)))
        thread.start()
        assert is_stopped.wait(10)
        between = judge.decide("old")
        goes_on.set()
        thread.join(30)
        assert [one.id for one in judge.decisions()][-3:] == [between.id, *told]
        adds_up(judge)
        log_is_whole(judge)


def test_who_reads_may_take_his_time(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "STOPPED_S", 0.2)
    with doral.open(postgres_url) as store:
        store.create("hot", PROBLEM, seed=3)
        with store.glimpses() as found:
            time.sleep(0.5)
            assert [one.read(lambda log, fold: fold.sequence) for one in found] == [1]


def test_a_connection_that_breaks_between_two_requests_of_a_group(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first was decided on the worker's own state already: it must not be decided on it once more."""
    with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url) as judging:
        campaign = make_hot(store, 20)
        campaign.decide_many(["old"] * 2)
        session = leased(campaign)
        assert session._scratch is not None
        assert session._scratch.is_pure  # which would take the place of the state that follows the log
        log = session._log
        assert log is not None
        look, looks = log.by_keys, 0

        def break_once(hashes: Any) -> Any:
            nonlocal looks
            looks += 1
            if looks == 2:
                raise ConnectionLost("it broke")
            return look(hashes)

        monkeypatch.setattr(log, "by_keys", break_once)
        groups = [decisions([{"context": "old", "key": key}]) for key in ("a", "b")]
        assert [len(found) for found in store_together(session, groups)] == [1, 1]
        assert looks >= 2
        session._met_at = -math.inf  # alone, and so the ordinary way
        campaign.decide("old")
        judge = judging.campaign("hot")
        assert judge.report().arrivals == 25
        adds_up(judge)
        log_is_whole(judge)


@pytest.mark.parametrize("where", ["_ready_for", "_place", "_refuse_if_forked"])
def test_who_is_called_in_the_middle_of_his_own_decision(
    postgres_url: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a signal: what the inner call has spent of the lease, the outer one must not think that it still has."""
    with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url) as judging:
        campaign = make_hot(store)
        campaign.decide_many(["old"] * 2)
        session, judge = leased(campaign), judging.campaign("hot")
        plain = getattr(session, where)
        inner: list[int] = []
        calls: list[str] = []

        def handle(*_: object) -> None:
            try:
                inner.append(len(campaign.decide_many(["old"] * 30)))
            except StorageBusy:
                inner.append(0)

        def interrupted(*given: Any) -> Any:
            found = plain(*given)
            calls.append(where)
            if len(calls) == 1:
                os.kill(os.getpid(), signal.SIGUSR1)
            return found

        before = signal.signal(signal.SIGUSR1, handle)
        try:
            monkeypatch.setattr(session, where, interrupted)
            campaign.decide_many(["old"] * 2)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert inner == [30 if where == "_ready_for" else 0]  # not in the middle of a transaction
        assert judge.report().arrivals == 64 + inner[0]
        lease = fold_of(judge).leases.of(session.writer)
        assert lease is not None
        assert session._scratch is None or session._scratch.lease.left == lease.left
        spend_what_is_free(judge)
        for _ in range(60):
            campaign.decide_many(["old"] * 2)
        adds_up(judge)
        log_is_whole(judge)


def hot_ones(store: Store, n: int) -> list[Campaign]:
    """Campaigns that each have a lease and a state."""
    found = [store.create(f"c{i}", PROBLEM, seed=3) for i in range(n)]
    for one in found:
        leased(one)
        one.decide_many(["old"] * 8)
        one.decide_many(["old"] * 2)
    return found


def test_making_room_closes_those_that_it_must_and_no_others() -> None:
    """To give a lease back is no use: else whoever is closed would count again, and make room for himself."""
    with doral.open("memory://") as plain:
        storage = plain._storage
        store = Store(storage, leases=True)
        books = store._opened
        books.most_bytes = 1 << 40
        *others, last = hot_ones(store, 30)
        books.most_bytes = books.n_bytes - 1  # one has to go
        found = store_together(last.session, [decision({"context": "old"}), decision({"context": "old"})])
        assert [one.arm is not None for one in found] == [True, True]
        assert last.report().arrivals == 12
        assert sum(one.session.last_seen is None for one in others) == 1
        assert len(books) == 29
        assert books.n_bytes > 50 * held_bytes(fold_of(last))  # each has a state beside the one that it decides on


def test_nobody_is_waited_for_to_give_a_lease_back(postgres_url: str) -> None:
    with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url) as judging:
        kept, gone = hot_ones(store, 2)
        judge = judging.campaign("c0").session
        log = judge._open()
        log.begin()
        began = time.monotonic()
        assert leased(kept).close_if_idle()
        assert leased(gone).close_if_idle()
        took = time.monotonic() - began
        log.rollback()
        assert took < 5.0
        assert judging.campaign("c0").ledger().leased > 0
        assert judging.campaign("c1").ledger().leased == 0


def test_a_transaction_that_waits_for_nobody(postgres_url: str) -> None:
    """Neither for the lock nor for a connection."""
    with doral.open(postgres_url) as store, doral.open(postgres_url) as other:
        one, two = store.create("hot", PROBLEM, seed=3), other.campaign("hot")
        log, beside = one.session._open(), two.session._open()
        log.begin()
        with pytest.raises(StorageBusy):
            beside.begin(within_s=AT_ONCE)
        log.rollback()
        beside.begin(within_s=AT_ONCE)
        beside.rollback()
        beside.rest()
        pool_of(other).close()
        with pytest.raises(StorageBusy):
            beside.begin(within_s=AT_ONCE)


@pytest.mark.parametrize("ahead_s", [-3_600.0, 3_600.0])
def test_a_holder_whose_clock_is_wrong_keeps_nothing_for_ever(ahead_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """He lives, and does nothing: others need what he has leased."""
    with doral.open("memory://") as plain:
        holder = make_hot(Store(plain._storage, leases=True))
        real = time.time
        with monkeypatch.context() as wrong:
            wrong.setattr(time, "time", lambda: real() + ahead_s)
            holder.session.clock_tolerance_s = math.inf
            holder.decide_many(["old"] * 2)
        judge = Store(plain._storage).campaign("hot")
        judge.session.clock_tolerance_s = math.inf
        assert judge.ledger().leased > 0
        spend_what_is_free(judge)
        judge.record("old", "kit", time.time(), cost=float(judge.ledger().left), spend=True)
        assert judge.ledger().left == 0


def test_a_state_that_is_read_anew_tosses_other_coins() -> None:
    assert len({run_of(writer, base) for writer in range(100) for base in range(100)}) == 10_000


def test_what_is_stored_after_its_worker_gave_it_up_is_not_spent_again(postgres_url: str) -> None:
    """All of it is on the way, the server is slow, and a signal ends the wait: the commit comes later, by itself."""

    def give_up(*_: object) -> None:
        raise TimeoutError("the caller's time is over")

    before = signal.signal(signal.SIGALRM, give_up)
    try:
        with doral.open(postgres_url, leases=True) as store, doral.open(postgres_url) as judging:
            campaign = store.create("hot", PROBLEM, policy="d-linucb", seed=3)  # which serves everybody
            session, judge = leased(campaign), judging.campaign("hot")
            for _ in range(2):
                campaign.decide_many(["old"] * 20)
            spend_what_is_free(judge)
            assert session._merge() is not None
            left = int(judge.ledger().leased)
            with psycopg.connect(postgres_url) as slow:
                slow.execute("LOCK TABLE doral.campaigns IN EXCLUSIVE MODE")
                threading.Timer(1.0, slow.rollback).start()
                signal.setitimer(signal.ITIMER_REAL, 0.4)
                with pytest.raises(TimeoutError):
                    campaign.decide_many(["old"] * left)
                told = campaign.decide_many(["old"] * left)
            assert all(one.arm is None for one in told)
            assert judge.ledger().left == 0
            adds_up(judge)
            log_is_whole(judge)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("setting", ["standard_conforming_strings=off", "bytea_output=escape"])
def test_bytes_stay_what_they_are_however_the_role_is_set(setting: str, postgres_url: str) -> None:
    url = postgres_url + ("&" if "?" in postgres_url else "?") + "options=" + quote(f"-c {setting}")
    with doral.open(url, leases=True) as store, doral.open(url) as judging:
        campaign = make_hot(store, 12)
        told = [one.id for _ in range(20) for one in campaign.decide_many(["old"] * 12)]
        judge = judging.campaign("hot")
        assert [one.id for one in judge.decisions()][-len(told) :] == told
        log_is_whole(judge)


def test_a_statement_that_could_not_be_prepared_is_prepared_later(postgres_url: str) -> None:
    """The driver has the server forget all of them, and then somebody keeps a table for himself."""
    with doral.open(postgres_url, leases=True, lock_timeout_s=0.3) as store:
        campaign = make_hot(store, 12)
        campaign.decide_many(["old"] * 12)
        connection = pool_of(store).take()
        connection.execute("DEALLOCATE ALL")
        pool_of(store).give(connection, threading.get_ident())
        with psycopg.connect(postgres_url) as other:
            other.execute("LOCK TABLE doral.events IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StorageError):
                campaign.decide_many(["old"] * 12)
        told = [one.id for _ in range(4) for one in campaign.decide_many(["old"] * 12)]
        assert [one.id for one in campaign.decisions()][-48:] == told
        log_is_whole(campaign)


def test_rows_that_a_trigger_puts_elsewhere_are_stored(postgres_url: str) -> None:
    """As databases were once cut into parts: the server says that nothing was copied, and all of it is there."""
    with (
        doral.open(postgres_url, leases=True) as store,
        psycopg.connect(postgres_url, autocommit=True) as admin,
    ):
        campaign = make_hot(store, 12)
        campaign.decide_many(["old"] * 12)
        admin.execute("CREATE TABLE doral.elsewhere (LIKE doral.events INCLUDING ALL) INHERITS (doral.events)")
        admin.execute(
            "CREATE FUNCTION doral.move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO doral.elsewhere VALUES (NEW.*); RETURN NULL; END $$"
        )
        admin.execute("CREATE TRIGGER moves BEFORE INSERT ON doral.events FOR EACH ROW EXECUTE FUNCTION doral.move()")
        try:
            told = campaign.decide_many(["old"] * 12)
            assert [one.id for one in campaign.decisions()][-12:] == [one.id for one in told]
            log_is_whole(campaign)
        finally:
            admin.execute("DROP FUNCTION doral.move CASCADE")
            admin.execute("DROP TABLE doral.elsewhere")
