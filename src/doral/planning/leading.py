"""Which policies to name where there is no room for all."""

from __future__ import annotations

from doral.planning.earnings import Earning
from doral.planning.plan import Plan


def leading(plan: Plan, at_most: int) -> list[Earning]:
    """The best ones, best first; the advised one and the status quo are always among them."""
    if plan.earnings is None:
        return []
    kept = {plan.recommendation.policy, plan.earnings.status_quo}
    wanted = [one for one in plan.earnings.policies if one.policy in kept]
    others = [one for one in plan.earnings.policies if one.policy not in kept]
    chosen = {one.policy for one in (*wanted, *others[: max(0, at_most - len(wanted))])}
    return [one for one in plan.earnings.policies if one.policy in chosen]
