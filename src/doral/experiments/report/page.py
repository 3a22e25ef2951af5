"""Puts the report together."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

from plotly.offline import get_plotlyjs

from doral.environments.paper import BUDGET, HORIZON
from doral.experiments.analysis import Analysis
from doral.experiments.claims import METRIC, SHOWN_NAMES, Claim
from doral.experiments.paper import FIGURES, SCENARIO_NAMES, SHORT_TITLES, Plan
from doral.experiments.report import tables
from doral.experiments.report.markup import number
from doral.experiments.report.plots import as_script, plot_data
from doral.simulation.plots import METRIC_WORDS

_GROUPS = {
    "1": "With similar delays, DORAL and D-ALP overlap",
    "2": "With diverse Pareto delays, DORAL earns more than D-ALP",
    "3": "With diverse geometric delays, DORAL and D-ALP come close",
    "4": "DORAL earns more than D-LinUCB and Random everywhere",
    "5": "DORAL starts late: its stage 1 costs reward at the start",
}


_BY_HORIZON = "Share of the clairvoyant's reward by horizon"
_BY_ACCEPTED = "Share of the clairvoyant's reward by number of accepted arms"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the report tells beyond the numbers."""

    plan: Plan
    seed: int
    command: str
    versions: Mapping[str, str]
    cpu_count: int
    time_taken_s: float
    blocks: int
    kept_blocks: int
    arms: tuple[str, ...]


def _asset(name: str) -> str:
    return files("doral.experiments.report").joinpath(name).read_text(encoding="utf-8")


def build(analysis: Analysis, facts: Facts, images: Mapping[str, bytes]) -> str:
    """The whole page; `images` are the figures as files, for readers without scripts."""
    held = sum(claim.holds for claim in analysis.claims)
    headline = f"{held} of {len(analysis.claims)} claims hold"
    with_sides = analysis.ablation is not None
    return Template(_asset("page.html")).substitute(
        title=f"{headline} \N{MIDDLE DOT} DORAL",
        css=_asset("page.css"),
        headline=headline,
        banner=_banner(facts.plan),
        answer=_answer(analysis, facts),
        contents=_contents(with_sides=with_sides),
        claims=tables.claims_table(analysis.claims),
        metrics_table=tables.metrics_table(analysis.comparison),
        figures_note=_figures_note(facts.plan),
        metrics=_metric_choice(),
        figures="\n".join(_figure(analysis, one.name, one.scenario, one.title, images) for one in FIGURES),
        summary=tables.summary_table(analysis.summary),
        race=tables.race_table(analysis, facts.arms),
        sides=_sides(analysis, facts, images) if with_sides else "",
        settings=_settings(facts),
        data=as_script(plot_data(analysis)),
        plotly=_inlined(get_plotlyjs()),
        script=_asset("page.js"),
    )


def _inlined(script: str) -> str:
    """A script that cannot end its element early."""
    return script.replace("</script", "<\\/script")


def _banner(plan: Plan) -> str:
    if not plan.is_quick:
        return ""
    return (
        f'<p class="banner" role="note">A quick try-out: {plan.runs} runs, with budget and horizon divided by '
        f"{plan.shrink}. It shows that everything works; nothing about the paper follows from it.</p>"
    )


def _answer(analysis: Analysis, facts: Facts) -> str:
    shares = [
        100.0 * row["reward_mean"] / row["clairvoyant_mean"]
        for row in analysis.summary.filter(policy="doral", metric=METRIC).iter_rows(named=True)
    ]
    printed = ""
    if analysis.ablation is not None and analysis.literal_claims is not None:
        held = sum(claim.holds for claim in analysis.literal_claims)
        literal = analysis.ablation.filter(variant="doral/literal")["share_percent"].to_list()
        printed = (
            f" The text as printed, run word for word, reaches {_range(literal, 0)}%, and {held} of the "
            f"{len(analysis.literal_claims)} claims about final rewards hold with it. Where the formulas of the paper "
            "contain slips, this reproduction uses a corrected reading; the ablation shows what each piece is worth."
        )
    paragraph = (
        f"Four policies played the four settings of the paper on the same draws, {facts.plan.runs} "
        f"run{'s' if facts.plan.runs != 1 else ''} each. DORAL reached {_range(shares, 0)}% of what a clairvoyant with "
        f"the same budget would earn.{printed}"
    )
    items = "".join(
        _group(words, [one for one in analysis.claims if one.id[0] == key]) for key, words in _GROUPS.items()
    )
    return f'<p>{paragraph}</p><ul class="answer">{items}</ul>'


def _group(words: str, claims: list[Claim]) -> str:
    held = sum(claim.holds for claim in claims)
    if held == len(claims):
        mark = '<span class="mark good">\N{CHECK MARK} holds</span>'
    else:
        partly = f"\N{BALLOT X} {held} of {len(claims)} hold" if held else "\N{BALLOT X} not reproduced"
        mark = f'<span class="mark bad">{partly}</span>'
    estimates = _range([claim.estimate for claim in claims], 2 if claims[0].id[0] in "123" else 0, signed=True)
    return f"<li>{mark}<span>{escape(words)} <small>({estimates}%)</small></span></li>"


def _range(values: list[float], digits: int, *, signed: bool = False) -> str:
    low, high = (number(end, digits, signed=signed) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _contents(*, with_sides: bool) -> str:
    sections = {"claims": "Claims", "figures": "Figures", "summary": "Rewards", "race": "The race"}
    if with_sides:
        sections |= {"sweeps": "Sweeps", "ablation": "Ablation"}
    sections["settings"] = "Settings"
    return "".join(f'<li><a href="#{name}">{words}</a></li>' for name, words in sections.items())


def _figures_note(plan: Plan) -> str:
    spread = "Bands are 95% intervals of the mean." if plan.runs > 1 else "One run has no interval."
    return (
        f"Lines are means of {plan.runs} runs. {spread} Rewards and features are drawn anew for every run, which makes "
        "the bands of the rewards wide; all policies share the draws of a run, so their differences are much sharper. "
        "A click in the legend hides a policy. D-LinUCB plays every round until its budget is gone, hence its early "
        "lead and its flat end."
    )


def _metric_choice() -> str:
    return "".join(
        f'<label><input type="radio" name="metric" value="{metric}"{" checked" if metric == METRIC else ""}> '
        f"{escape(words)}</label>"
        for metric, words in METRIC_WORDS.items()
    )


def _image(name: str, words: str, images: Mapping[str, bytes]) -> str:
    content = base64.b64encode(images[f"{name}.png"]).decode()
    return f'<noscript><img alt="{escape(words)}" src="data:image/png;base64,{content}"></noscript>'


def _figure(analysis: Analysis, name: str, scenario: str, title: str, images: Mapping[str, bytes]) -> str:
    rows = analysis.summary.filter(scenario=scenario, metric=METRIC).iter_rows(named=True)
    ends = ", ".join(f"{SHOWN_NAMES[row['policy']]} {number(row['reward_mean'])}" for row in rows)
    words = f"{title}. Cumulative reward by round. At the end: {ends}."
    return (
        f'<figure><div class="plot" id="{name}" role="img" aria-label="{escape(words)}"></div>'
        f"{_image(name, words, images)}"
        f"<figcaption>Reward within the deadline at the end: {escape(ends)}.</figcaption></figure>"
    )


def _sides(analysis: Analysis, facts: Facts, images: Mapping[str, bytes]) -> str:
    assert analysis.ablation is not None
    panels = "".join(
        f'<figure><div class="plot low" id="horizon-{position}" role="img" '
        f'aria-label="{_BY_HORIZON}, {SHORT_TITLES[scenario]} delays"></div></figure>'
        for position, scenario in enumerate(SCENARIO_NAMES, start=1)
    )
    runs = f"{facts.plan.side_runs} run{'s' if facts.plan.side_runs != 1 else ''}"
    return f"""<section id="sweeps" aria-labelledby="sweeps-title">
<h2 id="sweeps-title">Sweeps over what the paper leaves open</h2>
<h3>The horizon T</h3>
<p>The paper gives the budget, not the horizon ({runs} per point, bands are 95% intervals). The longer
the horizon, the fewer arrivals can be served, and the more the choice among them matters.</p>
<div class="grid small">{panels}</div>{_image("sweep_horizon", _BY_HORIZON, images)}
<h3>A', how many arms the race accepts</h3>
<p>Few accepted arms leave nothing to choose from; many let slow ones in ({runs} per point).</p>
<figure><div class="plot" id="accept" role="img" aria-label="{_BY_ACCEPTED}"></div>
{_image("sweep_accept", _BY_ACCEPTED, images)}</figure>
</section>
<section id="ablation" aria-labelledby="ablation-title">
<h2 id="ablation-title">Ablation: what each piece of the reading is worth</h2>
<p>DORAL with one piece at a time exchanged, mostly for what the paper prints, and every policy as printed throughout.
{runs} per variant, paired.</p>
{tables.ablation_table(analysis.ablation)}
</section>"""


def _settings(facts: Facts) -> str:
    plan = facts.plan
    kept = f", {facts.kept_blocks} of {facts.blocks} blocks came from an earlier call" if facts.kept_blocks else ""
    rows = [
        ("Budget B", number(BUDGET / plan.shrink)),
        ("Horizon T", f"{number(HORIZON // plan.shrink)} rounds (not given in the paper)"),
        ("Contexts, arms, features", "10, 10, 5; shares of the contexts as printed"),
        (
            "Rewards",
            "features and parameters uniform on (0, 1), drawn anew for every run; noise with standard deviation 0.1",
        ),
        ("Deadline", "500 rounds"),
        ("A'", "5 (not given in the paper)"),
        ("Runs", f"{plan.runs}; sweeps and ablation {plan.side_runs if plan.with_sides else 'not run'}"),
        ("Seed", str(facts.seed)),
        *((f"Version of {name}", one) for name, one in facts.versions.items()),
        ("Cores", str(facts.cpu_count)),
        ("Time taken", f"{_duration(facts.time_taken_s)}{kept}"),
    ]
    command = f"<pre><code>{escape(facts.command)}</code></pre>"
    return (
        f"<p>The same numbers, to the bit, whatever the number of cores:</p>{command}"
        "<p>Next to this page lie the figures (PNG, PDF), all tables (CSV), <code>claims.json</code>, and "
        "<code>settings.json</code> with every option of every policy and scenario.</p>"
        + tables.plain_table("settings-table", "What was run, and with what.", ["setting", "value"], rows)
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
