"""Counts, and rewards and delays as they were observed: what is drawn has the law that the benchmark goes by."""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.draws import delay_in, reward_in

import doral
from doral import delays
from doral.compiled import Block
from doral.errors import InvalidValue
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth

HORIZON = 4_000
ROWS: dict[str, dict[str, Any]] = {
    "x": {"a": [(1.0, 3.2), (0.0, 12.0), (0.5, math.inf)], "b": np.array([[2.0, 10.0], [-1.0, 10.5]])},
    "y": {"a": [[0.3, 0.0]], "b": [(5.0, 40.0), (0.1, 2.0), (0.2, 2.0), (0.0, math.inf)]},
}


def problem(**changes: Any) -> doral.Problem:
    words: dict[str, Any] = {
        "arms": [doral.Arm("a", features=[1.0, 0.2]), doral.Arm("b", features=[0.4, 1.0], cost=1.5)],
        "contexts": [doral.Context("x", 0.4, weight=2.0), doral.Context("y", 0.6, deadline=5.0)],
        "budget": 2_000,
        "horizon": HORIZON,
        "deadline": 10.5,
        **changes,
    }
    return doral.Problem(**words)


def observed(rows: Any = ROWS, **changes: Any) -> doral.Scenario:
    return doral.Scenario(**{"name": "observed", "problem": problem(), "rows": rows, **changes})


def counts(means: Any = ((0.3, 7.0), (40.0, 0.0)), **changes: Any) -> doral.Scenario:
    words = {"name": "counts", "problem": problem(), "means": means, "noise": "poisson", "delays": delays.Geometric(4)}
    return doral.Scenario(**{**words, **changes})


def drawn(scenario: doral.Scenario, context: int, arm: int) -> tuple[Any, Any]:
    """Rewards and delays of one cell, over a whole tape."""
    truth = make_truth(scenario, seed=2, run=0)
    tape, world = new_tape(truth.world, HORIZON), truth.block
    WORLD["record"](Block(tape), world, 2, 0, 1)
    rewards = [reward_in(world, 1, context, arm, noise) for noise in tape.noise.tolist()]
    pairs = zip(rewards, tape.delay.tolist(), strict=True)
    return np.array(rewards), np.array([delay_in(world, context, arm, reward, wait) for reward, wait in pairs])


# --- counts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("context", "arm", "mean"), [(0, 0, 0.3), (0, 1, 7.0), (1, 0, 40.0), (1, 1, 0.0)])
def test_counts_are_those_of_scipy(context: int, arm: int, mean: float) -> None:
    scenario = counts()
    world = make_truth(scenario, seed=2, run=0).world
    tape = new_tape(world, HORIZON)
    WORLD["record"](Block(tape), Block(world), 2, 0, 1)
    rewards, _ = drawn(scenario, context, arm)
    assert (rewards == np.maximum(0.0, stats.poisson.ppf(tape.noise, mean))).all()


def test_the_largest_draw_is_a_count_too() -> None:
    scenario = counts(means=[[500.0, 0.5], [1.0, 1e-9]])
    world = make_truth(scenario, seed=0, run=0).block
    nearly_one = math.nextafter(1.0, 0.0)
    most = [reward_in(world, 1, *cell, nearly_one) for cell in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert 600 < most[0] < 800
    assert most[1] < most[2] < 30
    assert most[3] <= 2


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.5, 2.0, 6.3])
def test_counts_whose_delays_depend_on_them(threshold: float) -> None:
    law = delays.ByOutcome(above=delays.Geometric(3), below=delays.Geometric(20), threshold=threshold)
    scenario = counts(means=[[0.3, 7.0], [2.5, 0.0]], delays=law)
    counted = make_truth(scenario, seed=0, run=0).counted[0] / scenario.problem.weights[:, None]
    whole = np.arange(200)
    for j, deadline in enumerate((10.0, 5.0)):
        for a in range(2):
            chance = stats.poisson.pmf(whole, scenario.means[j][a])
            in_time = [law.given(float(n)).return_probability(deadline) for n in whole]
            assert counted[j, a] == pytest.approx((chance * whole * in_time).sum(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"means": [[0.3, -0.1], [1.0, 1.0]]}, "mean reward = -0.1: must be between 0 and 500 for poisson"),
        ({"means": [[0.3, 501.0], [1.0, 1.0]]}, "mean reward = 501.0"),
        ({"means": None, "theta": [[1.0, -2.0], [1.0, 1.0]]}, "mean reward = -1.6"),
        ({"means": None, "theta": [[1.0, -2.0], [1.0, 1.0]], "features": "drawn"}, "mean reward = -2.0"),
    ],
)
def test_counts_need_means_that_are_none_below_zero(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        counts(**changes)
    counts(means=None)  # drawn from U(0, 1)
    counts(means=None, features="drawn")


# --- rows ------------------------------------------------------------------------------------------------------------


def test_one_draw_picks_reward_and_delay_together() -> None:
    scenario = observed()
    for j, (context, cells) in enumerate(ROWS.items()):
        for a, (arm, cell) in enumerate(cells.items()):
            rewards, waits = drawn(scenario, j, a)
            rows = [(reward, max(1.0, float(np.ceil(delay)))) for reward, delay in np.array(cell).tolist()]
            seen = set(zip(rewards.tolist(), waits.tolist(), strict=True))
            assert seen == set(rows), (context, arm)
            for row in set(rows):
                share = rows.count(row) / len(rows)
                found = ((rewards == row[0]) & (waits == row[1])).mean()
                assert found == pytest.approx(share, abs=4.5 * math.sqrt(share * (1 - share) / HORIZON) + 1e-12)


def test_the_truth_follows_from_the_rows() -> None:
    """Deadlines of 10.5 and 5: ten and five whole rounds."""
    truth = make_truth(observed(), seed=0, run=0)
    assert truth.counted[0] == pytest.approx(np.array([[2.0 * 1.0 / 3.0, 2.0 * 2.0 / 2.0], [0.3, 0.3 / 4.0]]))
    assert truth.world.means[0] == pytest.approx(np.array([[0.5, 0.5], [0.3, 5.3 / 4.0]]))
    law = observed().delays[0][0]
    assert isinstance(law, delays.Law)
    assert law.return_probability(12.0) == pytest.approx(2 / 3)
    result = doral.simulate(["oracle", "doral-otf", "random"], observed(), runs=12)
    for policy in result.policies:
        luck = result.rewards("observed", policy) - result.expected("observed", policy)
        assert abs(luck.mean()) < 4.0 * stats.sem(luck)
    share = result.summary().filter(policy="oracle", metric="within_deadline")["expected_share"][0]
    assert 0.99 < share < 1.01


@pytest.mark.parametrize("name", ["doral-otf", "doral", "oracle"])
def test_the_twin_wants_the_same(name: str) -> None:
    from tests.engine.test_engine_equals_twin import compare

    scenario = observed(problem=problem(horizon=250, budget=150.0))
    options = doral.PolicyOptions.named(name, {"min_answers": 4})
    assert compare(options, scenario).decisions > 20
    assert compare(options, counts(problem=problem(horizon=250, budget=150.0))).decisions > 20


def test_a_scenario_of_rows_is_data_like_any_other() -> None:
    scenario = observed()
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert dataclasses.replace(scenario) == scenario
    assert dataclasses.replace(scenario, name="other").rows == scenario.rows


def without(*path: str) -> dict[str, Any]:
    rows: dict[str, Any] = {context: dict(cells) for context, cells in ROWS.items()}
    place = rows
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    return rows


def with_cell(cell: Any) -> dict[str, Any]:
    return {"x": {"a": cell, "b": ROWS["x"]["b"]}, "y": ROWS["y"]}


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (without("y"), "lacks context 'y'"),
        (without("y", "a"), "rows of context 'y' = .*: lacks arm 'a'"),
        ({**ROWS, "z": {}}, "unknown context in rows 'z'"),
        ({**ROWS, "y": [1.0]}, "must be a mapping from arm to what was observed"),
        (3, "must be a mapping {context: {arm: rows"),
        (with_cell([]), "number of rows of 'x', 'a' = 0: must be at least 1"),
        (with_cell([(math.nan, 1.0)]), "reward in rows of 'x', 'a' = nan"),
        (with_cell([(1.0, 1.0), (2.0, -1.0)]), "delay in rows of 'x', 'a' = -1.0: must be 0 or more rounds"),
        (with_cell([(1.0, math.nan)]), "delay in rows of 'x', 'a' = nan"),
        (with_cell([(1.0, 2.0, 0.5)]), "columns of rows of 'x', 'b' = 2: must be the same for all cells"),
        (with_cell([1.0, 2.0]), r"shape of rows of 'x', 'a' = \(2,\): must be \(n, 2\), .* or \(n, 3\)"),
        (with_cell([(1.0, 2.0, 0.5, 1.0)]), r"shape of rows of 'x', 'a' = \(1, 4\)"),
        (with_cell("many"), "must be numbers, a row"),
    ],
)
def test_rows_that_are_none_say_so(rows: Any, says: str) -> None:
    with pytest.raises((InvalidValue, doral.UnknownName), match=says):
        observed(rows)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"delays": delays.Fixed(3)}, "delays = .*: follow from the rows"),
        ({"means": np.ones((2, 2))}, "means = .*follow from the rows"),
        ({"theta": np.ones((2, 2))}, "say all there is to say"),
        ({"noise": "bernoulli"}, "say all there is to say"),
        ({"phases": 2}, "say all there is to say"),
        ({"rows": None}, "must be delay laws"),
    ],
)
def test_rows_are_alone(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        observed(**changes)
