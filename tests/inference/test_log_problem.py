"""The problem of a log: on its clock for whoever runs it, in whole ticks for whoever simulates it."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import doral
from doral.inference.log_problem import asked_of, by_arrivals
from doral.inference.truths import truths_of
from doral.simulation.scenario.from_log import deadline_on_clock, world_of
from doral.simulation.world.truth import make_truth


def a_log(span: float, delay: float, **columns: Any) -> doral.Log:
    rng = np.random.default_rng(0)
    time = np.sort(rng.random(200)) * span
    table = {
        "time": time,
        "arm": rng.choice(["A", "B"], 200),
        "reward": (rng.random(200) < 0.4).astype(np.float64),
        "delay": rng.exponential(delay, 200),
    }
    return doral.read_log(pl.DataFrame(table), **columns)


@pytest.mark.parametrize(("span", "delay"), [(3e7, 0.05), (1e7, 1e-3), (5_000.0, 7.7), (30.0, 0.2)])
@pytest.mark.parametrize("unit", [None, "seconds"])
def test_answers_in_time_are_in_time_in_ticks(span: float, delay: float, unit: str | None) -> None:
    """Whatever is rounded, what a cell is worth in the simulation is what it was drawn to be worth."""
    log = a_log(span, delay, **({} if unit is None else {"time_unit": unit, "delay_unit": unit}))
    limit = deadline_on_clock(log, None)
    asked = asked_of(log, deadline=limit)
    truths = truths_of(log, deadline=limit, n=5, seed=0)
    worth = make_truth(world_of(log, asked, truths).usual(), seed=0, run=0).counted[0]
    assert worth == pytest.approx(truths.worths.worth.mean(axis=0), rel=1e-6)


def test_the_deadline_that_is_written_is_on_the_clock_of_the_log() -> None:
    log = a_log(30.0, 0.2)
    asked = asked_of(log, deadline=0.75)
    assert asked.ticks > 1.0
    assert asked.problem.deadline == pytest.approx(0.75 * asked.ticks)
    assert by_arrivals(asked).deadline == 0.75
    assert (by_arrivals(asked).horizon, by_arrivals(asked).until) == (200, None)
