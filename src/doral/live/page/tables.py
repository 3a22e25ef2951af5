"""Tables of a campaign's page. Each says how many rows it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from doral.live.page.facts import ArmFacts, CampaignFacts, PairFacts, Waiting
from doral.live.page.time_axis import period_begins, period_name
from doral.live.views.decision import Decision
from doral.live.views.text import moment, share, span
from doral.pages.markup import Datum, Row, table, text
from doral.pages.meters import meter
from doral.pages.names import printable, short
from doral.pages.numbers import DASH, count, figure

_NAME = 48  # columns of a name, at most
MOST_ROWS = 200
Link = Callable[[str], str]  # the address of a page about a decision, by its id
_LONG, _FIRST = 20, 12  # rows: of a table that is longer, so many are shown at once


def named(name: str, *, is_head: bool = False) -> Datum:
    """A name, whole for whoever points at it."""
    shown, whole = short(name, _NAME), printable(name)
    title = whole if shown != whole else ""
    return Datum(html=escape(shown), sort=whole.lower(), look="name", is_head=is_head, title=title)


def number(value: float | None, digits: int = 4) -> Datum:
    return Datum(html=figure(value, digits), sort=value, look="number")


def counted(value: int) -> Datum:
    return Datum(html=f"{value:,}", sort=value, look="number")


def bar(value: float, words: str) -> Datum:
    """A share as a number and as a bar."""
    return Datum(html=f"{escape(words)}{meter([('part', value)], look='meter')}", sort=value, look="number")


def _folded(*, name: str, caption: str, heads: Sequence[str], rows: Sequence[Row]) -> str:
    """A table that can be sorted; of a long one, the first rows, and all of them for who wants them."""
    if len(rows) <= _LONG:
        return table(name=name, caption=caption, heads=heads, rows=rows, is_sortable=True)
    first = table(name=name, caption=caption, heads=heads, rows=rows[:_FIRST])
    whole = table(name=f"{name}-all", caption=caption, heads=heads, rows=rows, is_sortable=True)
    return f"{first}<details><summary>All {len(rows):,} rows</summary>{whole}</details>"


def left_out(shown: int, there: int, what: str) -> str:
    return "" if shown >= there else f" The {shown:,} {what} of {there:,}."


def arms(facts: CampaignFacts) -> str:
    ranked = sorted(facts.arms, key=lambda one: -one.plays)[:MOST_ROWS]
    return _folded(
        name="arms-table",
        caption=f"All arms, over all contexts.{left_out(len(ranked), len(facts.arms), 'most used')}",
        heads=("Arm", "Status", "Cost", "Plays", "Answers", "Reward", "Answered in the end", "95%"),
        rows=[Row(data=_arm(one)) for one in ranked],
    )


def status_of(one: ArmFacts, state: str) -> str:
    if one.is_control:
        return "for those who are not served"
    if one.status == "active" and (state == "racing" or one.standing == "rejected"):
        return f"{one.status}, {one.standing} in the race" if one.standing != "racing" else "active, in the race"
    return one.status


def _arm(one: ArmFacts) -> Sequence[Datum]:
    cost = (
        figure(one.cost_low) if one.cost_low == one.cost_high else f"{figure(one.cost_low)} to {figure(one.cost_high)}"
    )
    last = one.returned[-1] if one.returned else None
    interval = f"{share(one.returned_low[-1])} to {share(one.returned_high[-1])}" if last is not None else DASH
    return (
        named(one.name, is_head=True),
        text(status_of(one, "racing" if one.standing == "racing" else "open")),
        Datum(html=cost, sort=one.cost_low, look="number"),
        counted(one.plays),
        counted(one.answers),
        number(one.reward),
        Datum(html=DASH if last is None else share(last), sort=last, look="number"),
        Datum(html=interval, look="number"),
    )


def _weighed(facts: CampaignFacts) -> str:
    """Said only where it makes a difference: otherwise nobody has to know of weights."""
    if all(one.weight == 1.0 for one in facts.contexts):
        return ""
    return " Rewards are weighed as well; what an answer or a use brings is not."


def pairs(facts: CampaignFacts) -> str:
    """What is known of every arm in every context; where there are many, of those used most."""
    chosen = facts.pairs
    if len(chosen) > MOST_ROWS:
        chosen = tuple(sorted(chosen, key=lambda one: -one.plays)[:MOST_ROWS])
    return _folded(
        name="pairs-table",
        caption=(
            "A use brings the chance of an answer in time (100% until a decision is as old as the deadline, or the "
            "cut-off), times what an answer brings. Per unit of budget it is "
            "weighed as the context is, and divided by the cost: that is what competes with the price."
            f"{_weighed(facts)}"
            f"{left_out(len(chosen), facts.n_pairs, 'most used pairs')}"
        ),
        heads=(
            "Context", "Arm", "Status", "Cost", "Plays", "Answers", "Reward", "An answer brings", "Comes in time",
            "A use brings", "95%", "Per unit of budget",
        ),
        rows=[Row(data=_pair(one)) for one in chosen],
    )  # fmt: skip


def _pair(one: PairFacts) -> Sequence[Datum]:
    interval = DASH if one.low is None or one.high is None else f"{figure(one.low, 3)} to {figure(one.high, 3)}"
    return (
        named(one.context, is_head=True),
        named(one.arm),
        text("ruled out" if one.status == "out" else one.status),
        number(one.cost),
        counted(one.plays),
        counted(one.answers),
        number(one.reward),
        number(one.value, 3),
        Datum(html=DASH if one.returns is None else share(one.returns), sort=one.returns, look="number"),
        number(one.brings, 3),
        Datum(html=interval, look="number"),
        number(one.per_unit, 3),
    )


def contexts(facts: CampaignFacts) -> str:
    ranked = sorted(facts.contexts, key=lambda one: -one.arrivals)[:MOST_ROWS]
    rows = [
        Row(
            data=(
                named(one.name, is_head=True),
                counted(one.arrivals),
                counted(one.served),
                _share_of(one.served, one.arrivals),
                number(one.spend),
                counted(one.answers),
                number(one.reward),
                number(one.weight),
                Datum(html=span(one.deadline, facts.clock), sort=one.deadline, look="number"),
            )
        )
        for one in ranked
    ]
    return _folded(
        name="served-table",
        caption=f"Who came, and who got an arm.{left_out(len(ranked), len(facts.contexts), 'most frequent')}",
        heads=("Context", "Arrivals", "Served", "Share", "Spend", "Answers in time", "Reward", "Weight", "Deadline"),
        rows=rows,
    )


def _share_of(part: int, whole: int) -> Datum:
    if not whole:
        return Datum(html=DASH, look="number")
    return bar(part / whole, share(part / whole))


def groups(facts: CampaignFacts) -> str:
    """Who is served by features of people; nothing where there are none."""
    if not facts.groups:
        return ""
    rows = [
        Row(
            data=(
                named(one.feature, is_head=True),
                named(one.group),
                counted(one.arrivals),
                counted(one.served),
                _share_of(one.served, one.arrivals),
                number(one.spend),
                counted(one.answers),
                number(one.mean_reward, 3),
            )
        )
        for one in facts.groups
    ]
    return table(
        name="groups-table",
        caption="By what is known of people: numbers in quarters of those who came, words by level.",
        heads=("Feature", "Group", "Arrivals", "Served", "Share", "Spend", "Answers", "Mean reward"),
        rows=rows,
        is_sortable=True,
    )


def waiting(name: str, caption: str, head: str, found: Iterable[Waiting], total: int) -> str:
    rows = [
        Row(
            data=(
                text(one.words, is_head=True),
                counted(one.decisions),
                bar(one.decisions / total, share(one.decisions / total)),
                number(one.reserved),
            )
        )
        for one in found
    ]
    return table(name=name, caption=caption, heads=(head, "Decisions", "Share", "Reserved"), rows=rows)


def latest(facts: CampaignFacts, link: Link | None = None) -> str:
    """The first of them, and the others for who wants them. `link` says where more is told of a decision."""
    heads = ("When", "Context", "Arm", "Cost", "State", "Reward", "Why", "Key or id")
    rows = [Row(data=_decision(one, facts.clock, link), key=one.id) for one in facts.latest]
    first, rest = (rows[:_FIRST], rows[_FIRST:]) if len(rows) > _LONG else (rows, [])
    shown = table(
        name="latest-table",
        caption=f"The latest {count(len(first), 'decision', 'decisions')}, newest first. {_zone(facts)}",
        heads=heads,
        rows=first,
    )
    if not rest:
        return shown
    more = table(name="latest-more", caption=f"Those before. {_zone(facts)}", heads=heads, rows=rest)
    return f"{shown}<details><summary>{len(rest):,} more</summary>{more}</details>"


def _zone(facts: CampaignFacts) -> str:
    return "Times are in UTC." if facts.clock == "seconds" else "Times are rounds."


def _decision(one: Decision, clock: str, link: Link | None) -> Sequence[Datum]:
    state = one.state
    if one.delay is not None and one.state in ("returned", "late"):
        state += f" after {span(one.delay, clock)}"
    return (
        Datum(html=moment(one.decided_at, clock, seconds=True), is_head=True, look="short"),
        named(one.context),
        named(one.arm) if one.arm is not None else Datum(html="not served", look="short"),
        number(one.cost if one.actual_cost is None else one.actual_cost),
        text(state),
        number(one.reward),
        text(one.reason, look="why"),
        Datum(html=_linked(one, link), look="short", title=one.id),
    )


def _linked(one: Decision, link: Link | None) -> str:
    words = escape(short(one.key if one.key is not None else one.id, 24))
    return words if link is None else f'<a href="{escape(link(one.id))}">{words}</a>'


def changes(facts: CampaignFacts) -> str:
    """What somebody did; nothing where nobody did anything."""
    done = facts.spending.changes
    if not done:
        return ""
    rows = [
        Row(data=(Datum(html=moment(one.time, facts.clock), is_head=True, look="short"), text(one.words)))
        for one in reversed(done[-MOST_ROWS:])
    ]
    return table(
        name="changes-table",
        caption=f"Changes while it ran, newest first.{left_out(len(rows), len(done), 'newest')}",
        heads=("When", "What"),
        rows=rows,
    )


def spend(facts: CampaignFacts) -> str:
    """The numbers behind the drawing, a few of them."""
    points = facts.spending.points
    every = max(1, (len(points) - 1) // 20)
    chosen = [*points[:-1:every], points[-1]]
    is_time = facts.spending.axis == "time"
    rows = [
        Row(
            data=(
                Datum(html=moment(one.at, "seconds") if is_time else f"{one.at:,.0f}", is_head=True, look="short"),
                number(one.spent, 6),
                number(one.reserved, 6),
            )
        )
        for one in chosen
    ]
    return table(
        name="spend-table",
        caption="Where the money was.",
        heads=("When" if is_time else "Arrivals", "Spent", "Reserved"),
        rows=rows,
    )


def rewards(facts: CampaignFacts) -> str:
    rows = [
        Row(
            data=(
                Datum(html=period_begins(one), is_head=True, look="short"),
                number(one.reward),
                counted(one.answers),
                counted(one.arrivals),
            )
        )
        for one in facts.periods
    ]
    return table(
        name="rewards-table",
        caption=f"What came, by {period_name(facts.periods)} (UTC).",
        heads=("From", "Reward", "Answers", "Arrivals"),
        rows=rows,
    )
