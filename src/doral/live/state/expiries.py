"""Which decisions have expired: those up to some point of the log, by context, unless something became of them.

A decision with a deadline of its own does not wait for those before it: it has expired if one of the calls came after
its deadline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from doral.live.events.event import IS_EXPIRED, Deciding, Settled, known


class OwnCall(NamedTuple):
    """A call of `expire`, for decisions with deadlines of their own."""

    sequence: int
    clock: float  # by which it judged
    releases: bool


class Expiries:
    """Calls of `expire`, in their order; those in a row that treated money alike are one."""

    def __init__(self, n_contexts: int, repairs: Sequence[tuple[int, float]] = ()) -> None:
        self.upto = [0] * n_contexts  # by context: sequence of the last event up to which decisions have expired
        self.own_upto = 0  # the same for those with deadlines of their own
        self._calls: list[tuple[list[int], bool]] = []
        self._own_calls: list[OwnCall] = []
        self._repairs = repairs  # of the clock

    @property
    def all_upto(self) -> int:
        """The event up to which no decision is still open."""
        return min(*self.upto, self.own_upto) if self._own_calls else min(self.upto)

    def add(self, upto: Sequence[int], *, releases: bool) -> None:
        """Enter a call."""
        if self._calls and self._calls[-1][1] == releases:
            self._calls.pop()
        self.upto = list(upto)
        self._calls.append((self.upto, releases))

    def add_own(self, call: OwnCall, upto: int) -> None:
        """Enter a call. What had expired by the one before it has so by this one, unless the clock was set back."""
        last = self._own_calls[-1] if self._own_calls else None
        if last is not None and last.releases == call.releases and last.clock <= call.clock:
            self._own_calls.pop()
        self._own_calls.append(call)
        self.own_upto = upto

    def has(self, decided: Deciding) -> bool:
        """Whether a decision has expired, if nothing became of it."""
        if decided.arrival.deadline is not None:
            return self._own_call(decided) is not None
        return decided.sequence <= self.upto[decided.arrival.context]

    def is_released(self, decided: Deciding, later: Sequence[Settled]) -> bool:
        """Whether what was reserved for it came back when it expired: not if it was answered, or too old, before."""
        is_overdue = decided.state_then == IS_EXPIRED
        if is_overdue or (later and later[0].settlement.was != IS_EXPIRED):
            return False
        if decided.arrival.deadline is not None:
            call = self._own_call(decided)
            return call is not None and call.releases
        context, sequence = decided.arrival.context, decided.sequence
        return next((releases for upto, releases in self._calls if sequence <= upto[context]), False)

    def _own_call(self, decided: Deciding) -> OwnCall | None:
        """Return the first by which it had expired."""
        for call in self._own_calls:
            if call.sequence > decided.sequence and self.is_over(decided, call.clock, at=call.sequence):
                return call
        return None

    def is_over(self, decided: Deciding, clock: float, *, at: int) -> bool:
        """Whether its own deadline has passed, as was known at an event: the clock may have been set back after it."""
        made = decided.own
        for sequence, shown in self._repairs:
            if decided.sequence < sequence < at:
                made = min(made, shown)
        return clock - made > known(decided.arrival.deadline)

    def to_json(self) -> list[Any]:
        """Return the calls, for snapshots."""
        return [[upto, releases] for upto, releases in self._calls]

    def own_to_json(self) -> dict[str, Any]:
        """Return the calls for decisions with deadlines of their own."""
        return {"upto": self.own_upto, "calls": [list(call) for call in self._own_calls]}

    def read_json(self, stored: list[Any], own: dict[str, Any]) -> None:
        """Enter what the two above returned."""
        for upto, releases in stored:
            self.add(upto, releases=releases)
        self._own_calls = [OwnCall(*call) for call in own["calls"]]
        self.own_upto = own["upto"]
