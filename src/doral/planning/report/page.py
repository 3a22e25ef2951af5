"""The answer of a plan in one page: a sentence, one chart that shows it, and everything behind it in folds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from doral.experiments.kit.batches import versions
from doral.logs.clock import Clock
from doral.pages.markup import Datum, Row, table, text
from doral.pages.names import printable, short
from doral.pages.numbers import DASH, MINUS, count
from doral.pages.shell import Page, Section, asset, duration_words, whole
from doral.planning.facts import number, percent
from doral.planning.plan import Plan
from doral.planning.report.drawing import Drawing
from doral.planning.report.folder import start_command
from doral.planning.report.tables import How, Shown, Table

MOST_ROWS = 50
_UNFOLDED = 20  # rows; a page with more open ones is scrolled and not read
_LONGEST, _LONGEST_NAME = 300, 60  # characters of a cell


def datum_table(found: Table, clock: Clock) -> str:
    """Markup of a table; a long one is folded, and of what is left out it is said where it is."""
    shown = found.shown or tuple(Shown(head=key, key=key) for key in found.keys)
    rows = found.rows if found.on_page is None else found.on_page
    rest = len(rows) - MOST_ROWS
    more = f" The first {MOST_ROWS} of {len(rows):,} rows; all are in {found.name}.csv." if rest > 0 else ""
    html = table(
        name=f"{found.name}-table",
        caption=escape(found.caption + more),
        heads=[one.head for one in shown],
        rows=[
            Row(data=[_datum(row, one, clock, is_head=place == 0) for place, one in enumerate(shown)])
            for row in rows[:MOST_ROWS]
        ],
        is_sortable=len(rows) > 2 and bool(found.shown),
    )
    if len(rows) <= _UNFOLDED:
        return html
    summary = f"{found.name.capitalize()}: {f'{MOST_ROWS} of ' if rest > 0 else ''}{len(rows):,} rows"
    return f"<details><summary>{escape(summary)}</summary>{html}</details>"


def _datum(row: dict[str, Any], one: Shown, clock: Clock, *, is_head: bool) -> Datum:
    value = row[one.key]
    if one.how == "name":
        full = printable(DASH if value is None else str(value))
        brief = short(full, _LONGEST_NAME)
        title = full if brief != full else ""
        return Datum(html=escape(brief), sort=full.lower(), look="words", is_head=is_head, title=title)
    if one.how == "text":
        return text(DASH if value is None else short(str(value), _LONGEST), look="words", is_head=is_head)
    if one.how == "yes":
        return text(written(value, one.how, clock), is_head=is_head)
    html = escape(written(value, one.how, clock))
    if one.ends is not None and value is not None:
        low, high = (row[key] for key in one.ends)
        if low is not None:
            ends = f"{written(low, one.how, clock)} to {'more' if high is None else written(high, one.how, clock)}"
            html = f"{html} <small>{escape(ends)}</small>"
    return Datum(
        html=html, sort=None if value is None else float(value), look="" if is_head else "number", is_head=is_head
    )


def written(value: Any, how: How, clock: Clock) -> str:
    """A value as people read it; a dash where it is not known."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return DASH
    if how == "yes":
        return "yes" if value else "no"
    if how == "count":
        return f"{value:,}"
    if how == "share":
        return _real_minus(percent(value))
    if how == "times":
        return _real_minus(clock.shown(value * clock.size_of(clock.told)))
    if how == "number":
        return _real_minus(number(value))
    if how == "signed":
        return _real_minus(f"+{number(value)}" if value > 0 else number(value))
    return printable(str(value))


def _real_minus(words: str) -> str:
    return words.replace("-", MINUS, 1) if words.startswith("-") else words


# Folds: a title, the figures and the tables in it.
_FOLDS: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("policies", "What each policy would earn", ("earnings",), ("policies",)),
    ("budget", "What more or less money would bring", ("cost_gain",), ("more",)),
    ("waiting", "When answers come, and how long to wait", ("returns", "outcomes", "waiting"), ("waiting",)),
    ("arms", "Arms", (), ("arms", "costs")),
    ("contexts", "Who arrives, and what arms bring to whom", ("values", "arrivals"), ("contexts", "values", "nothing")),
    ("feedback", "The kind of feedback", (), ("findings", "tails")),
    ("evaluation", "Estimates from the rows of the log alone", (), ("evaluation",)),
)
_EVALUATION = (
    "Off-policy estimators weight the rows in which a rule would have done what was done; they need no simulation, and "
    "value rules that do not learn."
)


def page(plan: Plan, *, drawn: Sequence[Drawing], pictures: Mapping[str, str], tables: Mapping[str, Table]) -> str:
    """The whole page: the answer, one chart, what was assumed, and all details in folds. `pictures` are SVG by name."""
    log = plan.log
    shown = Page(
        headline=printable(plan.answer[0]),
        kicker=(
            f"A plan from {short(log.name, 60)}: {len(log):,} arrivals over {log.clock.shown(log.span)}, "
            f"{count(len(log.arms), 'arm', 'arms')}, {count(len(log.contexts), 'context', 'contexts')}"
        ),
        banner="",
        answer=_answer(plan),
        sections=(),
        scripts=f"<script>\n{asset('sorting.js')}\n</script>",
        css=asset("page.css", package="doral.planning.report"),
    )
    return whole(shown, list(_sections(plan, {one.name: one for one in drawn}, pictures, tables)))


def _answer(plan: Plan) -> str:
    rest = plan.answer[1:]
    return f'<ul class="lead">{"".join(f"<li>{_words(one)}</li>" for one in rest)}</ul>' if rest else ""


def _words(text: str) -> str:
    return escape(printable(text))


def _list(sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{_words(one)}</li>" for one in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _sections(
    plan: Plan, drawn: Mapping[str, Drawing], pictures: Mapping[str, str], tables: Mapping[str, Table]
) -> Iterable[Section]:
    if "budget" in pictures:
        one = drawn["budget"]
        html = f'<figure class="chart">{pictures["budget"]}<figcaption>{_words(one.sees)}</figcaption></figure>'
        yield Section(id="chart", title=one.title, menu="Chart", html=html)
    yield Section(id="recommendation", title="What to run, and why", menu="What to run", html=_advice(plan))
    yield Section(id="assumed", title="What was assumed", menu="Assumptions", html=_assumed(plan))
    folds = [_fold(plan, one, drawn, pictures, tables) for one in _FOLDS]
    folds.append(_folded("reading", "How the file was read", _reading(plan, tables)))
    folds.append(_folded("made", "How this was made", _made(plan)))
    yield Section(id="details", title="Details", menu="Details", html="\n".join(one for one in folds if one))


def _fold(
    plan: Plan,
    fold: tuple[str, str, tuple[str, ...], tuple[str, ...]],
    drawn: Mapping[str, Drawing],
    pictures: Mapping[str, str],
    tables: Mapping[str, Table],
) -> str:
    name, title, figures, wanted = fold
    parts = [_picture(drawn[one], pictures[one]) for one in figures if one in pictures]
    html = _detail(plan, name, [tables[one] for one in wanted if one in tables])
    if parts:
        html += '\n<div class="figures">\n' + "\n".join(parts) + "\n</div>"
    return _folded(name, title, html) if html else ""


def _folded(name: str, title: str, html: str) -> str:
    return f'<details class="fold" id="{name}-details"><summary>{escape(title)}</summary>\n{html}\n</details>'


def _assumed(plan: Plan) -> str:
    """What the reader took for granted, then what the plan cannot know."""
    assumed = [one.sentence for one in plan.log.reading.assumptions]
    return _list([*assumed, *plan.recommendation.limits]) or "<p>Nothing beyond the intervals above.</p>"


def _advice(plan: Plan) -> str:
    advised = plan.recommendation
    return (
        f'<div class="advice"><p><strong>{_words(advised.sentence)}</strong></p>{_list(advised.reasons)}'
        f"{_start(plan)}</div>"
    )


def _start(plan: Plan) -> str:
    """How to begin, with what the log knows or without it."""
    if plan.recommendation.policy is None:
        return ""
    if plan.log.clock.unit == "units":
        return (
            "<p>A campaign lives in real time: say what the times of the log count (<code>--time-unit days</code>) to "
            "start one.</p>"
        )
    return (
        "<p>To start a campaign that knows what the log knows: <code>doral plan</code> as below, with "
        "<code>--create NAME --storage URL</code>. To start one from nothing, in the folder of this page:</p>"
        f"<pre><code>{escape(start_command(plan))}</code></pre>"
    )


def _picture(one: Drawing, picture: str) -> str:
    return (
        f'<div id="figure-{one.name}"><h3>{escape(one.title)}</h3><p>{escape(one.sees)}</p>\n'
        f"<figure>{picture}</figure></div>"
    )


def _reading(plan: Plan, tables: Mapping[str, Table]) -> str:
    reading = plan.log.reading
    lost = sum(one.rows for one in reading.dropped)
    told = f"{reading.rows:,} rows were read"
    told += f", {lost:,} of them left out, for reasons that are listed." if lost else ", and all of them are used."
    parts = [f"<p>{told}</p>", _list(reading.notes)]
    parts += [datum_table(tables[name], plan.log.clock) for name in ("columns", "dropped") if name in tables]
    if reading.unused:
        names = ", ".join(f"<code>{escape(short(one, 60))}</code>" for one in reading.unused[:40])
        more = f" and {len(reading.unused) - 40:,} more" if len(reading.unused) > 40 else ""
        parts.append(f"<p>Columns that were not used: {names}{more}.</p>")
    return "\n".join(parts)


def _detail(plan: Plan, name: str, found: Sequence[Table]) -> str:
    """Sentences first, then tables."""
    said: dict[str, tuple[str, ...]] = {
        "policies": (plan.earnings.sentence,) if plan.earnings is not None else (),
        "waiting": (plan.waiting.sentence, plan.waiting.deadline.sentence),
        "budget": (
            *((plan.spending.sentence,) if plan.spending is not None else ()),
            *(one.sentence for one in plan.more),
        ),
        "arms": (plan.responsiveness.sentence,),
        "contexts": tuple(one.sentence for one in plan.nothing if one.context is None),
        "feedback": tuple(one.sentence for one in plan.tails if one.arm is None),
        "evaluation": (_EVALUATION,) if plan.evaluation is not None else (),
    }
    sentences = tuple(dict.fromkeys(one for one in said[name] if one))
    if not sentences and not found:
        return ""
    made = [f"<p>{_words(sentences[0])}</p>" if len(sentences) == 1 else _list(sentences)]
    made += [datum_table(table, plan.log.clock) for table in found]
    return "\n".join(made)


def _made(plan: Plan) -> str:
    rows = [
        ("Seed", str(plan.seed)),
        ("Time taken", duration_words(plan.took_s)),
        *((f"Version of {name}", one) for name, one in versions().items()),
    ]
    command = f"<pre><code>{_words(plan.command)}</code></pre>" if plan.command else ""
    table = Table(
        name="versions",
        caption="What it was made with; the same seed and versions give the same numbers.",
        keys=("what", "value"),
        rows=[{"what": what, "value": value} for what, value in rows],
    )
    return (
        f"{command}<p>Next to this page lie the figures (PNG, PDF), all tables in full (CSV), <code>plan.json</code> "
        "with everything that is told here, <code>problem.json</code> and <code>policy.json</code>.</p>"
        + datum_table(table, plan.log.clock)
    )
