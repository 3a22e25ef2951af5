"""The answer of a plan for a terminal: what the page says first, in fewer than 60 lines of at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from doral.pages.names import ELLIPSIS, columns, printable, short
from doral.planning.earnings import Earning
from doral.planning.facts import between, money, number, percent, signed
from doral.planning.plan import Plan
from doral.planning.report.tables import difference, leading

WIDTH = 100
# Lines of each part, at most; with titles and blank lines they stay below 60.
_ANSWER, _RUN, _POLICIES, _BUDGET, _ARMS, _LOST = 14, 5, 10, 4, 6, 4


def text(plan: Plan) -> str:
    """The answer, and what it does not say yet: why, the table, the budget, the arms, what was left out."""
    why = [one for one in plan.recommendation.reasons if one not in plan.answer]
    parts = [
        _wrapped(plan.answer, _ANSWER),
        _wrapped(why, _RUN, title="Why"),
        _policies(plan),
        _wrapped(_budget(plan), _BUDGET, title="Budget"),
        _arms(plan),
        _lost(plan),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _wrapped(sentences: Iterable[str], at_most: int, *, title: str = "") -> list[str]:
    """Sentences below each other, cut where they are too many; a title is a line of its own."""
    indent = "  " if title else ""
    lines = [
        line
        for one in sentences
        for line in _lines(printable(one), WIDTH - len(indent) - 2, f"{indent}", f"{indent}  ")
    ]
    if len(lines) > at_most:
        lines = [*lines[: at_most - 1], f"{indent}{short(lines[at_most - 1], WIDTH - len(indent) - 2)} {ELLIPSIS}"]
    return [title, *lines] if title and lines else lines


def _lines(sentence: str, width: int, first: str, rest: str) -> list[str]:
    """Letters that are two columns wide count twice."""
    wide = columns(sentence) - len(sentence)
    narrow = max(20, width - wide) if wide > 0 else width
    return textwrap.wrap(sentence, narrow, initial_indent=first, subsequent_indent=rest) or [""]


def _policies(plan: Plan) -> list[str]:
    earnings = plan.earnings
    if earnings is None or not earnings.policies:
        return []
    shown = leading(plan, _room(len(earnings.policies), _POLICIES))
    rows = [_policy(plan, one) for one in shown]
    heads = ["  policy", short(earnings.unit, 14), "95%", "more", "95%", "", "of oracle"]
    budget = money(earnings.budget, plan.log.currency)
    star = "" if plan.recommendation.policy is None else " (* recommended)"
    title = f"Earnings over {number(earnings.arrivals)} arrivals with a budget of {budget}{star}"
    return [title, *_table(heads, rows, len(earnings.policies), "rows")]


def _policy(plan: Plan, one: Earning) -> list[str]:
    return [
        ("* " if one.policy == plan.recommendation.policy else "  ") + short(one.policy, 34),
        number(one.worth.value),
        between(one.worth),
        "today" if one.more is None else signed(difference(one.more.value, one.worth.value) or 0.0),
        "" if one.more is None else between(one.more),
        "" if one.more is None else "clear" if one.is_clear else "",
        "" if one.oracle_share is None else percent(one.oracle_share),
    ]


def _budget(plan: Plan) -> list[str]:
    said = [plan.spending.sentence] if plan.spending is not None else []
    return [*said, *(one.sentence for one in plan.more if one.gain != 0.0 and one.sentence not in plan.answer)]


def _arms(plan: Plan) -> list[str]:
    clock = plan.log.clock
    speeds = {one.arm: one for one in plan.responsiveness.arms}
    prices = {one.arm: one for one in plan.prices if one.context is None}
    names = [one.arm for one in plan.responsiveness.arms] or [one for one in plan.log.arms if one in prices]
    rows = []
    for name in names:
        speed, price = speeds.get(name), prices.get(name)
        rows.append(
            [
                "  " + short(name, 34),
                f"{speed.rows:,}" if speed is not None else f"{price.rows:,}" if price is not None else "",
                "" if speed is None or speed.share is None else percent(speed.share),
                "" if speed is None or speed.mean_wait is None else clock.shown(speed.mean_wait),
                "" if speed is None else speed.standing,
                "" if price is None else number(price.list_price if price.paid is None else price.paid),
            ]
        )
    if not rows:
        return []
    heads = ["  arm", "rows", "in time", "mean wait", "standing", "paid"]
    return [
        "Arms, those that answer soonest first" if speeds else "Arms",
        *_table(heads, rows[: _room(len(rows), _ARMS)], len(rows), "arms"),
    ]


def _room(rows: int, at_most: int) -> int:
    """One more than there is room for takes no more than the line that says so."""
    return at_most + 1 if rows == at_most + 1 else at_most


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], of: int, what: str) -> list[str]:
    """Names to the left, numbers to the right; columns without any entry are left out, and it is said how many rows."""
    filled = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    widths = {place: max(columns(row[place]) for row in (heads, *rows)) for place in filled}
    made = []
    for row in (heads, *rows):
        line = "  ".join(_aligned(row[place], widths[place], is_left=place == 0) for place in filled).rstrip()
        made.append(_cut(line))
    rest = of - len(rows)
    return [*made, f"  and {rest:,} more {what if rest > 1 else what.removesuffix('s')}"] if rest else made


def _cut(line: str) -> str:
    """A line of a table that is too wide, without its end: its columns stay where they are."""
    if columns(line) <= WIDTH:
        return line
    while columns(line) >= WIDTH:
        line = line[:-1]
    return line + ELLIPSIS


def _aligned(word: str, width: int, *, is_left: bool) -> str:
    blanks = " " * (width - columns(word))
    return word + blanks if is_left else blanks + word


def _lost(plan: Plan) -> list[str]:
    reading = plan.log.reading
    lost = sum(one.rows for one in reading.dropped)
    if not lost:
        return [f"All rows of the file are used: {reading.rows:,}."]
    ordered = sorted(reading.dropped, key=lambda one: -one.rows)
    lines = [short(f"  {one.rows:,} {one.why}", WIDTH - 2) for one in ordered[:_LOST]]
    rest = len(ordered) - len(lines)
    more = [f"  and {rest} more {'reason' if rest == 1 else 'reasons'}"] if rest > 0 else []
    return [f"{lost:,} of {reading.rows:,} rows of the file were left out", *(f"  {one}" for one in lines), *more]
