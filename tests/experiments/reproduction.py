"""The whole reproduction in miniature: its files are tested, and a browser looks at its page."""

from __future__ import annotations

from pathlib import Path

from doral.experiments.kit.batches import Extent
from doral.experiments.kit.conduct import conduct
from doral.experiments.paper.analysis import PaperFindings
from doral.experiments.paper.page import EXPERIMENT
from tests.experiments.pages import Silent

TINY = Extent(runs=3, side_runs=2, shrink=100)
COMMAND = 'doral reproduce --note "<b>&"'


def make(folder: Path, extent: Extent = TINY) -> PaperFindings:
    return conduct(EXPERIMENT, extent, seed=1, n_jobs=2, out=folder, progress=Silent(), command=COMMAND)
