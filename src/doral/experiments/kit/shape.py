"""What an experiment is. Each is a folder that fills this in, file by file:

| file | holds |
| --- | --- |
| `names.py` | its policies and scenarios, and what people call them |
| `cells.py` | what is run, and how much of it |
| `variants.py` | the policies with one thing changed |
| `analysis.py` | the tables that follow from the runs |
| `claims.py` | statements, decided by intervals |
| `figures.py`, `tables.py`, `page.py` | how it is shown |
| `experiment.py` | all of it as an `Experiment` |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from doral.experiments.kit.batches import Finished
from doral.experiments.kit.cell import Cell
from doral.experiments.kit.claim import Claim
from doral.experiments.kit.extent import Extent
from doral.pages.shell import Page

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


class Findings(Protocol):
    """What came out: everything that is written down or shown."""

    @property
    def claims(self) -> list[Claim]:
        """Statements with their verdicts."""

    def tables(self) -> Mapping[str, pl.DataFrame | None]:
        """All tables by the names of their files; one that was not asked for is None."""


AnyExtent = TypeVar("AnyExtent", bound=Extent)
AnyFindings = TypeVar("AnyFindings", bound=Findings)


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[AnyExtent, AnyFindings]):
    """From how much is run to what is shown, step by step; `conduct` goes through them."""

    cells: Callable[[AnyExtent], list[Cell]]
    analyse: Callable[[Finished, AnyExtent], AnyFindings]
    figures: Callable[[AnyFindings, AnyExtent], Mapping[str, Figure]]
    """Those that these findings have, by the names of their files."""
    figure_names: tuple[str, ...]
    """Those that any findings may have: of an earlier call, next to new files, they would mislead."""
    page: Callable[[AnyFindings, AnyExtent, Mapping[str, bytes]], Page]
    """What the report shows; the figures come as the contents of their files."""
