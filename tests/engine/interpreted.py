"""Kernels as the Python that they are: nothing is compiled, and a failure shows the line at fault.

Records of a state answer by attribute, as they do in compiled code. Draws are NumPy's: in Python, products of
words of 64 bits do not wrap around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from doral._arrays import Bits, Floats
from doral.compiled import Kernel
from doral.numerics.philox import coin
from doral.engine.blueprint import Blueprint
from doral.engine.choice import Choice
from doral.engine.compose import first_state, grown
from doral.engine.entries import prepare
from doral.engine.events import decide, is_full, is_stock_due, observe, open_round, take_stock, tick
from doral.engine.options import PolicyOptions
from doral.engine.presets import policy
from doral.engine.state import State
from doral.estimators import ridge
from doral.problem import Arm, Context, Problem
from tests import twin

ALL_ARMS: Bits = np.zeros(0, dtype=np.uint8)


def _normal(seed: int, run: int, round_: int, lane: int) -> float:
    return float(twin.normals(seed, run, round_, lane + 1)[lane])


DRAWS: dict[object, Callable[..., Any]] = {coin: twin.coin, ridge._normal: _normal}


def call_in_python(kernel: Kernel, *arguments: Any) -> Any:
    """What a call of a kernel means here; see the fixture `interpreted`."""
    function: Callable[..., Any] = DRAWS.get(kernel, kernel.function)
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
    """The same tree, on the same arrays, for kernels that run in Python."""
    return tree._make(_readable(value) for value in tree)


def _readable(value: Any) -> Any:
    if hasattr(value, "_fields"):
        return in_python(value)
    return Rows(value) if isinstance(value, np.ndarray) and value.dtype.names else value


def as_arrays(tree: Any) -> Any:
    """Back again."""
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
    """Two contexts, three arms, two features."""
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
    """Some, for those who are given them."""
    shape = (1, problem.n_contexts, problem.n_arms)
    return np.random.default_rng(SEED).uniform(0.1, 1.0, shape) if options.sampling == "oracle" else None


def first(options: PolicyOptions, problem: Problem | None = None, *, oracle: Any = None) -> State:
    """A first state, in Python."""
    problem = problem or small_problem()
    blueprint = Blueprint(
        options=options, problem=problem, seed=SEED, oracle=oracle, true_values=true_values(options, problem)
    )
    state = cast(State, in_python(first_state(blueprint)))
    prepare(state)
    return state


def state_of(base: str, problem: Problem | None = None, **options: Any) -> State:
    """A first state of a preset with options changed."""
    return first(policy(base, **options), problem)


# --- events ----------------------------------------------------------------------------------------------------------


class Player:
    """Events in their order, on a state that grows where it must."""

    def __init__(self, state: State) -> None:
        self.state = state

    def decide(self, context: int, clock: float, available: Bits = ALL_ARMS) -> Choice:
        self._make_room()
        open_round(self.state, clock)
        if is_stock_due(self.state):
            take_stock(self.state)
        return decide(self.state, context, available)

    def answer(self, decision: int, reward: float, clock: float) -> int:
        self._make_room()
        return observe(self.state, decision, reward, clock)

    def pass_time(self, clock: float) -> None:
        tick(self.state, clock)
        if is_stock_due(self.state):
            take_stock(self.state)

    def _make_room(self) -> None:
        if is_full(self.state):
            self.state = in_python(grown(as_arrays(self.state)))
