"""Doing nothing has an outcome: who is skipped has an id, and can be answered."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import doral
from doral.errors import InvalidValue
from doral.live.campaign import Campaign
from doral.live.errors import WrongState
from doral.live.state.snapshot import decode_snapshot as decode
from doral.live.state.snapshot import encode_snapshot as encode
from doral.live.store import Store
from doral.problem import Arm, Problem
from tests.live.checks import fold_of
from tests.live.tapes import same_bits

ARMS = [Arm("letter", features=[1.0, 0.0]), Arm("visit", features=[0.0, 1.0], cost=2.0)]
USUAL = Arm("usual", features=[0.5, 0.5], cost=0)


def make(store: Store, baseline: object = "observed", *, horizon: int = 60) -> Campaign:
    arms = [*ARMS, USUAL] if baseline == "usual" else ARMS
    problem = Problem(
        arms=arms,
        contexts={"x": 0.5, "y": 0.5},
        budget=20,
        horizon=horizon,
        deadline=30,
        baseline=baseline,  # type: ignore[arg-type]
    )
    return store.create("trial", problem, clock="rounds", seed=3)


def test_who_is_skipped_is_pending_and_can_be_answered_corrected_and_cancelled(store: Store, tmp_path: Path) -> None:
    campaign = make(store)
    made = campaign.decide_many(["x", "y"] * 10)
    skipped = [one for one in made if one.arm is None]
    served = [one for one in made if one.arm is not None]
    assert skipped
    assert served
    assert {one.state for one in made} == {"pending"}
    assert all(one.cost == 0.0 and one.reason.startswith("Skipped") for one in skipped)
    left = campaign.ledger().left
    first, second, third = skipped[:3]
    answered = campaign.feedback(first.id, 0.75)
    assert (answered.state, answered.reward, answered.arm, answered.actual_cost) == ("returned", 0.75, None, 0.0)
    assert campaign.feedback(first.id, 0.75) == answered  # saying the same twice counts once
    assert campaign.correct(first.id, 0.25).reward == 0.25
    assert campaign.cancel(second.id).state == "cancelled"
    with pytest.raises(WrongState, match="reserved 0.0"):
        campaign.feedback(third.id, 1.0, actual_cost=1.0)
    campaign.feedback(served[0].id, 2.0)
    assert campaign.ledger().left == left
    report = campaign.report()
    assert report.decisions["skipped"] == 0
    assert report.decisions["returned"] == 2
    assert report.reward == 2.0  # what arms have brought
    nothing = next(arm for arm in report.arms if arm.name == "nothing")
    assert (nothing.plays, nothing.answers, nothing.reward) == (len(skipped) - 1, 1, 0.25)
    assert report.baseline is not None
    assert sum(report.baseline.answers) == 1.0
    assert "what answers brought beyond doing nothing" in str(report)
    assert len(list(campaign.decisions(state="pending"))) == len(made) - 3
    assert campaign.export(tmp_path / "all.parquet") == len(made)
    exported = pl.read_parquet(tmp_path / "all.parquet").filter(pl.col("id") == first.id)
    assert exported["arm"].to_list() == [None]
    assert exported["reward"].to_list() == [0.25]
    fold_of(campaign).check()
    campaign._session.close()  # what the log says is the same
    assert campaign.report() == report
    assert campaign.verify().differences == ()


def test_who_was_skipped_expires(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"))
    made = campaign.decide_many(["x", "y"] * 5)
    assert campaign.expire(now=45) == len(made)
    skipped = next(one for one in campaign.decisions() if one.arm is None)
    assert skipped.state == "expired"
    assert campaign.feedback(skipped.id, 1.0).state == "late"
    fold_of(campaign).check()


def test_after_the_end_there_is_nothing_to_answer(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"), horizon=4)
    last = campaign.decide_many(["x"] * 6)[-1]
    assert (last.state, last.arm) == ("skipped", None)
    with pytest.raises(WrongState, match="nothing that could be answered"):
        campaign.feedback(last.id, 1.0)


def test_an_arm_may_be_what_those_get_who_are_skipped(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"), "usual")
    made = campaign.decide_many(["x", "y"] * 10)
    usual = [one for one in made if one.arm == "usual"]
    assert usual
    assert all(one.cost == 0.0 and one.reason.startswith("Skipped") for one in usual)
    assert campaign.feedback(usual[0].id, 1.0).state == "returned"
    for change in (campaign.pause_arm, campaign.retire_arm):
        with pytest.raises(InvalidValue, match="is what those get who are skipped"):
            change("usual")


def test_others_who_got_nothing_teach_what_nothing_brings(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"))
    one = campaign.record("x", None, at=0, reward=0.4, answered_at=3)
    assert (one.arm, one.state, one.reward) == (None, "returned", 0.4)
    report = campaign.report()
    assert report.baseline is not None
    assert report.baseline.answers == (1.0, 0.0)
    assert report.baseline.rewards[0] > 0.0


def test_an_arm_that_is_added_has_as_many_features_as_were_given(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"))
    first = campaign.decide_many(["x", "y"] * 5)
    arm = Arm("call", features=[0.3, 0.3], cost=0.5)
    campaign.add_arm(arm)
    campaign.add_arm(arm)  # said twice
    with pytest.raises(InvalidValue, match="must be 2, as for the other arms"):
        campaign.add_arm(Arm("mail", features=[0.3, 0.3, 0.0]))
    made = campaign.decide_many(["x", "y"] * 10)
    assert "call" in {one.arm for one in made}
    skipped = next(one for one in [*first, *made] if one.arm is None)
    campaign.feedback(skipped.id, 1.0)
    before = campaign.report()
    campaign._session.close()
    assert campaign.report() == before
    assert fold_of(campaign).problem.arm_names == ("letter", "visit", "nothing", "call")


def test_a_known_baseline_is_shown(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"), {"x": 0.5, "y": 0.0})
    made = next(one for one in campaign.decide_many(["x"] * 20) if one.arm is not None)
    campaign.feedback(made.id, 2.0)
    campaign.decide_many(["x"] * 20)
    report = campaign.report()
    assert report.baseline is not None
    assert report.baseline.rewards == (0.5, 0.0)
    assert 1.25 < report.baseline.uplift < 1.5  # one answer of 2, shrunk a little, beyond 0.5
    assert report.decisions["skipped"] > 0


def test_a_snapshot_holds_those_who_are_skipped(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"))
    campaign.decide_many(["x", "y"] * 5)
    campaign.add_arm(Arm("call", features=[0.3, 0.3], cost=0.5))
    for one in campaign.decide_many(["x", "y"] * 5)[::2]:
        campaign.feedback(one.id, 0.5)
    whole = fold_of(campaign)
    restored = decode(encode(whole), whole.definition, whole.names.tag)
    assert restored.to_json() == whole.to_json()
    assert same_bits(restored.engine.state, whole.engine.state) == []


def test_a_feature_that_all_arms_share_is_said_to_tell_nothing(open_store: Callable[[str], Store]) -> None:
    arms = [Arm("a", features=[1.0, 0.2]), Arm("b", features=[1.0, 0.3])]
    problem = Problem(arms=arms, contexts=["all"], budget=10, horizon=10, deadline=5, baseline="observed")
    campaign = open_store("memory://").create("c", problem, clock="rounds")
    assert campaign.report().idle_features == (0,)
    assert "features  1 of every arm are the same, and tell nothing of them" in str(campaign.report())
    campaign.add_arm(Arm("c", features=[2.0, 0.3]))
    assert "tell nothing" not in str(campaign.report())


def test_uplift_counts_those_who_do_not_answer() -> None:
    """Of those with a kit all answer, of those without half: 0.3 of a kit is worth 0.1 more than 0.4 of an answer."""
    problem = Problem(
        arms=[Arm("kit")], contexts=["x"], budget=1_000, horizon=2_000, deadline=100.0, baseline="observed"
    )
    campaign = doral.open("memory://").create("kits", problem, clock="rounds", seed=1)
    rng, answers = random.Random(2), list[tuple[float, str, float]]()
    for round_ in range(1, 2_001):
        while answers and answers[0][0] <= round_:
            at, decision, reward = heapq.heappop(answers)
            campaign.feedback(decision, reward=reward, at=at)
        made = campaign.decide("x", at=round_)
        if made.arm is not None or rng.random() < 0.5:
            chance = 0.4 if made.arm is None else 0.3
            heapq.heappush(answers, (round_ + rng.randint(1, 20), made.id, float(rng.random() < chance)))
    report = campaign.report()
    assert report.baseline is not None
    assert report.baseline.rewards[0] == pytest.approx(0.2, abs=0.04)
    assert report.baseline.uplift / 1_000 == pytest.approx(0.1, abs=0.04)
