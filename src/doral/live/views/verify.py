"""Whether a log is what was written, and where this version would have decided otherwise."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from doral.live.errors import BrokenLog
from doral.live.events.event import Closed, Decided, Event, Leased, LeaseEnded
from doral.live.state.definition import OLD_ENGINE
from doral.live.state.parts import Counters, Ledger, make_id
from doral.live.state.state import CampaignState

MOST_DIFFERENCES = 1_000  # that are listed; all are counted


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Events that one engine has written, without another one in between."""

    first: int
    last: int
    engine: dict[str, str]  # version, sources, processor


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A decision that this version, knowing all that was known then, would have made otherwise."""

    event: int
    decision_id: str
    recorded: str | None  # the arm; None: skipped
    chosen: str | None


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was found. Differences are no fault of the log: another version, or another processor, wrote it, or it was
    decided with what was known of people who were forgotten since.

    Attributes:
        events: How many were read.
        head: The checksum of the last event, in hexadecimal; note it elsewhere, and a log forged as a whole
            shows.
        engines: Who wrote them, and from where to where.
        differences: The first of them.
        n_differences: How many there are in all.
    """

    events: int
    head: str
    engines: tuple[Stretch, ...]
    differences: tuple[Difference, ...]
    n_differences: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class Totals(NamedTuple):
    """What a state adds up to, after this event."""

    sequence: int
    ledger: Ledger
    counts: Counters


def totals_of(state: CampaignState) -> Totals:
    """Copy what a state adds up to."""
    return Totals(state.sequence, copy.deepcopy(state.ledger), copy.deepcopy(state.counts))


class Verifier:
    """A visitor of all events of a log."""

    def __init__(self) -> None:
        # first, last, and the event with which the engine joined; who wrote the first made the campaign
        self._stretches: list[tuple[int, int, int | None]] = []
        self._differences: list[tuple[Decided, Decided]] = []
        self._n_differences = 0
        self._leases: dict[int, int] = {}  # of logs from before leases were removed: by the event with which each began

    def visit(self, recorded: Event, made: Event) -> None:
        """Compare what the log says with what this engine makes of it."""
        engine = recorded.place.engine
        if not self._stretches:
            self._stretches = [(1, 1, engine if engine is None else 1)]
        if self._stretches[-1][2] == engine:
            self._stretches[-1] = (self._stretches[-1][0], recorded.sequence, engine)
        else:
            self._stretches.append((recorded.sequence, recorded.sequence, engine))
        self._follow_leases(recorded)
        if not isinstance(recorded, Decided) or not isinstance(made, Decided):
            return
        if recorded.choice.arm == made.choice.arm or recorded.place.writer in self._leases.values():
            return
        self._n_differences += 1
        if len(self._differences) < MOST_DIFFERENCES:
            self._differences.append((recorded, made))

    def _follow_leases(self, event: Event) -> None:
        """A writer with a lease had not read what the others wrote: what it should have decided cannot be told."""
        if isinstance(event, Leased):
            self._leases = {began: writer for began, writer in self._leases.items() if writer != event.place.writer}
            self._leases[event.sequence] = event.place.writer
        elif isinstance(event, LeaseEnded):
            self._leases.pop(event.lease, None)
        elif isinstance(event, Closed):
            self._leases.clear()

    def found(self, state: CampaignState, *, in_use: Sequence[Totals]) -> Verification:
        """After the last event; a state that is in use, or would be read from a snapshot, must say the same."""
        for what in ("ledger", "counts"):
            for totals in in_use:
                if state.sequence == totals.sequence and getattr(state, what) != getattr(totals, what):
                    raise BrokenLog(
                        f"the {what} in use are not what the log adds up to: remove the campaign's snapshots"
                    )
        names = {sequence: name for name, sequence in state.engines.items()}
        arms = state.names.arms
        return Verification(
            events=state.sequence,
            head=state.head.hex(),
            engines=tuple(
                Stretch(first=first, last=last, engine=json.loads(names.get(engine or 0, OLD_ENGINE)))
                for first, last, engine in self._stretches or [(1, 1, 1)]
            ),
            differences=tuple(
                Difference(
                    event=recorded.sequence,
                    decision_id=make_id(state.names.tag, recorded.sequence),
                    recorded=None if recorded.choice.arm is None else arms[recorded.choice.arm],
                    chosen=None if made.choice.arm is None else arms[made.choice.arm],
                )
                for recorded, made in self._differences
            ),
            n_differences=self._n_differences,
        )
