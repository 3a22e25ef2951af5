"""Whether a log is what was written, and where this version would have decided otherwise."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from doral.live.decision import make_id
from doral.live.definition import OLD_ENGINE
from doral.live.errors import BrokenLog
from doral.live.events import DECIDED, Event
from doral.live.fold import Fold

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


class Verifier:
    """Listens while a log is folded from its beginning."""

    def __init__(self) -> None:
        # first, last, and the event with which the engine joined; who wrote the first made the campaign
        self._stretches: list[tuple[int, int, int | None]] = []
        self._differences: list[tuple[Event, Event]] = []
        self._n_differences = 0

    def hear(self, recorded: Event, made: Event) -> None:
        """What the log says, and what this engine makes of it."""
        if not self._stretches:
            self._stretches = [(1, 1, recorded.engine if recorded.engine is None else 1)]
        if self._stretches[-1][2] == recorded.engine:
            self._stretches[-1] = (self._stretches[-1][0], recorded.sequence, recorded.engine)
        else:
            self._stretches.append((recorded.sequence, recorded.sequence, recorded.engine))
        if recorded.kind == DECIDED and recorded.arm != made.arm:
            self._n_differences += 1
            if len(self._differences) < MOST_DIFFERENCES:
                self._differences.append((recorded, made))

    def found(self, fold: Fold, *, in_use: Fold) -> Verification:
        """After the last event; the state that is in use, which may come from a snapshot, must say the same."""
        for what in ("ledger", "counts"):
            if fold.sequence == in_use.sequence and getattr(fold, what) != getattr(in_use, what):
                raise BrokenLog(f"the {what} in use are not what the log adds up to: remove the campaign's snapshots")
        names = {sequence: name for name, sequence in fold.engines.items()}
        arms = fold.names.arms
        return Verification(
            events=fold.sequence,
            head=fold.head.hex(),
            engines=tuple(
                Stretch(first=first, last=last, engine=json.loads(names.get(engine or 0, OLD_ENGINE)))
                for first, last, engine in self._stretches or [(1, 1, 1)]
            ),
            differences=tuple(
                Difference(
                    event=recorded.sequence,
                    decision_id=make_id(fold.names.tag, recorded.sequence),
                    recorded=None if recorded.arm is None else arms[recorded.arm],
                    chosen=None if made.arm is None else arms[made.arm],
                )
                for recorded, made in self._differences
            ),
            n_differences=self._n_differences,
        )
