"""What policies earn is told alike of those that played all truths and of those that played some."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import doral
from doral.evaluation.targets import STATUS_QUO
from doral.planning.earning import Played
from doral.planning.earnings import earnings_of
from doral.planning.recommending import surer
from tests.planning.plans import a_plan


def test_who_played_few_truths_is_not_put_ahead_by_rich_ones() -> None:
    """Half of what can be had in every truth is worth the same, whichever truths were played."""
    best = np.random.default_rng(0).uniform(50.0, 150.0, size=40)
    best[:20] += 100.0  # those that the slow policy plays
    found: dict[str, list[Played | None]] = {
        STATUS_QUO: [Played(20.0, 1.0, one) for one in best],
        "half": [Played(0.5 * one, 1.0, one) for one in best],
        "slow half": [Played(0.5 * one, 1.0, one) if i < 20 else None for i, one in enumerate(best)],
        "slow and worse": [Played(0.45 * one, 1.0, one) if i < 20 else None for i, one in enumerate(best)],
    }
    made = earnings_of(found, arrivals=10.0, budget=5.0, unit="reward")
    half, slow, worse = made.of("half"), made.of("slow half"), made.of("slow and worse")
    assert slow.worth == pytest.approx(half.worth) == 0.5 * best.mean()
    assert slow.more == pytest.approx(half.more)
    assert slow.oracle_share == half.oracle_share == pytest.approx(0.5)
    assert slow.low < slow.worth < slow.high
    assert slow.more_low is not None
    assert slow.more_high is not None
    assert slow.more is not None
    assert slow.more_low < slow.more < slow.more_high
    assert [one.policy for one in made.policies].index("half") < [one.policy for one in made.policies].index(
        worse.policy
    )
    assert made.pair("half", "slow half").more == 0.0


def test_where_nothing_can_be_had_nothing_is_scaled() -> None:
    found: dict[str, list[Played | None]] = {
        STATUS_QUO: [Played(0.0, 1.0, 0.0)] * 4,
        "some": [Played(0.0, 1.0, 0.0), Played(0.0, 1.0, 0.0), None, None],
    }
    one = earnings_of(found, arrivals=10.0, budget=5.0, unit="reward").of("some")
    assert (one.worth, one.more, one.oracle_share) == (0.0, 0.0, None)


def test_what_comes_anyway_is_said_and_not_earned() -> None:
    """A letter helps one in ten, where six in ten come by themselves."""
    draws = np.random.default_rng(3)
    arm = np.where(draws.random(2_000) < 0.5, "letter", "none")
    came = draws.random(2_000) < np.where(arm == "letter", 0.7, 0.6)
    made = doral.plan(
        {"arm": arm, "reward": came.astype(int)}, arm="arm", nothing="none", policies=["random"], truths=4
    )
    assert made.earnings is not None
    assert 40.0 < made.earnings.of(STATUS_QUO).worth < 160.0  # of 1,000 letters, not 700
    assert made.answer[1].startswith("All this is beyond what comes anyway: 0.6")


@pytest.mark.parametrize(("policies", "shown"), [(9, 9), (11, 11), (12, 10)])
def test_one_policy_too_many_is_shown_and_not_counted(policies: int, shown: int) -> None:
    plan = a_plan()
    assert plan.earnings is not None
    usual = next(one for one in plan.earnings.policies if one.more is None)
    other = next(one for one in plan.earnings.policies if one.more is not None)
    others = [replace(other, policy=f"rival {i}") for i in range(policies - 1)]
    said = replace(plan, earnings=replace(plan.earnings, policies=(*others, usual))).text()
    assert said.count("rival ") == shown - 1
    assert ("2 more rows" in said) is (policies == 12)
    assert "1 more row\n" not in said


def test_another_policy_that_is_surely_better_than_today_is_named() -> None:
    luck = np.random.default_rng(1).normal(size=30)
    found: dict[str, list[Played | None]] = {
        STATUS_QUO: [Played(20.0, 1.0, 60.0) for _ in luck],
        "doral-otf": [Played(22.0 + 5.0 * one, 1.0, 60.0) for one in luck],
        "a/b": [Played(26.0 + one, 1.0, 60.0) for one in luck],
        "oracle": [Played(50.0, 1.0, 60.0) for _ in luck],
    }
    made = earnings_of(found, arrivals=10.0, budget=5.0, unit="positives")
    (said,) = surer(made, "doral-otf")
    assert said == "a/b surely would: about 5.93 more [4.18, 7.68]."
    assert surer(made, "a/b") == ()
    assert surer(made, "not there") == ()
