"""How long something will still take, as an estimate that does not jump."""

from __future__ import annotations

_HALF_BELIEVED = 8.0  # reports after which an estimate has moved half of its way to what they say


class TimeLeft:
    """Told of work as it is done, it says how many seconds are left; None as long as nobody can know.

    Only work that was really done says how quick it goes: what was kept from before takes no time, and the first report
    carries the compiling with it. Between reports the estimate counts down, and a new rate moves it step by step.
    """

    def __init__(self) -> None:
        self._total = self._done = 0.0
        self._timed = 0.0  # work whose time is known
        self._began_s: float | None = None
        self._left_s: float | None = None
        self._told_s = 0.0

    def begin(self, *, work: float) -> None:
        """Once, with all of it."""
        self._total = work

    def advance(self, work: float, *, now_s: float, is_kept: bool) -> None:
        """So much more is done, or was there already."""
        self._done += work
        if is_kept:
            if self._left_s is not None and self._timed > 0.0:
                self._left_s = self.left_s(now_s)
                self._told_s = now_s
                self._move(now_s)
            return
        if self._began_s is None:
            self._began_s = now_s
            return
        self._timed += work
        self._move(now_s)

    def left_s(self, now_s: float) -> float | None:
        """The estimate, at this time."""
        if self._left_s is None:
            return None
        return max(0.0, self._left_s - (now_s - self._told_s))

    def _move(self, now_s: float) -> None:
        assert self._began_s is not None
        found = (self._total - self._done) * (now_s - self._began_s) / self._timed
        told = self.left_s(now_s)
        step = 1.0 - 0.5 ** (1.0 / _HALF_BELIEVED)
        self._left_s = found if told is None else told + step * (found - told)
        self._told_s = now_s


def words(seconds: float | None) -> str:
    """For a bar: 1:02:03 or 2:03.

    >>> words(3723), words(59.6), words(None)
    ('1:02:03', '1:00', '-:--')
    """
    if seconds is None:
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
