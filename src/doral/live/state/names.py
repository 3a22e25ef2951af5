"""Names and times of the things that an event numbers, and the identifiers of decisions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from doral.errors import shown
from doral.live.errors import UnknownDecision
from doral.live.events.event import Deciding, Event

_ID = re.compile(r"([0-9a-f]{8})-([1-9][0-9]{0,17})")


def make_id(tag: str, sequence: int) -> str:
    """Return an identifier that names its campaign too, so that a decision of another one is noticed."""
    return f"{tag}-{sequence}"


def read_id(tag: str, decision_id: object) -> int:
    """Return the sequence number of the event that made the decision."""
    match = _ID.fullmatch(decision_id) if isinstance(decision_id, str) else None
    if match is None:
        raise UnknownDecision(f"decision_id = {shown(decision_id)}: give the id of a Decision, such as '{tag}-12'")
    if match[1] != tag:
        raise UnknownDecision(
            f"decision_id = {shown(decision_id)}: belongs to another campaign; this one's begin with {tag}-"
        )
    return int(match[2])


class Names:
    """Of one campaign."""

    __slots__ = ("arms", "contexts", "epoch", "nothing", "person", "repairs", "tag", "unit_costs")

    def __init__(
        self,
        *,
        tag: str,
        epoch: float,
        contexts: Sequence[str],
        arms: Sequence[str],
        nothing: int | None = None,
        person: Sequence[str] = (),
        unit_costs: Sequence[float | None] | None = None,
    ) -> None:
        # What a use costs, by context, where all arms cost the same there; None where less than that may be paid.
        self.unit_costs = unit_costs
        self.tag, self.epoch, self.contexts, self.arms = tag, epoch, contexts, arms
        self.person = person  # features of people
        self.nothing = nothing  # the arm that means to do nothing, and that no caller has named
        self.repairs: list[tuple[int, float]] = []  # events that set the clock back, and to what

    def unit_cost(self, event: Deciding) -> float | None:
        """Return what a value has to be divided by to compare it with a price; None where it is not known."""
        if self.unit_costs is None:
            return None
        return event.choice.cost or self.unit_costs[event.arrival.context]  # a skip has no cost

    def own_time(self, event: Event) -> float:
        """Return when something happened, on the campaign's clock: no later than it was set back to afterwards."""
        own = event.own
        for sequence, clock in self.repairs:
            if event.sequence < sequence and own > clock:
                own = clock
        return own
