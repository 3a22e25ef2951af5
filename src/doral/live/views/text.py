"""Times, durations and amounts as people say them, for reports, pages and notebooks."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from doral.engine.certificates import Certificate
from doral.live.state.definition import DAY_S
from doral.live.state.plan import Pace
from doral.pages.names import short
from doral.pages.numbers import DASH, figure, money

MONEY = "units of budget"


def share(value: float) -> str:
    """As a percentage, without claiming all or nothing where it is not.

    >>> share(0.9999), share(0.5), share(0.0)
    ('99.9%', '50%', '0%')
    """
    if not math.isfinite(value):
        return DASH
    percent = 100.0 * value
    if 0.0 < percent < 0.1:
        return "<0.1%"
    if 99.9 < percent < 100.0:
        return "99.9%"
    return f"{percent:.1f}%".replace(".0%", "%")


def duration(seconds: float) -> str:
    """In words."""
    for unit, length in (("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            amount = seconds / length
            return f"{amount:,.0f} {unit}" if amount >= 1_000 else f"{amount:.3g} {unit}"
    return f"{seconds:.3g} s"


def span(length: float | None, clock: str) -> str:
    """A duration on the campaign's clock.

    >>> span(1_209_600.0, "seconds"), span(50.0, "rounds"), span(1.0, "rounds")
    ('14 days', '50 rounds', '1 round')
    """
    if length is None or not math.isfinite(length):
        return DASH
    if clock == "seconds":
        return {3_600.0: "1 hour", 86_400.0: "1 day"}.get(length) or duration(length)
    return f"{figure(length)} {'round' if length == 1 else 'rounds'}"


def moment(at: float | None, clock: str, *, seconds: bool = False) -> str:
    """A time: as a date in UTC, to the minute or to the second, or as a round.

    >>> moment(0.0, "seconds"), moment(12.0, "rounds")
    ('1970-01-01 00:00', 'round 12')
    """
    if at is None or not math.isfinite(at):
        return DASH
    if clock != "seconds":
        return f"round {figure(at)}"
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return "a time that no calendar shows"


def pace_words(pace: Pace, *, currency: str = "", share_gone: float = 1.0) -> str:
    """Where a campaign stands relative to its plan, as a sentence.

    >>> pace_words(Pace("behind plan", 126.5, 303.8), currency="EUR").replace("\\u00a0", " ")
    'Behind plan: EUR 126.50 are spent or reserved, 58% less than the EUR 303.80 planned by now.'
    """
    used, planned = money(pace.used, currency), money(pace.planned, currency)
    told = f"{used} are spent or reserved"
    if pace.status == "not begun":
        return "Not begun: no decision was made yet, and the whole budget is there."
    if pace.status == "over":
        return f"Closed: {used} of the budget were used."
    if pace.status == "used up":
        return f"Budget used up with {share(1.0 - share_gone)} of the way to go."
    if pace.status == "too early":
        return f"Too early to judge: {told}, and single decisions explain the difference to the plan."
    much = share(round(abs(pace.gap), 2)) if pace.planned > 0.0 else ""
    if pace.status == "on plan":
        return f"On plan: {told}, and {planned} were planned by now."
    than = (
        f"{much} {'more' if pace.gap > 0.0 else 'less'} than the {planned} planned by now" if much else "none planned"
    )
    return f"{pace.status.capitalize()}: {told}, {than}."


def certified(one: Certificate, *, width: int = 60) -> str:
    """A certificate as a sentence."""
    arm, rival, where = short(one.arm, width), short(one.rival, width), short(one.context, width)
    if math.isinf(one.price_high):  # of people: whatever a unit of budget is worth
        return (
            f"{arm} is worse for certain for {where}: it brings at most {figure(one.at_most, 3)} where {rival}, which "
            f"costs no more, brings at least {figure(one.at_least, 3)}."
        )
    return (
        f"{arm} is not offered to {where} any more: after its cost it brings at most {figure(one.at_most, 3)}, "
        f"{rival} at least {figure(one.at_least, 3)} (certain since arrival {one.round:,})."
    )


def all_late(*, returned: int, late: int, deadline: float | None, is_in_seconds: bool) -> str | None:
    """Said where every answer so far came too late to count: the deadline may be in the wrong unit.

    >>> all_late(returned=0, late=9, deadline=14.0, is_in_seconds=True)
    'all 9 answers came after the deadline of 14 s: deadlines are in seconds, 14 days are 1209600'
    """
    if returned or not late or deadline is None:
        return None
    answers = "the only answer" if late == 1 else f"all {late:,} answers"
    if is_in_seconds:
        days = f"{deadline:g} days are {deadline * DAY_S:.0f}" if deadline < DAY_S else "give answers more time"
        return f"{answers} came after the deadline of {duration(deadline)}: deadlines are in seconds, {days}"
    return f"{answers} came after the deadline of {deadline:g} rounds: one is an arrival"
