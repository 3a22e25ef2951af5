"""The figure of an evaluation, in Matplotlib, returned for further styling; it shows itself in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from doral.errors import shown
from doral.evaluation.policies import STATUS_QUO
from doral.pages.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from doral.evaluation.evaluation import Evaluation

# Okabe and Ito's colours: told apart by everybody, also in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
GRID_COLOUR = "#d9d9d9"
MOST_SHOWN = 20  # policies: more are not read


def overlap(result: Evaluation) -> Figure:
    """Left: values with 95% intervals. Right: by context and option, how often the policy does it and the log did."""
    policies = [one for one in result.policies if one != STATUS_QUO][:MOST_SHOWN]
    figure = Figure(figsize=(10.0, max(3.2, 1.4 + 0.35 * len(policies))), layout="constrained")
    left, right = figure.subplots(1, 2)
    if not result.values or result.rows is None:
        for axes in (left, right):
            axes.text(0.5, 0.5, "nothing can be valued", ha="center", va="center", transform=axes.transAxes)
            axes.set_axis_off()
        return figure
    _values(left, result, [STATUS_QUO, *policies])
    _cells(right, result, policies)
    return figure


def _label(name: str) -> str:
    return shown(name)[1:-1].replace("$", r"\$")  # no name is a formula


def _values(axes: Axes, result: Evaluation, policies: list[str]) -> None:
    for position, name in enumerate(policies):
        one = result.of(name)
        colour = "#000000" if name == STATUS_QUO else COLOURS[(position - 1) % len(COLOURS)]
        if np.isfinite([one.low, one.high]).all():
            axes.plot([one.low, one.high], [position, position], color=colour, linewidth=2.0)
        axes.plot([one.value], [position], marker="o", color=colour, mfc=colour if one.is_supported else "white")
    axes.set_yticks(range(len(policies)), [_label(one) for one in policies])
    axes.invert_yaxis()
    axes.set_xlabel("value per arrival, 95% interval\n(hollow: not supported)")
    axes.grid(axis="x", color=GRID_COLOUR)


def _cells(axes: Axes, result: Evaluation, policies: list[str]) -> None:
    rows = result.rows
    assert rows is not None
    counts = rows.counts()
    size = counts.sum(axis=1, keepdims=True)
    logged = counts / np.maximum(size, 1)
    least = 0.5 / max(int(size.max()), 1)
    for position, name in enumerate(policies):
        does = result.allocations[name].mean(axis=0)
        if rows.nothing_is_known:
            does = does[:, :-1]
        of_log = logged[:, : does.shape[1]]
        shown_ = (does > 0.0) & (size > 0)
        axes.scatter(
            np.maximum(of_log[shown_], least),
            does[shown_],
            s=8.0 + 80.0 * np.broadcast_to(size / size.sum(), does.shape)[shown_],
            color=COLOURS[position % len(COLOURS)],
            alpha=0.7,
            label=_label(name),
            linewidths=0.0,
        )
    axes.axvspan(least / 1.5, least * 1.5, color=GRID_COLOUR, zorder=0)
    axes.set_xscale("log")
    axes.set_xlim(least / 1.5, 1.3)
    axes.set_ylim(-0.03, 1.06)
    axes.set_xlabel("how often the log did it there\n(grey: never)")
    axes.set_ylabel("how often the policy does")
    if policies:
        axes.legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
