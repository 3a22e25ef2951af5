"""A state on which whoever has a lease decides, apart from the one that follows the log.

It has not heard of what others did since it was made: so its rounds and numbers are its own, and what was decided on it
gets the right ones when it is appended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from doral.live.chain import Placed, Unplaced, placed, unplaced
from doral.live.engine_name import engine_name
from doral.live.events import Event
from doral.live.fold import Fold
from doral.live.leases.book import Lease
from doral.live.ledger import times
from doral.live.snapshot import copied
from doral.live.storage.contract import Tail

_MOST_RUNS = 2**53
_STEP = 2**31 - 1  # so that numbers of sessions, which follow each other, do not meet


def run_of(writer: int, base: int) -> int:
    """Of the coin of a writer beside others, on a state that has heard of everything up to an event.

    Another one for each: a state that was read anew may be some rounds back, and would toss the same once more.
    """
    return 1 + (writer + _STEP * base) % _MOST_RUNS


class Scratch:
    """A copy of a state, and where the log stands as far as its holder knows."""

    def __init__(self, fold: Fold, writer: int) -> None:
        # With the same coin two holders would toss the same in rounds that have the same number here and there.
        self.is_pure = not fold.leases.of_others(writer)  # whether it is what the log adds up to
        self.fold = copied(fold, run=0 if self.is_pure else run_of(writer, fold.sequence))
        self.writer = writer
        self.base = fold.sequence  # up to which it has heard of everything
        self.made_at = time.monotonic()
        self.known, self.head = fold.sequence, fold.head
        self._round, self._played, self._clock = fold.round, fold.engine.played, fold.clock
        self._reached = (self._round, self._played, self._clock)  # when what was placed last is stored

    @property
    def lease(self) -> Lease:
        found = self.fold.leases.of(self.writer)
        assert found is not None
        return found

    def rebase(self, fold: Fold) -> bool:
        """Go on with a state that has heard of more, and of nothing that is not in the log up to what is known here;
        False where it cannot be used.
        """
        lease = self.lease
        own = fold.leases.of(self.writer)
        if own is None or own.sequence != lease.sequence or not self.base < fold.sequence <= self.known:
            return False
        self.base = fold.sequence
        fold.leases.set_left(self.writer, lease.left, lease.arrivals)
        fold.sequence, fold.head = self.known, self.head
        self.fold, self.is_pure, self.made_at = fold, False, time.monotonic()
        return True

    def has_room(self, arrivals: int) -> bool:
        """Whether the lease pays for so many, whatever they get."""
        lease = self.lease
        return lease.arrivals >= arrivals and lease.left >= times(self.fold.roster.dearest, arrivals)

    def prepare(self, made: Sequence[Event]) -> Unplaced:
        """What was decided here, but for its place: what takes long is done before the lock is taken."""
        return unplaced(made, salt=self.fold.salt, engine=self.fold.engines[engine_name()])

    def place(self, made: Unplaced, tail: Tail, tolerance_s: float) -> Placed | None:
        """The same as it follows on what others have appended; None where it cannot.

        Whoever gets None must throw this away: it has decided what nobody will hear of.
        """
        fold = self.fold
        if tail.last != self.known:
            self.is_pure = False
        before_round = self._round if tail.round is None else max(tail.round, self._round)
        before_number = self._played if tail.number is None else max(tail.number + 1, self._played)
        clock = (self._clock if tail.clock is None else max(tail.clock, self._clock)) + 0.0  # no negative zero
        if fold.engine.until is not None:
            if clock > fold.engine.until:
                return None
        elif before_round + len(made.events) > fold.engine.horizon:
            return None
        in_seconds, epoch = fold.definition.is_in_seconds, fold.definition.epoch
        round_, number = before_round, before_number
        clocks: list[float] = []
        numbers: list[int | None] = []
        for event in made.events:
            round_ += 1
            reading = event.happened
            if reading is None:
                reading = event.at - epoch if in_seconds else float(round_)
                if in_seconds and clock - reading > tolerance_s:
                    return None
            if reading > clock:
                clock = reading
            clocks.append(clock)
            if event.number is None:
                numbers.append(None)
            else:
                numbers.append(number)
                number += 1
        self._reached = round_, number, clock
        return placed(
            made, sequence=tail.last, clocks=clocks, numbers=numbers, round_=before_round, before=tail.head
        )  # fmt: skip

    def stored(self, placed: Placed) -> None:
        """They are in the log: what is decided next follows them."""
        self.known, self.head = placed.last, placed.chains[-1]
        self.fold.sequence, self.fold.head = self.known, self.head
        self._round, self._played, self._clock = self._reached
