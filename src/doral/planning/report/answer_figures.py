"""Figures of answers: how many have come by each age, by arm and by outcome, and what waiting brings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from doral.pages.names import printable, short
from doral.planning.curves import ReturnCurve
from doral.planning.facts import Scale, named, percent, scale_for
from doral.planning.plan import Plan
from doral.planning.report.drawing import (
    MARK,
    MOST_LINES,
    PLAIN,
    Drawing,
    Line,
    colour,
    end_labels,
    finish,
    ink,
    mark,
    numbers,
    sheet,
)

_PANEL_INCHES = 2.7
_BEYOND = 1.6  # deadlines: so far to the right of it a figure goes, where more is known
_OUTCOMES = {"any": "any answer", "above 0": "above 0", "not above 0": "not above 0"}


def curves_drawing(plan: Plan) -> Drawing | None:
    """The share that has answered by each age, arm by arm."""
    any_outcome = [one for one in plan.curves if one.outcome == "any" and len(one.ages) > 1]
    together = [one for one in any_outcome if one.arm is None]
    arms = sorted((one for one in any_outcome if one.arm is not None), key=lambda one: -one.rows)
    if len(arms) == 1:
        together = []
    shown = arms[: MOST_LINES - len(together)]
    if not (shown or together):
        return None
    rest = len(arms) - len(shown)
    title = "Answers that have come, by age" + (f" (the {len(shown)} arms used most of {len(arms)})" if rest else "")
    figure = sheet(4.0, title)
    axes = figure.subplots()
    scale = _scale(plan, [*shown, *together])
    lines = [_draw(axes, one, scale, colour(place), str(one.arm)) for place, one in enumerate(shown)]
    lines += [_draw(axes, one, scale, ink(), "all together", is_thick=True) for one in together]
    _dress(axes, plan, [*shown, *together], scale, lines)
    axes.set_ylabel("share of decisions that have answered")
    speaks = together[0] if together else shown[0]
    sees = plan.responsiveness.sentence if len(arms) > 1 else speaks.sentence
    return Drawing(
        name="returns",
        title="When answers come",
        sees=f"{printable(sees)} Shaded: 95% bands for whole curves.",
        alt=f"Return curves of {named(tuple(short(str(one.arm)) for one in shown))}: {printable(speaks.sentence)}",
        figure=figure,
    )


def outcomes_drawing(plan: Plan) -> Drawing | None:
    """Whether good news or bad news comes first."""
    by_outcome = [one for one in plan.curves if one.arm is None and one.outcome != "any"]
    found = [one for one in by_outcome if len(one.ages) > 1 and one.answered > 0]
    if len(found) < 2:
        return None
    figure = sheet(3.6, "Answers that have come, by outcome")
    axes = figure.subplots()
    scale = _scale(plan, found)
    lines = [
        _draw(axes, one, scale, colour(place), f"reward {_OUTCOMES[one.outcome]}") for place, one in enumerate(found)
    ]
    _dress(axes, plan, found, scale, lines)
    axes.set_ylabel("share of those that come")
    said = [one.sentence for one in plan.findings if one.question == "positives_first"]
    sees = " ".join(printable(one) for one in (said or [found[0].sentence]))
    return Drawing(
        name="outcomes",
        title="Which outcome comes first",
        sees=sees,
        alt=f"Return curves by outcome: {sees}",
        figure=figure,
    )


def _scale(plan: Plan, curves: Sequence[ReturnCurve]) -> Scale:
    return scale_for(plan.log.clock, _reach(plan, curves))


def _reach(plan: Plan, curves: Sequence[ReturnCurve]) -> float:
    longest = max(one.ages[-1] for one in curves)
    if not 0.0 < plan.deadline < math.inf:
        return longest
    return min(longest, _BEYOND * plan.deadline) if longest > plan.deadline else plan.deadline


def _draw(
    axes: Axes, curve: ReturnCurve, scale: Scale, paint: str, name: str, *, is_thick: bool = False
) -> tuple[ReturnCurve, Line]:
    ages = np.array(curve.ages) / scale.size
    axes.plot(ages, curve.share, color=paint, linewidth=2.4 if is_thick else 1.5, drawstyle="steps-post", zorder=3)
    low, high = numbers(curve.low), numbers(curve.high)
    axes.fill_between(ages, low, high, color=paint, alpha=0.11, linewidth=0, step="post")
    return curve, Line(y=0.0, name=name, colour=paint)


def _dress(
    axes: Axes, plan: Plan, curves: Sequence[ReturnCurve], scale: Scale, lines: Sequence[tuple[ReturnCurve, Line]]
) -> None:
    reach = _reach(plan, curves)
    axes.set_xlim(0.0, reach / scale.size)
    highest = max((share for one in curves for share in _until(one, reach)), default=1.0)
    axes.set_ylim(0.0, 1.0 if highest > 0.5 else 1.15 * highest or 1.0)
    axes.set_xlabel(f"age of the decision, {scale.word}")
    axes.xaxis.set_major_formatter(PLAIN)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    finish(axes)
    _mark_times(axes, plan, scale)
    ends = [Line(y=_share_at(one, reach), name=line.name, colour=line.colour) for one, line in lines]
    end_labels(axes, ends, height_inches=_PANEL_INCHES)


def _until(curve: ReturnCurve, reach: float) -> list[float]:
    """Upper limits of a curve, up to an age, where they are known."""
    sides = zip(curve.ages, curve.share, curve.high, strict=True)
    return [share if high is None else high for age, share, high in sides if age <= reach]


def _share_at(curve: ReturnCurve, age: float) -> float:
    return curve.share[max(0, int(np.searchsorted(curve.ages, age, side="right")) - 1)]


def _mark_times(axes: Axes, plan: Plan, scale: Scale) -> None:
    """The deadline, and the wait that is advised, which is not longer."""
    advised, clock = plan.waiting.advised, plan.log.clock
    has_deadline = 0.0 < plan.deadline < math.inf
    is_same = has_deadline and advised is not None and math.isclose(advised, plan.deadline, rel_tol=0.01)
    if not is_same:
        _mark_advice(axes, plan, scale)
    if has_deadline:
        words = f"{'wait until the ' if is_same else ''}deadline, {clock.shown(plan.deadline)}"
        at = plan.deadline / scale.size
        # Far to the right its words stand to the left, above those of the wait: names of lines are beside the axes.
        is_left = at > 0.7 * axes.get_xlim()[1]
        mark(axes, at, words, is_left=is_left, level=int(is_left))


def _mark_advice(axes: Axes, plan: Plan, scale: Scale, *, has_words: bool = True) -> None:
    advised = plan.waiting.advised
    if advised is not None:
        words = f"wait {plan.log.clock.shown(advised)}" if has_words else ""
        mark(axes, advised / scale.size, words, is_left=True, style="-")


def waiting_drawing(plan: Plan) -> Drawing | None:
    """What is there after each wait, and what is held open meanwhile."""
    waits = plan.waiting.waits
    if len(waits) < 2:
        return None
    has_open = any(one.open_decisions is not None for one in waits)
    figure = sheet(4.6 if has_open else 3.4, "What a wait keeps, and what it holds open" if has_open else "")
    grid = figure.subplots(2 if has_open else 1, 1, sharex=True, squeeze=False, height_ratios=[3, 2][: 1 + has_open])
    above = grid[0, 0]
    scale = scale_for(plan.log.clock, waits[-1].age)
    ages = np.array([one.age for one in waits]) / scale.size
    above.set_xlim(0.0, float(ages[-1]))
    parts = (("value", [one.value for one in waits]), ("answers", [one.kept for one in waits]))
    lines = []
    for place, (name, values) in enumerate(parts):
        known = numbers(values)
        if np.isnan(known).all():
            continue
        above.plot(ages, known, color=colour(place), marker="o", markersize=3, linewidth=1.6)
        lines.append(Line(y=float(known[~np.isnan(known)][-1]), name=name, colour=colour(place)))
    above.axhline(plan.waiting.keep, color=MARK, linewidth=1, linestyle=":")
    tops = [float(np.nanmax(numbers(values))) for _, values in parts if not np.isnan(numbers(values)).all()]
    above.set_ylim(0.0, max(1.02, 1.04 * max(tops, default=1.0)))
    above.yaxis.set_major_formatter(PercentFormatter(1.0))
    above.set_ylabel("kept, of what comes\nby the deadline")
    _shade_advice(above, plan, scale)
    _mark_advice(above, plan, scale)
    end_labels(above, lines, height_inches=1.9)
    finish(above)
    if has_open:
        below = grid[1, 0]
        below.plot(ages, numbers([one.open_decisions for one in waits]), color=colour(2), marker="o", markersize=3)
        below.set_ylim(bottom=0.0)
        below.set_ylabel("decisions open\nat a time")
        below.yaxis.set_major_locator(MaxNLocator(nbins=4))
        _mark_advice(below, plan, scale, has_words=False)
        finish(below)
    grid[-1, 0].xaxis.set_major_formatter(PLAIN)
    grid[-1, 0].xaxis.set_major_locator(MaxNLocator(nbins=7))
    grid[-1, 0].set_xlabel(f"wait m, {scale.word}, up to the deadline")
    keep = f"Dotted: {percent(plan.waiting.keep)}, what the advised wait keeps."
    return Drawing(
        name="waiting",
        title="How long to wait",
        sees=f"{printable(plan.waiting.sentence)} {keep}",
        alt=f"Share of value and answers kept, and decisions open, by wait: {printable(plan.waiting.sentence)}",
        figure=figure,
    )


def _shade_advice(axes: Axes, plan: Plan, scale: Scale) -> None:
    low, high = plan.waiting.advised_low, plan.waiting.advised_high
    if plan.waiting.advised is None or low is None:
        return
    end = axes.get_xlim()[1] if high is None else high / scale.size
    axes.axvspan(low / scale.size, min(end, axes.get_xlim()[1]), color=MARK, alpha=0.15, linewidth=0)
