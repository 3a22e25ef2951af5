"""The page of the reproduction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from doral.experiments.kit.claim import Claim, Verdict, held
from doral.experiments.kit.extent import Extent
from doral.experiments.kit.intervals import ends_note
from doral.experiments.kit.report import quick_banner
from doral.experiments.kit.shares import METRIC
from doral.experiments.kit.verdicts_table import verdict_mark
from doral.experiments.paper import tables
from doral.experiments.paper.analysis import PaperFindings
from doral.experiments.paper.figures import View, curves, sweep_panels
from doral.experiments.paper.names import FIGURES, SCENARIO_NAMES, SHORT_TITLES, SHOWN_NAMES, PaperFigure
from doral.pages.images import as_markup
from doral.pages.numbers import count, number
from doral.pages.shell import Page, Section, asset
from doral.simulation.catalogue.paper import BUDGET, HORIZON, SCENARIOS
from doral.simulation.results.intervals import FEWEST_RUNS
from doral.simulation.results.plots import METRIC_WORDS

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
    yield Section(id="summary", title="Rewards", menu="Rewards", html=tables.summary_table(found.summary))
    yield Section(id="race", title="The race", menu="The race", html=tables.race_table(found, arms))


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
        f"{tables.claims_table(found.claims)}\n"
        "<h3>Does it depend on what counts as reward?</h3>\n"
        f"{tables.metrics_table(found.comparison)}"
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
{tables.ablation_table(found.ablation)}"""
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
