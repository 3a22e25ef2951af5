"""The whole comparison, as `doral compare` conducts it."""

from __future__ import annotations

from doral.experiments.beyond.analysis import BeyondFindings, analyse
from doral.experiments.beyond.cells import BeyondExtent, cells
from doral.experiments.beyond.figures import FIGURE_NAMES, figures
from doral.experiments.beyond.page import page
from doral.experiments.kit.shape import Experiment

EXPERIMENT: Experiment[BeyondExtent, BeyondFindings] = Experiment(
    cells=cells, analyse=analyse, figures=figures, figure_names=FIGURE_NAMES, page=page
)
