"""The store cannot be read or written, or is slow."""

from __future__ import annotations

from doral.live.views.health import Health
from doral.service.operations.alarms.finding import Finding

RULE = "store-ails"
SLOW_S = 5.0  # to be the only writer, or to read what is new


def find(health: Health) -> list[Finding]:
    """What is wrong with the store of one campaign."""
    found = []
    if not (health.is_readable and health.is_writable):
        can = "written" if health.is_readable else "read"
        words = f"the campaign cannot be {can}: {str(health.error)[:300]}"
        found.append(Finding(rule=RULE, subject=can, words=words))
    slow = max(health.read_s or 0.0, health.write_s or 0.0)
    if slow > SLOW_S:
        words = f"it took {slow:.1f} s to read or to lock the campaign: look for who keeps the store busy"
        found.append(Finding(rule=RULE, subject="slow", words=words))
    return found
