"""A log by context and arm: what is known of a cell, and how sure it is."""

from __future__ import annotations

import numpy as np
import pytest

import doral
from doral.inference.cells import cells_of
from doral.inference.survival import weigh_answers
from tests.logs import HOUR, log_of


def kits(**changed: object) -> doral.Scenario:
    problem = doral.Problem(
        arms=[doral.Arm("a"), doral.Arm("b", cost=2)],
        contexts={"x": 0.6, "y": 0.4},
        budget=900,
        horizon=1_000,
        deadline=60,
        feedback=changed.pop("feedback", "explicit"),  # type: ignore[arg-type]
    )
    settings = {"means": [[0.2, 0.5], [0.4, 0.1]], "noise": "bernoulli", "delays": doral.delays.Geometric(mean=30)}
    return doral.Scenario(name="kits", problem=problem, **{**settings, **changed})  # type: ignore[arg-type]


def test_a_cell_that_was_watched_to_the_end_is_a_plain_mean() -> None:
    log = log_of(kits(), "status-quo", watched_after=60.0)
    cells = cells_of(log, 60 * HOUR)
    for cell in range(4):
        here = (log.context == cell // 2) & (log.arm == cell % 2)
        worth = np.where(log.delay[here] <= 60 * HOUR, np.nan_to_num(log.reward[here]), 0.0)
        assert cells.mean[cell] == pytest.approx(worth.mean())
        assert cells.effective[cell] == pytest.approx(here.sum())
        assert cells.variance[cell] == pytest.approx(worth.var())


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
def test_what_is_open_is_weighed_as_kaplan_and_meier_do(feedback: str) -> None:
    log = log_of(kits(feedback=feedback), "status-quo")
    cells = cells_of(log, 60 * HOUR)
    assert not cells.is_settled.all()
    for cell in range(4):
        here = (log.context == cell // 2) & (log.arm == cell % 2)
        weighed = weigh_answers(log.delay[here], log.watched[here])
        in_time = log.delay[here] <= 60 * HOUR
        assert cells.mean[cell] == pytest.approx((weighed.weight * np.nan_to_num(log.reward[here]))[in_time].sum())
        part = cells.slice_of(cell)
        assert cells.usual[part].sum() == pytest.approx(1.0)
        assert 0.0 < cells.effective[cell] < here.sum()


def test_zeros_for_what_is_open_would_be_wrong() -> None:
    """The test that a naive mean fails: half of the log is young."""
    scenario = kits(delays=doral.delays.Geometric(mean=300), noise="none", means=[[1.0, 1.0], [1.0, 1.0]])
    true = 1.0 - (1.0 - 1.0 / 300.0) ** 500
    corrected, naive = [], []
    for run in range(20):
        log = log_of(scenario, "status-quo", run=run)
        cells = cells_of(log, 500 * HOUR)
        corrected.append(float((cells.mean * cells.effective).sum() / cells.effective.sum()))
        naive.append(float(np.nan_to_num(log.reward)[log.is_served].mean()))
    error = np.std(corrected) / np.sqrt(20)
    assert abs(np.mean(corrected) - true) < 4.0 * error
    assert np.mean(naive) < true - 10.0 * error


def test_successes_that_are_all_alike_are_noticed() -> None:
    assert cells_of(log_of(kits()), 60 * HOUR).step == 1.0
    assert cells_of(log_of(kits(noise="gaussian")), 60 * HOUR).step is None


def test_what_is_paid_on_answer_is_nothing_without_one() -> None:
    from dataclasses import replace

    log = log_of(kits(), "status-quo")
    cells = cells_of(replace(log, paid_when="on_answer", paid=np.full(len(log), np.nan)), 60 * HOUR)
    assert (cells.paid[np.isinf(cells.delay)] == 0.0).all()
    assert set(cells.paid[np.isfinite(cells.delay)].tolist()) == {1.0, 2.0}
