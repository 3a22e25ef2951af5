"""Attacks on leases: several sessions of one process, forks that nobody is told of, lives that end too early."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.errors import ConnectionLost
from doral.live.leases.session import LeasedSession
from doral.live.storage import postgres
from doral.live.store import Store
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
