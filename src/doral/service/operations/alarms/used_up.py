"""The budget is used up, or the end has come, and nobody has closed the campaign."""

from __future__ import annotations

from doral.service.operations.alarms.facts import Facts
from doral.service.operations.alarms.finding import Finding

RULE = "used-up"


def find(facts: Facts) -> list[Finding]:
    """No more than one of the two."""
    health = facts.health
    if facts.is_closed or health.budget_left_share is None or health.time_left_share is None:
        return []
    if health.time_left_share == 0.0:
        words = "its end has come: extend it, or close it"
        return [Finding(rule=RULE, subject="time", words=words)]
    if health.budget_left_share <= 0.0:
        words = f"the budget is used up with {health.time_left_share:.0%} of the way to go: top it up, or close it"
        return [Finding(rule=RULE, subject="budget", words=words)]
    return []
