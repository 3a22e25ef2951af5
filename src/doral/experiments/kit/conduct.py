"""A whole experiment: its shape, the steps (run, analyse, write), and the folder that they fill.

An experiment is a folder beside this one:

| file | holds |
| --- | --- |
| `cells.py` | its policies and scenarios by name, variants, and what is run |
| `analysis.py` | the tables that follow from the runs, and claims, decided by intervals |
| `figures.py`, `page.py` | how it is shown; `page.py` ends with all of it as an `Experiment` |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import polars as pl

from doral import _check, _files
from doral.engine.options import PolicyOptions
from doral.engine.setup import MAX_SEED
from doral.errors import InvalidValue
from doral.experiments.kit.batches import (
    PARTS_FOLDER,
    Cell,
    Extent,
    Finished,
    Progress,
    remove_other_parts,
    remove_parts_of_other_versions,
    run_cells,
    settings_json,
    versions,
)
from doral.experiments.kit.claim import Claim, to_json
from doral.experiments.kit.drawing import Facts, build_report
from doral.pages.images import as_files
from doral.pages.shell import Page
from doral.simulation.api import MAX_RUNS

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


CLAIMS_FILE = "claims.json"
SETTINGS_FILE = "settings.json"
REPORT_FILE = "report.html"


def check(cells: Iterable[Cell], extent: Extent, *, seed: int, out: Path) -> None:
    """Complain before hours of work about what would only be met in the middle of them."""
    _check.whole_number("runs", extent.runs, at_least=1, at_most=MAX_RUNS)
    _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    scenarios: dict[str, list[str]] = {}
    for cell in cells:
        scenarios.setdefault(cell.study, []).append(cell.scenario.name)
        _check.no_duplicates("policy", [one.name for one in cell.policies])
        for one in cell.policies:
            if isinstance(one, PolicyOptions):
                one.accepted_of(cell.scenario.problem.n_arms)
    for names in scenarios.values():
        _check.no_duplicates("scenario", names)
    if out.exists() and not out.is_dir():
        raise InvalidValue("out", str(out), "must be a folder, and there is a file of that name")


def conduct(
    experiment: Experiment[AnyExtent, AnyFindings],
    extent: AnyExtent,
    *,
    seed: int,
    n_jobs: int,
    out: Path,
    progress: Progress,
    command: str,
) -> AnyFindings:
    """Run what is not there yet and write all files into the folder `out`; each of them is whole at any time.

    `command` is what gives the same numbers again, for the report.
    """
    started_s = time.monotonic()
    cells = experiment.cells(extent)
    check(cells, extent, seed=seed, out=out)
    out.mkdir(parents=True, exist_ok=True)
    remove_parts_of_other_versions(out, versions=versions())
    finished = run_cells(cells, seed=seed, n_jobs=n_jobs, parts=out / PARTS_FOLDER, progress=progress)
    found = experiment.analyse(finished, extent)
    images = as_files(experiment.figures(found, extent))
    # A figure or table that an earlier call with other settings has left would mislead next to new files.
    for name in (f"{figure}.{kind}" for figure in experiment.figure_names for kind in ("png", "pdf")):
        if name not in images:
            (out / name).unlink(missing_ok=True)
    for name, content in images.items():
        _files.write_bytes(out / name, content)
    for name, frame in found.tables().items():
        if frame is None:
            (out / f"{name}.csv").unlink(missing_ok=True)
        else:
            _files.write_text(out / f"{name}.csv", frame.write_csv())
    _files.write_text(out / CLAIMS_FILE, to_json(found.claims))
    _files.write_text(out / SETTINGS_FILE, settings_json(extent, cells, seed=seed))
    facts = Facts.of(finished, seed=seed, command=command, started_s=started_s)
    _files.write_text(out / REPORT_FILE, build_report(experiment.page(found, extent, images), facts))
    remove_other_parts(out, keep=finished.parts)
    return found
