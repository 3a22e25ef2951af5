"""Open decisions narrow the bonus as if they were answered as expected, where people have features: see `pending`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doral._kernel import kernel, position, rare
from doral.engine.hooks import remembered
from doral.engine.pieces.pending import norm_row
from doral.engine.state import State
from doral.estimators.line import expect_line, narrow_lines

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

__all__ = ["norm_row", "on_cancel", "on_commit", "on_fate", "on_lines", "on_settle"]


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return options.pending == "expected" and bool(problem.person)


@kernel
def on_commit(state: State, slot: int, context: int, arm: int, cost: float) -> None:
    decision = state.ring[slot]
    decision.expected, decision.reading = min(state.tau[context, arm], 1.0), state.now[0].read_last
    expect_line(state.people.line, arm, state.people.columns[context], decision.expected)


@kernel
def on_fate(state: State, slot: int, answered: float) -> None:
    """It is answered, or never will be: it is open no more."""
    decision = state.ring[slot]
    if decision.expected >= 0.0:
        counted = decision.expected * remembered(state, slot)
        expect_line(state.people.line, position(decision.arm), state.people.ring_columns[slot], -counted)
        decision.expected = -1.0


@kernel
def on_settle(state: State, slot: int) -> None:
    on_fate(state, slot, 0.0)


@kernel
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    if number >= state.now[0].first:
        on_fate(state, number & (state.ring.size - 1), 0.0)


@rare
def on_lines(state: State) -> None:
    narrow_lines(state.people.line)
