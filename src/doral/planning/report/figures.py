"""The figures of a plan: those that make sense for its log, with the words around them."""

from __future__ import annotations

import warnings

from doral.pages.images import as_files, as_markup
from doral.planning.plan import Plan
from doral.planning.report.answer_figures import curves_drawing, outcomes_drawing, waiting_drawing
from doral.planning.report.cell_figures import arrivals_drawing, values_drawing
from doral.planning.report.drawing import Drawing
from doral.planning.report.money_figures import budget_drawing, cost_gain_drawing, earnings_drawing

FIGURE_NAMES = ("budget", "earnings", "returns", "outcomes", "waiting", "cost_gain", "values", "arrivals")


def drawings(plan: Plan) -> tuple[Drawing, ...]:
    """In the order in which a reader wants them; without those for which the log has too little."""
    found = (
        budget_drawing(plan),
        earnings_drawing(plan),
        curves_drawing(plan),
        outcomes_drawing(plan),
        waiting_drawing(plan),
        cost_gain_drawing(plan),
        values_drawing(plan),
        arrivals_drawing(plan),
    )
    return tuple(one for one in found if one is not None)


def files_of(drawn: tuple[Drawing, ...]) -> dict[str, bytes]:
    """Every figure as PNG and PDF: the content of the files by their names."""
    with warnings.catch_warnings():
        _accept_missing_letters()
        return as_files({one.name: one.figure for one in drawn})


def markup_of(drawn: tuple[Drawing, ...]) -> dict[str, str]:
    """Every figure as SVG for a page, by name."""
    with warnings.catch_warnings():
        _accept_missing_letters()
        return {one.name: as_markup(one.figure, name=one.name, alt=one.alt) for one in drawn}


def _accept_missing_letters() -> None:
    """Names may be in any script; the figure's font has not all of them, and the tables have them in full."""
    warnings.filterwarnings("ignore", message=".*Glyph .* missing from font.*")
    warnings.filterwarnings("ignore", message=".*does not have a glyph.*")
