"""Thousands of campaigns over a few connections: none is lost, none is kept, and states stay without them."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
from typing import Any

import psycopg
import pytest

import doral
from doral.live.errors import StorageBusy
from doral.live.state.state import CampaignState
from doral.live.storage.postgres import PostgresPool
from doral.live.store import Store
from tests.service.harness import PROBLEM


def pool_of(store: Store) -> PostgresPool:
    found = store._storage._pool  # type: ignore[attr-defined]
    assert isinstance(found, PostgresPool)
    return found


def backends(url: str) -> int:
    """Connections that the server has, but for this one."""
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
        row = found.fetchone()
    assert row is not None
    return int(row[0]) - 1


def test_a_thousand_campaigns_take_the_connections_of_the_threads_that_ask(postgres_url: str) -> None:
    before = backends(postgres_url)
    with doral.open(postgres_url) as store:
        campaigns = [store.create(f"c{number}", PROBLEM, seed=number) for number in range(1_000)]
        assert pool_of(store).n_lent == 0
        assert backends(postgres_url) - before <= 1  # one thread, one connection
        most = 0

        def use(first: int) -> None:
            nonlocal most
            for one in campaigns[first::4]:
                one.decide("old", key="first")
                most = max(most, pool_of(store).n_lent)

        threads = [threading.Thread(target=use, args=(first,)) for first in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert 1 <= most <= 4
        assert pool_of(store).n_lent == 0
        assert backends(postgres_url) - before <= 4
        assert all(one.session.last_seen is not None for one in campaigns)  # and all states are kept
        assert {one.report().arrivals for one in campaigns[::100]} == {1}
    until = time.monotonic() + 20.0
    while backends(postgres_url) > before and time.monotonic() < until:  # the server ends them in its own time
        time.sleep(0.05)
    assert backends(postgres_url) == before


def test_a_state_outlives_its_connection_and_follows_what_others_write(postgres_url: str) -> None:
    with doral.open(postgres_url) as store, doral.open(postgres_url) as elsewhere:
        mine = store.create("c", PROBLEM, seed=1)
        mine.decide("old", key="a")
        state = mine.session.last_seen
        pool_of(store).close()  # every connection of this store
        elsewhere.campaign("c").decide("young", key="b")
        mine.decide("old", key="c")
        assert mine.session.last_seen is state  # followed, not made anew
        assert [one.key for one in mine.decisions()] == ["a", "b", "c"]


def test_states_go_where_memory_is_short_and_come_back_as_they_were(postgres_url: str) -> None:
    with doral.open(postgres_url) as store:
        campaigns = [store.create(f"c{number}", PROBLEM, seed=number) for number in range(8)]
        campaigns[0].decide("old")
        seen = campaigns[0].session.last_seen
        assert seen is not None
        store._opened.most_bytes = 3 * seen.n_bytes + 1_000
        for step in range(3):
            for one in campaigns:
                one.decide("old", key=str(step))
        assert [one.session.last_seen is not None for one in campaigns] == [False] * 5 + [True] * 3
        assert store._opened.n_bytes <= store._opened.most_bytes
        assert [one.report().arrivals for one in campaigns] == [4] + [3] * 7
        store._opened.most_bytes = 1  # less than one of them: whoever is used is still there
        campaigns[3].decide("old", key="last")
        assert campaigns[3].session.last_seen is not None
        assert len(store._opened) == 1


@pytest.mark.parametrize("n_arms", [2, 40])
def test_what_a_state_takes_is_what_python_says(n_arms: int) -> None:
    problem = doral.Problem(
        arms=[doral.Arm(f"arm {number}", cost=1.0 + number) for number in range(n_arms)],
        contexts={"young": 0.5, "old": 0.5},
        budget=1_000,
        horizon=1_000,
        deadline=3_600,
    )
    with doral.open("memory://") as store:
        campaign = store.create("c", problem)
        campaign.decide("old")
        definition = campaign.session.read(lambda _, fold: fold.definition)
    CampaignState(definition, "0")
    gc.collect()
    tracemalloc.start()
    states = [CampaignState(type(definition).from_json(definition.to_json()), str(number)) for number in range(20)]
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.7 < sum(state.n_bytes for state in states) / taken < 1.4


def test_whoever_comes_when_all_are_in_use_waits_for_one(postgres_url: str) -> None:
    with doral.open(postgres_url, lock_timeout_s=0.3) as store:
        first, second = (store.create(name, PROBLEM, seed=1) for name in ("one", "two"))
        store._keep_open(1)
        failed: list[Exception] = []

        def try_it() -> None:
            try:
                second.decide("old")
            except StorageBusy as error:
                failed.append(error)

        def look(*_: Any) -> None:
            thread = threading.Thread(target=try_it)
            thread.start()
            thread.join()

        first.session.read(look)
        assert "all 1 connections" in str(failed[0])
        try_it()
        assert len(failed) == 1
        assert second.report().arrivals == 1
        assert pool_of(store).n_lent == 0


def test_a_server_that_ends_all_connections_costs_one_attempt(postgres_url: str, caplog: Any) -> None:
    with doral.open(postgres_url) as store:
        campaigns = [store.create(f"c{number}", PROBLEM, seed=number) for number in range(6)]
        barrier = threading.Barrier(6)

        def use(one: Any) -> None:
            one.session.read(lambda *_: barrier.wait(10))

        threads = [threading.Thread(target=use, args=(one,)) for one in campaigns]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        assert campaigns[0].decide("old", key="after").key == "after"
        assert campaigns[0].report().arrivals == 1
        assert len([line for line in caplog.records if "trying again" in line.message]) <= 1
