"""Who has leased which part of the budget, as the log says it.

After every event, spent + reserved + all that is leased is at most the total: the ledger checks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from doral.live.errors import BrokenLog
from doral.live.events import Event
from doral.live.ledger import Ledger, minus, plus

_ZERO = Decimal(0)


@dataclass(slots=True)
class Lease:
    """What a writer may still spend without asking the others."""

    sequence: int  # of the event with which it began
    left: Decimal
    arrivals: int  # that it is meant for, and that are still to come
    at: float  # when its holder was last heard of, by his own clock


class Leases:
    """All that are open, by writer; the ledger holds their sum."""

    __slots__ = ("_by_writer", "_ledger")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_writer: dict[int, Lease] = {}

    def __len__(self) -> int:
        return len(self._by_writer)

    def has(self, writer: int) -> bool:
        return writer in self._by_writer

    def of(self, writer: int) -> Lease | None:
        return self._by_writer.get(writer)

    def of_others(self, writer: int) -> dict[int, Lease]:
        return {holder: lease for holder, lease in self._by_writer.items() if holder != writer}

    def may_spend(self, writer: int) -> Decimal:
        """What is left but for the leases of others."""
        own = self._by_writer.get(writer)
        free = minus(self._ledger.left, self._ledger.leased)
        return free if own is None else plus(free, own.left)

    # --- changes ----------------------------------------------------------------------------------------------------

    def begin(self, event: Event, amount: Decimal, arrivals: int) -> None:
        """Takes the place of the lease that this writer had."""
        if amount < _ZERO or arrivals < 0:
            raise BrokenLog(f"event {event.sequence}: {amount} for {arrivals} arrivals cannot be leased")
        before = self._by_writer.pop(event.writer, None)
        self._by_writer[event.writer] = Lease(event.sequence, amount, arrivals, event.at)
        self._ledger.lease(amount if before is None else minus(amount, before.left))

    def end(self, event: Event, sequence: int, left: Decimal) -> None:
        """What is left of a lease is everybody's again."""
        found = [writer for writer, lease in self._by_writer.items() if lease.sequence == sequence]
        if not found or self._by_writer[found[0]].left != left:
            raise BrokenLog(f"event {event.sequence}: there is no lease of event {sequence} with {left} left")
        del self._by_writer[found[0]]
        self._ledger.lease(-left)

    def end_all(self) -> None:
        self._by_writer.clear()
        self._ledger.lease(-self._ledger.leased)

    def set_left(self, writer: int, left: Decimal, arrivals: int) -> None:
        """Of somebody who knows that better than the log as far as it was read."""
        lease = self._by_writer[writer]
        self._ledger.leased = plus(minus(self._ledger.leased, lease.left), left)
        lease.left, lease.arrivals = left, arrivals

    def arrive(self, writer: int, arrivals: int, cost: Decimal, at: float) -> None:
        """Decisions of somebody who may have a lease: it pays as far as it goes."""
        lease = self._by_writer.get(writer)
        if lease is not None:
            lease.arrivals = max(0, lease.arrivals - arrivals)
            lease.at = at
            self._use(lease, cost)

    def make_room(self, writer: int, amount: Decimal) -> None:
        """This writer spends on something else: where there is too little for it, out of his lease."""
        lease = self._by_writer.get(writer)
        if lease is not None:
            missing = minus(plus(self._ledger.leased, amount), self._ledger.left)
            self._use(lease, max(missing, _ZERO))

    def _use(self, lease: Lease, amount: Decimal) -> None:
        used = min(amount, lease.left)
        if used:
            lease.left = minus(lease.left, used)
            self._ledger.leased = minus(self._ledger.leased, used)

    # --- snapshots --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """The ledger's sum is theirs."""
        total = _ZERO
        for lease in self._by_writer.values():
            total = plus(total, lease.left)
        if total != self._ledger.leased:
            raise BrokenLog(f"leases add up to {total}, and the ledger says {self._ledger.leased}")

    def to_json(self) -> list[list[Any]]:
        return [
            [writer, lease.sequence, str(lease.left), lease.arrivals, lease.at]
            for writer, lease in self._by_writer.items()
        ]

    @classmethod
    def from_json(cls, ledger: Ledger, stored: list[list[Any]]) -> Leases:
        leases = cls(ledger)
        for writer, sequence, left, arrivals, at in stored:
            leases._by_writer[writer] = Lease(sequence, Decimal(left), arrivals, at)
        return leases
