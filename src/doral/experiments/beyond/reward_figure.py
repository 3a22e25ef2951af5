"""Reward over time next to the oracle's, on one scenario of the paper: the whole comparison in one picture."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from doral.experiments.beyond.analysis import BeyondFindings
from doral.experiments.beyond.names import DIVERSE_PARETO, REFERENCE
from doral.experiments.kit.drawing import banded_curve, runs_words
from doral.experiments.kit.shares import METRIC, oracle_rewards, share_percent
from doral.simulation.results.plots import bands, clean, paths_of

SCENARIO = DIVERSE_PARETO
POLICIES = (REFERENCE, "doral", "d-alp", "d-linucb", "random")
"""Those of the paper, and the one that is to be better."""
SIZE_INCHES = (6.4, 4.6)
_ORACLE_COLOUR = "#8a8a8a"


def shown_policies(found: BeyondFindings) -> list[str]:
    """Whose curves are drawn; none where the scenario was not played."""
    return [name for name in POLICIES if name in found.policies] if SCENARIO in found.scenarios else []


def reward_figure(found: BeyondFindings) -> Figure:
    """In percent of all that the oracle earns, so that runs with different rewards can be averaged."""
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    shown = shown_policies(found)
    rounds = found.compared.of(SCENARIO, shown[0])[0].rounds
    words = "oracle: 100%"
    axes.plot([0, rounds[-1]], [0.0, 100.0], color=_ORACLE_COLOUR, linewidth=4, alpha=0.45, label=words)
    for position, name in enumerate(shown):
        best = oracle_rewards(found.compared, SCENARIO, name)
        paths = 100.0 * paths_of(found.compared, SCENARIO, name, METRIC) / best[:, None]
        end = float(share_percent(found.compared, SCENARIO, name).mean())
        banded_curve(axes, rounds, bands(paths), position=position, label=f"{name}: {end:.1f}%")
    runs = len(found.compared.of(SCENARIO, shown[0]))
    axes.set_title(f"Reward over time, diverse Pareto delays\n({runs_words(runs)})", fontsize="medium", loc="left")
    axes.set_xlabel("round")
    axes.set_ylabel("% of all that the oracle earns")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(0, rounds[-1])
    axes.set_ylim(0, 105)
    clean(axes)
    # Outside, where it can cover no line.
    legend = figure.legend(
        loc="outside lower left", ncols=3, frameon=False, handlelength=3, title="Rewards in the end", alignment="left"
    )
    legend.get_title().set_fontweight("bold")
    return figure
