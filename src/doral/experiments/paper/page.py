"""The page of the reproduction and its tables; the whole experiment as `doral experiment reproduce` conducts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import polars as pl

from doral.experiments.kit.batches import Extent
from doral.experiments.kit.claim import METRIC, Claim, Verdict, ends_note, held, percent_difference
from doral.experiments.kit.conduct import Experiment
from doral.experiments.kit.drawing import VERDICTS_NOTE, quick_banner, verdict_mark, verdicts_table
from doral.experiments.paper.analysis import PaperFindings, accepted_percent, analyse
from doral.experiments.paper.cells import (
    ABLATION,
    FIGURES,
    SCENARIO_NAMES,
    SHORT_TITLES,
    SHOWN_NAMES,
    PaperFigure,
    cells,
)
from doral.experiments.paper.figures import FIGURE_NAMES, View, curves, figures, sweep_panels
from doral.pages.images import as_markup
from doral.pages.markup import Datum, Row, amount, table, text
from doral.pages.numbers import count, number, spread
from doral.pages.shell import Page, Section, asset
from doral.simulation.catalogue.paper import BUDGET, HORIZON, SCENARIOS
from doral.simulation.results.differences import FEWEST_RUNS
from doral.simulation.results.outcome import METRICS
from doral.simulation.results.plots import METRIC_WORDS
from doral.simulation.results.result import SimulationResult

_CLAIMS_CAPTION = f"What the paper states, decided by the 95% interval of paired runs. {VERDICTS_NOTE}"


def claims_table(claims: list[Claim]) -> str:
    """Every statement of the paper with its verdict."""
    return verdicts_table(
        claims, caption=_CLAIMS_CAPTION, places={name: f"{title} delays" for name, title in SHORT_TITLES.items()}
    )


def metrics_table(result: SimulationResult) -> str:
    """DORAL against D-ALP under each way of counting: where the choice matters, it shows here."""
    rows = []
    for scenario in SCENARIO_NAMES:
        data = [text(SHORT_TITLES[scenario], look="short", is_head=True)]
        for metric in METRICS:
            rewards = (result.rewards(scenario, policy, metric) for policy in ("doral", "d-alp"))
            found = percent_difference(*rewards)
            look = "worse" if found.high < 0 else "better" if found.low > 0 else ""
            html = (
                f"{number(found.mean, 2, signed=True)} <small>{spread(found.low, found.high, 2, signed=True)}</small>"
            )
            data.append(Datum(html=html, sort=found.mean, look=f"number {look}".strip()))
        rows.append(Row(data=data))
    caption = (
        "The paper does not say which answers its reward counts; the claims above take those within the deadline. "
        "DORAL less D-ALP in % of D-ALP's reward, for each way of counting; coloured where the interval excludes 0."
    )
    heads = ["delays", *(METRIC_WORDS[metric] for metric in METRICS)]
    return table(name="metrics-table", caption=caption, heads=heads, rows=rows)


def summary_table(summary: pl.DataFrame) -> str:
    """Rewards by scenario and policy; the page shows one metric at a time."""
    rows = [
        Row(
            metric=row["metric"],
            data=[
                text(SHORT_TITLES[row["scenario"]], look="short", is_head=True),
                text(SHOWN_NAMES[row["policy"]], look="short"),
                text(METRIC_WORDS[row["metric"]].removeprefix("returned "), look="short metric"),
                amount(row["reward_mean"]),
                amount(row["reward_se"]),
                amount(100.0 * row["reward_mean"] / row["oracle_mean"], 1),
                amount(row["regret_mean"]),
                *_difference(row),
            ],
        )
        for row in summary.iter_rows(named=True)
    ]
    caption = (
        "Mean reward per run. A click on a heading sorts; the choice of what counts, above the figures, "
        "applies here too. The oracle plays for answers within the deadline: counted otherwise, more than 100% of "
        "its reward is possible."
    )
    heads = ["delays", "policy", "what counts", "reward", "std. error", "% of oracle", "regret"]
    heads += ["less DORAL", "95% interval"]
    return table(name="summary-table", caption=caption, heads=heads, rows=rows, is_sortable=True)


def _difference(row: dict[str, Any]) -> tuple[Datum, Datum]:
    if row["policy"] == "doral":
        return Datum(html="", look="number"), Datum(html="", look="number")
    low, high = row["difference_low"], row["difference_high"]
    bounds = Datum(html=spread(low, high, signed=True), sort=low, look="number")
    return amount(row["difference_mean"], signed=True), bounds


def race_table(found: PaperFindings, arms: tuple[str, ...]) -> str:
    """What stage 1 took and found."""
    rows = []
    for row in found.race.iter_rows(named=True):
        percents = accepted_percent(found.comparison, row["scenario"], arms)
        rows.append(
            Row(
                data=[
                    text(SHORT_TITLES[row["scenario"]], look="short", is_head=True),
                    _median(row, "rounds"),
                    amount(row["spend_percent"], 1),
                    amount(row["capped_runs"]),
                    _median(row, "cutoff"),
                    *(_heat(percent) for percent in percents.values()),
                ]
            )
        )
    caption = (
        "DORAL's stage 1: medians over runs (smallest and largest), and how often each arm was accepted, in % of "
        "the runs. Arm 1 is the fastest, arm 10 the slowest. D-ALP runs the same race on the same answers."
    )
    heads = [
        "delays",
        "rounds",
        "% of spend",
        "capped runs",
        "cut-off m",
        *(arm.replace("arm-", "arm ") for arm in arms),
    ]
    return table(name="race-table", caption=caption, heads=heads, rows=rows)


def _median(row: dict[str, Any], name: str) -> Datum:
    low, high = row[f"{name}_min"], row[f"{name}_max"]
    html = f"{number(row[f'{name}_median'])} <small>({number(low)} to {number(high)})</small>"
    return Datum(html=html, sort=row[f"{name}_median"], look="number")


def _heat(percent: float) -> Datum:
    html = f'<span style="--share:{percent / 100:.2f}">{number(percent)}</span>'
    return Datum(html=html, sort=percent, look="number heat")


def ablation_table(ablation: pl.DataFrame) -> str:
    """One row per variant, one column per scenario."""
    found = {(row["variant"], row["scenario"]): row for row in ablation.iter_rows(named=True)}
    rows = [
        Row(
            data=[
                Datum(
                    html=f"{_variant_name(variant.policy.name)}<br><small>{escape(variant.says)}</small>",
                    sort=position,
                    is_head=True,
                ),
                *(_share(found[variant.policy.name, scenario]) for scenario in SCENARIO_NAMES),
            ]
        )
        for position, variant in enumerate(ABLATION)
    ]
    caption = (
        "Reward in % of the oracle's. Below it, the paired difference to the policy of the same name in the "
        "reading of this reproduction, in points with its 95% interval; coloured where the interval excludes 0."
    )
    heads = ["variant", *(SHORT_TITLES[scenario] for scenario in SCENARIO_NAMES)]
    return table(name="ablation-table", caption=caption, heads=heads, rows=rows, is_sortable=True)


def _variant_name(name: str) -> str:
    preset, _, changed = name.partition("(")
    base, _, reading = preset.partition("/")
    shown = escape(SHOWN_NAMES[base])
    if reading:
        return f"{shown}, as printed"
    return f"{shown} with <code>{escape(changed.removesuffix(')'))}</code>" if changed else f"<strong>{shown}</strong>"


def _share(row: dict[str, Any]) -> Datum:
    html = number(row["share_percent"], 1)
    low, high = row["difference_points_low"], row["difference_points_high"]
    look = ""
    if row["difference_points"] is not None:
        look = "" if low is None else "worse" if high < 0 else "better" if low > 0 else ""
        interval = "" if low is None else " " + spread(low, high, 2, signed=True)
        html += f"<br><small>{number(row['difference_points'], 2, signed=True)}{interval}</small>"
    return Datum(html=html, sort=row["share_percent"], look=f"number {look}".strip())


_GROUPS = {
    "1": "With similar delays, DORAL and D-ALP overlap",
    "2": "With diverse Pareto delays, DORAL earns more than D-ALP",
    "3": "With diverse geometric delays, DORAL and D-ALP come close",
    "4": "DORAL earns more than D-LinUCB and Random everywhere",
    "5": "DORAL starts late: its stage 1 costs reward at the start",
}
_BY_HORIZON = "Share of the oracle's reward by horizon"
_BY_ACCEPTED = "Share of the oracle's reward by number of accepted arms"


def page(found: PaperFindings, extent: Extent, images: Mapping[str, bytes]) -> Page:
    """The whole page; its figures are drawings in it, and not the images that lie beside it."""
    return Page(
        headline=f"{held(found.claims)} of {len(found.claims)} claims hold",
        kicker="Reproduction of “Budgeted Recommendation with Delayed Feedback” (Liu and Maghsudi)",
        banner=quick_banner(extent, divided="budget and horizon", subject="the paper"),
        answer=_answer(found, extent),
        sections=[*_sections(found, extent), *_sides(found, extent)],
        settings=_settings(extent),
        scripts=f"<script>\n{asset('page.js', package=__package__)}\n{asset('sorting.js')}\n</script>",
    )


def _sections(found: PaperFindings, extent: Extent) -> Iterable[Section]:
    arms = SCENARIOS[SCENARIO_NAMES[0]].problem.arm_names
    yield Section(id="claims", title="The claims", menu="Claims", html=_claims(found))
    yield Section(id="figures", title="The figures", menu="Figures", html=_figures(found, extent))
    yield Section(id="summary", title="Rewards", menu="Rewards", html=summary_table(found.summary))
    yield Section(id="race", title="The race", menu="The race", html=race_table(found, arms))


def _answer(found: PaperFindings, extent: Extent) -> str:
    shares = [
        100.0 * row["reward_mean"] / row["oracle_mean"]
        for row in found.summary.filter(policy="doral", metric=METRIC).iter_rows(named=True)
    ]
    printed = ""
    if found.ablation is not None and found.literal_claims is not None:
        literal = found.ablation.filter(variant="doral/literal")["share_percent"].to_list()
        printed = (
            f" The text as printed, run word for word, reaches {_range(literal, 0)}%, and {held(found.literal_claims)} "
            f"of the {len(found.literal_claims)} claims about final rewards hold with it. Where the formulas of the "
            "paper contain slips, this reproduction uses a corrected reading; the ablation shows what each piece is "
            "worth."
        )
    paragraph = (
        "Four policies played the four settings of the paper on the same draws, "
        f"{count(extent.runs, 'run', 'runs')} each. DORAL reached {_range(shares, 0)}% of what an oracle with "
        f"the same budget would earn.{printed}"
    )
    items = "".join(_group(words, [one for one in found.claims if one.id[0] == key]) for key, words in _GROUPS.items())
    return f'<p>{paragraph}</p><ul class="answer">{items}</ul>'


def _group(words: str, claims: list[Claim]) -> str:
    holding = held(claims)
    verdicts = {claim.verdict for claim in claims}
    worst: Verdict = "fails" if "fails" in verdicts else "not shown" if "not shown" in verdicts else "holds"
    sign = "\N{BALLOT X}" if worst == "fails" else "?"
    mark = verdict_mark(worst, f"{sign} {holding} of {len(claims)} hold" if 0 < holding < len(claims) else "")
    estimates = _range([claim.estimate for claim in claims], 2 if claims[0].id[0] in "123" else 0, signed=True)
    return f"<li>{mark}<span>{escape(words)} <small>({estimates}%)</small></span></li>"


def _range(values: list[float], digits: int, *, signed: bool = False) -> str:
    low, high = (number(end, digits, signed=signed) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _claims(found: PaperFindings) -> str:
    return (
        f"{claims_table(found.claims)}\n"
        "<h3>Does it depend on what counts as reward?</h3>\n"
        f"{metrics_table(found.comparison)}"
    )


def _figures(found: PaperFindings, extent: Extent) -> str:
    drawn = "\n".join(_figure(found, one) for one in FIGURES)
    return f"""<p>{_figures_note(extent)}</p>
<form class="controls" aria-label="What the figures show">
<fieldset><legend>What counts as reward</legend>{_metric_buttons()}</fieldset>
<fieldset><legend>Shown</legend>
<label><input type="radio" name="view" value="reward" checked> cumulative reward</label>
<label><input type="radio" name="view" value="difference"> difference to DORAL</label>
</fieldset>
<fieldset><legend>Policies</legend>{_policy_boxes()}</fieldset>
</form>
<div class="grid">{drawn}</div>"""


def _figures_note(extent: Extent) -> str:
    spread = ends_note(
        extent.runs,
        otherwise=(
            "Bands are 95% intervals of the mean. Rewards and features are drawn anew for every run, which makes the "
            "bands of the rewards wide; all policies share the draws of a run, so their differences are much sharper."
        ),
    )
    return (
        f"Lines are means of {count(extent.runs, 'run', 'runs')}. {spread} "
        "D-LinUCB plays every round until its budget is gone, hence its early lead and its flat end."
    )


def _policy_boxes() -> str:
    return "".join(
        f'<label><input type="checkbox" name="policy" value="{position}" checked> {escape(shown)}</label>'
        for position, shown in enumerate(SHOWN_NAMES.values())
    )


def _metric_buttons() -> str:
    return "".join(
        f'<label><input type="radio" name="metric" value="{metric}"{" checked" if metric == METRIC else ""}> '
        f"{escape(words)}</label>"
        for metric, words in METRIC_WORDS.items()
    )


def _figure(found: PaperFindings, one: PaperFigure) -> str:
    """All variants of a figure, of which one is shown."""
    rows = found.summary.filter(scenario=one.scenario, metric=METRIC).iter_rows(named=True)
    ends = ", ".join(f"{SHOWN_NAMES[row['policy']]} {number(row['reward_mean'])}" for row in rows)
    views: tuple[tuple[View, str], ...] = (("reward", "Cumulative reward"), ("difference", "Difference to DORAL"))
    drawn = "".join(
        _variant(
            as_markup(
                curves(found, one, metric=metric, view=view),
                name=f"{one.name}-{metric}-{view}",
                alt=f"{one.title}. {words} by round, {METRIC_WORDS[metric]}. In the end: {ends}.",
            ),
            metric=metric,
            view=view,
        )
        for metric in METRIC_WORDS
        for view, words in views
    )
    return (
        f'<figure id="{one.name}"><p class="plot-title">{escape(one.title)}</p>{drawn}'
        f"<figcaption>Reward within the deadline, also after the last round: {escape(ends)}.</figcaption></figure>"
    )


def _variant(drawing: str, *, metric: str, view: View) -> str:
    hidden = "" if (metric, view) == (METRIC, "reward") else " hidden"
    return f'<div class="variant" data-metric="{metric}" data-view="{view}"{hidden}>{drawing}</div>'


def _sides(found: PaperFindings, extent: Extent) -> Iterable[Section]:
    if found.ablation is None:
        return
    drawn = {
        name: as_markup(figure, name=name, alt=_BY_ACCEPTED if name == "accept" else _BY_HORIZON)
        for name, figure in sweep_panels(found).items()
    }
    panels = "".join(
        f'<figure id="horizon-{position}"><p class="plot-title">{_sentence_case(SHORT_TITLES[scenario])}</p>'
        f"{drawn[f'horizon-{position}']}</figure>"
        for position, scenario in enumerate(SCENARIO_NAMES, start=1)
    )
    runs = count(extent.side_runs, "run", "runs")
    is_few = extent.side_runs < FEWEST_RUNS
    bands = "which is too few for intervals" if is_few else "bands are 95% intervals"
    sweeps = f"""<h3>The horizon T</h3>
<p>The paper gives the budget, not the horizon ({runs} per point, {bands}). The longer
the horizon, the fewer arrivals can be served, and the more the choice among them matters.</p>
<div class="grid small">{panels}</div>
<h3>A', how many arms the race accepts</h3>
<p>Few accepted arms leave nothing to choose from; many let slow ones in ({runs} per point).</p>
<figure id="accept">{drawn["accept"]}</figure>"""
    yield Section(id="sweeps", title="Sweeps over what the paper leaves open", menu="Sweeps", html=sweeps)
    ablation = f"""<p>DORAL with one piece at a time exchanged, mostly for what the paper prints, and every policy as
printed throughout. {runs} per variant, paired.</p>
{ablation_table(found.ablation)}"""
    title = "Ablation: what each piece of the reading is worth"
    yield Section(id="ablation", title=title, menu="Ablation", html=ablation)


def _sentence_case(words: str) -> str:
    return words[0].upper() + words[1:]  # what is written large stays so


def _settings(extent: Extent) -> list[tuple[str, str]]:
    return [
        ("Budget B", number(BUDGET / extent.shrink)),
        ("Horizon T", f"{number(HORIZON // extent.shrink)} rounds (not given in the paper)"),
        ("Contexts, arms, features", "10, 10, 5; shares of the contexts as printed"),
        (
            "Rewards",
            "features and parameters uniform on (0, 1), drawn anew for every run; noise with standard deviation 0.1",
        ),
        ("Deadline", "500 rounds"),
        ("A'", "5 (not given in the paper)"),
        ("Runs", f"{extent.runs}; sweeps and ablation {extent.side_runs if extent.with_sides else 'not run'}"),
    ]


EXPERIMENT: Experiment[Extent, PaperFindings] = Experiment(
    cells=cells, analyse=analyse, figures=figures, figure_names=FIGURE_NAMES, page=page
)
