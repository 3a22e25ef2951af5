"""Decisions are too old for an answer to count, and still hold budget: whoever should settle them does not."""

from __future__ import annotations

from doral.service.operations.alarms.facts import Facts
from doral.service.operations.alarms.finding import Finding

RULE = "overdue"
PATIENCE_S = 600.0  # the service settles them by itself, unless it was told not to


def find(facts: Facts) -> list[Finding]:
    """Only what was overdue for a while."""
    count = facts.health.overdue or 0
    if not count or facts.overdue_since_s < PATIENCE_S:
        return []
    words = f"{count:,} decisions are overdue, and their budget is still reserved: settle them (expire)"
    return [Finding(rule=RULE, subject="", words=words)]
