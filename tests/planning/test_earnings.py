"""What policies earn is told alike of those that played all truths and of those that played some."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import doral
from doral.evaluation.policies import STATUS_QUO
from doral.planning.earnings import Earnings, Played, earnings_of
from doral.planning.recommendation import recommend, recommended
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
    assert slow.worth.value == pytest.approx(half.worth.value) == 0.5 * best.mean()
    assert slow.more is not None
    assert half.more is not None
    assert slow.more.value == pytest.approx(half.more.value)
    assert slow.oracle_share == half.oracle_share == pytest.approx(0.5)
    assert slow.worth.low < slow.worth.value < slow.worth.high
    assert slow.more.low < slow.more.value < slow.more.high
    assert [one.policy for one in made.policies].index("half") < [one.policy for one in made.policies].index(
        worse.policy
    )
    assert made.difference("half", "slow half").value == 0.0


def test_where_nothing_can_be_had_nothing_is_scaled() -> None:
    found: dict[str, list[Played | None]] = {
        STATUS_QUO: [Played(0.0, 1.0, 0.0)] * 4,
        "some": [Played(0.0, 1.0, 0.0), Played(0.0, 1.0, 0.0), None, None],
    }
    one = earnings_of(found, arrivals=10.0, budget=5.0, unit="reward").of("some")
    assert one.more is not None
    assert (one.worth.value, one.more.value, one.oracle_share, one.is_clear) == (0.0, 0.0, None, False)


def test_what_comes_anyway_is_said_and_not_earned() -> None:
    """A letter helps one in ten, where six in ten come by themselves."""
    draws = np.random.default_rng(3)
    arm = np.where(draws.random(2_000) < 0.5, "letter", "none")
    came = draws.random(2_000) < np.where(arm == "letter", 0.7, 0.6)
    made = doral.plan(
        {"arm": arm, "reward": came.astype(int)}, arm="arm", nothing="none", policies=["random"], truths=4
    )
    assert made.earnings is not None
    assert 40.0 < made.earnings.of(STATUS_QUO).worth.value < 160.0  # of 1,000 letters, not 700
    assert any(one.startswith("All this is beyond what comes anyway: 0.6") for one in made.answer)


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


LUCK = np.random.default_rng(1).normal(size=40)


def earnings(worths: dict[str, tuple[float, float]], live: tuple[str, ...] = ("doral-otf",)) -> Earnings:
    """By policy, its mean and its spread over draws; today earns 20, the oracle 50."""
    found: dict[str, list[Played | None]] = {
        STATUS_QUO: [Played(20.0, 1.0, 50.0) for _ in LUCK],
        "oracle": [Played(50.0, 1.0, 50.0) for _ in LUCK],
    }
    for name, (mean, spread) in worths.items():
        draws = np.random.default_rng([*name.encode()]).permutation(LUCK)
        found[name] = [Played(mean + spread * one, 1.0, 50.0) for one in draws]
    return earnings_of(found, arrivals=10.0, budget=5.0, unit="positives", live=frozenset(live))


def test_the_best_policy_that_can_run_live_and_is_clearly_better_is_recommended() -> None:
    live = ("doral-otf", "d-linucb", "random")
    # a/b is best, and cannot run; doral-otf has the largest mean of those that can, but is not clear
    worths = {"a/b": (32.0, 1.0), "doral-otf": (27.0, 9.0), "d-linucb": (25.0, 1.0), "random": (24.0, 1.0)}
    made = earnings(worths, live)
    best = recommended(made)
    assert best is not None
    assert best.policy == "d-linucb"
    assert not made.of("doral-otf").is_clear
    assert made.of("a/b").is_clearly_better


def test_where_nothing_is_clearly_better_nothing_is_recommended() -> None:
    assert recommended(earnings({"doral-otf": (22.0, 5.0), "a/b": (30.0, 1.0)})) is None
    assert recommended(earnings({"doral-otf": (18.0, 0.5)})) is None  # clearly worse
    assert recommended(earnings({"doral-otf": (30.0, 0.5)}, live=())) is None


def test_a_difference_that_changes_nothing_is_not_clear() -> None:
    """However sure it is: half a percent of what is earned today is no reason to change anything."""
    live = ("random", "doral-otf")
    made = earnings({"random": (20.1, 0.001), "doral-otf": (26.0, 9.0)}, live)
    more = made.of("random").more
    assert more is not None
    assert more.low > 0.0
    assert not made.of("random").is_clear
    assert recommended(made) is None
    assert recommended(earnings({"random": (20.3, 0.001)}, live)) is not None


def test_many_comparisons_are_corrected() -> None:
    """A policy that is beyond the margin alone, at 4%, is not among thirty."""
    spread = 1.0 / (stats.t.ppf(0.98, LUCK.size - 1) * LUCK.std(ddof=1) * np.sqrt(1 + 1 / LUCK.size))
    one: dict[str, tuple[float, float]] = {"doral-otf": (21.0 + 0.2 + spread * -LUCK.mean(), spread)}
    assert earnings(one).of("doral-otf").is_clear
    many = one | {f"other_{i}": (20.0, 5.0) for i in range(30)}
    assert not earnings(many).of("doral-otf").is_clear


def test_equal_policies_are_rarely_called_different() -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(300):
        # The posterior of the difference is centred where the log happens to put it.
        centre = rng.normal()
        found: dict[str, list[Played | None]] = {
            STATUS_QUO: [Played(100.0, 1.0, 200.0)] * 40,
            **{f"p{i}": [Played(100.0 + centre + e, 1.0, 200.0) for e in rng.normal(size=40)] for i in range(5)},
        }
        made = earnings_of(found, arrivals=1.0, budget=1.0, unit="", live=frozenset(found))
        wrong += recommended(made) is not None
    assert wrong / 300 <= 0.03


def test_a_difference_to_today_is_that_of_the_table() -> None:
    """Also of a policy that played a few draws, which were richer than the others."""
    rich = [100.0, 120.0, 80.0, 90.0] + [40.0] * 36
    found: dict[str, list[Played | None]] = {
        STATUS_QUO: [Played(0.5 * one, 1.0, one) for one in rich],
        "a/b": [Played(0.6 * one + place, 1.0, one) if place < 4 else None for place, one in enumerate(rich)],
    }
    made = earnings_of(found, arrivals=10.0, budget=5.0, unit="positives")
    more = made.of("a/b").more
    assert more is not None
    difference = made.difference("a/b", STATUS_QUO)
    assert (difference.value, difference.low, difference.high) == pytest.approx((more.value, more.low, more.high))


def test_an_interval_above_zero_that_is_not_clear_says_why() -> None:
    """Nine policies, of which one alone would be: the sentence does not contradict its own interval."""
    spread = 1.0 / (stats.t.ppf(0.98, LUCK.size - 1) * LUCK.std(ddof=1) * np.sqrt(1 + 1 / LUCK.size))
    worths = {"doral-otf": (21.0 + 0.2 + spread * -LUCK.mean(), spread)} | {f"p{i}": (20.0, 5.0) for i in range(8)}
    made = earnings(worths)
    more = made.of("doral-otf").more
    assert more is not None
    assert more.low > 0.0
    why = recommend(a_plan().log, made, {}, ()).reasons[0]
    assert "9 comparisons" in why
