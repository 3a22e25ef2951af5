"""The whole reproduction: run, analyse, write. What `doral reproduce` does."""

from __future__ import annotations

import time
from pathlib import Path

from doral import _check, _files
from doral.experiments import analysis, claims, figures, settings
from doral.experiments.folder import REPORT_FILE, prepare, write_figures, write_tables
from doral.experiments.paper import Plan, cells
from doral.experiments.report import page
from doral.experiments.report.shell import Facts
from doral.experiments.run import Progress, run_cells
from doral.simulation.api import MAX_RUNS, MAX_SEED


def reproduce(
    plan: Plan, *, seed: int, n_jobs: int, folder: Path, progress: Progress, command: str
) -> analysis.Analysis:
    """Run what is not there yet and write all files into `folder`; each of them is whole at any time."""
    started_s = time.monotonic()
    _check.whole_number("runs", plan.runs, at_least=1, at_most=MAX_RUNS)
    _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    work = cells(plan)
    finished = run_cells(work, seed=seed, n_jobs=n_jobs, parts=prepare(folder), progress=progress)
    found = analysis.analyse(finished, plan)
    images = figures.as_files(figures.draw_all(found))
    write_figures(folder, images)
    write_tables(
        folder,
        {
            "summary": found.summary,
            "runs": found.runs,
            "race": found.race,
            "sweep_horizon": found.horizon,
            "sweep_accept": found.accept,
            "ablation": found.ablation,
        },
    )
    _files.write_text(folder / "claims.json", claims.to_json(found.claims))
    _files.write_text(folder / "settings.json", settings.to_json(plan, work, seed=seed))
    facts = Facts.of(finished, seed=seed, command=command, started_s=started_s)
    arms = work[0].scenario.problem.arm_names
    _files.write_text(folder / REPORT_FILE, page.build(found, plan, facts, images, arms=arms))
    return found
