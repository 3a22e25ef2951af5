"""Which policies to name where there is no room for all."""

from __future__ import annotations

from doral.planning.earnings import Earning
from doral.planning.plan import Plan

_ROUNDING = 1e-9  # of what is earned: what policies that do the same differ by is how sums are rounded


def difference(more: float | None, worth: float) -> float | None:
    """Of two earnings, one of which is `worth`; nothing where that is all it is.

    >>> difference(-5.5e-14, 65.9), difference(0.5, 65.9)
    (0.0, 0.5)
    """
    return 0.0 if more is not None and abs(more) < _ROUNDING * abs(worth) else more


def leading(plan: Plan, at_most: int) -> list[Earning]:
    """The best ones, best first; the advised one and the status quo are always among them."""
    if plan.earnings is None:
        return []
    kept = {plan.recommendation.policy, plan.earnings.status_quo}
    wanted = [one for one in plan.earnings.policies if one.policy in kept]
    others = [one for one in plan.earnings.policies if one.policy not in kept]
    chosen = {one.policy for one in (*wanted, *others[: max(0, at_most - len(wanted))])}
    return [one for one in plan.earnings.policies if one.policy in chosen]
