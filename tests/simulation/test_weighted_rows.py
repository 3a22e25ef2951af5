"""Rows as arrays, and with weights: a weight is as good as copies of a row, and what is true follows from them."""

from __future__ import annotations

import dataclasses
import math
import pickle
import time
from typing import Any

import numpy as np
import pytest
from scipy import stats

import doral
from doral._arrays import Floats
from doral.errors import InvalidValue
from doral.prediction.python_policy import Answer, Arrival
from doral.simulation.scenario.rows import Rows
from doral.simulation.world.oracle import expected_payments, true_return_table
from doral.simulation.world.truth import make_truth

ROWS: dict[str, dict[str, Any]] = {
    "x": {"a": [(1.0, 3.2, 2.0), (0.0, 8.0, 0.0), (1.0, 11.0, 4.0), (0.5, math.inf, 4.0)], "b": [(2.0, 4.0, 1.5)]},
    "y": {"a": [(0.3, 1.0, 4.0), (0.4, 2.0, 1.0)], "b": [(0.0, 2.0, 0.5), (1.0, 0.0, 0.0)]},
}
COPIES: dict[str, dict[str, list[int]]] = {"x": {"a": [3, 1, 2, 2], "b": [5]}, "y": {"a": [1, 4], "b": [7, 2]}}
HORIZON = 20_000


def problem(**changes: Any) -> doral.Problem:
    given: dict[str, Any] = {
        "arms": [doral.Arm("a", cost=4), doral.Arm("b", cost={"x": 3, "y": 2})],
        "contexts": {"x": 0.5, "y": 0.5},
        "budget": 1500,
        "horizon": 2000,
        "deadline": 10,
        "paid": "on_answer",
    }
    return doral.Problem(**given | changes)


def weighted(**changes: Any) -> doral.Scenario:
    words: dict[str, Any] = {"name": "weighted", "problem": problem(), "rows": ROWS, "row_weights": COPIES} | changes
    return doral.Scenario(**words)


def copied(**changes: Any) -> doral.Scenario:
    """The same law without weights: as many copies of each row as it weighs."""
    rows = {
        j: {a: [row for row, n in zip(cell, COPIES[j][a], strict=True) for _ in range(n)] for a, cell in cells.items()}
        for j, cells in ROWS.items()
    }
    return weighted(**{"rows": rows, "row_weights": None} | changes)


class Always:
    """The same arm for everybody."""

    arm = 0

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        del problem, seed

    def decide(self, arrival: Arrival) -> int | None:
        return self.arm if self.arm in arrival.available else None

    def observe(self, answer: Answer) -> None:
        del answer


class AlwaysTheOther(Always):
    arm = 1


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
def test_a_weight_is_as_good_as_copies(feedback: str) -> None:
    """All that is true of the two is the same, whatever is asked."""
    one = weighted(problem=problem(feedback=feedback))
    other = copied(problem=problem(feedback=feedback))
    truth, same = make_truth(one, seed=0, run=0), make_truth(other, seed=0, run=0)
    assert truth.counted == pytest.approx(same.counted)
    assert truth.oracle == pytest.approx(same.oracle)
    assert np.array(one.means) == pytest.approx(np.array(other.means))
    assert true_return_table(one) == pytest.approx(true_return_table(other))
    for mine, theirs in zip(sum(one.delays, ()), sum(other.delays, ()), strict=True):
        assert isinstance(mine, doral.delays.Law)
        assert isinstance(theirs, doral.delays.Law)
        assert mine.mean == pytest.approx(theirs.mean)
        ages = np.array([0.0, 0.5, 1.0, 3.2, 8.0, 11.0, 1e9, math.inf])
        assert mine.return_probability(ages) == pytest.approx(theirs.return_probability(ages))
        grid = (np.arange(1000) + 0.5) / 1000
        assert mine.sample(grid).tolist() == theirs.sample(grid).tolist()
    found = [expected_payments(scenario, np.array(scenario.means)[None]) for scenario in (one, other)]
    assert found[0] is not None
    assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize("policy", [Always, AlwaysTheOther, "random"])
def test_rows_are_drawn_as_often_as_they_weigh(policy: Any) -> None:
    place = weighted(problem=problem(horizon=HORIZON, budget=4 * HORIZON))
    log = doral.simulate(policy, place, runs=1, keep_decisions=True).outcomes[0].log
    assert log is not None
    for j, (context, cells) in enumerate(ROWS.items()):
        for a, (arm, cell) in enumerate(cells.items()):
            mine = (log.context == j) & (log.arm == a)
            if not mine.any():
                continue
            weights = np.array(COPIES[context][arm], dtype=float)
            seen = [
                ((log.reward == row[0]) & (log.delay == max(1.0, float(np.ceil(row[1])))))[mine].sum() for row in cell
            ]
            assert sum(seen) == mine.sum()
            if len(cell) > 1:
                assert stats.chisquare(seen, weights / weights.sum() * mine.sum()).pvalue > 1e-4


def test_weights_that_are_all_alike_change_nothing() -> None:
    plain = weighted(row_weights=None)
    alike = weighted(row_weights={j: {a: [2.5] * len(c) for a, c in cells.items()} for j, cells in ROWS.items()})
    assert alike == plain
    assert alike.rows is not None
    assert alike.rows.weight is None
    one, other = (doral.simulate("doral-otf", place, runs=1, keep_decisions=True) for place in (plain, alike))
    assert one.decisions().equals(other.decisions())


def test_rewards_and_costs_keep_to_their_rows() -> None:
    place = weighted(problem=problem(horizon=4000, budget=3000))
    result = doral.simulate(["oracle", "doral-otf"], place, runs=10)
    for policy in result.policies:
        luck = result.rewards("weighted", policy) - result.expected("weighted", policy)
        assert abs(luck.mean()) < 4.0 * stats.sem(luck)
    assert all(outcome.spend <= 3000 + 1e-9 for outcome in result.outcomes)


def many(n_rows: int, n_contexts: int = 20, n_arms: int = 5) -> tuple[doral.Problem, dict[str, Any]]:
    rng = np.random.default_rng(3)
    names = [f"c{j}" for j in range(n_contexts)]
    big = doral.Problem(
        arms=[doral.Arm(f"a{a}", cost=2.0) for a in range(n_arms)],
        contexts=dict.fromkeys(names, 1.0 / n_contexts),
        budget=500,
        horizon=1000,
        deadline=30,
        paid="on_answer",
    )
    cuts = np.sort(rng.choice(np.arange(1, n_rows), n_contexts * n_arms - 1, replace=False))
    delay: Floats = np.where(rng.random(n_rows) < 0.2, np.inf, rng.exponential(20.0, n_rows))
    arrays = {
        "reward": rng.random(n_rows),
        "delay": delay,
        "cost": 2.0 * rng.random(n_rows),
        "weight": rng.exponential(1.0, n_rows) + 1e-6,
        "starts": np.append(0, cuts).reshape(n_contexts, n_arms),
    }
    return big, arrays


def test_many_rows_are_quick_and_right() -> None:
    big, arrays = many(300_000)
    best = math.inf
    for _ in range(3):
        began = time.perf_counter()
        place = doral.Scenario(name="many", problem=big, rows=Rows.from_arrays(**arrays))
        truth = make_truth(place, seed=0, run=0)
        best = min(best, time.perf_counter() - began)
    assert best < 0.3
    rows = place.rows
    assert rows is not None
    for j, a in [(0, 0), (7, 3), (19, 4)]:
        part = slice(rows.starts[j, a], rows.stops[j, a])
        weights = arrays["weight"][part] / arrays["weight"][part].sum()
        in_time = np.maximum(1.0, np.ceil(arrays["delay"][part])) <= 30
        assert truth.counted[0, j, a] == pytest.approx((weights * arrays["reward"][part] * in_time).sum())
        assert place.means[j][a] == pytest.approx((weights * arrays["reward"][part]).sum())
        assert rows.cumulative[part] == pytest.approx(np.cumsum(weights), abs=1e-12)
    assert doral.simulate("doral-otf", place, runs=1).outcomes[0].spend > 0.0


def test_a_scenario_of_weighted_rows_is_data_like_any_other() -> None:
    place = weighted()
    assert pickle.loads(pickle.dumps(place)) == place
    assert dataclasses.replace(place, name="other").rows == place.rows
    assert len({place.rows, weighted().rows, copied().rows}) == 2
    assert place != weighted(row_weights={**COPIES, "x": {"a": [3, 1, 2, 3], "b": [5]}})
    assert hash(place) == hash(weighted())
    rows = place.rows
    assert rows is not None
    again = doral.Scenario(name="weighted", problem=problem(), rows=rows.weighted(rows.weight))
    assert again == place
    with pytest.raises(ValueError, match="read-only"):
        rows.reward[0] = 3.0


def test_arrays_that_nobody_can_change_are_not_copied() -> None:
    _, arrays = many(1000)
    arrays["reward"].flags.writeable = False
    rows = Rows.from_arrays(**arrays)
    assert rows.reward is arrays["reward"]
    arrays["delay"][0] = -5.0
    assert rows.delay[0] >= 0.0
    assert rows.weighted(None).weight is None


def with_weights(cell: Any) -> dict[str, Any]:
    return {**COPIES, "x": {"a": cell, "b": [1.0]}}


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (with_weights([1.0, 2.0, 0.0, 1.0]), "row_weights of 'x', 'a' = 0.0: must be finite and above 0"),
        (with_weights([1.0, -2.0, 1.0, 1.0]), "row_weights of 'x', 'a' = -2.0"),
        (with_weights([1.0, math.nan, 1.0, 1.0]), "row_weights of 'x', 'a' = nan"),
        (with_weights([1.0, math.inf, 1.0, 1.0]), "row_weights of 'x', 'a' = inf"),
        (with_weights([1.0, 1.0]), r"shape of row_weights of 'x', 'a' = \(2,\): must be one weight for each row, \(4,"),
        (with_weights("heavy"), "row_weights of 'x', 'a' = 'heavy': must be numbers"),
        (with_weights([1e308, 1e308, 1.0, 1.0]), "are too far apart"),
        ({"x": COPIES["x"]}, "row_weights = .*: lacks context 'y'"),
        ({**COPIES, "y": {"a": [1, 1]}}, "row_weights of context 'y' = .*: lacks arm 'b'"),
        (7, "row_weights = 7: must be a mapping"),
    ],
)
def test_weights_that_are_none_say_so(weights: Any, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        weighted(row_weights=weights)


def test_weights_need_rows() -> None:
    with pytest.raises(InvalidValue, match="^row_weights = .*: are of rows"):
        weighted(rows=None)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"reward": [1.0, math.nan]}, "reward in rows of context 0, arm 1 = nan"),
        ({"delay": [1.0, -1.0]}, "delay in rows of context 0, arm 1 = -1.0"),
        ({"delay": [1.0]}, "shape of delay of rows = "),
        ({"weight": [0.0, 1.0]}, "row_weights of context 0, arm 0 = 0.0"),
        ({"starts": [[0, 2]]}, "starts of rows = .*: must ascend"),
        ({"starts": [[1, 1]]}, "starts of rows = .*: must ascend"),
        ({"starts": [0, 1]}, "starts of rows = .*: must be whole numbers"),
        ({"starts": [[0.0, 1.0]]}, "starts of rows = .*: must be whole numbers"),
        ({"reward": "many"}, "reward of rows"),
        ({"reward": [], "delay": []}, "shape of reward of rows"),
    ],
)
def test_arrays_that_are_no_rows_say_so(changes: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"reward": [1.0, 0.0], "delay": [1.0, 2.0], "starts": [[0, 1]]}
    with pytest.raises(InvalidValue, match=says):
        Rows.from_arrays(**given | changes)


def test_rows_of_another_problem_say_so() -> None:
    rows = Rows.from_arrays(reward=[1.0, 0.0], delay=[1.0, 2.0], starts=[[0, 1]])
    with pytest.raises(InvalidValue, match=r"shape of rows = \(1, 2\): must be \(contexts, arms\), \(2, 2\)"):
        weighted(rows=rows, row_weights=None)
    costly = Rows.from_arrays(reward=np.ones(4), delay=np.ones(4), cost=[0.0, 0.0, 0.0, 2.5], starts=[[0, 1], [2, 3]])
    with pytest.raises(InvalidValue, match="cost in rows of 'y', 'b' = 2.5: must be from 0 to .* 2"):
        weighted(rows=costly, row_weights=None)
