"""Clocks disagree: of the campaign, of this host, or of the database server."""

from __future__ import annotations

from doral.service.operations.alarms.facts import Facts
from doral.service.operations.alarms.finding import Finding

RULE = "clock-wrong"


def find(facts: Facts) -> list[Finding]:
    """One for each clock that is further off than is allowed."""
    health, found = facts.health, []
    ahead = health.clock_ahead_s or 0.0
    if ahead > facts.tolerance_s:
        words = f"the campaign's clock is {ahead:,.0f} s ahead of this host's: if the host's is right, set it back"
        found.append(Finding(rule=RULE, subject="campaign", words=words))
    apart = abs(health.server_ahead_s or 0.0)
    if apart > facts.tolerance_s:
        words = f"the clocks of this host and of the database server are {apart:,.0f} s apart: set the wrong one"
        found.append(Finding(rule=RULE, subject="server", words=words))
    return found
