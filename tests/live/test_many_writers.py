"""Threads and processes on one campaign: every decision in one order, every key once, never above the budget."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import doral
from doral.live.campaign import Campaign
from doral.live.store import Store
from tests.live import writer
from tests.live.checks import adds_up, log_is_whole
from tests.live.conftest import Zygote


def test_processes_that_share_keys(
    durable_url: str, zygote: Zygote, tmp_path: Path, open_store: Callable[[str], Store]
) -> None:
    campaign = open_store(durable_url).create("kits", writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")
    assert zygote.run("shared", durable_url, "kits", 4, tmp_path / "notes") == [0] * 4
    seen: dict[str, tuple[str, str | None]] = {}
    said = 0
    for notes in tmp_path.glob("notes-*"):
        for line in notes.read_text().splitlines():
            key, decision_id, arm = json.loads(line)
            said += 1
            assert seen.setdefault(key, (decision_id, arm)) == (decision_id, arm)
    decisions = adds_up(campaign)
    assert said >= 4 * 40
    assert len(decisions) == len(seen)  # not one more than there were keys
    assert {one.key: (one.id, one.arm) for one in decisions} == seen
    log_is_whole(campaign)


def test_threads_on_one_handle(url: str, open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store(url))
    race_for_the_last_of_the_budget(campaign, lambda: campaign)


def test_threads_with_a_store_each(durable_url: str, open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store(durable_url))
    race_for_the_last_of_the_budget(campaign, lambda: open_store(durable_url).campaign("kits"))


def make(store: Store) -> Campaign:
    problem = doral.Problem(
        arms=writer.PROBLEM.arms, contexts=writer.PROBLEM.contexts, budget=9.0, horizon=1000, deadline=50
    )
    return store.create("kits", problem, policy="d-linucb", seed=1, clock="rounds")


def race_for_the_last_of_the_budget(campaign: Campaign, handle: Callable[[], Campaign]) -> None:
    made: list[list[doral.Decision]] = [[] for _ in range(4)]

    def work(number: int) -> None:
        mine = handle()
        for i in range(15):
            one = mine.decide(writer.CONTEXTS[i % 2], key=f"{number}-{i}")
            made[number].append(one)
            made[number].append(mine.decide("old", key=f"shared-{i}"))
            if one.arm is not None:
                mine.feedback(one.id, 0.5) if i % 3 else mine.cancel(one.id)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(decisions) for decisions in made] == [30] * 4
    for i in range(15):
        assert len({decisions[2 * i + 1].id for decisions in made}) == 1
    decisions = adds_up(campaign)
    assert len(decisions) == 4 * 15 + 15
    assert any(one.reason_code == "budget" for one in decisions)
    log_is_whole(campaign)
