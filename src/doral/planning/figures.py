"""The figures of a plan: those that make sense for its log, with the words around them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl

from doral.pages.images import as_bytes, as_files
from doral.planning.drawn import DARK_PAPER, Drawing
from doral.planning.drawn_answers import curves_drawing, outcomes_drawing, waiting_drawing
from doral.planning.drawn_cells import arrivals_drawing, values_drawing
from doral.planning.drawn_money import budget_drawing, cost_gain_drawing, earnings_drawing
from doral.planning.plan import Plan
from doral.planning.values import CellValue

FIGURE_NAMES = ("earnings", "returns", "outcomes", "waiting", "budget", "cost_gain", "values", "arrivals")
_DARK_GRID = "#353d46"
_DARK: dict[Any, str] = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), DARK_PAPER),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#e4e8ec"),
}


def drawings(plan: Plan, values: Sequence[CellValue]) -> tuple[Drawing, ...]:
    """In the order in which a reader wants them; without those for which the log has too little."""
    found = (
        earnings_drawing(plan),
        curves_drawing(plan),
        outcomes_drawing(plan),
        waiting_drawing(plan),
        budget_drawing(plan),
        cost_gain_drawing(plan),
        values_drawing(plan, values),
        arrivals_drawing(plan),
    )
    return tuple(one for one in found if one is not None)


def files_of(drawn: tuple[Drawing, ...]) -> dict[str, bytes]:
    """Every figure as PNG and PDF: the content of the files by their names."""
    with warnings.catch_warnings():
        _accept_missing_letters()
        return as_files({one.name: one.figure for one in drawn})


def dark_pictures(plan: Plan, values: Sequence[CellValue]) -> dict[str, bytes]:
    """The same as PNG, by name, for readers in the dark."""
    with mpl.rc_context(_DARK), warnings.catch_warnings():
        _accept_missing_letters()
        drawn = drawings(plan, values)
        for one in drawn:
            for axes in one.figure.axes:
                if one.name != "values" or not axes.images:
                    axes.grid(color=_DARK_GRID)
        return {one.name: as_bytes(one.figure, "png") for one in drawn}


def _accept_missing_letters() -> None:
    """Names may be in any script; the figure's font has not all of them, and the tables have them in full."""
    warnings.filterwarnings("ignore", message=".*Glyph .* missing from font.*")
    warnings.filterwarnings("ignore", message=".*does not have a glyph.*")
