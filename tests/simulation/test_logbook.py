"""The logbook: answers come back in order, rewards count once, and a round takes little memory."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from tests.small_worlds import make_scenario

import doral
from doral.compiled import Block
from doral.delays import Empirical
from doral.errors import InvalidValue
from doral.simulation.results.outcome import BY_END, WITHIN_CUTOFF, WITHIN_DEADLINE
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.logbook import (
    ENTRY,
    MAX_ROUNDS,
    NO_DECISION,
    Logbook,
    count,
    decision_log,
    enter,
    first_due,
    new_logbook,
    next_due,
)
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth

pytestmark = pytest.mark.usefixtures("compiled_alone")

CUTOFF = 5.0
BYTES_PER_ROUND = 36


def _due(book: Logbook, round_: int) -> list[int]:
    found = []
    decision = first_due(book, round_)
    while decision != NO_DECISION:
        found.append(decision)
        count(book, round_, decision, CUTOFF)
        decision = next_due(book, round_, decision)
    return found


def test_answers_come_in_the_order_of_their_decisions_and_count_once() -> None:
    """Against a dictionary of lists; many answers share a round, and some never come."""
    scenario = make_scenario(delays=(Empirical([1, 2, 3, 3, 8, 50, 1e18, math.inf]),) * 5, deadline=6.0)
    truth = make_truth(scenario, seed=4, run=1)
    tape = new_tape(truth.world, scenario.problem.horizon)
    WORLD["record"](Block(tape), truth.block, 4, 1, 1)
    book = new_logbook(scenario)
    expected: dict[int, list[int]] = {}
    totals = [0.0, 0.0, 0.0]
    for i, context in enumerate(tape.context.tolist()):
        round_ = i + 1
        due = _due(book, round_)
        assert due == expected.pop(round_, [])
        for decision in due:
            entry = book.entries[decision]
            delay, reward = round_ - entry["round"], float(entry["reward"])
            assert delay == entry["delay"]
            totals[BY_END] += reward
            totals[WITHIN_DEADLINE] += reward if delay <= 6.0 else 0.0
            totals[WITHIN_CUTOFF] += reward if delay <= CUTOFF else 0.0
        if i % 5:
            decision = enter(book, truth.world, tape, i, round_, context, i % 5)
            assert decision == int(book.counts["decisions"][0]) - 1
            delay = float(book.entries[decision]["delay"])
            if delay < math.inf:
                expected.setdefault(round_ + int(delay), []).append(decision)
    assert book.totals.tolist() == totals
    log = decision_log(book)
    assert [column.dtype for column in (log.round, log.context, log.arm)] == [np.int64] * 3
    assert log.round.size == 400
    assert log.delay.max() == math.inf


def test_a_round_takes_little_memory() -> None:
    scenario = make_scenario(horizon=100_000)
    assert ENTRY.itemsize == 32
    book = new_logbook(scenario)
    fixed = sum(array.nbytes for array in (book.terms, book.checkpoints, book.curve, book.course))
    parts = [array for array in book if isinstance(array, np.ndarray)]
    assert sum(array.nbytes for array in (*parts, *book.bills)) - fixed <= BYTES_PER_ROUND * 100_000 + 100


def test_a_horizon_that_cannot_be_numbered_is_refused() -> None:
    small = make_scenario()
    endless = dataclasses.replace(small, problem=dataclasses.replace(small.problem, horizon=MAX_ROUNDS + 1))
    assert isinstance(endless, Scenario)
    with pytest.raises(InvalidValue, match="to be simulated"):
        doral.simulate("d-linucb", endless, runs=1)
