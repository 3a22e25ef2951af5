"""Scenarios are validated data; worlds are their truth; tapes are pure functions of (seed, run, round)."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import doral
from doral import delays
from doral.compiled import Block
from doral.errors import InvalidValue, UnknownName
from doral.simulation.catalogue.paper import SCENARIOS, with_horizon
from doral.simulation.world.oracle import availability_dual, true_return_table
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth


def problem(**changes: Any) -> doral.Problem:
    given_: dict[str, Any] = {
        "arms": [doral.Arm("a", features=[0.2, 0.7]), doral.Arm("b", features=[0.9, 0.1], cost=2.5)],
        "contexts": {"x": 0.25, "y": 0.75},
        "budget": 100,
        "horizon": 400,
        "deadline": 20,
    }
    return doral.Problem(**(given_ | changes))


def scenario(**changes: Any) -> doral.Scenario:
    given_: dict[str, Any] = {"name": "test", "problem": problem(), "delays": delays.Geometric(5)}
    return doral.Scenario(**(given_ | changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"delays": [delays.Geometric(5)]}, "number of delays = 1: must be one per arm, 2"),
        ({"delays": {"a": delays.Geometric(5)}}, "lacks arm 'b'"),
        ({"delays": {"a": delays.Fixed(1), "c": delays.Fixed(1)}}, "unknown arm in delays 'c'"),
        ({"delays": {"x": delays.Fixed(1)}}, "lacks context 'y'"),
        ({"delays": 5}, "must be delay laws"),
        ({"theta": [[1.0, 2.0]]}, r"shape of theta = \(1, 2\): must be \(2, 2\)"),
        ({"means": [[1.0, math.nan], [0.0, 0.0]]}, "finite numbers only"),
        ({"means": [[0.1, 0.2], [0.3, 0.4]], "theta": [[1, 2], [3, 4]]}, "theta or means, not both"),
        ({"noise": "bernoulli"}, "needs known means between 0 and 1"),
        ({"noise": "bernoulli", "means": [[0.1, 1.2], [0.0, 0.0]]}, "mean reward = 1.2"),
        ({"noise": "uniform"}, "gaussian, bernoulli, poisson or none"),
        ({"noise_sd": -1.0}, "noise_sd = -1.0"),
        ({"availability": 1.5}, "availability = 1.5"),
        ({"shares": [0.5, 0.6]}, "above 0 and sum to 1"),
        ({"features": "random"}, "given or drawn"),
        ({"problem": "kits"}, "must be a doral.Problem"),
    ],
)
def test_bad_scenarios_say_what_is_wrong(changes: dict[str, Any], says: str) -> None:
    with pytest.raises((InvalidValue, UnknownName), match=says):
        scenario(**changes)


def test_laws_by_context_and_arm() -> None:
    made = scenario(delays={"x": delays.Fixed(1), "y": {"a": delays.Fixed(2), "b": delays.Fixed(3)}})
    assert made.delays == ((delays.Fixed(1),) * 2, (delays.Fixed(2), delays.Fixed(3)))
    assert dataclasses.replace(made, name="other").delays == made.delays


def test_paper_scenarios_are_the_papers() -> None:
    assert sorted(SCENARIOS) == [
        "paper/diverse-geometric",
        "paper/diverse-pareto",
        "paper/similar-geometric",
        "paper/similar-pareto",
    ]
    for made in SCENARIOS.values():
        assert (made.problem.budget, made.problem.horizon, made.problem.deadline) == (85_000, 170_000, 500)
        assert (made.problem.n_arms, made.problem.n_contexts, made.problem.n_features) == (10, 10, 5)
    slowest = {name: made.delays[0][-1] for name, made in SCENARIOS.items()}
    geometric, pareto = slowest["paper/diverse-geometric"], slowest["paper/diverse-pareto"]
    assert isinstance(geometric, delays.Law)
    assert isinstance(pareto, delays.Law)
    assert round(geometric.return_probability(500.0), 2) == 0.81
    assert round(pareto.return_probability(500.0), 2) == 0.36
    assert with_horizon(SCENARIOS["paper/similar-pareto"], 1000).problem.horizon == 1000


def test_unknown_scenario_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'paper/diverse-pareto'"):
        doral.scenario("paper/divers-pareto")  # type: ignore[arg-type]


def test_parameters_are_drawn_anew_for_every_run_and_only_then() -> None:
    paper = doral.scenario("paper/similar-pareto")
    first, again, other = (make_truth(paper, seed=7, run=run) for run in (0, 0, 1))
    assert np.array_equal(first.features, again.features)
    assert np.array_equal(first.world.means, again.world.means)
    assert not np.array_equal(first.features, other.features)
    assert ((first.features >= 0) & (first.features < 1)).all()
    fixed = scenario(means=[[0.1, 0.2], [0.3, 0.4]])
    assert np.array_equal(make_truth(fixed, seed=1, run=5).world.means, [[[0.1, 0.2], [0.3, 0.4]]])


def test_a_tape_does_not_depend_on_its_chunks() -> None:
    truth = make_truth(scenario(availability=[0.3, 0.9]), seed=3, run=2)
    whole = new_tape(truth.world, 300)
    WORLD["record"](Block(whole), truth.block, 3, 2, 1)
    for first_round, rounds in ((200, 50), (1, 10), (37, 163)):  # any order, any size
        part = new_tape(truth.world, rounds)
        WORLD["record"](Block(part), truth.block, 3, 2, first_round)
        here = slice(first_round - 1, first_round - 1 + rounds)
        for name in ("context", "noise", "delay", "available"):
            assert np.array_equal(getattr(part, name), getattr(whole, name)[here])


def test_draws_have_the_right_laws() -> None:
    truth = make_truth(scenario(availability=[0.3, 0.9]), seed=11, run=0)
    tape = new_tape(truth.world, 40_000)
    WORLD["record"](Block(tape), truth.block, 11, 0, 1)
    assert np.mean(tape.context == 0) == pytest.approx(0.25, abs=0.01)
    assert tape.available.mean(axis=0) == pytest.approx([0.3, 0.9], abs=0.01)
    assert tape.noise.mean() == pytest.approx(0.0, abs=0.02)
    assert tape.noise.std() == pytest.approx(1.0, abs=0.02)
    assert abs(np.corrcoef(tape.noise, tape.delay)[0, 1]) < 0.02


@pytest.mark.parametrize("noise", ["gaussian", "bernoulli", "none"])
def test_expected_counted_reward_with_delays_by_outcome(noise: Any) -> None:
    """The closed form against a plain average over draws."""
    law = delays.ByOutcome(above=delays.Geometric(4), below=delays.Geometric(40), threshold=0.5)
    made = scenario(noise=noise, noise_sd=0.3, means=[[0.4, 0.6], [0.5, 0.9]], delays=law)
    truth = make_truth(made, seed=0, run=0)
    rng = np.random.default_rng(0)
    n = 400_000
    for j, a in itertools.product(range(2), range(2)):
        mean = truth.world.means[0, j, a]
        rewards = {
            "gaussian": mean + 0.3 * rng.standard_normal(n),
            "bernoulli": (rng.random(n) < mean).astype(float),
            "none": np.full(n, mean),
        }[noise]
        chance = np.where(rewards > 0.5, law.above.return_probability(20.0), law.below.return_probability(20.0))
        assert truth.counted[0, j, a] == pytest.approx(np.mean(rewards * (rng.random(n) < chance)), abs=0.006)


def _lp_over_available_sets(values: Any, costs: Any, shares: Any, rate: float, available: Any) -> float:
    """The oracle's LP written out: one variable per context, available set and arm in it."""
    n_contexts, n_arms = values.shape
    sets = list(itertools.product([0, 1], repeat=n_arms))
    gain, spend, rows = [], [], []
    for j in range(n_contexts):
        for number, there in enumerate(sets):
            weight = shares[j] * np.prod([q if x else 1 - q for x, q in zip(there, available, strict=True)])
            for a in range(n_arms):
                gain.append(weight * values[j, a] * there[a])
                spend.append(weight * costs[a])
                rows.append(j * len(sets) + number)
    one_arm = np.zeros((n_contexts * len(sets), len(gain)))
    one_arm[rows, np.arange(len(gain))] = 1.0
    solved = linprog(
        -np.array(gain), A_ub=np.vstack([spend, one_arm]), b_ub=np.r_[rate, np.ones(len(one_arm))], method="highs"
    )
    return -float(solved.fun or 0.0)


@settings(max_examples=40)
@given(data=st.data(), n_contexts=st.integers(1, 3), n_arms=st.integers(1, 3))
def test_oracle_with_availability_equals_the_full_lp(data: st.DataObject, n_contexts: int, n_arms: int) -> None:
    def numbers(low: float, high: float, n: int) -> Any:
        return np.array(data.draw(st.lists(st.floats(low, high), min_size=n, max_size=n)))

    values = numbers(-0.5, 2.0, n_contexts * n_arms).reshape(n_contexts, n_arms)
    costs, available = numbers(0.2, 3.0, n_arms), numbers(0.0, 1.0, n_arms)
    shares = numbers(0.1, 1.0, n_contexts)
    shares /= shares.sum()
    rate = data.draw(st.floats(0.01, 3.0))
    ours = availability_dual(values, costs, shares, rate, available)[0]
    assert ours == pytest.approx(_lp_over_available_sets(values, costs, shares, rate, available), abs=1e-7)


def test_oracle_table_is_the_laws() -> None:
    table = true_return_table(scenario(delays=[delays.Geometric(5), delays.Never(delays.Pareto(3, 2), 0.2)]))
    assert table.shape == (1, 2, 401)
    assert table[0, 1, 20] == pytest.approx(0.8 * (1 - (3 / 20) ** 2))
    assert table[0, 0, 0] == 0.0
