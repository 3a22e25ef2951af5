"""What arms cost: by the list, and on average in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from doral.planning.fact import Fact

PaidWhen = Literal["always", "on answer", "on success only"]


@dataclass(frozen=True, kw_only=True)
class Price(Fact):
    """What a decision for an arm costs: what is not known to be paid yet is not counted as nothing.

    Where payment depends on the answer, answers that are still to come are estimated (Kaplan and Meier); what comes
    later than anybody was watched, or never, is taken as not paid, as a campaign would.
    """

    arm: str
    context: str | None  # None: all together
    rows: int
    list_price: float  # on average, where it differs
    paid: float | None  # per decision
    low: float | None  # 95% interval
    high: float | None
    paid_share: float | None  # of the list price
    paid_when: PaidWhen | None  # None where nothing was answered
