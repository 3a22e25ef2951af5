"""Open decisions narrow the bonus as if they were answered as expected: otherwise, while answers are late, the same arm
would be tried again and again because nothing is known of it.

J more rows of the ridge hold these norms. An open decision enters with tau, its chance to be answered, and leaves when
its fate is known. The sums change at once and the norms when stock is taken next: one decision more or less is soon
enough then, and without it those that are never answered would pass for known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from doral._kernel import kernel, position
from doral.engine.hooks import remembered, settled_weight
from doral.engine.state import State, mark_stale
from doral.errors import InvalidValue
from doral.estimators.ridge import add_weight, narrow, refactor, refactor_rows

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


@dataclass(frozen=True, kw_only=True)
class PendingOptions:
    """Whether open decisions count."""

    pending: Literal["ignored", "expected"] = "ignored"


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    """Where people have features, `people_pending`."""
    return options.pending == "expected" and not problem.person


def check(options: PolicyOptions) -> None:
    if options.pending == "expected" and options.learner == "thinned":
        raise InvalidValue("pending", options.pending, "counts open decisions, which the thinned learner does anyway")


@kernel
def norm_row(state: State, context: int) -> int:
    return context + state.contexts.size


@kernel
def on_commit(state: State, slot: int, context: int, arm: int, cost: float) -> None:
    decision = state.ring[slot]
    decision.expected, decision.reading = min(state.tau[context, arm], 1.0), state.now[0].read_last
    narrow(state.ridge, state.contexts.size + context, arm, decision.expected)


@kernel
def on_fate(state: State, slot: int, answered: float) -> None:
    """It counted with the chance to be answered; now it is (1), or not (0), or settled (`scaled`)."""
    decision = state.ring[slot]
    if decision.expected >= 0.0 or answered > 0.0:  # an answer: the cut-off may have grown again after it left it
        counted = max(decision.expected, 0.0) * remembered(state, slot)
        context = position(decision.context)
        add_weight(state.ridge, state.contexts.size + context, position(decision.arm), answered - counted)
        decision.expected = -1.0
        if state.ridge.features.shape[1] == 0:
            mark_stale(state, context)


@kernel
def on_recalled(state: State, context: int, arm: int) -> None:
    """It left the norms when it settled, and is answered after all."""
    add_weight(state.ridge, state.contexts.size + context, arm, 1.0)


@kernel
def on_settle(state: State, slot: int) -> None:
    on_fate(state, slot, settled_weight(state, slot))


@kernel
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    if number >= state.now[0].first:
        on_fate(state, number & (state.ring.size - 1), 0.0)
        refactor(state.ridge, state.contexts.size + context)


@kernel
def renew(state: State) -> None:
    """The prior has moved, and with it the norms."""
    refactor_rows(state.ridge, state.contexts.size, state.ridge.weight.shape[0])
