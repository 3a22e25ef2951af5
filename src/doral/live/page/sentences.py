"""What a page says of a campaign in sentences, where there is something to say."""

from __future__ import annotations

from doral.live.report import Report
from doral.live.weeks import DAY_S
from doral.live.words import all_late, moment, share
from doral.pages.numbers import count, figure


def notes(report: Report) -> list[str]:
    """Sentences about what only some campaigns have."""
    said = []
    if report.forecast is not None and report.until is not None:
        ahead = report.forecast
        said.append(
            f"{figure(round(ahead.expected))} more arrivals are expected until {moment(report.until, 'seconds')} UTC "
            f"({figure(round(ahead.low))} to {figure(round(ahead.high))} with 90%), {figure(ahead.pace * DAY_S, 3)} a "
            "day."
        )
    if report.baseline is not None:
        said.append(f"Arms have brought {figure(report.baseline.uplift)} beyond what doing nothing would have brought.")
    if report.is_paid_on_answer:
        promise = "The budget holds whatever is paid"
        if report.reserve < 1.0:
            promise = f"The budget holds what is paid with probability {report.reserve:g}, and may be overdrawn"
        said.append(
            f"Costs are paid on answer. {promise}; of what is reserved, {figure(report.coming_back)} is thought to "
            "come back."
        )
    if report.explored.arrivals:
        said.append(
            f"{report.explored.arrivals:,} arrivals got one of their options at random, to learn from it, which has "
            f"cost a reward of about {figure(report.explored.loss)}."
        )
    if report.late_reward:
        said.append(f"A reward of {figure(report.late_reward)} came too late to count.")
    if report.corrections:
        said.append(f"{report.corrections:,} answers were corrected.")
    if report.decisions.get("cancelled"):
        said.append(f"{report.decisions['cancelled']:,} decisions were cancelled, and their budget came back.")
    if report.idle_features:
        which = ", ".join(str(i + 1) for i in report.idle_features)
        said.append(f"Features {which} of every arm are the same, and tell nothing of them.")
    return said


def warnings(report: Report, overdue: int, *, deadline: float | None, is_partial: bool) -> list[str]:
    """What somebody should look after."""
    said = []
    if is_partial:
        said.append(
            "An archive of old events could not be read: what goes by time, by context and by arm within a context is "
            "of the newer events alone."
        )
    if overdue:
        said.append(
            f"{count(overdue, 'decision is', 'decisions are')} overdue, with budget still reserved. Settle them under "
            "Steer on the live page of a service, by expire(), or by `doral campaign expire`."
        )
    late = all_late(
        returned=report.decisions["returned"],
        late=report.decisions["late"],
        deadline=deadline,
        is_in_seconds=report.clock == "seconds",
    )
    if late is not None:
        said.append(f"{late[0].upper()}{late[1:]}.")
    if report.clock_went_back:
        said.append(
            f"The clock stood still for {report.clock_went_back:,} events that were stored after later ones: of hosts "
            "whose clocks were behind, or decided by lease."
        )
    if not report.is_closed and report.time_share >= 1.0:
        said.append("The end was reached: extend the campaign, or close it.")
    if not report.is_closed and report.ledger.left <= 0 and report.time_share < 1.0:
        said.append(
            f"The budget is used up with {share(1.0 - report.time_share)} of the way to go: top it up, or close."
        )
    return said
