"""The tables of the page."""

from __future__ import annotations

from html import escape
from typing import Any

import polars as pl

from doral.experiments.kit.claim import Claim, percent_difference
from doral.experiments.kit.verdicts_table import VERDICTS_NOTE, verdicts_table
from doral.experiments.paper.analysis import PaperFindings, accepted_percent
from doral.experiments.paper.names import SCENARIO_NAMES, SHORT_TITLES, SHOWN_NAMES
from doral.experiments.paper.variants import ABLATION
from doral.pages.markup import Datum, Row, amount, table, text
from doral.pages.numbers import number, spread
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
