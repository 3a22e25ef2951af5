"""Hosts with wrong clocks among those with right ones: what is refused is said, and nobody's decision becomes late."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import doral
from doral.errors import DoralError, InvalidValue
from doral.live.errors import ClockDisagrees
from doral.live.store import Store
from tests.live.attacked import in_child
from tests.live.checks import adds_up, log_is_whole

YEAR_S = 365 * 86_400.0
DEADLINE_S = 3_600.0
TURNS = 60 if "DORAL_TORTURE" in os.environ else 8
PROBLEM = doral.Problem(
    arms=[doral.Arm("a", features=[1.0], cost=0.1)],
    contexts={"x": 1.0},
    budget=900.0,
    horizon=3_000,
    deadline=DEADLINE_S,
)
CLOCKS: dict[str, Callable[[float], float]] = {
    "a year fast": lambda now: now + YEAR_S,
    "a year slow": lambda now: now - YEAR_S,
    "in milliseconds": lambda now: 1_000 * now,
    "a minute fast": lambda now: now + 60,
    "a minute slow": lambda now: now - 60,
    "stopped": lambda _: 1.0,
}


def _work_with(clock: Callable[[float], float], url: str, seed: int) -> Callable[[Callable[[str], None]], None]:
    """A host that decides, answers and cleans up by its own clock."""

    def work(say: Callable[[str], None]) -> None:
        real, rng = time.time, random.Random(seed)
        time.time = lambda: clock(real())
        with doral.open(url) as store:
            campaign = store.campaign("kits")
            for _ in range(6):
                try:
                    one = campaign.decide("x")
                    say(f"decided {one.id}")
                    if one.arm is not None and rng.random() < 0.3:
                        campaign.feedback(one.id, 0.5, at=clock(real()))
                    if rng.random() < 0.3:
                        campaign.expire()
                except DoralError as error:
                    say(f"refused {type(error).__name__}")

    return work


def test_a_host_with_a_wild_clock(durable_url: str, tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    rng = random.Random(23)
    store = open_store(durable_url)
    campaign = store.create("kits", PROBLEM, policy="random", seed=1, at=time.time() - 100)
    mine: dict[str, float] = {}
    refused: set[str] = set()

    def on_time(call: Callable[[], doral.Decision]) -> doral.Decision:
        """As a host with a right clock goes on: told that the clocks disagree, its owner repairs the campaign's."""
        try:
            return call()
        except ClockDisagrees:
            refused.add("here")
            campaign.repair_clock()
            return call()

    for turn in range(TURNS):
        for _ in range(4):
            one = on_time(lambda: campaign.decide("x"))
            assert one.decided_at == pytest.approx(time.time(), abs=100.0)
            if one.arm is not None:
                mine[one.id] = time.time()
        name = list(CLOCKS)[turn % len(CLOCKS)]
        store.close()  # a child opens no file that its parent has open
        code, said = in_child(_work_with(CLOCKS[name], durable_url, turn), tmp_path / f"said-{turn}")
        assert code == 0, said
        refused.update(line for line in said if line.startswith("refused"))
        for decision_id in rng.sample(sorted(mine), len(mine) // 2):
            made = mine.pop(decision_id)
            answered = on_time(partial(campaign.feedback, decision_id, 1.0))
            assert answered.state == "returned"
            assert answered.delay == pytest.approx(time.time() - made, abs=70.0)
    for decision_id in mine:
        assert on_time(partial(campaign.feedback, decision_id, 0.0)).state == "returned"
    assert refused == {"here", "refused ClockDisagrees"} | ({"refused InvalidValue"} & refused)
    adds_up(campaign)
    log_is_whole(campaign)


def test_a_timestamp_in_milliseconds_is_refused(open_store: Callable[[str], Store]) -> None:
    campaign = open_store("memory://").create("kits", PROBLEM, policy="random", seed=1)
    with pytest.raises(InvalidValue, match="milliseconds"):
        campaign.decide("x", at=1_000 * time.time())
    assert campaign.report().arrivals == 0
