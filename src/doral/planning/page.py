"""The answer of a plan in one page: what to do in large type, then figures, then everything behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from doral.experiments.kit.settings import versions
from doral.pages.images import PNG_DOTS_PER_INCH, as_data
from doral.pages.names import printable, short
from doral.pages.numbers import count
from doral.pages.shell import Page, Section, asset, duration_words, whole
from doral.planning.drawn import Drawing
from doral.planning.folder import start_command
from doral.planning.page_tables import datum_table
from doral.planning.plan import Plan
from doral.planning.table import Table

_CSS_DOTS_PER_INCH = 96
_DETAILS = (
    ("policies", "Policies", ("policies", "pairs")),
    ("waiting", "Waiting", ("waiting",)),
    ("budget", "Budget", ("more",)),
    ("arms", "Arms", ("arms", "costs")),
    ("contexts", "Contexts", ("contexts", "values", "nothing")),
    ("feedback", "The kind of feedback", ("findings", "tails")),
    ("evaluation", "What the log says by itself", ("evaluation",)),
)


def page(
    plan: Plan,
    *,
    drawn: Sequence[Drawing],
    images: Mapping[str, bytes],
    dark: Mapping[str, bytes],
    tables: Mapping[str, Table],
) -> str:
    """The whole page; `images` are the figures as files, `dark` those for readers in the dark, by name."""
    log = plan.log
    shown = Page(
        headline=f"A plan from {short(log.name, 60)}",
        kicker=(
            f"{len(log):,} arrivals over {log.clock.shown(log.span)}, {count(len(log.arms), 'arm', 'arms')}, "
            f"{count(len(log.contexts), 'context', 'contexts')}"
        ),
        banner="",
        answer=_answer(plan),
        sections=(),
        scripts=f"<script>\n{asset('sorting.js')}\n</script>",
        css=asset("page.css", package="doral.planning"),
    )
    return whole(shown, list(_sections(plan, drawn, images, dark, tables)))


def _answer(plan: Plan) -> str:
    return f'<ul class="lead">{"".join(f"<li>{_words(one)}</li>" for one in plan.answer)}</ul>'


def _words(text: str) -> str:
    return escape(printable(text))


def _list(sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{_words(one)}</li>" for one in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _sections(
    plan: Plan,
    drawn: Sequence[Drawing],
    images: Mapping[str, bytes],
    dark: Mapping[str, bytes],
    tables: Mapping[str, Table],
) -> Iterable[Section]:
    yield Section(id="recommendation", title="What to run, and why", menu="What to run", html=_advice(plan))
    if drawn:
        pictures = "\n".join(_picture(one, images, dark) for one in drawn)
        html = f'<div class="figures">\n{pictures}\n</div>'
        yield Section(id="figures", title="What the log shows", menu="Figures", html=html)
    yield Section(id="reading", title="How the file was read", menu="Reading", html=_reading(plan, tables))
    for name, title, wanted in _DETAILS:
        html = _detail(plan, name, [tables[one] for one in wanted if one in tables])
        if html:
            yield Section(id=f"{name}-details", title=title, menu=title, html=html)
    yield Section(id="limits", title="Limits", menu="Limits", html=_limits(plan))
    yield Section(id="made", title="How this was made", menu="How it was made", html=_made(plan))


def _advice(plan: Plan) -> str:
    advised = plan.recommendation
    return (
        f'<div class="advice"><p><strong>{_words(advised.sentence)}</strong></p>{_list(advised.reasons)}'
        f"{_start(plan)}</div>"
    )


def _start(plan: Plan) -> str:
    """How to begin, with what the log knows or without it."""
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


def _picture(one: Drawing, images: Mapping[str, bytes], dark: Mapping[str, bytes]) -> str:
    light = images[f"{one.name}.png"]
    width = round(int.from_bytes(light[16:20], "big") * _CSS_DOTS_PER_INCH / PNG_DOTS_PER_INCH)
    return (
        f'<div id="figure-{one.name}"><h3>{escape(one.title)}</h3><p>{escape(one.sees)}</p>\n'
        f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{as_data(dark[one.name])}">'
        f'<img alt="{escape(one.alt)}" width="{width}" src="{as_data(light)}"></picture></figure></div>'
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
        "evaluation": tuple(plan.evaluation.text().splitlines()) if plan.evaluation is not None else (),
    }
    sentences = tuple(dict.fromkeys(one for one in said[name] if one))
    if not sentences and not found:
        return ""
    made = [f"<p>{_words(sentences[0])}</p>" if len(sentences) == 1 else _list(sentences)]
    made += [datum_table(table, plan.log.clock) for table in found]
    return "\n".join(made)


def _limits(plan: Plan) -> str:
    return _list(plan.recommendation.limits) or "<p>None beyond the intervals above are known.</p>"


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
