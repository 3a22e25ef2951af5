"""The two heat maps as figures: numbers in cells, colours that everybody can tell apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.colors import Colormap
from matplotlib.figure import Figure

from doral._arrays import Floats
from doral.experiments.beyond.analysis import BeyondFindings
from doral.experiments.beyond.heat import SIGNS, SIGNS_KEY, depth_of_share, worth_depth
from doral.experiments.beyond.names import changed_words, short_name
from doral.experiments.beyond.variants import INGREDIENTS
from doral.experiments.kit.drawing import DEPTHS, DIGITS_COLOUR, SIDES, mean_words
from doral.pages.numbers import number

LEAST_WIDTH_INCHES = 6.0  # for what stands above


def _heatmap(
    *,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    depths: Floats,
    words: Sequence[Sequence[str]],
    colours: Colormap,
    least: float,
) -> Figure:
    longest = max(len(name) for name in rows)
    width = max(LEAST_WIDTH_INCHES, 0.8 + 0.085 * longest + 0.82 * len(columns))
    figure = Figure(figsize=(width, 1.5 + 0.36 * len(rows)), layout="constrained")
    figure.suptitle(title, fontsize="medium", x=0.01, ha="left")
    axes = figure.subplots()
    axes.imshow(depths, cmap=colours, vmin=least, vmax=1.0, aspect="auto")
    for row in range(len(rows)):
        for column in range(len(columns)):
            is_bold = words[row][column].endswith((SIGNS["best"], SIGNS["tied"]))
            axes.text(
                column,
                row,
                words[row][column],
                ha="center",
                va="center",
                fontsize="small",
                color=DIGITS_COLOUR,
                fontweight="bold" if is_bold else "normal",
            )
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="left", rotation_mode="anchor")
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    # White lines between the cells.
    axes.set_xticks(np.arange(1, len(columns)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(rows)) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    return figure


def shares_heatmap(found: BeyondFindings) -> Figure:
    """Every policy on every scenario."""
    cells = [[found.row(scenario, policy) for policy in found.policies] for scenario in found.scenarios]
    runs = mean_words(cells[0][0]["runs"])
    return _heatmap(
        title=f"% of the oracle's reward, {runs}\n{SIGNS_KEY}",
        rows=[short_name(name) for name in found.scenarios],
        columns=list(found.policies),
        depths=np.array([[depth_of_share(cell["share_percent"]) for cell in row] for row in cells]),
        words=[[number(cell["share_percent"], 1) + SIGNS[cell["mark"]] for cell in row] for row in cells],
        colours=DEPTHS,
        least=0.0,
    )


def ingredients_heatmap(frame: pl.DataFrame, scenarios: Sequence[str]) -> Figure:
    """What is lost without each ingredient."""
    rows = {(row["without"], row["scenario"]): row for row in frame.iter_rows(named=True)}
    names = [changed_words(variant.policy.name) for variant in INGREDIENTS]
    cells = [[rows[name, scenario] for scenario in scenarios] for name in names]
    runs = mean_words(frame["runs"][0])
    return _heatmap(
        title=f"Points lost with this changed, in % of the oracle's reward\n({runs}; pale: cannot be told from 0)",
        rows=names,
        columns=[short_name(name) for name in scenarios],
        depths=np.array([[worth_depth(cell) for cell in row] for row in cells]),
        words=[[number(cell["worth_points"], 1, signed=True) for cell in row] for row in cells],
        colours=SIDES,
        least=-1.0,
    )
