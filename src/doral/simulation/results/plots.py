"""Figures of results, in Matplotlib, returned for further styling."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import EngFormatter, MaxNLocator

from doral.errors import UnknownName
from doral.pages.figure import Figure
from doral.pages.names import short
from doral.simulation.results.differences import FEWEST_RUNS, interval, t_quantile
from doral.simulation.results.outcome import METRICS
from doral.simulation.results.result import aligned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from doral._arrays import Floats, Ints
    from doral.simulation.results.outcome import Outcome
    from doral.simulation.results.result import SimulationResult

KINDS = ("reward", "regret", "difference", "share")
# Okabe and Ito's colours: safe for colour-blind readers, also in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
# Policies that overlap are still seen apart.
DASHES = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1.2)))
METRIC_WORDS = {
    "within_deadline": "returned within the deadline",
    "by_end": "returned by the end",
    "within_cutoff": "returned within the policy's cut-off",
}
GRID_COLOUR = "#d9d9d9"
_PANELS_ACROSS = 3
_LONGEST_NAME = 36  # letters
WORTHLESS = "nothing is worth its cost here:\nthe oracle spends and earns nothing"


def colour_of(position: int) -> str:
    """The colour of the policy at this position."""
    return COLOURS[position % len(COLOURS)]


def dash_of(position: int) -> str | tuple[int, tuple[float, ...]]:
    """The line style of the policy at this position."""
    return DASHES[(position + position // len(COLOURS)) % len(DASHES)]  # 32 policies look different


def plot(result: SimulationResult, *, kind: str, metric: str, scenario: str | Iterable[str] | None) -> Figure:
    """One figure, with a panel for each scenario."""
    if kind not in KINDS:
        raise UnknownName("kind of plot", kind, KINDS)
    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    places = result.named_scenarios(scenario)
    across = min(len(places), _PANELS_ACROSS)
    down = math.ceil(len(places) / across)
    policies = [one for one in result.policies if any(one in result.policies_in(place) for place in places)]
    height = 4.0 if kind != "share" else max(2.4, 1.4 + 0.3 * len(policies))
    panels = (4.4 * across, 0.85 * height * down) if len(places) > 1 else (6.4, height)
    rows = 0 if kind == "share" else math.ceil(len(policies) / _legend_columns(policies, panels[0]))
    figure = Figure(figsize=(panels[0], panels[1] + 0.24 * rows), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharey=kind == "share")
    for i, axes in enumerate(grid.ravel()):
        if i >= len(places):
            axes.set_axis_off()
            continue
        _draw(axes, result, places[i], policies, metric, kind=kind)
        if i % across:  # what the panels at the left say
            axes.set_ylabel("")
        if i + across < len(places):
            axes.set_xlabel("")
    if rows:
        _add_legend(figure, policies)
    return figure


def _draw(
    axes: Axes, result: SimulationResult, scenario: str, policies: Sequence[str], metric: str, *, kind: str
) -> None:
    if kind == "share":
        _draw_shares(axes, result, scenario, policies, metric)
    else:
        _draw_curves(axes, result, scenario, policies, metric, kind=kind)
    runs = len({one.run for one in result.outcomes if one.scenario == scenario})
    spread = f"mean of {runs} runs" if runs > 1 else "one run"
    words = f"{spread} with 95% interval" if runs >= FEWEST_RUNS else f"{spread}, no interval"
    axes.set_title(f"{_label(scenario)}\n{words}", fontsize="medium", loc="left")
    clean(axes)


def _label(name: str) -> str:
    return short(name, _LONGEST_NAME).replace("$", r"\$")  # no name is a formula


def _legend_columns(policies: Sequence[str], width_inches: float) -> int:
    """As many as fit beside each other: a letter takes about 0.085 inches, a line and its margins 0.6."""
    longest = max(len(short(one, _LONGEST_NAME)) for one in policies)
    return max(1, min(len(policies), int(width_inches / (0.6 + 0.085 * longest))))


def _add_legend(figure: Figure, policies: Sequence[str]) -> None:
    """Below all panels, where no line can run under it."""
    handles = {line.get_label(): line for axes in figure.axes for line in axes.get_lines()}
    shown = [_label(one) for one in policies]
    figure.legend(
        [handles[one] for one in shown],
        shown,
        loc="outside lower left",
        ncols=_legend_columns(policies, figure.get_figwidth()),
        frameon=False,
        handlelength=3,
    )


def clean(axes: Axes) -> None:
    """The common look: a light grid behind the data, no box around it."""
    axes.grid(color=GRID_COLOUR, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def paths_of(result: SimulationResult, scenario: str, policy: str, metric: str) -> Floats:
    """(runs, checkpoints) cumulative reward."""
    return _paths(result.of(scenario, policy), metric)[1]


def _paths(found: Sequence[Outcome], metric: str) -> tuple[Ints, Floats]:
    rounds, tables = aligned(found, [one.curve for one in found])
    return rounds, tables[:, :, METRICS.index(metric)]


def bands(paths: Floats) -> tuple[Floats, Floats, Floats]:
    """(runs, points): the mean over runs at every point, and the ends of its 95% interval (NaN from fewer than 3)."""
    runs = paths.shape[0]
    mean: Floats = paths.mean(axis=0)
    if runs < FEWEST_RUNS:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown
    reach = paths.std(axis=0, ddof=1) / np.sqrt(runs) * t_quantile(runs - 1)
    return mean, mean - reach, mean + reach


def _draw_curves(
    axes: Axes, result: SimulationResult, scenario: str, policies: Sequence[str], metric: str, *, kind: str
) -> None:
    here = result.policies_in(scenario)
    base = paths_of(result, scenario, here[0], metric)
    last = 0
    for position, policy in enumerate(policies):
        if policy not in here:
            continue
        found = result.of(scenario, policy)
        rounds, paths = _paths(found, metric)
        if kind == "regret":
            pace = rounds / rounds[-1]
            paths = np.array([one.oracle for one in found])[:, None] * pace - paths
        elif kind == "difference":
            paths = paths - base
        mean, low, high = bands(paths)
        colour = colour_of(position)
        axes.plot(rounds, mean, color=colour, linestyle=dash_of(position), linewidth=1.7, label=_label(policy))
        if not np.isnan(low).all():
            axes.fill_between(rounds, low, high, color=colour, alpha=0.15, linewidth=0)
        last = max(last, int(rounds[-1]))
    words = {
        "reward": "cumulative reward",
        "regret": "regret to the oracle",
        "difference": f"cumulative reward\nless that of {_label(here[0])}",
    }
    axes.set_xlabel("round")
    axes.set_ylabel(f"{words[kind]}\n({METRIC_WORDS[metric]})")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(0, last)
    if kind == "reward" and scenario not in result.worthless:
        axes.set_ylim(bottom=0)


def _draw_shares(axes: Axes, result: SimulationResult, scenario: str, policies: Sequence[str], metric: str) -> None:
    if scenario in result.worthless:
        axes.text(0.5, 0.5, WORTHLESS, transform=axes.transAxes, ha="center", va="center", fontsize="small")
        return
    here = result.policies_in(scenario)
    for position, policy in enumerate(policies):
        if policy not in here:
            continue
        best = np.array([one.oracle for one in result.of(scenario, policy)])
        share = interval(100.0 * result.rewards(scenario, policy, metric) / best)
        reach = None if np.isnan(share.high) else share.high - share.mean  # from few runs there is no interval
        axes.errorbar(share.mean, position, xerr=reach, fmt="o", color=colour_of(position), capsize=3)
    axes.set_yticks(range(len(policies)), [_label(one) for one in policies])
    axes.set_ylim(len(policies) - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.set_xlabel(f"% of the oracle's reward\n({METRIC_WORDS[metric]})")
