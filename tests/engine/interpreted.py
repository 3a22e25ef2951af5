"""Kernels as the Python that they are: nothing is compiled, and a failure shows the line at fault.

Fields of records are read and written as attributes, as in compiled code, and as plain Python numbers. Random words are
computed with Python's integers, which are cut to 64 bits here. How close this comes to compiled code is measured in
`test_interpreted_equals_compiled.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from doral._arrays import Bits, Floats
from doral.compiled import Kernel
from doral.numerics.philox import philox
from doral.engine.budget import list_cost
from doral.engine.decide import Choice
from doral.engine.events import action_of, choose, commit, is_full, observe, pass_time, prepare, welcome
from doral.engine.options import PolicyOptions, policy_of
from doral.engine.setup import Blueprint, first_state, grown
from doral.engine.state import State
from doral.problem import Arm, Context, Problem

ALL_ARMS: Bits = np.zeros(0, dtype=np.uint8)
NO_TRAITS: Floats = np.zeros(0)

_MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
_BITS, _WORD = 64, 2**64 - 1


def _philox(
    seed: int, run: int, index: int, purpose: int, lane: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the four words of `philox`."""
    c0, c1, c2, c3 = int(index), int(purpose), int(lane), 0
    k0, k1 = int(seed), int(run)
    for _ in range(10):
        first, second = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1 = (second >> _BITS) ^ c1 ^ k0, second & _WORD
        c2, c3 = (first >> _BITS) ^ c3 ^ k1, first & _WORD
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD
    return np.uint64(c0), np.uint64(c1), np.uint64(c2), np.uint64(c3)


_IN_PYTHON: dict[object, Callable[..., Any]] = {philox: _philox}


def call_in_python(kernel: Kernel, *arguments: Any) -> Any:
    """Call a kernel without compiling it; the fixture `interpreted` puts this in the place of `Kernel.__call__`."""
    function: Callable[..., Any] = _IN_PYTHON.get(kernel, kernel.function)
    return function(*arguments)


class Row:
    """One record, with plain numbers as attributes."""

    __slots__ = ("_record",)

    def __init__(self, record: Any) -> None:
        object.__setattr__(self, "_record", record)

    def __getattr__(self, name: str) -> Any:
        return self._record[name].item()

    def __setattr__(self, name: str, value: Any) -> None:
        self._record[name] = value


class Rows:
    """Records, of which each is a `Row`."""

    def __init__(self, records: Any) -> None:
        self.records, self.size, self.shape = records, records.size, records.shape

    def __getitem__(self, index: Any) -> Row:
        return Row(self.records[index])


def in_python(tree: Any) -> Any:
    """Return the same tree, on the same arrays, for kernels that run in Python."""
    return tree._make(_readable(value) for value in tree)


def _readable(value: Any) -> Any:
    if hasattr(value, "_fields"):
        return in_python(value)
    return Rows(value) if isinstance(value, np.ndarray) and value.dtype.names else value


def as_arrays(tree: Any) -> Any:
    """Return the tree that `in_python` was made of."""
    return tree._make(
        as_arrays(value) if hasattr(value, "_fields") else value.records if isinstance(value, Rows) else value
        for value in tree
    )


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
    state = cast(State, in_python(first_state(blueprint)))
    prepare(state)
    return state


def state_of(base: str, problem: Problem | None = None, **options: Any) -> State:
    """Return the first state of a preset with options changed."""
    return first(policy_of(base, options), problem)


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
            self.state = in_python(grown(as_arrays(self.state)))
