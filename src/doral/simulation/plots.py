"""Figures of results, in Matplotlib, returned for further styling and never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from doral.errors import InvalidValue, UnknownName
from doral.simulation.result import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from doral.simulation.result import SimulationResult

KINDS = ("reward", "regret", "share")
# Okabe and Ito's colours: told apart by everybody, also in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
METRIC_WORDS = {
    "within_deadline": "returned within the deadline",
    "by_end": "returned by the end",
    "within_cutoff": "returned within the policy's cut-off",
}


def colour_of(position: int) -> str:
    """The colour of the policy at this position."""
    return COLOURS[position % len(COLOURS)]


def plot(result: SimulationResult, *, kind: str, metric: str, scenario: str | None) -> Figure:
    """One figure of one scenario."""
    if kind not in KINDS:
        raise UnknownName("kind of plot", kind, KINDS)
    if scenario is None:
        if len(result.scenarios) > 1:
            raise InvalidValue("scenario", None, f"the result has several; name one of {', '.join(result.scenarios)}")
        scenario = result.scenarios[0]
    elif scenario not in result.scenarios:
        raise UnknownName("scenario", scenario, result.scenarios)
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    if kind == "share":
        _draw_shares(axes, result, scenario, metric)
    else:
        _draw_curves(axes, result, scenario, metric, as_regret=kind == "regret")
    axes.set_title(scenario)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _draw_curves(axes: Axes, result: SimulationResult, scenario: str, metric: str, *, as_regret: bool) -> None:
    curves = result.curves(metric).filter(scenario=scenario)
    for position, (key, curve) in enumerate(curves.group_by("policy", maintain_order=True)):
        policy = str(key[0])
        rounds = curve["round"].to_numpy()
        mean, low, high = (curve[f"reward_{end}"].cast(float).to_numpy() for end in ("mean", "low", "high"))
        if as_regret:
            best = np.mean([one.clairvoyant for one in result.of(scenario, policy)]) * rounds / rounds[-1]
            mean, low, high = best - mean, best - high, best - low
        axes.plot(rounds, mean, color=colour_of(position), linewidth=1.6, label=policy)
        axes.fill_between(rounds, low, high, color=colour_of(position), alpha=0.2, linewidth=0)
    axes.set_xlabel("round")
    axes.set_ylabel(f"cumulative {'regret' if as_regret else 'reward'}\n{METRIC_WORDS[metric]}")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _draw_shares(axes: Axes, result: SimulationResult, scenario: str, metric: str) -> None:
    policies = [policy for policy in result.policies if any(one.policy == policy for one in result.outcomes)]
    for position, policy in enumerate(policies):
        best = np.array([one.clairvoyant for one in result.of(scenario, policy)])
        share = interval(100.0 * result.rewards(scenario, policy, metric) / best)
        reach = 0.0 if np.isnan(share.se) else share.high - share.mean
        axes.errorbar(share.mean, position, xerr=reach, fmt="o", color=colour_of(position), capsize=3)
    axes.set_yticks(range(len(policies)), policies)
    axes.invert_yaxis()
    axes.set_xlabel(f"% of the clairvoyant's reward\n{METRIC_WORDS[metric]}")
