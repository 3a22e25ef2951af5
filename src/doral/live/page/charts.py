"""Charts of a campaign: budget against plan, options over time, outcomes, return curves, values by group."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape

from markupsafe import Markup

from doral.live.page.facts import ArmFacts, CampaignFacts, Change, ContextFacts, Mix, PairFacts, Period
from doral.live.state.definition import DAY_S
from doral.live.views.text import moment, share, span
from doral.pages.names import isolated, short
from doral.pages.numbers import count, figure, money
from doral.pages.svg import Axis, Drawing, Mark, fitting, label, most_ticks, nice_axis

WIDE, NARROW = 580.0, 350.0  # pixels
MOST_ARMS = 8  # in one drawing: more cannot be told apart
MOST_CONTEXTS = 6
_HEIGHT, _LOW_HEIGHT = 300.0, 230.0
_MOST_DEADLINES = 3
_MOST_MARKS = 12
_MARGIN = 0.1  # of a value: so near to the price, either choice is as good
_ZOOM = 4.0  # a young campaign is shown up to so many times its age


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing for wide screens and for phones, with what is around it.

    Attributes:
        name: Of its element.
        title: Above it.
        sees: What to see in it.
        keys: Words and looks of the legend.
        notes: What numbered marks are.
        drawings: The markup of both.
    """

    name: str
    title: str
    sees: str
    keys: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    drawings: Markup


def _chart(
    *,
    name: str,
    title: str,
    sees: str,
    says: str,
    draw: Callable[[float], Drawing],
    keys: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
) -> Chart:
    """`says` is what it shows, for whoever cannot see it."""
    drawings = "".join(
        draw(width).svg(id=f"{name}-{look}", title=title, says=says, look=look)
        for width, look in ((WIDE, "wide"), (NARROW, "narrow"))
    )
    return Chart(name=name, title=title, sees=sees, keys=tuple(keys), notes=tuple(notes), drawings=Markup(drawings))


# --- budget against plan ----------------------------------------------------------------------------------------------


def spend(facts: CampaignFacts) -> Chart:
    """Used so far, the plan until the end, and the budget; a young campaign is shown enlarged."""
    shown, end = facts.spending, _shown_until(facts)
    zoom = "" if end >= shown.end else " Shown is its beginning."
    used = money(facts.spent + facts.reserved, facts.currency)
    return _chart(
        name="spend",
        title="Budget against plan",
        sees=f"The plan spends the budget evenly until the end.{zoom}",
        says=f"{shown.sentence} {used} of {money(facts.total, facts.currency)} are used.",
        keys=(
            ("spent", "area spent"),
            ("reserved, answers pending", "area reserved"),
            ("plan", "line plan"),
            *((("budget", "line budget"),) if end >= shown.end else ()),
        ),
        draw=lambda width: _draw_spend(facts, width, end),
        notes=[one.words for one in _told(shown.changes)],
    )


def _shown_until(facts: CampaignFacts) -> float:
    shown = facts.spending
    return min(
        shown.end, max(shown.start + _ZOOM * (shown.now - shown.start), shown.start + 0.05 * (shown.end - shown.start))
    )


def _height(width: float) -> float:
    return 250.0 if width == WIDE else 152.0


def _draw_spend(facts: CampaignFacts, width: float, end: float) -> Drawing:
    shown = facts.spending
    is_whole = end >= shown.end
    plan = _until(shown.plan, end)
    tops = [*(amount for _, amount in plan), *(one.spent + one.reserved for one in shown.points)]
    highest = max(facts.total, *tops) if is_whole else max(tops) or facts.total
    few = 6 if width == WIDE else 4
    y = nice_axis(0.0, highest, most=few, words=figure, name=facts.currency or "units of budget")
    inside = width - 80.0
    if shown.axis == "time":
        x = time_axis(shown.start, max(end, shown.start + 1.0), width=inside)
    else:
        x = nice_axis(0.0, max(end, 1.0), most=most_ticks(inside), words=figure, name="arrivals")
        x = Axis(low=0.0, high=max(end, 1.0), ticks=x.ticks, name=x.name)
    marks = [Mark(one.at, str(place), "mark change") for place, one in enumerate(_told(shown.changes), start=1)]
    marks = marks if width == WIDE else []
    if shown.start < shown.now < end:
        marks.append(Mark(shown.now, "now", "mark now"))
    drawing = Drawing(width=width, height=_height(width), x=x, y=y, marks=marks)
    spent = [(one.at, one.spent) for one in shown.points]
    used = [(one.at, one.spent + one.reserved) for one in shown.points]
    drawing.area(spent, [(shown.start, 0.0), (shown.now, 0.0)], "area spent")
    drawing.area(used, spent, "area reserved")
    if is_whole:
        drawing.line(_stairs(shown.budget, shown.end), "line budget")
    drawing.line(plan, "line plan")
    drawing.line(used, "line used")
    return drawing


def _until(plan: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """The corners of the plan up to a place on the axis, and the point there."""
    found = [plan[0]]
    for at, amount in plan[1:]:
        before, low = found[-1]
        if at > end:
            found.append((end, low + (amount - low) * (end - before) / (at - before)))
            break
        found.append((at, amount))
    return found


def _told(changes: Sequence[Change]) -> Sequence[Change]:
    """The newest ones, where there are many."""
    return changes[-_MOST_MARKS:]


def _stairs(steps: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for place, (at, amount) in enumerate(steps):
        upto = steps[place + 1][0] if place + 1 < len(steps) else end
        points += [(at, amount), (upto, amount)]
    return points


# --- options over time ------------------------------------------------------------------------------------------------


def mix(facts: CampaignFacts) -> Chart | None:
    """Which share of the arrivals got which option; None where nobody has come."""
    if not facts.mix:
        return None
    colours = {arm.name: colour for colour, arm in drawn_arms(facts) if colour < MOST_ARMS}  # the last one is grey
    last = latest_mix(facts.mix)
    keys = [
        (f"{isolated(short(name, 30))} {share(last.arms.get(name, 0) / last.arrivals)}", f"bar s{colour}")
        for name, colour in colours.items()
        if any(name in one.arms for one in facts.mix)
    ]
    others = sum(many for name, many in last.arms.items() if name not in colours)
    if any(set(one.arms) - set(colours) for one in facts.mix):
        keys.append((f"other options {share(others / last.arrivals)}", "bar other"))
    keys.append((f"skipped {share(last.skipped / last.arrivals)}", "bar skipped"))
    return _chart(
        name="mix",
        title="What the policy does",
        sees=f"Share of arrivals by option; in numbers, of the latest {last.arrivals:,} arrivals.",
        says="; ".join(words for words, _ in keys),
        keys=keys,
        draw=lambda width: _draw_mix(facts, colours, width),
    )


def latest_mix(mixes: Sequence[Mix]) -> Mix:
    """The last stretch, with those before where few have come in it."""
    arms: dict[str, int] = {}
    arrivals = skipped = 0
    for one in reversed(mixes):
        arrivals, skipped = arrivals + one.arrivals, skipped + one.skipped
        for name, many in one.arms.items():
            arms[name] = arms.get(name, 0) + many
        if arrivals >= 20:
            break
    return Mix(begins=0.0, ends=0.0, arrivals=arrivals, skipped=skipped, arms=arms)


def _draw_mix(facts: CampaignFacts, colours: dict[str, int], width: float) -> Drawing:
    shown = facts.spending
    end = max(shown.now, facts.mix[-1].begins + 1e-9)
    few = 5 if width == WIDE else 3
    y = nice_axis(0.0, 1.0, most=few, words=lambda one: f"{100 * one:.0f}%", name="of arrivals")
    if shown.axis == "time":
        x = time_axis(shown.start, max(end, shown.start + 1.0), width=width - 80.0)
    else:
        x = nice_axis(0.0, max(end, 1.0), most=most_ticks(width - 80.0), words=figure, name="arrivals")
        x = Axis(low=0.0, high=max(end, 1.0), ticks=x.ticks, name=x.name)
    drawing = Drawing(width=width, height=_height(width), x=x, y=y)
    for one in facts.mix:
        upto, at = min(one.ends, end), 0.0
        parts = [(name, f"s{colour}", one.arms.get(name, 0)) for name, colour in colours.items()]
        parts.append(("other options", "other", sum(n for name, n in one.arms.items() if name not in colours)))
        parts.append(("skipped", "skipped", one.skipped))
        left, wide = drawing.x(one.begins), max(1.0, drawing.x(upto) - drawing.x(one.begins))
        for name, look, many in parts:
            if not many:
                continue
            top, bottom = drawing.y(at + many / one.arrivals), drawing.y(at)
            at += many / one.arrivals
            words = escape(f"{short(name, 40)}: {many:,} of {one.arrivals:,} ({share(many / one.arrivals)})")
            drawing.add(
                f'<rect class="bar {look}" x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" '
                f'height="{bottom - top:.1f}"><title>{words}</title></rect>'
            )
    return drawing


# --- outcomes over time -----------------------------------------------------------------------------------------------


def rewards(facts: CampaignFacts) -> Chart:
    """What answers brought, by when they came."""
    what = period_name(facts.periods)
    best = max(facts.periods, key=lambda one: one.reward)
    return _chart(
        name="rewards",
        title=f"{(facts.outcome or 'reward').capitalize()} by {what}",
        sees=(
            f"{figure(facts.reward)} in all, by when answers came (UTC). The best {what} brought {figure(best.reward)}."
        ),
        says=f"A bar for each {what}; the highest, {period_begins(best)}, brought {figure(best.reward)}.",
        draw=lambda width: _draw_rewards(facts.periods, width),
    )


def _draw_rewards(periods: Sequence[Period], width: float) -> Drawing:
    low, high = min(0.0, *(one.reward for one in periods)), max(0.0, *(one.reward for one in periods))
    y = nice_axis(low, high, most=5, words=figure, name="that count")
    x = time_axis(periods[0].begins, periods[-1].ends, width=width - 80.0)
    drawing = Drawing(width=width, height=_LOW_HEIGHT, x=x, y=y)
    for one in periods:
        pad = 0.1 * (one.ends - one.begins)
        title = (
            f"{period_begins(one)}: reward {figure(one.reward)} of {one.answers:,} answers, {one.arrivals:,} arrivals"
        )
        drawing.bar(one.begins + pad, one.ends - pad, one.reward, "bar", title)
    return drawing


# --- return curves ---------------------------------------------------------------------------------------------------


def drawn_arms(facts: CampaignFacts) -> list[tuple[int, ArmFacts]]:
    """Those that are drawn, with the number of their colour: the most used, in the order of the problem."""
    ranked = sorted(range(len(facts.arms)), key=lambda arm: (-facts.arms[arm].plays, arm))[:MOST_ARMS]
    return [(place + 1, facts.arms[arm]) for place, arm in enumerate(sorted(ranked))]


def curves(facts: CampaignFacts) -> Chart | None:
    """None where no answer was waited for yet."""
    shown = [(colour, arm) for colour, arm in drawn_arms(facts) if arm.ages]
    if not shown:
        return None
    told = "; ".join(f"{short(arm.name, 30)} {share(arm.returned[-1])}" for _, arm in shown)
    left_out = len(facts.arms) - len(shown)
    more = f" The {len(shown)} most used of {len(facts.arms)} arms." if left_out and len(facts.arms) > MOST_ARMS else ""
    return _chart(
        name="curves",
        title="When answers come",
        sees=(
            "The share of uses that are answered by each age (Kaplan and Meier), with 95% intervals. "
            f"{_waits(facts)}{more}"
        ),
        says=f"Answered in the end: {told}.",
        keys=[(f"{short(arm.name, 40)}: {share(arm.returned[-1])}", f"line s{colour}") for colour, arm in shown],
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


# --- values by group --------------------------------------------------------------------------------------------------


def pairs(facts: CampaignFacts) -> list[Chart]:
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
        _pair_figure(facts, place, context, by_context[context.name], order, ends)
        for place, context in enumerate(shown)
    ]


def _pair_figure(
    facts: CampaignFacts,
    place: int,
    context: ContextFacts,
    pairs: Sequence[PairFacts],
    order: dict[str, int],
    ends: Sequence[float],
) -> Chart:
    rows = sorted(pairs, key=lambda one: order[one.arm])
    nothing = "" if context.nothing is None else f" Doing nothing brings {figure(context.nothing, 3)} (dashed)."
    told = "; ".join(f"{short(one.arm, 30)} {figure(one.brings, 3)}" for one in rows)
    does, why = group_words(facts, context)
    return _chart(
        name=f"context-{place + 1}",
        title=short(context.name, 60),
        sees=f"{does} {why}{nothing}",
        says=f"What a use brings: {told}.",
        draw=lambda width: _draw_pairs(rows, order, ends, context.nothing, width),
    )


def group_words(facts: CampaignFacts, context: ContextFacts) -> tuple[str, str]:
    """What the policy did with the latest arrivals of a group, and what by today's estimates speaks for that."""
    came = sum(context.recent.values())
    if not came:
        return "Nobody of this group has come yet.", ""
    parts = ", ".join(
        f"{share(many / came)} {isolated(short(arm, 40)) if arm else 'skipped'}"
        for arm, many in list(context.recent.items())[:4]
    )
    does = f"Of the latest {count(came, 'arrival', 'arrivals')}: {parts}."
    price, weight = facts.price or 0.0, context.weight
    known = [one for one in facts.pairs if one.context == context.name and one.brings is not None]
    known = [one for one in known if one.status == "active"]
    if not known:
        return does, "Nothing is known of its options yet."

    def gain(one: PairFacts) -> float:
        return weight * (one.brings or 0.0) - price * one.cost

    usual, best = next(iter(context.recent)), max(known, key=gain)
    dearest = max(known, key=lambda one: one.brings or 0.0)
    name, worth = short(best.arm, 40), f"{figure(weight * (best.brings or 0.0), 3)}"
    elsewhere = f"the {figure(best.cost)} that it costs would return {figure(price * best.cost, 3)} elsewhere"
    if price <= 0.0:
        why = f"{name} brings most per use, {worth}; nothing competes for the budget so far."
        return does, why
    gained, size = gain(best), max(weight * (best.brings or 0.0), price * best.cost)
    if abs(gained) <= _MARGIN * size:
        why = f"{name} is at the margin: a use returns {worth}, and {elsewhere}."
    elif gained > 0.0:
        why = f"{name} gains most over its cost: a use returns {worth}, and {elsewhere}."
    else:
        why = f"By the estimates of now no option is worth its cost: of {name} a use returns {worth}, and {elsewhere}."
    expected = {best.arm, ""} if abs(gained) <= _MARGIN * size else {best.arm} if gained > 0.0 else {""}
    if usual not in expected:
        why += " What was done differs: options are explored, the budget is paced, or estimates have moved since."
    if dearest.arm != best.arm and (dearest.brings or 0.0) > (best.brings or 0.0) and dearest.per_unit is not None:
        why += (
            f" {short(dearest.arm, 40)} brings more per use ({figure(weight * (dearest.brings or 0.0), 3)}), but only "
            f"{figure(dearest.per_unit, 3)} per unit of budget."
        )
    return does, why


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


# --- axes of time -----------------------------------------------------------------------------------------------------


_MINUTES = (1, 2, 5, 10, 15, 30)
_HOURS = (1, 3, 6, 12)
_DAYS = (1, 2, 7, 14)
_MONTHS = (1, 3, 6, 12, 24, 60, 120)
_UNITS = ((DAY_S, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def time_axis(start: float, end: float, *, width: float) -> Axis:
    """From one moment to another, in seconds since 1970."""
    most = most_ticks(width)
    length = end - start
    for minutes in _MINUTES:
        if length / (minutes * 60.0) <= most:
            ticks = _even(start, end, minutes * 60.0, "%H:%M")
            return Axis(low=start, high=end, ticks=ticks, name=_day_of(start, end))
    for hours in _HOURS:
        if length / (hours * 3_600.0) <= most:
            return Axis(
                low=start, high=end, ticks=_even(start, end, hours * 3_600.0, "%H:%M"), name=_day_of(start, end)
            )
    for days in _DAYS:
        if length / (days * DAY_S) <= most:
            return Axis(low=start, high=end, ticks=_even(start, end, days * DAY_S, "%d %b"), name=_years(start, end))
    for months in _MONTHS:
        if length / (months * 30.4 * DAY_S) <= most:
            return Axis(low=start, high=end, ticks=_by_month(start, end, months), name="UTC")
    return Axis(low=start, high=end, name="UTC")


def _at(seconds: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _even(start: float, end: float, step: float, form: str) -> tuple[tuple[float, str], ...]:
    first, last = math.ceil(start / step), math.floor(end / step)
    return tuple((i * step, _at(i * step).strftime(form).removeprefix("0")) for i in range(first, last + 1))


def _by_month(start: float, end: float, months: int) -> tuple[tuple[float, str], ...]:
    found = []
    month = _at(start).year * 12 + _at(start).month - 1
    month -= month % months
    while (at := datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()) <= end:
        if at >= start:
            found.append((at, datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).strftime("%b %Y")))
        month += months
    return tuple(found)


def _day_of(start: float, end: float) -> str:
    first, last = _at(start).strftime("%Y-%m-%d"), _at(end).strftime("%Y-%m-%d")
    return f"{first}, UTC" if first == last else f"{first} to {last}, UTC"


def _years(start: float, end: float) -> str:
    first, last = _at(start).year, _at(end).year
    return f"{first}, UTC" if first == last else f"{first} to {last}, UTC"


def age_axis(longest: float, *, clock: str, width: float) -> tuple[Axis, float]:
    """From 0 to an age, with the size of the unit in which its numbers are told."""
    size, word = (1.0, "rounds")
    if clock == "seconds":
        size, word = next((one for one in _UNITS if longest >= 2 * one[0]), _UNITS[-1])
    found = nice_axis(0.0, longest / size or 1.0, most=most_ticks(width), words=figure)
    ticks = tuple((at * size, words) for at, words in found.ticks)
    return Axis(low=0.0, high=longest or 1.0, ticks=ticks, name=f"{word} since the decision"), size


# --- periods ----------------------------------------------------------------------------------------------------------


_NAMES = {60.0: "minute", 600.0: "10 minutes", 3_600.0: "hour", DAY_S: "day"}


def period_name(periods: Sequence[Period]) -> str:
    """Of one of them.

    >>> period_name([Period(begins=0.0, ends=172_800.0, reward=0.0, answers=0, arrivals=0)])
    '2 days'
    """
    length = periods[0].ends - periods[0].begins
    return _NAMES.get(length) or f"{length / DAY_S:.0f} days"


def period_begins(one: Period) -> str:
    """A date, with the time of day where it lasts less than one."""
    began = moment(one.begins, "seconds")
    return began if one.ends - one.begins < DAY_S else began[:10]
