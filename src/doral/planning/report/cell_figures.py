"""Figures of who comes and what that brings: values by context and arm, and arrivals over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.ticker import Locator, MaxNLocator

from doral._arrays import Floats
from doral.experiments.kit.drawing import DEPTHS, DIGITS_COLOUR
from doral.logs.clock import SECONDS
from doral.pages.figure import Figure
from doral.pages.names import short
from doral.planning.facts import number, percent, scale_for
from doral.planning.plan import Plan
from doral.planning.report.drawing import MOST_LINES, WIDTH_INCHES, Drawing, colour, finish, ink, label, sheet
from doral.planning.values import CellValue

MOST_CONTEXTS = 16
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BINS = 60  # of time, at most


def values_drawing(plan: Plan) -> Drawing | None:
    """A map of contexts and arms, or dots with intervals where there is one of either."""
    known = {(one.context, one.arm): one for one in plan.cells if one.value is not None}
    if len(known) < 2:
        return None
    arms = _most(known, 1, plan.log.arm_names(), MOST_LINES)
    contexts = _most(known, 0, plan.log.contexts, MOST_CONTEXTS)
    best = max((one for one in known.values() if one.low is not None), key=lambda one: one.low or 0.0, default=None)
    left = [
        f"the {len(few)} {what} with most rows of {len(all_)}"
        for few, all_, what in (
            (contexts, plan.log.contexts, "contexts"),
            (arms, plan.log.arm_names(), "arms"),
        )
        if len(few) < len(all_)
    ]
    some = f" Shown are {' and '.join(left)}." if left else ""
    sees = "Too little is known of each cell."
    if best is not None and best.value is not None and best.low is not None and best.high is not None:
        sees = (
            f"The surest best is {short(best.arm, 60)} in {short(best.context, 60)}: {number(best.value)} per decision "
            f"({number(best.low)} to {number(best.high)})."
        )
    drawn = _dots if min(len(arms), len(contexts)) == 1 else _map
    figure = drawn(known, contexts, arms)
    sees = f"{sees}{some} Corrected for answers still to come; thin cells borrow from others."
    return Drawing(
        name="values",
        title="What each arm brings to whom",
        sees=sees,
        alt=f"Reward per decision by context and arm. {sees}",
        figure=figure,
    )


def _most(known: Mapping[tuple[str, str], CellValue], side: int, names: Sequence[str], at_most: int) -> list[str]:
    """Those with most rows, in the order of the log."""
    rows = dict.fromkeys(names, 0)
    for key, one in known.items():
        rows[key[side]] += one.rows
    kept = {name for name in sorted(rows, key=lambda name: -rows[name])[:at_most] if rows[name] > 0}
    return [name for name in names if name in kept]


def _map(known: Mapping[tuple[str, str], CellValue], contexts: Sequence[str], arms: Sequence[str]) -> Figure:
    """Numbers in cells, with how many rows they come from where there is room."""
    has_room = len(contexts) * len(arms) <= 40
    height = 1.6 + (0.44 if has_room else 0.3) * len(contexts)
    title = "Reward per decision, by context and arm" + (" (and rows)" if has_room else "")
    figure = sheet(height, title, width_inches=max(WIDTH_INCHES, 1.9 + 0.58 * len(arms)))
    axes = figure.subplots()
    cells = [[known.get((context, arm)) for arm in arms] for context in contexts]
    worths = np.array([[np.nan if one is None else one.value for one in row] for row in cells], dtype=np.float64)
    low, high = float(np.nanmin(worths)), float(np.nanmax(worths))
    depths = (worths - low) / (high - low) if high > low else np.where(np.isnan(worths), np.nan, 0.5)
    # As many digits as the largest needs for three that count.
    largest = max(abs(low), abs(high))
    digits = min(6, max(0, 2 - math.floor(math.log10(largest)))) if largest > 0.0 else 0
    axes.imshow(depths, cmap=DEPTHS, vmin=0.0, vmax=1.0, aspect="auto")
    for row, column in np.ndindex(depths.shape):
        one = cells[row][column]
        paint = ink() if one is None else DIGITS_COLOUR
        words = "\N{EN DASH}" if one is None else f"{worths[row, column]:,.{digits}f}"
        if one is not None and has_room:
            words += f"\n({one.rows:,})"
        axes.text(column, row, words, ha="center", va="center", fontsize="small", color=paint, linespacing=1.1)
    _name_sides(axes, contexts, arms)
    return figure


def _name_sides(axes: Axes, contexts: Sequence[str], arms: Sequence[str]) -> None:
    names = [label(one, 18) for one in arms]
    axes.xaxis.tick_top()  # first: labels that move up lose how they are turned
    axes.set_xticks(range(len(arms)), names)
    longest = max(map(len, names))
    if longest > 12:  # upright: slanted, they would run into each other
        axes.tick_params(axis="x", rotation=90)
    elif longest > 6:
        for tick in axes.get_xticklabels():
            tick.set(rotation=30, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(contexts)), [label(one, 20) for one in contexts])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks(np.arange(1, len(arms)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(contexts)) - 0.5, minor=True)
    axes.grid(which="minor", color="#ffffff", linewidth=1.5)
    axes.tick_params(which="minor", length=0)


def _dots(known: Mapping[tuple[str, str], CellValue], contexts: Sequence[str], arms: Sequence[str]) -> Figure:
    """One arm in many contexts, or many arms in one."""
    keys = [(context, arm) for context in contexts for arm in arms if (context, arm) in known]
    names = [context if len(arms) == 1 else arm for context, arm in keys]
    figure = sheet(1.3 + 0.34 * len(keys), f"Reward per decision, by {'context' if len(arms) == 1 else 'arm'}")
    axes = figure.subplots()
    for place, key in enumerate(keys):
        one = known[key]
        value = float(one.value or 0.0)
        reach = None
        if one.low is not None and one.high is not None:
            reach = np.array([[max(value - one.low, 0.0)], [max(one.high - value, 0.0)]])
        axes.errorbar(value, place, xerr=reach, fmt="o", markersize=5.5, color=colour(0), capsize=3)
    axes.set_yticks(range(len(keys)), [label(one, 24) for one in names])
    axes.set_ylim(len(keys) - 0.5, -0.5)
    axes.set_xlabel("reward per decision, 95% interval")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    finish(axes)
    return figure


def arrivals_drawing(plan: Plan) -> Drawing | None:
    """How many came, when, and what has been heard of them; on a calendar also by day of the week and hour."""
    log = plan.log
    if len(log) < 2:
        return None
    rhythms = _rhythms(plan)
    figure = sheet(3.0 + (1.7 if rhythms else 0.0), "Arrivals over time")
    grid = figure.subplot_mosaic(
        [["time"] * len(rhythms), [name for name, *_ in rhythms]] if rhythms else [["time"]],
        height_ratios=[3, 2] if rhythms else [1],
    )
    word = _over_time(grid["time"], plan)
    grid["time"].set_ylabel(f"arrivals per {word}")
    for name, words, heights in rhythms:
        axes = grid[name]
        axes.bar(range(len(heights)), heights, color=colour(0), width=0.8)
        if name == "weekday":
            axes.set_xticks(range(len(_DAYS)), [day[:2] for day in _DAYS])
        else:
            axes.set_xticks(range(0, 24, 6))
        axes.set_xlabel(words)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        finish(axes)
    heard = float(log.is_answered.mean())
    sees = (
        f"{len(log):,} arrivals over {log.clock.shown(log.span)}; {percent(float(log.is_served.mean()))} were served, "
        f"and something was heard of {percent(heard)}."
    )
    return Drawing(
        name="arrivals", title="Who arrived when", sees=sees, alt=f"Arrivals over time. {sees}", figure=figure
    )


def _over_time(axes: Axes, plan: Plan) -> str:
    """Steps, of all and of those that were heard of; returns what a step is."""
    log = plan.log
    scale = scale_for(log.clock, log.span)
    # Whole days and weeks, so that no step has a weekend more than another.
    width, word = scale.size, scale.word[:-1]
    first, last = float(log.time[0]), float(log.time[-1])
    if log.clock.unit == "seconds" and log.span > 2.0 * _BINS * SECONDS["days"]:
        width, word = SECONDS["weeks"], "week"
    if log.start is not None and width >= SECONDS["days"]:
        midnight = log.start.replace(hour=0, minute=0, second=0, microsecond=0)
        first = -(log.start - midnight).total_seconds() + width * np.floor(first / width)
    steps = max(1, int(np.ceil((last - first) / width + 1e-9)))
    if steps > 2 * _BINS:
        many = int(np.ceil(steps / _BINS))
        width, word, steps = width * many, f"{many} {scale.word}", int(np.ceil(steps / many))
    edges: Floats = first + width * np.arange(steps + 1, dtype=np.float64)
    edges[-1] = max(edges[-1], last)
    everybody, _ = np.histogram(log.time, edges)
    heard, _ = np.histogram(log.time[log.is_answered], edges)
    x: Floats = np.asarray(edges / scale.size)
    if log.start is not None:
        # Days since 1970, which is how Matplotlib counts dates.
        x = log.start.timestamp() / SECONDS["days"] + edges / SECONDS["days"]
        locator = calendar_locator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    else:
        axes.set_xlabel(f"time, {scale.word}")
    axes.stairs(everybody, x, fill=True, color=colour(0), alpha=0.35, label="arrived")
    axes.stairs(heard, x, fill=True, color=colour(0), label="heard of")
    axes.set_ylim(0.0, 1.25 * max(1, int(everybody.max())))
    axes.legend(frameon=False, fontsize="small", ncols=2, loc="upper left")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    finish(axes)
    return word


def calendar_locator() -> Locator:
    """Up to six dates or times; two are enough: those who want more find no step for spans such as four days."""
    locator: Locator = dates.AutoDateLocator(minticks=2, maxticks=6)  # type: ignore[no-untyped-call]
    return locator


def _rhythms(plan: Plan) -> list[tuple[str, str, Floats]]:
    """By weekday after two weeks, by hour after two days, where times are not all at the same hour."""
    log = plan.log
    if log.start is None:
        return []
    midnight = log.start.replace(hour=0, minute=0, second=0, microsecond=0)
    since = (log.start - midnight).total_seconds() + log.time
    found: list[tuple[str, str, Floats]] = []
    if log.span >= 2.0 * SECONDS["weeks"]:
        day = (np.floor(since / SECONDS["days"]).astype(np.int64) + midnight.weekday()) % 7
        found.append(("weekday", "day of the week (UTC)", np.bincount(day, minlength=7).astype(np.float64)))
    hour = np.floor(since / SECONDS["hours"]).astype(np.int64) % 24
    by_hour = np.bincount(hour, minlength=24).astype(np.float64)
    if log.span >= 2.0 * SECONDS["days"] and np.count_nonzero(by_hour) > 1:
        found.append(("hour", "hour of the day (UTC)", by_hour))
    return found
