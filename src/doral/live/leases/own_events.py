"""What a session has appended by lease, until the state that follows the log has heard of it: it need not be read."""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from doral.live.apply import replay
from doral.live.chain import Placed, check, is_intact
from doral.live.events import Event
from doral.live.fold import Fold
from doral.live.storage.contract import FOLD_EVENTS, Log

_MOST = 20_000  # that are kept, some 4 MB; who is further behind reads a snapshot


class _Group(NamedTuple):
    """Events that were appended together."""

    last: int
    n: int
    packed: bytes


class OwnEvents:
    """Of one writer, in their order.

    They are kept packed. As objects they would live for a second, by the thousands: each decision would be written to
    memory that is not in the cache, and Python would look for garbage again and again, which takes longer than to pack.
    """

    def __init__(self) -> None:
        self._groups: list[_Group] = []
        self.writer: int | None = None

    def add(self, writer: int, placed: Placed) -> None:
        """They are in the log."""
        if self.writer != writer or sum(group.n for group in self._groups) > _MOST:
            self._groups, self.writer = [], writer
        packed = marshal.dumps(placed.all_columns)
        self._groups.append(_Group(placed.last, len(placed.chains), packed))

    def forget(self, *, upto: int) -> None:
        """A snapshot stands for those up to this event."""
        self._groups = [group for group in self._groups if group.last > upto]

    def follow(self, fold: Fold, log: Log, last: int) -> None:
        """Bring the state up to this event, as far as these events help; whoever asks reads what follows."""
        writer = self.writer
        if writer is None or fold.problem.person:
            return
        own = _events(self._groups)
        one = next((event for event in own if event.sequence > fold.sequence), None)
        while one is not None and fold.sequence < last:
            upto = min(last, fold.sequence + FOLD_EVENTS)
            found: dict[int, Event] = {}
            while one is not None and one.sequence <= upto:
                found[one.sequence] = one
                one = next(own, None)
            mine = frozenset(found)
            found |= {event.sequence: event for event in log.by_others(fold.sequence, upto=upto, writer=writer)}
            events = [found[sequence] for sequence in range(fold.sequence + 1, upto + 1) if sequence in found]
            if len(events) < upto - fold.sequence or not _are_chained(events, mine, fold):
                break
            replay(fold, events, is_checked=True)
        self.forget(upto=last)


def _events(groups: Sequence[_Group]) -> Iterator[Event]:
    for group in groups:
        yield from map(Event._make, zip(*marshal.loads(group.packed), strict=True))


def _are_chained(events: Sequence[Event], own: frozenset[int], fold: Fold) -> bool:
    """Others' are checked as ever. The own ones were sealed one after the other: only whether the log led to them, and
    still does, is to be seen.
    """
    before = fold.head
    for is_own, some in groupby(events, key=lambda event: event.sequence in own):
        run = list(some)
        if not is_own:
            check(run, before=before, salt=fold.salt)
        elif not is_intact(run[0], before, None):
            return False
        before = run[-1].chain or b""
    return True
