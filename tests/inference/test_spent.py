"""What a log has spent, or will have: what is open is not free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from doral.inference.log_problem import spent
from tests.inference.test_cells import kits
from tests.logs import log_of


def test_what_is_open_will_be_paid_like_the_rest() -> None:
    """Paid on success: the same log, watched to the end, and cut while a good part of it is open."""
    totals = []
    for run in range(20):
        whole, cut = (log_of(kits(), "status-quo", run=run, watched_after=after) for after in (500.0, 0.0))
        whole, cut = (
            replace(log, paid_when="on_answer", paid=np.where(log.is_answered, log.cost * (log.reward > 0.0), np.nan))
            for log in (whole, cut)
        )
        known = float(np.nansum(cut.paid))
        totals.append((spent(whole), spent(cut), known))
        assert spent(whole) == pytest.approx(float(np.nansum(whole.paid)))
    in_the_end, foretold, known = np.mean(totals, axis=0)
    assert foretold == pytest.approx(in_the_end, rel=0.02)
    assert known < 0.98 * in_the_end


def test_what_is_always_paid_is_spent() -> None:
    log = log_of(kits(), "status-quo")
    assert spent(log) == pytest.approx(float(log.cost.sum()))
