"""Where a moment lies in its week, by which people may arrive."""

from __future__ import annotations

DAY_S = 86_400.0
_EPOCH_WEEKDAY = 3  # 1970 began on a Thursday


def time_of_week(stamp: float) -> float:
    """Seconds since the week began, on a Monday at midnight, in UTC."""
    return (stamp + _EPOCH_WEEKDAY * DAY_S) % (7 * DAY_S)
