"""The whole reproduction: run, analyse, write. What `doral reproduce` does."""

from __future__ import annotations

import json
import time
from pathlib import Path

import polars as pl

from doral import _check, _files
from doral.errors import InvalidValue
from doral.experiments import analysis, claims, figures, settings
from doral.experiments.paper import Plan, cells
from doral.experiments.report import page
from doral.experiments.run import Progress, run_cells
from doral.simulation.api import MAX_RUNS, MAX_SEED

PARTS_FOLDER = "parts"
REPORT_FILE = "report.html"


def reproduce(
    plan: Plan, *, seed: int, n_jobs: int, folder: Path, progress: Progress, command: str
) -> analysis.Analysis:
    """Run what is not there yet and write all files into `folder`; each of them is whole at any time."""
    started_s = time.monotonic()
    _check.whole_number("runs", plan.runs, at_least=1, at_most=MAX_RUNS)
    _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    if folder.exists() and not folder.is_dir():
        raise InvalidValue("out", str(folder), "must be a folder, and there is a file of that name")
    folder.mkdir(parents=True, exist_ok=True)
    work = cells(plan)
    finished = run_cells(work, seed=seed, n_jobs=n_jobs, parts=folder / PARTS_FOLDER, progress=progress)
    found = analysis.analyse(finished, plan)
    images = figures.as_files(figures.draw_all(found))
    for name, content in images.items():
        _files.write_bytes(folder / name, content)
    _write_tables(found, folder)
    _files.write_text(folder / "claims.json", claims.to_json(found.claims))
    chosen = json.dumps(settings.of_experiment(plan, work, seed=seed), indent=2, ensure_ascii=False)
    _files.write_text(folder / "settings.json", chosen + "\n")
    facts = page.Facts(
        plan=plan,
        seed=seed,
        command=command,
        versions=settings.versions(),
        cpu_count=settings.cpu_count(),
        time_taken_s=time.monotonic() - started_s,
        blocks=finished.blocks,
        kept_blocks=finished.kept_blocks,
        arms=work[0].scenario.problem.arm_names,
    )
    _files.write_text(folder / REPORT_FILE, page.build(found, facts, images))
    return found


def _write_tables(found: analysis.Analysis, folder: Path) -> None:
    frames: dict[str, pl.DataFrame | None] = {
        "summary": found.summary,
        "runs": found.runs,
        "race": found.race,
        "sweep_horizon": found.horizon,
        "sweep_accept": found.accept,
        "ablation": found.ablation,
    }
    for name, frame in frames.items():
        if frame is not None:
            _files.write_text(folder / f"{name}.csv", frame.write_csv())
        else:  # from an earlier call with other settings: next to the new files it would mislead
            for kind in ("csv", "png", "pdf"):
                (folder / f"{name}.{kind}").unlink(missing_ok=True)
