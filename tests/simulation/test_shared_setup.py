"""What the runs of a scenario share: made once, the same numbers as made anew, and nothing leaks from run to run."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.small_worlds import MIXED_LAWS, make_scenario

import doral
from doral import delays
from doral.compiled import Block
from doral.numerics.kernels import ARRIVAL, philox, to_uniform
from doral.problem import Context
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.oracle import expected_worth
from doral.simulation.world.tape import WALKED_CONTEXTS, WORLD, find_context, new_tape
from doral.simulation.world.truth import make_truth

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # words of 64 bits wrap around

POLICIES = ["doral-otf", "d-linucb"]


def _drawn() -> Scenario:
    return make_scenario(theta=None, features="drawn", delays=MIXED_LAWS)


def _shared_bytes(scenario: Scenario) -> list[bytes]:
    world = make_truth(scenario, seed=0, run=0).world
    return [array.tobytes() for array in (*world.laws, world.cumulative_shares, world.available, world.means)]


def test_it_is_made_once_also_when_threads_ask_at_the_same_time() -> None:
    scenario, made = _drawn(), []
    start = threading.Barrier(8)

    def make(one: Scenario) -> list[str]:
        made.append(one)
        return [one.name]

    def ask(_: int) -> list[str]:
        start.wait()
        return scenario.once(make)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(ask, range(8)))
    assert all(one is found[0] for one in found)
    n_made = len(made)
    assert scenario.once(make) is found[0]
    assert len(made) == n_made


@pytest.mark.parametrize("scenario", [_drawn(), make_scenario(availability=0.8)], ids=["drawn", "given"])
def test_runs_and_threads_change_nothing_of_it(scenario: Scenario) -> None:
    before = _shared_bytes(scenario)
    used = doral.simulate(POLICIES, scenario, runs=6, n_jobs=3)
    assert _shared_bytes(scenario) == before
    fresh = doral.simulate(POLICIES, dataclasses.replace(scenario), runs=6)
    again = doral.simulate(POLICIES, scenario, runs=6)
    assert used.runs().equals(fresh.runs())
    assert again.runs().equals(fresh.runs())


def test_results_may_be_edited() -> None:
    scenario = _drawn()
    first = doral.simulate("d-linucb", scenario, runs=1).outcomes[0]
    kept = first.rounds.copy(), first.curve.copy()
    first.rounds[:], first.curve[:], first.course[:] = 0, 0.0, 0.0
    again = doral.simulate("d-linucb", scenario, runs=1).outcomes[0]
    assert np.array_equal(again.rounds, kept[0])
    assert np.array_equal(again.curve, kept[1])


def test_it_does_not_travel() -> None:
    scenario = _drawn()
    plain = len(pickle.dumps(scenario))
    doral.simulate(POLICIES, scenario, runs=1)
    assert len(pickle.dumps(scenario)) == plain
    for other in (pickle.loads(pickle.dumps(scenario)), copy.deepcopy(scenario), dataclasses.replace(scenario)):
        assert other == scenario
        one, two = (make_truth(each, seed=3, run=1) for each in (scenario, other))
        assert one.oracle == two.oracle
        assert one.world.laws.kind is not two.world.laws.kind


def test_expected_worth_is_that_of_every_cell_to_the_bit() -> None:
    law = delays.ByOutcome(above=delays.Geometric(4), below=delays.Weibull(9, 0.7), threshold=0.5)
    laws = (delays.Weibull(8, 0.8), delays.Never(delays.Pareto(3, 2), 0.2), law, delays.Lognormal(5, 1), law)
    contexts = [Context("ann", 0.5, weight=2.5, deadline=11.0), Context("bob", 0.2, deadline=7.5), Context("cy", 0.3)]
    problem = dataclasses.replace(make_scenario().problem, contexts=tuple(contexts))
    one_row = Scenario(name="one row", problem=problem, delays=laws, noise_sd=0.3)
    rows = Scenario(name="rows", problem=problem, delays=(laws, laws[::-1], laws), noise_sd=0.3)
    rng = np.random.default_rng(2)
    for scenario in (one_row, rows):
        means = rng.uniform(0.0, 1.0, (2, 3, 5))
        worth = expected_worth(scenario, means)
        for phase, j, a in np.ndindex(means.shape):
            mine = scenario.delays[min(j, len(scenario.delays) - 1)][a]
            if isinstance(mine, delays.Law):
                chance = mine.return_probability(float(np.floor(problem.deadlines[j])))
                assert worth[phase, j, a] == problem.weights[j] * (means[phase, j, a] * chance)
            else:  # alone, as one of a table: see `test_expected_counted_reward_with_delays_by_outcome` for the formula
                alone = expected_worth(scenario, np.full((1, 3, 5), means[phase, j, a]))
                assert worth[phase, j, a] == alone[0, j, a]


# --- the context of a draw ------------------------------------------------------------------------------------------


def _walk(cumulative: list[float], u: float) -> int:
    return next((j for j, share in enumerate(cumulative[:-1]) if u < share), len(cumulative) - 1)


@pytest.mark.parametrize("n_contexts", [1, 2, WALKED_CONTEXTS, WALKED_CONTEXTS + 1, WALKED_CONTEXTS + 2, 100, 3001])
def test_the_search_finds_what_a_walk_finds(n_contexts: int) -> None:
    rng = np.random.default_rng(n_contexts)
    shares = rng.exponential(size=n_contexts) ** 3
    shares[n_contexts // 2] = 1e-300  # adds nothing: two cumulative shares are equal
    cumulative = np.cumsum(shares / shares.sum())
    edges = cumulative[rng.integers(n_contexts, size=50)]
    draws = [*rng.random(200), *edges, *np.nextafter(edges, 0.0), *np.nextafter(edges, 1.0), 0.0, 1.0 - 2.0**-53]
    for u in draws:
        assert find_context(cumulative, 0, cumulative.size, float(u)) == _walk(cumulative.tolist(), float(u))


def test_a_tape_of_many_contexts_has_the_contexts_of_its_draws() -> None:
    n = 500
    problem = doral.Problem(
        arms=[doral.Arm("a", features=[1.0])],
        contexts={f"context-{j}": 1.0 / n for j in range(n)},
        budget=100,
        horizon=300,
        deadline=20,
    )
    world = make_truth(Scenario(name="many", problem=problem, delays=delays.Fixed(3)), seed=1, run=2).world
    tape = new_tape(world, 300)
    WORLD["record"](Block(tape), Block(world), 1, 2, 1)
    for i, context in enumerate(tape.context.tolist()):
        who, _, _, _ = philox(np.uint64(1), np.uint64(2), np.uint64(i + 1), np.uint64(ARRIVAL), np.uint64(0))
        assert context == _walk(world.cumulative_shares.tolist(), to_uniform(np.uint64(who)))
