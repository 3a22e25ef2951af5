"""How many answers have come by each age: return curves with bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from doral.planning.fact import Fact

Outcome = Literal["any", "above 0", "not above 0"]


@dataclass(frozen=True, kw_only=True)
class ReturnCurve(Fact):
    """The share that has answered by each age: of one arm, or of all together; all answers, or those of one outcome.

    With silent feedback only what is not 0 is ever heard: the curve is the share of all decisions of which something
    was heard. With explicit feedback there are also curves by outcome. Nobody knows the outcome of those who have not
    answered, so these are shares of what is known to come: of all answers of this outcome within `longest`, how many
    are there by each age (cumulative incidences, divided by their last value). They say which outcome comes sooner,
    not how many come.

    The true curve lies inside `low` to `high` as a whole, from the first answer to `known_until`, in 95 of 100 logs;
    at a single age it lies inside `point_low` to `point_high` in 95 of 100. Where too little is known these are None.
    """

    arm: str | None  # None: all arms together
    outcome: Outcome
    rows: int
    answered: int
    ages: tuple[float, ...]  # on the clock of the log, ascending, the first 0; at most 200
    share: tuple[float, ...]  # by each of them, 0 to 1
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    point_low: tuple[float | None, ...]
    point_high: tuple[float | None, ...]
    longest: float  # how long somebody was watched at most
    known_until: float | None  # the last age at which enough were still watched for a band
