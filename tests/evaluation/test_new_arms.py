"""An arm that is newer than the deadline: those that have answered do not stand for the rest."""

from __future__ import annotations

import pytest

import doral
from doral.problem import Feedback
from tests.inference.test_open_ends import DEADLINE, RATES, a_log


@pytest.mark.parametrize(("feedback", "never"), [("silent", 0.0), ("explicit", 0.5)])
def test_what_a_new_arm_brings_is_not_told_as_if_it_was_known(feedback: Feedback, never: float) -> None:
    log = a_log(1, feedback=feedback, never=never)
    result = doral.evaluate(log, ["always:new", "always:old"], deadline=DEADLINE)
    new, old, today = (result.of(one) for one in ("always:new", "always:old", "status-quo"))
    assert new.verdict.startswith("not supported: nobody who got new was watched until the deadline")
    assert old.verdict == "supported"
    assert new.low <= RATES[1] * (1.0 - never) <= new.high
    share_new = (log.arm == 1).mean()
    true = (1.0 - never) * float((1.0 - share_new) * RATES[0] + share_new * RATES[1])
    assert today.low <= true <= today.high
