"""An arm that is new: nobody of its own was watched until the deadline, and yet it is worth what it is worth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from doral.inference.cells import Cells, cells_of
from doral.inference.pooling import draw_worths
from doral.logs.clock import Clock
from doral.logs.log import Log, Reading
from doral.problem import Feedback

ROWS, NEW_SINCE, MEAN_DELAY, DEADLINE = 1_000, 700, 100.0, 400.0
RATES = np.array([0.3, 0.2])
NEW = 1


def a_log(seed: int, *, feedback: Feedback = "silent", never: float = 0.0) -> Log:
    """The second arm is given since row 700, to every other one; the log ends with its last row."""
    rng = np.random.default_rng(seed)
    place = np.arange(ROWS, dtype=np.float64)
    arm = np.where(place < NEW_SINCE, 0, rng.integers(0, 2, ROWS))
    reward = (rng.random(ROWS) < RATES[arm]).astype(np.float64)
    delay = np.where(rng.random(ROWS) < never, np.inf, rng.exponential(MEAN_DELAY, ROWS))
    watched = ROWS - 1.0 - place
    is_heard = (delay <= watched) & ((reward > 0.0) | (feedback == "explicit"))
    return Log(
        name="new",
        arms=("old", "new"),
        contexts=("all",),
        clock=Clock("rounds", "rounds"),
        start=None,
        time=place,
        context=np.zeros(ROWS, dtype=np.int64),
        arm=arm,
        reward=np.where(is_heard, reward, np.nan),
        delay=np.where(is_heard, delay, np.inf),
        watched=watched,
        cost=np.ones(ROWS),
        paid=np.ones(ROWS),
        probability=np.full(ROWS, np.nan),
        feedback=feedback,
        paid_when="always",
        has_delays=True,
        reading=Reading(rows=ROWS, columns=()),
    )


def new_arm(cells: Cells) -> tuple[float, float]:
    return float(cells.mean[NEW]), float(cells.effective[NEW])


@pytest.mark.parametrize(("feedback", "never"), [("silent", 0.0), ("explicit", 0.5), ("explicit", 0.0)])
def test_a_new_arm_is_worth_what_it_is_worth(feedback: Feedback, never: float) -> None:
    true = RATES[NEW] * (1.0 - never) * (1.0 - math.exp(-DEADLINE / MEAN_DELAY))
    found, rows, inside = [], [], []
    for seed in range(30):
        cells = cells_of(a_log(seed, feedback=feedback, never=never), DEADLINE)
        mean, effective = new_arm(cells)
        found.append(mean)
        rows.append(effective)
        draws = draw_worths(cells, 60, np.random.default_rng(seed)).worth[:, 0, NEW]
        low, high = np.quantile(draws, [0.025, 0.975])
        inside.append(low <= true <= high)
    # What came late enough not to be seen is borrowed from an arm that is half as good again: a bias, and a small one.
    assert abs(np.mean(found) - true) < 0.15 * true + 3.0 * np.std(found) / math.sqrt(30)
    assert np.mean(inside) >= 0.7  # and never where those that have answered stand for all
    assert 0.0 < np.mean(rows) < 0.75 * (ROWS - NEW_SINCE) / 2


def test_one_that_is_new_as_of_today_tells_nothing() -> None:
    log = a_log(0)
    arm = np.where(np.arange(ROWS) >= ROWS - 10, NEW, 0)
    none = replace(log, arm=arm, delay=np.where(arm == NEW, np.inf, log.delay))
    mean, effective = new_arm(cells_of(none, DEADLINE))
    assert effective < 1.0
    assert mean < 0.8


def test_what_comes_later_than_anybody_was_watched_counts_as_nothing() -> None:
    """Half never answer, and nobody was watched for so long: those who have answered do not stand for the rest."""
    log = a_log(0, feedback="explicit", never=0.5)
    cells = cells_of(log, 5.0 * ROWS)
    is_old = log.arm == 0
    assert cells.mean[0] == pytest.approx(0.15, abs=0.03)
    assert cells.sums(cells.usual) == pytest.approx(1.0)
    assert float(np.nan_to_num(log.reward[is_old]).mean()) <= cells.mean[0]


def test_what_is_paid_on_answer_is_lent_by_its_price() -> None:
    log = a_log(0)
    price = np.where(log.arm == NEW, 5.0, 2.0)
    cells = cells_of(replace(log, paid_when="on_answer", cost=price, paid=np.full(ROWS, np.nan)), DEADLINE)
    for cell, cost in ((0, 2.0), (NEW, 5.0)):
        here = cells.slice_of(cell)
        came = np.isfinite(cells.delay[here])
        assert set(cells.paid[here][came].tolist()) == {cost}
        assert set(cells.paid[here][~came].tolist()) == {0.0}
