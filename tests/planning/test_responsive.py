"""Which arms answer in time: known scenarios are recovered, and chance does not make an arm slow."""

from __future__ import annotations

import numpy as np
import pytest

import doral
from doral.planning.responsiveness import responsiveness
from tests.logs import log_of
from tests.planning.made import DAY, made, uniform_watch


def test_the_arms_of_a_known_scenario_are_recovered() -> None:
    """Pareto delays of shape 2: an arm's mean wait until the deadline is known."""
    scenario = doral.scenario("paper/diverse-pareto")
    found = responsiveness(log_of(scenario, "random", round_s=1.0), deadline=500.0)
    minima = {name: law.minimum for name, law in zip(scenario.problem.arm_names, scenario.delays[0], strict=True)}  # type: ignore[union-attr]
    wait = {name: x + x * (1.0 - x / 500.0) for name, x in minima.items()}  # E[min(D, 500)] of minimum x
    known = [one for one in found.arms if one.rank is not None]
    assert len(known) >= 6
    typical = np.average([wait[one.arm] for one in known], weights=[one.rows for one in known])
    for one in known:
        assert one.share is not None
        assert one.low is not None
        assert one.high is not None
        assert one.wait_low is not None
        assert one.wait_high is not None
        assert one.low <= 1.0 - (minima[one.arm] / 500.0) ** 2 <= one.high
        assert one.wait_low - 1.0 <= wait[one.arm] <= one.wait_high + 1.0  # delays are rounded up
        least = min(wait[each.arm] for each in known)
        if one.standing == "slow":
            assert wait[one.arm] > least + found.margin * typical
        if one.standing == "responsive":
            assert wait[one.arm] <= least + found.margin * typical + 1.0
    ranked = [one for one in known if one.rows >= 500]
    assert [one.arm for one in ranked] == sorted((one.arm for one in ranked), key=lambda name: wait[name])
    assert found.slow


def test_arms_that_are_alike_are_not_slow() -> None:
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = 2_000
        log = made(rng.exponential(5 * DAY, n), uniform_watch(n, 60 * DAY, rng), arm=rng.integers(0, 8, n))
        wrong += bool(responsiveness(log, deadline=20 * DAY).slow)
    assert wrong <= 4


def test_a_slow_arm_is_found_and_ranked_last() -> None:
    rng = np.random.default_rng(1)
    arm = rng.integers(0, 3, 6_000)
    log = made(rng.exponential(np.array([2, 2, 9])[arm] * DAY), uniform_watch(6_000, 90 * DAY, rng), arm=arm)
    found = responsiveness(log, deadline=14 * DAY)
    assert found.slow == ("arm-3",)
    assert set(found.responsive) == {"arm-1", "arm-2"}
    assert (found.arms[-1].rank, found.arms[-1].rank_low, found.arms[-1].rank_high) == (3, 3, 3)
    assert found.arms[0].rank_low == 1
    assert found.arms[0].rank_high == 2
    assert "arm-3" in found.sentence


def test_silence_is_not_slowness() -> None:
    """An arm that fails more often is heard of less often, at the same pace."""
    rng = np.random.default_rng(2)
    arm = rng.integers(0, 2, 8_000)
    delay = np.where(rng.random(8_000) < 0.6 - 0.4 * arm, rng.exponential(3 * DAY, 8_000), np.inf)
    found = responsiveness(
        made(delay, uniform_watch(8_000, 90 * DAY, rng), arm=arm, feedback="silent"), deadline=14 * DAY
    )
    assert found.slow == ()
    shares = {one.arm: one.share for one in found.arms}
    assert shares["arm-1"] == pytest.approx(0.6, abs=0.03)
    assert shares["arm-2"] == pytest.approx(0.2, abs=0.03)


def test_few_rows_are_not_surely_anything() -> None:
    rng = np.random.default_rng(3)
    arm = np.where(np.arange(3_012) < 3_000, 0, 1)
    delay = np.where(arm == 0, rng.exponential(DAY, 3_012), np.inf)
    delay[-6:] = 0.5 * DAY
    log = made(delay, np.full(3_012, 30 * DAY), arm=arm, time=np.arange(3_012.0))
    assert responsiveness(log, deadline=10 * DAY).arms[0].standing == "responsive"
    never_used = responsiveness(made(delay, np.full(3_012, 30 * DAY), arms=("a", "b")), deadline=10 * DAY)
    assert never_used.arms[-1].rank is None
    assert never_used.arms[-1].standing == "cannot tell"
    assert "not known" in never_used.arms[-1].sentence
    short = responsiveness(log, deadline=40 * DAY)
    assert all(one.share is None for one in short.arms)


def test_nothing_known_says_why() -> None:
    assert "no answer" in responsiveness(made(np.full(30, np.inf), np.linspace(30, 1, 30))).sentence
    assert "does not say" in responsiveness(made(np.zeros(5), np.zeros(5), has_delays=False)).sentence
    assert "one arm only" in responsiveness(made(np.ones(50), np.full(50, 9.0))).sentence
