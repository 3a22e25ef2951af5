"""Kernels as Python and compiled kernels lead to the same states, to the bit: what tests of single kernels show holds
for compiled code, and a campaign that began interpreted goes on as one that began compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from doral._arrays import Floats, leaves
from doral.engine.engine import Engine, Heard, Who
from doral.engine.options import POLICY_NAMES, policy_of
from doral.engine.setup import Blueprint
from doral.problem import Arm, Context, Problem
from tests.engine.interpreted import SEED, Player, as_arrays, first, small_problem, true_values
from tests.engine.people_campaigns import problem_of

ROUNDS = 120
SCRATCH = ("values", "gamma", "allowed")  # written where a branch needs it, and read in the same call
ORACLE: Floats = np.linspace(0.1, 0.9, 200).reshape(1, 1, -1).repeat(3, axis=1)


def large_problem() -> Problem:
    """Return a problem with as many arms as fit in a vector and two more, weights, costs and reserves."""
    rng = np.random.default_rng(5)
    costs = rng.choice([0.5, 1.0, 1.7], 10)
    return Problem(
        arms=[Arm(f"a{i}", features=rng.uniform(-0.3, 1.0, 5), cost=float(cost)) for i, cost in enumerate(costs)],
        contexts=[Context(f"c{j}", 0.1, weight=float(rng.uniform(0.5, 3.0)), tier=j % 3) for j in range(10)],
        reserves={1: 0.2, 2: 0.1},
        budget=60.0,
        horizon=130,
        deadline=20.0,
    )


PROBLEMS: dict[str, Problem] = {
    "small": small_problem(),
    "silent": small_problem(feedback="silent"),
    "paid on answer": small_problem(paid="on_answer", baseline="observed"),
    "large": large_problem(),
    "people": problem_of(horizon=130, budget=80.0),
    "silent people": problem_of(horizon=130, budget=80.0, feedback="silent"),
}
RUNS: list[tuple[str, str, dict[str, Any]]] = [
    *((name, "small", {"min_answers": 3}) for name in POLICY_NAMES),
    *(("doral-otf", problem, {"reservoir": 24}) for problem in PROBLEMS if problem != "small"),
    ("doral", "large", {"min_answers": 2}),
    ("d-lints", "large", {}),
    ("doral-otf", "small", {"half_life": 30.0}),
    ("doral-otf", "small", {"outcome_split": 0.5}),
    ("doral-otf", "large", {"explore": 0.2, "prior": "shared"}),
]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("name", "kind", "changes"), RUNS, ids=str)
def test_states_are_equal_to_the_bit(name: str, kind: str, changes: dict[str, Any]) -> None:
    options, problem = policy_of(name, changes), PROBLEMS[kind]
    oracle = ORACLE if options.return_probability == "oracle" else None
    truth = true_values(options, problem)
    compiled = Engine(Blueprint(options=options, problem=problem, seed=SEED, oracle=oracle, true_values=truth))
    compiled.wait_for_program()
    player = Player(first(options, problem, oracle=oracle))
    rng, due = np.random.default_rng(7), dict[int, list[tuple[int, float, Who]]]()
    for clock in range(1, ROUNDS + 1):
        for number, reward, who in due.pop(clock, []):
            heard = Heard(number, reward, float(clock))
            told = compiled.answer([heard], who=[who] if problem.n_traits else None)
            assert told == [player.answer(number, reward, float(clock))]
        context = int(rng.integers(problem.n_contexts))
        offered = (rng.random((1, problem.n_arms)) < 0.8).astype(np.uint8)
        traits = rng.normal(50.0, 10.0, problem.n_traits)
        traits[list(problem.category_columns)] = float(rng.geometric(0.2) - 1)
        who = Who(traits.tolist())
        played = compiled.played
        decided = compiled.decide(context, offered, float(clock), who=who)
        choice = player.decide(context, float(clock), offered[0], traits=traits)
        assert (decided.arm, decided.reason) == (choice.arm, choice.reason)
        assert (decided.probability, decided.value, decided.price) == (choice.probability, choice.value, choice.price)
        if compiled.played > played:
            answer = float(rng.normal(0.5, 0.2)) * float(problem.feedback == "explicit" or rng.random() < 0.4)
            due.setdefault(clock + int(rng.integers(1, 30)), []).append((played, answer, who))
    assert compiled.played > 10
    for (where, ours), (_, theirs) in zip(leaves(as_arrays(player.state)), leaves(compiled.state), strict=True):
        for field in ours.dtype.names or [...]:
            if where not in SCRATCH:
                np.testing.assert_array_equal(ours[field], theirs[field], err_msg=where)
