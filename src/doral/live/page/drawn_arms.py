"""Drawings of arms: when their answers come, and what they bring in each context."""

from __future__ import annotations

import math
from collections.abc import Sequence

from doral.live.page.facts import ArmFacts, CampaignFacts, ContextFacts, PairFacts
from doral.live.page.framed import Key, framed
from doral.live.page.time_axis import age_axis
from doral.live.views.text import share, span
from doral.pages.names import short
from doral.pages.numbers import figure
from doral.pages.svg import Axis, Drawing, Mark, fitting, label, most_ticks, nice_axis

MOST_ARMS = 8  # in one drawing: more cannot be told apart
MOST_CONTEXTS = 6
_HEIGHT = 300.0
_MOST_DEADLINES = 3


def drawn_arms(facts: CampaignFacts) -> list[tuple[int, ArmFacts]]:
    """Those that are drawn, with the number of their colour: the most used, in the order of the problem."""
    ranked = sorted(range(len(facts.arms)), key=lambda arm: (-facts.arms[arm].plays, arm))[:MOST_ARMS]
    return [(place + 1, facts.arms[arm]) for place, arm in enumerate(sorted(ranked))]


def curves(facts: CampaignFacts) -> str | None:
    """None where no answer was waited for yet."""
    shown = [(colour, arm) for colour, arm in drawn_arms(facts) if arm.ages]
    if not shown:
        return None
    told = "; ".join(f"{short(arm.name, 30)} {share(arm.returned[-1])}" for _, arm in shown)
    left_out = len(facts.arms) - len(shown)
    more = f" The {len(shown)} most used of {len(facts.arms)} arms." if left_out and len(facts.arms) > MOST_ARMS else ""
    return framed(
        name="curves",
        title="When answers come",
        sees=(
            "The share of uses that are answered by each age (Kaplan and Meier), with 95% intervals. "
            f"{_waits(facts)}{more}"
        ),
        says=f"Answered in the end: {told}.",
        keys=[Key(f"{short(arm.name, 40)}: {share(arm.returned[-1])}", f"line s{colour}") for colour, arm in shown],
        draw=lambda width: _draw_curves(facts, shown, width),
    )


def _waits(facts: CampaignFacts) -> str:
    if facts.state == "racing":
        return "The race still runs, so that there is no cut-off yet."
    if facts.cutoff is None:
        return "The policy waits for every answer."
    return f"The policy waits for {span(facts.cutoff, facts.clock)}, the cut-off."


def _draw_curves(facts: CampaignFacts, shown: Sequence[tuple[int, ArmFacts]], width: float) -> Drawing:
    deadlines = sorted({one.deadline for one in facts.contexts if one.deadline is not None})
    named = deadlines if len(deadlines) <= _MOST_DEADLINES else [deadlines[0], deadlines[-1]]
    longest = max(*(arm.ages[-1] for _, arm in shown), *named, facts.cutoff or 0.0, 0.0)
    x, _ = age_axis(longest, clock=facts.clock, width=width - 60.0)
    highest = max(max(arm.returned_high) for _, arm in shown)
    y = nice_axis(0.0, min(1.0, max(highest, 0.05)), most=6, words=lambda one: f"{100 * one:.3g}%", name="answered")
    marks = [Mark(one, f"deadline, {span(one, facts.clock)}", "mark deadline") for one in named]
    if facts.cutoff is not None:
        same = facts.cutoff in named
        marks = [one for one in marks if one.at != facts.cutoff]
        words = "cut-off and deadline" if same else "cut-off"
        marks.append(Mark(facts.cutoff, f"{words}, {span(facts.cutoff, facts.clock)}", "mark cutoff"))
    drawing = Drawing(width=width, height=_HEIGHT, x=x, y=y, marks=marks)
    for colour, arm in shown:
        drawing.area(_steps(arm.ages, arm.returned_high), _steps(arm.ages, arm.returned_low), f"band s{colour}")
    for colour, arm in shown:
        drawing.line(_steps(arm.ages, arm.returned), f"line s{colour}")
    return drawing


def _steps(ages: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """The grid says what was answered by each age: straight in between."""
    return [(0.0, 0.0), *zip(ages, values, strict=True)]


def pairs(facts: CampaignFacts) -> list[str]:
    """A drawing for each of the contexts in which most arrived."""
    order = {one.name: colour for colour, one in drawn_arms(facts)}
    by_context: dict[str, list[PairFacts]] = {}
    for one in facts.pairs:
        if one.arm in order and one.brings is not None:
            by_context.setdefault(one.context, []).append(one)
    ranked = sorted(facts.contexts, key=lambda one: -one.arrivals)
    shown = [one for one in ranked if one.name in by_context][:MOST_CONTEXTS]
    if not shown:
        return []
    told = [one for context in shown for one in by_context[context.name]]
    ends = [end for one in told for end in (one.low, one.high, one.brings) if end is not None]
    ends += [context.nothing for context in shown if context.nothing is not None]
    return [
        _pair_figure(place, context, sorted(by_context[context.name], key=lambda one: order[one.arm]), order, ends)
        for place, context in enumerate(shown)
    ]


def _pair_figure(
    place: int, context: ContextFacts, rows: Sequence[PairFacts], order: dict[str, int], ends: Sequence[float]
) -> str:
    best = max(rows, key=lambda one: one.brings if one.brings is not None else -math.inf)
    nothing = "" if context.nothing is None else f" Doing nothing brings {figure(context.nothing, 3)} (dashed)."
    told = "; ".join(f"{short(one.arm, 30)} {figure(one.brings, 3)}" for one in rows)
    return framed(
        name=f"context-{place + 1}",
        title=short(context.name, 60),
        sees=(
            f"{context.served:,} of {context.arrivals:,} served. {short(best.arm, 40)} is thought to bring most, "
            f"{figure(best.brings, 3)} per use.{nothing}"
        ),
        says=f"What a use brings: {told}.",
        keys=(),
        draw=lambda width: _draw_pairs(rows, order, ends, context.nothing, width),
    )


def _draw_pairs(
    rows: Sequence[PairFacts], order: dict[str, int], ends: Sequence[float], nothing: float | None, width: float
) -> Drawing:
    """A row for each arm: its name, its interval, its value."""
    names, values = min(0.34 * width, 170.0), 52.0
    low, high = min(0.0, *ends), max(0.0, *ends)
    nice = nice_axis(low, high, most=max(4, most_ticks(width - names - values)), words=figure)
    pad = 0.03 * ((high - low) or 1.0)
    inside = tuple(one for one in nice.ticks if low - pad <= one[0] <= high + pad)
    x = Axis(low=low - pad, high=high + pad, ticks=inside)
    height = 26.0 * len(rows) + 34.0
    marks = () if nothing is None else (Mark(nothing, "", "mark nothing"),)
    y_axis = Axis(low=0.0, high=1.0)
    drawing = Drawing(width=width, height=height, x=x, y=y_axis, marks=marks, left=names, right=values)
    for at, _ in x.ticks:
        look = "grid zero" if at == 0.0 else "grid"
        ends_at = f'y1="{drawing.top:.1f}" y2="{drawing.bottom:.1f}"'
        drawing.add(f'<line class="{look}" x1="{drawing.x(at):.1f}" x2="{drawing.x(at):.1f}" {ends_at}/>')
    for place, one in enumerate(rows):
        y = drawing.top + 26.0 * (place + 0.5)
        look = f"s{order[one.arm]}" + ("" if one.status == "active" else " off")
        drawing.add(label(fitting(one.arm, names - 8.0), names - 8.0, y + 4.0, "end"))
        drawing.add(label(figure(one.brings, 3), width - 2.0, y + 4.0, "end"))
        if one.low is not None and one.high is not None:
            low, high = drawing.x(one.low), drawing.x(one.high)
            drawing.add(f'<line class="line {look}" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        if one.brings is not None:
            title = f"<title>{figure(one.low, 3)} to {figure(one.high, 3)}</title>"
            drawing.add(
                f'<circle class="dot {look}" cx="{drawing.x(one.brings):.1f}" cy="{y:.1f}" r="4.5">{title}</circle>'
            )
    return drawing
