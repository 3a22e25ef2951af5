"""What a list of decisions adds up to, against the state: a snapshot stands for events that nobody has read since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doral.live.decision import Decision, make_decision
from doral.live.errors import BrokenLog
from doral.live.events import CORRECTED, IS_PENDING, STATE_NAMES, Event
from doral.live.fold import Fold


class Tally:
    """Counts while decisions are listed, page by page. A list that is not whole still has all that are pending."""

    def __init__(self, *, is_whole: bool) -> None:
        self._is_whole = is_whole
        self._sequence: int | None = None  # of the state when the first page was read
        self._states = dict.fromkeys(STATE_NAMES, 0)
        self._corrections = 0

    def count(self, fold: Fold, decided: Sequence[Event], about: Mapping[int, Sequence[Event]]) -> list[Decision]:
        """The decisions of one page."""
        if self._sequence is None:
            self._sequence = fold.sequence
        made = [make_decision(fold.names, event, about.get(event.sequence, ()), fold.expiries) for event in decided]
        for one in made:
            self._states[one.state] += 1
        self._corrections += sum(event.kind == CORRECTED for later in about.values() for event in later)
        return made

    def compare(self, fold: Fold) -> None:
        """At the end. Where somebody wrote meanwhile, the pages are of different states, and nothing can be said."""
        if self._sequence not in (None, fold.sequence):
            return
        listed, expected = self._states, dict(zip(STATE_NAMES, fold.counts.states, strict=True))
        listed, expected = (
            {**listed, "corrections": self._corrections},
            {**expected, "corrections": fold.counts.corrections},
        )
        if not self._is_whole:
            pending = STATE_NAMES[IS_PENDING]
            listed, expected = {pending: listed[pending]}, {pending: expected[pending]}
        if listed != expected:
            raise BrokenLog(
                f"the log has decisions {listed}, and should have {expected}: events are missing or were changed; "
                "restore a backup, and see `doral campaign verify`"
            )
