"""What rules are told of a campaign, at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from doral.live.views.health import Health
from doral.service.operations.alarms.past import Past


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Of one campaign.

    Attributes:
        name: Of the campaign.
        now: What its clock shows.
        is_in_seconds: Whether that clock counts seconds, and not arrivals.
        is_closed: Whether no more decisions are made.
        arrivals: So far.
        fewest_to_come: Arrivals until the end; where that is a date, as few as it may well be.
        most_to_come: The same, as many as it may well be.
        time_share: How much of the way is over.
        total: The budget.
        left: What can still be reserved.
        arms: Names, by number.
        plays: Decisions so far, by number of the arm.
        answers: Answers so far, by number of the arm.
        silent_arms: Of those that nobody has to hear of: the one that means to do nothing.
        past: What was read of its log.
        health: As of now.
        tolerance_s: By which clocks may disagree.
        overdue_since_s: For how long some decisions have been overdue, in seconds; 0: none are.
        planned: What was planned to be used by now; 0: not known.
    """

    name: str
    now: float
    is_in_seconds: bool
    is_closed: bool
    arrivals: int
    fewest_to_come: float
    most_to_come: float
    time_share: float
    total: float
    left: float
    arms: tuple[str, ...]
    plays: tuple[int, ...]
    answers: tuple[int, ...]
    silent_arms: frozenset[int]
    past: Past
    health: Health
    tolerance_s: float
    overdue_since_s: float
    planned: float = 0.0
