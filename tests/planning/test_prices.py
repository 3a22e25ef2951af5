"""What arms cost and what doing nothing brings: what is still open is not counted as nothing."""

from __future__ import annotations

import numpy as np
import pytest

from doral._arrays import Floats
from doral.logs.log import Log
from doral.planning.values import nothing_done, prices
from tests.planning.made import made, uniform_watch


def _paid_log(paid_for: str, seed: int = 0, n: int = 6_000) -> Log:
    rng = np.random.default_rng(seed)
    reward = (rng.random(n) < 0.3).astype(float)
    watched = uniform_watch(n, 60, rng)
    delay = np.where(rng.random(n) < 0.2, np.inf, rng.exponential(10, n))
    came = delay <= watched
    paid: Floats = np.where(came, 5.0 if paid_for == "answers" else 5.0 * reward, np.nan)
    return made(
        delay, watched, reward=reward, cost=5.0, paid=paid, paid_when="on_answer", context=rng.integers(0, 2, n)
    )


@pytest.mark.parametrize(
    ("paid_for", "paid_when", "share"), [("answers", "on answer", 0.8), ("successes", "on success only", 0.24)]
)
def test_what_is_still_open_is_not_free(paid_for: str, paid_when: str, share: float) -> None:
    log = _paid_log(paid_for)
    together, *by_context = prices(log)
    assert together.paid_when == paid_when
    assert together.list_price == 5.0
    assert together.paid_share == pytest.approx(share, abs=0.03)
    assert together.low is not None
    assert together.high is not None
    assert together.low <= 5.0 * share <= together.high
    assert np.nansum(log.paid) / len(log) < 5.0 * share - 0.1  # what a careless reader would take
    assert [one.context for one in by_context] == ["context-1", "context-2"]
    assert sum(one.rows for one in by_context) == together.rows == 6_000


def test_a_price_that_is_always_paid_is_known() -> None:
    log = made(np.full(50, np.inf), np.linspace(50, 1, 50), arm=np.arange(50) % 2, cost=2.0 + np.arange(50) % 2)
    first, second = prices(log)
    assert (first.paid, first.low, first.high, first.paid_when) == (2.0, 2.0, 2.0, "always")
    assert second.sentence == "arm-2 costs 3."


def test_nothing_paid_yet_is_not_nothing() -> None:
    log = made(np.full(50, np.inf), np.linspace(50, 1, 50), paid=np.full(50, np.nan), paid_when="on_answer")
    (one,) = prices(log)
    assert one.paid is None
    assert one.paid_when is None
    assert "not known yet" in one.sentence
    free = prices(made(np.ones(20), np.full(20, 9.0), cost=0.0))[0]
    assert free.paid_share is None
    assert free.sentence == "arm-1 costs nothing."


def test_what_expired_unpaid_counts_as_unpaid() -> None:
    n = 1_000
    rng = np.random.default_rng(1)
    delay = np.where(rng.random(n) < 0.4, 1.0, np.inf)
    paid = np.where(np.isfinite(delay), 3.0, 0.0)  # all ends are known
    (one,) = prices(made(delay, np.full(n, 9.0), cost=3.0, paid=paid, paid_when="on_answer", time=np.arange(float(n))))
    assert one.paid == pytest.approx(paid.mean())


def test_doing_nothing_brings_what_skipped_people_bring() -> None:
    rng = np.random.default_rng(2)
    n = 8_000
    context = rng.integers(0, 2, n)
    reward = (rng.random(n) < 0.1 + 0.2 * context).astype(float)
    arm = np.where(rng.random(n) < 0.5, -1, 0)
    log = made(rng.exponential(10, n), uniform_watch(n, 60, rng), reward=reward, arm=arm, context=context)
    together, first, second = nothing_done(log)
    for one, truth in ((together, 0.2), (first, 0.1), (second, 0.3)):
        assert one.low is not None
        assert one.high is not None
        assert one.low <= truth <= one.high
        assert one.high - one.low < 0.06
    assert together.rows == (arm == -1).sum()


def test_where_nobody_was_skipped_or_answered_it_says_so() -> None:
    (nobody,) = nothing_done(made(np.ones(9), np.full(9, 3.0)))
    assert nobody.value is None
    assert "every row has an arm" in nobody.sentence
    (silent,) = nothing_done(made(np.full(9, np.inf), np.full(9, 3.0), arm=-1, arms=("a",)))
    assert silent.value is None
    assert "none of 9 skipped" in silent.sentence
