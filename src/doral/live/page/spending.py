"""Spending against an even pace: the budget in equal parts over all arrivals, or over the time until the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from doral.live.events.event import ArmAdded, ArmChanged, Event, Extended, ToppedUp, known
from doral.live.events.row import (
    ARM_ADDED,
    ARM_PAUSED,
    ARM_RESUMED,
    ARM_RETIRED,
    CLOCK_SET,
    CLOSED,
    EXTENDED,
    PAUSED,
    RESUMED,
    TOPPED_UP,
)
from doral.live.page.facts import Change, Point, Spending
from doral.live.page.history import History
from doral.live.state.plan import Pace
from doral.live.state.state import CampaignState
from doral.live.views.text import moment, pace_words
from doral.pages.names import short
from doral.pages.numbers import figure

_KINDS = {
    TOPPED_UP: "topped up",
    EXTENDED: "extended",
    ARM_ADDED: "arm added",
    ARM_PAUSED: "arm paused",
    ARM_RESUMED: "arm resumed",
    ARM_RETIRED: "arm retired",
    PAUSED: "paused",
    RESUMED: "resumed",
    CLOSED: "closed",
    CLOCK_SET: "clock set back",
}


class Standing(NamedTuple):
    """Where a campaign stands, taken from its state at one moment."""

    clock_kind: str
    epoch: float
    clock: float
    round: int
    horizon: int
    first_until: float | None  # as it was when the campaign began
    until: float | None
    time_share: float
    is_closed: bool
    total: float
    left: float
    pace: Pace
    currency: str

    @classmethod
    def of(cls, state: CampaignState, clock: float) -> Standing:
        """`clock` is what the campaign's clock would show: a plan that ends with a date goes on while nobody comes."""
        return cls(
            clock_kind=state.definition.clock,
            epoch=state.definition.epoch,
            clock=clock,
            round=state.round,
            horizon=state.engine.horizon,
            first_until=state.definition.problem.until,
            until=state.engine.until,
            time_share=state.time_share,
            is_closed=state.closed,
            total=float(state.ledger.total),
            left=float(state.ledger.left),
            pace=state.pace(clock),
            currency=state.problem.currency,
        )


def spending(here: Standing, history: History, points: Sequence[Point]) -> Spending:
    """`here` is after the last event of the history."""
    epoch, by_date = here.epoch, history.by_date
    start = epoch if by_date else 0.0
    now = epoch + here.clock if by_date else float(here.round)
    changes = tuple(_change(here, history, at, event) for at, event in history.changes)
    ends, budgets = _ends(here, history), _budgets(here, history)
    end = max(ends[-1][1], now)
    plan = _plan(start, ends, budgets)
    return Spending(
        axis="time" if by_date else "arrivals",
        start=start,
        now=now,
        end=end,
        points=tuple(replace(one, at=start + one.at) for one in points),
        plan=plan,
        budget=budgets,
        planned=here.pace.planned,
        changes=changes,
        pace=here.pace.status,
        gap=here.pace.gap,
        sentence=pace_words(here.pace, currency=here.currency, share_gone=here.time_share),
    )


def _ends(here: Standing, history: History) -> list[tuple[float, float]]:
    """(since when, until when) on the axis."""
    epoch = here.epoch
    extended = [(at, event) for at, event in history.changes if isinstance(event, Extended)]
    if history.by_date:
        last = epoch + (here.until or 0.0)
        first = epoch + (here.first_until or 0.0) if extended else last
        return [(epoch, first), *((epoch + at, epoch + known(said.until)) for at, said in extended)]
    last = float(here.horizon)
    found = [(0.0, last - sum(known(said.rounds) for _, said in extended))]
    for at, said in extended:
        found.append((at, found[-1][1] + known(said.rounds)))
    return found


def _budgets(here: Standing, history: History) -> tuple[tuple[float, float], ...]:
    start = here.epoch if history.by_date else 0.0
    added = [(start + at, event.amount) for at, event in history.changes if isinstance(event, ToppedUp)]
    amount = here.total - sum(one for _, one in added)
    found = [(start, amount)]
    for at, more in added:
        amount += more
        found.append((at, amount))
    return tuple(found)


def _plan(
    start: float, ends: Sequence[tuple[float, float]], budgets: Sequence[tuple[float, float]]
) -> tuple[tuple[float, float], ...]:
    """From where the plan is, evenly to all of the budget at the end; anew at every change."""
    corners = sorted({at for at, _ in (*ends, *budgets)} | {start})
    points, planned = [(start, 0.0)], 0.0
    for place, at in enumerate(corners):
        end = max((last for since, last in ends if since <= at), default=ends[-1][1])
        budget = [amount for since, amount in budgets if since <= at][-1]
        upto = corners[place + 1] if place + 1 < len(corners) else max(end, at)
        if end > at:
            reached = min(upto, end)
            planned += (budget - planned) * (reached - at) / (end - at)
            points.append((reached, planned))
        if upto > points[-1][0]:
            points.append((upto, planned))
    return tuple(points)


def _change(here: Standing, history: History, at: float, event: Event) -> Change:
    epoch, clock = here.epoch, here.clock_kind
    kind = _KINDS[event.kind]
    time = epoch + event.clock
    words = kind
    if isinstance(event, ToppedUp):
        words = f"topped up by {figure(event.amount)}"
    elif isinstance(event, Extended) and event.until is not None:
        words = f"extended to {moment(epoch + event.until, clock)}"
    elif isinstance(event, Extended):
        words = f"extended by {known(event.rounds):,} arrivals"
    elif isinstance(event, ArmAdded):
        words = f"arm {short(event.arm.name, 40)} added"
    elif isinstance(event, ArmChanged):
        words = f"arm {short(history.names.arms[event.arm], 40)} {kind.removeprefix('arm ')}"
    return Change(at=epoch + at if history.by_date else at, time=time, kind=kind, words=words)
