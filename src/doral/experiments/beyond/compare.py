"""The whole comparison: run, analyse, write. What `doral compare` does."""

from __future__ import annotations

import time
from pathlib import Path

from doral import _check, _files
from doral.experiments import claims, settings
from doral.experiments.beyond import figures, page
from doral.experiments.beyond.analysis import Comparison, analyse
from doral.experiments.beyond.choices import CHOICES
from doral.experiments.beyond.plan import ComparePlan, cells
from doral.experiments.figures import as_files
from doral.experiments.folder import REPORT_FILE, prepare, remove, write_figures, write_tables
from doral.experiments.report.shell import Facts
from doral.experiments.run import Progress, run_cells
from doral.simulation.api import MAX_RUNS, MAX_SEED


def check_plan(plan: ComparePlan, *, seed: int) -> None:
    """Complain before hours of work about what would only be met in the middle of them."""
    _check.whole_number("runs", plan.runs, at_least=1, at_most=MAX_RUNS)
    _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    _check.no_duplicates("policy", [one.name for one in plan.policies])
    _check.no_duplicates("scenario", [one.name for one in plan.scenarios])
    for scenario in plan.scenarios:
        for one in plan.policies:
            one.accepted_of(scenario.problem.n_arms)


def compare(plan: ComparePlan, *, seed: int, n_jobs: int, folder: Path, progress: Progress, command: str) -> Comparison:
    """Run what is not there yet and write all files into `folder`; each of them is whole at any time."""
    started_s = time.monotonic()
    check_plan(plan, seed=seed)
    work = cells(plan)
    finished = run_cells(work, seed=seed, n_jobs=n_jobs, parts=prepare(folder), progress=progress)
    found = analyse(finished, plan)
    drawn = figures.draw_all(found, plan.choices)
    images = as_files(drawn)
    write_figures(folder, images)
    tables = {
        "shares": found.shares,
        "ingredients": found.ingredients,
        "choices": found.choices,
        "courses": found.courses,
    }
    write_tables(folder, tables)
    for name in {"regret", "course", *(figures.figure_name(choice) for choice in CHOICES)} - set(drawn):
        remove(folder, name)
    _files.write_text(folder / "claims.json", claims.to_json(found.claims))
    _files.write_text(folder / "settings.json", settings.to_json(plan, work, seed=seed))
    facts = Facts.of(finished, seed=seed, command=command, started_s=started_s)
    dark = figures.draw_dark(found, plan.choices)
    _files.write_text(folder / REPORT_FILE, page.build(found, plan, facts, images, dark))
    return found
