"""A small problem and its events, for kernels that run as Python: a failure shows the line at fault."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from doral._arrays import Bits, Floats
from doral.compiled.program import Rows, as_python
from doral.engine.budget import list_cost
from doral.engine.decide import Choice
from doral.engine.events import action_of, choose, commit, is_full, observe, pass_time, prepare, welcome
from doral.engine.options import PolicyOptions, policy_of
from doral.engine.setup import Blueprint, first_state, grown
from doral.engine.state import State
from doral.problem import Arm, Context, Problem

__all__ = [
    "ALL_ARMS",
    "COSTS",
    "FEATURES",
    "SEED",
    "SHARES",
    "WEIGHTS",
    "Player",
    "as_arrays",
    "as_python",
    "decide",
    "first",
    "small_problem",
    "state_of",
    "true_values",
]

ALL_ARMS: Bits = np.zeros(0, dtype=np.uint8)
NO_TRAITS: Floats = np.zeros(0)

# --- a small problem -------------------------------------------------------------------------------------------------

SEED = 3
FEATURES = np.array([[1.0, 0.0], [0.5, 0.5], [0.2, 1.0]])
COSTS = np.array([1.0, 2.0, 1.0])
WEIGHTS = np.array([1.0, 3.0])
SHARES = np.array([0.6, 0.4])


def small_problem(**changes: Any) -> Problem:
    """Return a problem of two contexts, three arms and two features, with these changes."""
    words: dict[str, Any] = {"budget": 50.0, "horizon": 100, "deadline": 20.0, **changes}
    return Problem(
        arms=[
            Arm(name, features=row, cost=float(cost)) for name, row, cost in zip("abc", FEATURES, COSTS, strict=True)
        ],
        contexts=words.pop(
            "contexts", [Context("x", SHARES[0], weight=WEIGHTS[0]), Context("y", SHARES[1], weight=WEIGHTS[1])]
        ),
        **words,
    )


def true_values(options: PolicyOptions, problem: Problem) -> Floats | None:
    """Return true values for a policy that is given them, None for others."""
    shape = (1, problem.n_contexts, problem.n_arms)
    return np.random.default_rng(SEED).uniform(0.1, 1.0, shape) if options.sampling == "oracle" else None


def first(options: PolicyOptions, problem: Problem | None = None, *, oracle: Floats | None = None) -> State:
    """Return a prepared first state for kernels that run in Python."""
    problem = problem or small_problem()
    blueprint = Blueprint(
        options=options, problem=problem, seed=SEED, oracle=oracle, true_values=true_values(options, problem)
    )
    state = cast(State, as_python(first_state(blueprint)))
    prepare(state)
    return state


def state_of(base: str, problem: Problem | None = None, **options: Any) -> State:
    """Return the first state of a preset with options changed."""
    return first(policy_of(base, options), problem)


def as_arrays(tree: Any) -> Any:
    """Return the tree that `as_python` was made of."""
    return tree._make(
        as_arrays(value) if hasattr(value, "_fields") else value.records if isinstance(value, Rows) else value
        for value in tree
    )


# --- events ----------------------------------------------------------------------------------------------------------


def decide(state: State, row: int, available: Bits = ALL_ARMS) -> Choice:
    """Choose for a row of values and commit what is played, now."""
    choice = choose(state, row, available)
    arm = action_of(state, choice)
    if arm >= 0:
        commit(state, row, arm, list_cost(state, row, arm), state.now[0].clock)
    return choice


class Player:
    """Play events in their order, on a state that grows where it must."""

    def __init__(self, state: State) -> None:
        self.state = state

    def decide(
        self,
        context: int,
        clock: float,
        available: Bits = ALL_ARMS,
        *,
        traits: Floats = NO_TRAITS,
        weight: float = np.nan,
        deadline: float = np.nan,
    ) -> Choice:
        """Decide for an arrival, and commit what is played."""
        self._make_room()
        return decide(self.state, welcome(self.state, context, traits, weight, deadline, clock), available)

    def answer(self, number: int, reward: float, clock: float) -> int:
        """Take in an answer; return its outcome."""
        self._make_room()
        return observe(self.state, number, reward, clock)

    def pass_time(self, clock: float) -> None:
        """Let time pass without an arrival."""
        pass_time(self.state, clock)

    def _make_room(self) -> None:
        if is_full(self.state):
            self.state = as_python(grown(as_arrays(self.state)))
