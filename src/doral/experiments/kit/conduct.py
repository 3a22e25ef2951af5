"""A whole experiment: run, analyse, write. The same for all of them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from doral import _check
from doral.engine.options import PolicyOptions
from doral.engine.setup import MAX_SEED
from doral.experiments.kit import claim, folder, report, settings
from doral.experiments.kit.batches import Progress, run_cells
from doral.experiments.kit.cell import Cell
from doral.experiments.kit.extent import Extent
from doral.experiments.kit.shape import AnyExtent, AnyFindings, Experiment
from doral.pages.images import as_files
from doral.simulation.api import MAX_RUNS


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
    folder.check(out)


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
    parts = folder.prepare(out)
    folder.remove_parts_of_other_versions(out, versions=settings.versions())
    finished = run_cells(cells, seed=seed, n_jobs=n_jobs, parts=parts, progress=progress)
    found = experiment.analyse(finished, extent)
    images = as_files(experiment.figures(found, extent))
    folder.write_figures(out, images, names=experiment.figure_names)
    folder.write_tables(out, found.tables())
    folder.write_text(out, folder.CLAIMS_FILE, claim.to_json(found.claims))
    folder.write_text(out, folder.SETTINGS_FILE, settings.to_json(extent, cells, seed=seed))
    facts = report.Facts.of(finished, seed=seed, command=command, started_s=started_s)
    folder.write_text(out, folder.REPORT_FILE, report.build(experiment.page(found, extent, images), facts))
    folder.remove_other_parts(out, keep=finished.parts)
    return found
