"""Figures of results, in Matplotlib, returned for further styling and never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from doral.errors import InvalidValue, UnknownName
from doral.simulation.outcome import METRICS
from doral.simulation.result import interval, t_quantile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from doral._arrays import Floats
    from doral.simulation.result import SimulationResult

KINDS = ("reward", "regret", "difference", "share")
# Okabe and Ito's colours: told apart by everybody, also in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
# Policies that overlap are still seen apart.
DASHES = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1.2)))
METRIC_WORDS = {
    "within_deadline": "returned within the deadline",
    "by_end": "returned by the end",
    "within_cutoff": "returned within the policy's cut-off",
}
GRID_COLOUR = "#d9d9d9"
WORTHLESS = "nothing is worth its cost here:\nthe clairvoyant spends and earns nothing"


def colour_of(position: int) -> str:
    """The colour of the policy at this position."""
    return COLOURS[position % len(COLOURS)]


def dash_of(position: int) -> str | tuple[int, tuple[float, ...]]:
    """The line style of the policy at this position."""
    return DASHES[position % len(DASHES)]


def plot(result: SimulationResult, *, kind: str, metric: str, scenario: str | None) -> Figure:
    """One figure of one scenario."""
    if kind not in KINDS:
        raise UnknownName("kind of plot", kind, KINDS)
    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    if scenario is None:
        if len(result.scenarios) > 1:
            raise InvalidValue("scenario", None, f"the result has several; name one of {', '.join(result.scenarios)}")
        scenario = result.scenarios[0]
    elif scenario not in result.scenarios:
        raise UnknownName("scenario", scenario, result.scenarios)
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    runs = len({one.run for one in result.outcomes if one.scenario == scenario})
    if kind == "share":
        _draw_shares(axes, result, scenario, metric)
    else:
        _draw_curves(axes, result, scenario, metric, kind=kind)
    spread = f"mean of {runs} runs with 95% interval" if runs > 1 else "one run"
    axes.set_title(f"{scenario}\n{spread}", fontsize="medium", loc="left")
    clean(axes)
    return figure


def clean(axes: Axes) -> None:
    """The common look: a light grid behind the data, no box around it."""
    axes.grid(color=GRID_COLOUR, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _policies_of(result: SimulationResult, scenario: str) -> list[str]:
    return list(dict.fromkeys(one.policy for one in result.outcomes if one.scenario == scenario))


def paths_of(result: SimulationResult, scenario: str, policy: str, metric: str) -> Floats:
    """(runs, checkpoints) cumulative reward."""
    column = METRICS.index(metric)
    return np.array([one.curve[:, column] for one in result.of(scenario, policy)])


def bands(paths: Floats) -> tuple[Floats, Floats, Floats]:
    """(runs, points): the mean over runs at every point, and the ends of its 95% interval (NaN from a single run)."""
    runs = paths.shape[0]
    mean: Floats = paths.mean(axis=0)
    if runs < 2:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown
    reach = paths.std(axis=0, ddof=1) / np.sqrt(runs) * t_quantile(runs - 1)
    return mean, mean - reach, mean + reach


def _draw_curves(axes: Axes, result: SimulationResult, scenario: str, metric: str, *, kind: str) -> None:
    policies = _policies_of(result, scenario)
    base = paths_of(result, scenario, policies[0], metric)
    for position, policy in enumerate(policies):
        found = result.of(scenario, policy)
        rounds, paths = found[0].rounds, paths_of(result, scenario, policy, metric)
        if kind == "regret":
            pace = rounds / rounds[-1]
            paths = np.array([one.clairvoyant for one in found])[:, None] * pace - paths
        elif kind == "difference":
            paths = paths - base
        mean, low, high = bands(paths)
        colour = colour_of(position)
        axes.plot(rounds, mean, color=colour, linestyle=dash_of(position), linewidth=1.7, label=policy)
        axes.fill_between(rounds, low, high, color=colour, alpha=0.15, linewidth=0)
    words = {
        "reward": "cumulative reward",
        "regret": "regret to the clairvoyant",
        "difference": f"cumulative reward\nless that of {policies[0]}",
    }
    axes.set_xlabel("round")
    axes.set_ylabel(f"{words[kind]}\n({METRIC_WORDS[metric]})")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(0, rounds[-1])
    if kind == "reward" and scenario not in result.worthless:
        axes.set_ylim(bottom=0)
    axes.legend(frameon=False, handlelength=3)


def _draw_shares(axes: Axes, result: SimulationResult, scenario: str, metric: str) -> None:
    if scenario in result.worthless:
        axes.text(0.5, 0.5, WORTHLESS, transform=axes.transAxes, ha="center", va="center")
        return
    policies = _policies_of(result, scenario)
    for position, policy in enumerate(policies):
        best = np.array([one.clairvoyant for one in result.of(scenario, policy)])
        share = interval(100.0 * result.rewards(scenario, policy, metric) / best)
        reach = 0.0 if np.isnan(share.se) else share.high - share.mean
        axes.errorbar(share.mean, position, xerr=reach, fmt="o", color=colour_of(position), capsize=3)
    axes.set_yticks(range(len(policies)), policies)
    axes.set_ylim(len(policies) - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.set_xlabel(f"% of the clairvoyant's reward\n({METRIC_WORDS[metric]})")
