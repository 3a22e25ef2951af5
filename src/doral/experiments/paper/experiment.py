"""The whole reproduction, as `doral reproduce` conducts it."""

from __future__ import annotations

from doral.experiments.kit.extent import Extent
from doral.experiments.kit.shape import Experiment
from doral.experiments.paper.analysis import PaperFindings, analyse
from doral.experiments.paper.cells import cells
from doral.experiments.paper.figures import FIGURE_NAMES, figures
from doral.experiments.paper.page import page

EXPERIMENT: Experiment[Extent, PaperFindings] = Experiment(
    cells=cells, analyse=analyse, figures=figures, figure_names=FIGURE_NAMES, page=page
)
