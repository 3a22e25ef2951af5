"""A report for terminals, in lines of at most 80 columns, and for notebooks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from doral.live.state.definition import DAY_S
from doral.live.state.plan import Pace
from doral.live.views.text import certified, moment, pace_words, share, span
from doral.pages.names import short
from doral.pages.notebook import card, note, small_table
from doral.pages.numbers import figure

if TYPE_CHECKING:
    from doral.live.views.report import ArmReport, Report

WIDTH = 80
_LABEL = 10  # columns of the word with which a line begins
_MOST_CERTIFICATES = 8
_MOST_ARMS = 20  # in a notebook
_NAME = 24


def wrapped(line: str, indent: int) -> list[str]:
    """A line in as many as it needs; numbers and names are not torn."""
    rest = " " * indent
    first = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line.lstrip(),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [""]


def report_text(report: Report) -> str:
    """All that matters, for a terminal."""
    lines = [line for one in _lines(report) for line in _kept(one)]
    for arm in report.arms:
        lines += wrapped(f"  {short(arm.name, _NAME)}: {_arm_words(report, arm)}", 4)
        lines += [line for one in _effects(report, arm.name) for line in wrapped(f"    {one}", 6)]
    told = report.certificates[:_MOST_CERTIFICATES]
    if told:
        lines.append("certain")
        lines += [line for one in told for line in wrapped(f"  {certified(one, width=_NAME)}", 4)]
        more = len(report.certificates) - len(told)
        lines += [f"  and {more:,} more"] if more else []
    return "\n".join(lines)


def _kept(line: str) -> list[str]:
    """The word at its beginning stays in a column of its own."""
    head, rest = line[:_LABEL], line[_LABEL:]
    found = textwrap.wrap(rest, WIDTH - _LABEL, break_on_hyphens=False) or [""]
    return [head + found[0], *(" " * _LABEL + one for one in found[1:])]


def _lines(report: Report) -> Iterator[str]:
    ledger = report.ledger
    yield f"campaign {short(report.name, 50)}: {_state(report)}, policy {report.policy}"
    yield from _arrivals(report)
    yield (
        f"{'budget':<10}{ledger.total} = spent {ledger.spent} + reserved {ledger.reserved} "
        f"+ left {ledger.left} ({report.spent_share:.1%} used; {ledger.released} came back)"
    )
    yield f"{'plan':<10}{_pace(report)}"
    if report.is_paid_on_answer:
        promise = "the budget holds whatever is paid"
        if report.reserve < 1.0:
            promise = f"the budget holds what is paid with probability {report.reserve:g}, and may be overdrawn"
        back = figure(report.coming_back)
        yield f"{'reserve':<10}{promise}; of what is reserved, {back} is thought to come back"
    states = ", ".join(f"{count:,} {state}" for state, count in report.decisions.items() if count)
    yield f"{'decisions':<10}{states or 'none yet'}"
    late = f", and {report.late_reward:.6g} too late" if report.late_reward else ""
    yield f"{'reward':<10}{report.reward:.6g}{late}"
    yield from _extras(report)
    if report.is_racing:
        yield f"{'stage':<10}race, which finds the arms that answer fast enough"
    else:
        assert report.cutoff is not None
        waits = "cut-off none" if report.cutoff == float("inf") else f"cut-off {span(report.cutoff, report.clock)}"
        yield f"{'stage':<10}allocation, {waits}"


def _pace(report: Report) -> str:
    pace = Pace(report.pace, float(report.ledger.total - report.ledger.left), report.planned)
    return pace_words(pace, currency=report.currency, share_gone=report.time_share).replace("\N{NO-BREAK SPACE}", " ")


def _state(report: Report) -> str:
    return "closed" if report.is_closed else "open"


def _arrivals(report: Report) -> Iterator[str]:
    if report.until is None or report.forecast is None:
        yield f"{'arrivals':<10}{report.arrivals:,} of {report.horizon:,} ({report.time_share:.1%})"
        return
    ahead = report.forecast
    end = moment(report.until, "seconds")
    yield f"{'arrivals':<10}{report.arrivals:,}, {report.time_share:.1%} of the time until {end} UTC"
    yield (
        f"{'forecast':<10}{ahead.expected:,.0f} more until then ({ahead.low:,.0f} to {ahead.high:,.0f} with 90%), "
        f"{ahead.pace * DAY_S:,.3g} a day"
    )


def _extras(report: Report) -> Iterator[str]:
    """Said only where there is something to say."""
    if report.baseline is not None:
        rows = zip(report.shares, report.baseline.rewards, report.baseline.answers, strict=True)
        told = [f"{short(name, _NAME)} {value:.3g}" + (f" ({n:,.0f} answers)" if n else "") for name, value, n in rows]
        yield f"{'uplift':<10}{report.baseline.uplift:.6g}, what answers brought beyond doing nothing"
        more = f" and {len(told) - 20:,} more" if len(told) > 20 else ""
        yield f"{'nothing':<10}brings {', '.join(told[:20])}{more}"
    if report.explored.arrivals:
        yield (
            f"{'explored':<10}{report.explored.arrivals:,} arrivals at random, which has cost a reward of about "
            f"{report.explored.loss:.6g}"
        )
    if report.clock_went_back:
        yield (
            f"{'clock':<10}stood still for {report.clock_went_back:,} events that were stored after later ones: of "
            "hosts whose clocks were behind"
        )
    if report.idle_features:
        which = ", ".join(str(i + 1) for i in report.idle_features)
        yield f"{'features':<10}{which} of every arm are the same, and tell nothing of them"


def _arm_words(report: Report, arm: ArmReport) -> str:
    returned = f"{arm.view.return_curve[-1]:.0%} return" if arm.view.return_curve else "no return curve yet"
    return (
        f"{arm.status}, {arm.view.standing}, {arm.plays:,} plays at {cost_words(arm.cost)}, {arm.answers:,} answers, "
        f"reward {arm.reward:.6g}, {returned}{_ruled_out(report, arm.name)}"
    )


def cost_words(cost: float | dict[str, float]) -> str:
    """In few words."""
    if isinstance(cost, float):
        return f"{cost:g}"
    return f"{min(cost.values()):g} to {max(cost.values()):g}"


def _effects(report: Report, arm: str) -> list[str]:
    return [
        f"{one.feature} {one.change}: {one.effect:+.3g} ({one.low:+.3g} to {one.high:+.3g} with 95%)"
        for one in report.effects
        if one.arm == arm
    ]


def _ruled_out(report: Report, arm: str) -> str:
    out = [certificate.context for certificate in report.certificates if certificate.arm == arm]
    if report.person:
        return f", worse for certain for {'; '.join(out)}" if out else ""
    return f", ruled out in {len(out)} of {len(report.shares)} contexts" if out else ""


def report_words(report: Report) -> str:
    """In one line."""
    return (
        f"{_state(report)}, {report.arrivals:,} of {report.horizon:,} arrivals, {share(report.spent_share)} of the "
        f"budget used, reward {figure(report.reward)}"
    )


def report_card(report: Report, title: str) -> str:
    """As HTML."""
    ledger = report.ledger.to_dict()
    states = ", ".join(f"{count:,} {state}" for state, count in report.decisions.items() if count)
    cutoff = "race" if report.is_racing else f"allocation, cut-off {span(report.cutoff, report.clock)}"
    facts = [
        ("state", f"{_state(report)}, policy {report.policy}"),
        ("arrivals", f"{report.arrivals:,} of {report.horizon:,} ({share(report.time_share)} of the way)"),
        (
            "budget",
            f"{figure(ledger['total'], 6)} = spent {figure(ledger['spent'], 6)} + reserved "
            f"{figure(ledger['reserved'], 6)} + left {figure(ledger['left'], 6)}",
        ),
        ("plan", _pace(report)),
        ("decisions", states or "none yet"),
        ("reward", figure(report.reward, 6)),
        ("stage", cutoff),
    ]
    ranked = sorted(report.arms, key=lambda one: -one.plays)[:_MOST_ARMS]
    rows = [
        (
            short(one.name, 40),
            one.status,
            cost_words(one.cost),
            f"{one.plays:,}",
            f"{one.answers:,}",
            figure(one.reward),
            share(one.view.return_curve[-1]) if one.view.return_curve else "",
        )
        for one in ranked
    ]
    heads = ("arm", "status", "cost", "plays", "answers", "reward", "answered")
    parts = [small_table(heads, rows, numbers=range(2, 7))]
    if len(report.arms) > len(ranked):
        parts.append(note(f"the {len(ranked)} most used of {len(report.arms):,} arms"))
    parts += [note(certified(one)) for one in report.certificates[:_MOST_CERTIFICATES]]
    return card(title, facts, parts=parts)
