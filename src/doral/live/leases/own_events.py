"""What a session has appended by lease, until the state that follows the log has heard of it: it need not be read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from doral.live.apply import replay
from doral.live.chain import check, is_intact
from doral.live.events import Event
from doral.live.fold import Fold
from doral.live.storage.contract import PAGE_EVENTS, Log

_MOST = 20_000  # that are kept, some 12 MB; who is further behind reads a snapshot


class OwnEvents:
    """Of one writer, in their order."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    @property
    def writer(self) -> int | None:
        return self._events[0].writer if self._events else None

    def add(self, events: Sequence[Event]) -> None:
        """They are in the log."""
        if self._events and (self.writer != events[0].writer or len(self._events) > _MOST):
            self._events = []
        self._events += events

    def forget(self, *, upto: int) -> None:
        """A snapshot stands for those up to this event."""
        self._events = [event for event in self._events if event.sequence > upto]

    def follow(self, fold: Fold, log: Log, last: int) -> None:
        """Bring the state up to this event, as far as these events help; whoever asks reads what follows."""
        own = {event.sequence: event for event in self._events if fold.sequence < event.sequence <= last}
        self.forget(upto=last)
        while own and fold.sequence < last and not fold.problem.person:
            upto = min(last, fold.sequence + PAGE_EVENTS)
            others = log.by_others(fold.sequence, upto=upto, writer=next(iter(own.values())).writer)
            found = {**own, **{event.sequence: event for event in others}}
            events = [found.get(sequence) for sequence in range(fold.sequence + 1, upto + 1)]
            known_ones = [event for event in events if event is not None]
            if len(known_ones) < len(events) or not _are_chained(known_ones, own, fold):
                return
            replay(fold, known_ones, is_checked=True)
            own = {sequence: event for sequence, event in own.items() if sequence > upto}


def _are_chained(events: Sequence[Event], own: dict[int, Event], fold: Fold) -> bool:
    """Others' are checked as ever. The own ones were sealed one after the other: only whether the log led to them, and
    still does, is to be seen.
    """
    before = fold.head
    for is_own, some in groupby(events, key=lambda event: own.get(event.sequence) is event):
        run = list(some)
        if not is_own:
            check(run, before=before, salt=fold.salt)
        elif not is_intact(run[0], before, None):
            return False
        before = run[-1].chain or b""
    return True
