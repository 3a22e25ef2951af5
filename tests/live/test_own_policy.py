"""Policies and models of the user's own, live: rebuilt from the log, and the same on every way."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.errors import DoralError, InvalidValue
from doral.live.campaign import Campaign
from doral.live.errors import PolicyFailed
from doral.live.external import ExternalCampaign
from tests.live.checks import adds_up, log_is_whole
from tests.live.people import busy, make_problem
from tests.live.test_external import model

PATH = f"{__name__}:Moody"
PROBLEM = doral.Problem(
    arms=[doral.Arm("letter"), doral.Arm("call", cost=3.0)],
    contexts=["old", "young"],
    budget=200.0,
    horizon=400,
    deadline=20,
)


class Moody:
    """Remembers all that it saw, and flips a coin of its own: a choice tells whether its past is whole."""

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        self.coin, self.seen = random.Random(seed), 0.0

    def decide(self, arrival: doral.Arrival) -> int | None:
        self.seen += arrival.round + 0.25 * arrival.context + arrival.budget_left
        if not arrival.available or self.coin.random() < 0.2:
            return None
        return arrival.available[int(self.seen + 8 * self.coin.random()) % len(arrival.available)]

    def observe(self, answer: doral.Answer) -> None:
        self.seen += 3.0 * answer.reward + answer.delay + answer.decided


external = model()


def play(campaign: Campaign, first: int, last: int) -> list[doral.Decision]:
    made = []
    for number in range(first, last):
        made.append(campaign.decide(PROBLEM.context_names[number % 2]))
        if number % 3 == 0 and made[-1].arm is not None:
            campaign.feedback(made[-1].id, float(number % 2))
        if number % 50 == 49:
            campaign.expire()
    return made


def choices(decisions: list[doral.Decision]) -> list[tuple[str | None, str]]:
    return [(one.arm, one.reason_code) for one in decisions]


def test_a_policy_is_rebuilt_from_the_log(tmp_path: Path) -> None:
    """A campaign that is closed and opened all the time decides as one that was never closed."""
    with doral.open("memory://", code={"one": Moody}) as store:
        whole = play(store.create("one", PROBLEM, policy="own", seed=7, clock="rounds"), 0, 120)
        assert {one.reason_code for one in whole} == {"own-choice", "own-skip"}
        adds_up(store.campaign("one"))
        log_is_whole(store.campaign("one"))
        assert store.campaign("one").verify().n_differences == 0
    url, parts = f"sqlite:///{tmp_path / 'one.db'}", list[doral.Decision]()
    for first in range(0, 120, 15):
        with doral.open(url, code={"one": PATH}) as store:
            if first == 0:
                store.create("one", PROBLEM, policy="own", seed=7, clock="rounds")
            parts += play(store.campaign("one"), first, first + 15)
            store.campaign("one").save_snapshot()
    assert choices(parts) == choices(whole)
    assert len({one.arm for one in whole}) == 3


def test_batches_and_dry_runs_go_to_the_policy_as_well() -> None:
    with doral.open("memory://", code={"one": Moody, "two": Moody}) as store:
        one, two = (store.create(name, PROBLEM, policy="own", seed=7, clock="rounds") for name in ("one", "two"))
        singly = [one.decide("old") for _ in range(40)]
        for place in range(0, 40, 8):
            seen = two.preview("old")
            assert (seen.arm, seen.reason_code) == (singly[place].arm, singly[place].reason_code)
            assert choices(two.decide_many(["old"] * 8)) == choices(singly[place : place + 8])


def test_without_its_code_a_campaign_takes_answers_and_decides_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'one.db'}"
    with doral.open(url, code={"one": PATH}) as store:
        campaign = store.create("one", PROBLEM, policy="own", seed=7, clock="rounds")
        made = [one for one in play(campaign, 0, 30) if one.state == "pending"]
    with doral.open(url) as store:
        campaign = store.campaign("one")
        for call in (campaign.decide, campaign.preview):
            with pytest.raises(PolicyFailed, match="code="):
                call("old")
        assert campaign.feedback(made[-1].id, 1.0).reward == 1.0
        adds_up(campaign)
    with doral.open(url, code={"one": PATH}) as store:
        assert store.campaign("one").decide("old").reason_code in ("own-choice", "own-skip")


class Failing(Moody):
    def decide(self, arrival: doral.Arrival) -> Any:
        return {3: 1 / 0 if arrival.context else 99}[arrival.round] if arrival.round == 3 else None


@pytest.mark.parametrize("context", ["old", "young"])
def test_a_policy_that_fails_stores_nothing(context: str) -> None:
    with doral.open("memory://", code={"one": Failing}) as store:
        campaign = store.create("one", PROBLEM, policy="own", seed=7, clock="rounds")
        campaign.decide_many(["old"] * 2)
        for _ in range(2):
            with pytest.raises(PolicyFailed, match="round 3"):
                campaign.decide(context)
        assert campaign.report().arrivals == 2
        adds_up(campaign)


def test_a_model_by_its_path(tmp_path: Path) -> None:
    with doral.open(f"sqlite:///{tmp_path / 'one.db'}", code={"kits": f"{__name__}:external"}) as store:
        campaign = store.create("kits", make_problem(), policy="own", seed=3, clock="rounds")
        assert isinstance(campaign, ExternalCampaign)
        assert store.campaign("kits") is campaign
        busy(campaign, 60)


@pytest.mark.parametrize("code", ["nothing", "no.such.module:x", f"{__name__}:PROBLEM", f"{__name__}:gone", 7])
def test_code_that_is_none(code: Any) -> None:
    with pytest.raises(InvalidValue, match="code"):
        doral.open("memory://", code={"one": code})


@pytest.mark.parametrize("code", [{7: PATH}, {"": PATH}, [PATH], PATH, {"one": "no.such:x"}])
def test_code_that_cannot_be_used_makes_no_file(code: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue):
        doral.open(f"sqlite:///{tmp_path / 'one.db'}", code=code)
    assert not list(tmp_path.iterdir())


class Deaf:
    def __init__(self, problem: doral.Problem, seed: int) -> None:
        """Without `observe`: the first answer would be refused, and all that follow."""

    def decide(self, arrival: doral.Arrival) -> int | None:
        return None


class Unmade(Moody):
    def __init__(self) -> None:
        """Takes no problem."""


@pytest.mark.parametrize("maker", [Deaf, Unmade, dict])
def test_a_policy_that_cannot_be_made_makes_no_campaign(maker: Any) -> None:
    with doral.open("memory://", code={"one": maker}) as store:
        with pytest.raises(PolicyFailed):
            store.create("one", PROBLEM, policy="own", seed=7)
        assert store.list() == []


@pytest.mark.parametrize("said", [-1, 2, 1.5, True, "nobody", [0], float("nan"), object(), 10**30])
def test_an_arm_that_cannot_be_had_is_refused(said: Any) -> None:
    class Says(Moody):
        def decide(self, arrival: doral.Arrival) -> Any:
            return said

    with doral.open("memory://", code={"one": Says}) as store:
        campaign = store.create("one", PROBLEM, policy="own", seed=7, clock="rounds")
        with pytest.raises(PolicyFailed, match=r"'letter' \(0\), 'call' \(1\)"):
            campaign.decide("old")
        assert campaign.report().arrivals == 0


def test_code_and_campaigns_that_do_not_fit() -> None:
    with doral.open("memory://", code={"one": Moody}) as store:
        with pytest.raises(InvalidValue, match="needs code"):
            store.create("two", PROBLEM, policy="own")
        with pytest.raises(DoralError, match="decides by itself"):
            store.create("one", PROBLEM).decide("old")
