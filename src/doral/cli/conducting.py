"""What the commands of all experiments do alike: check, say what is happening, conduct, say how to have it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from doral.cli import terminal
from doral.cli.cluster import computing_on
from doral.cli.progress import progress
from doral.experiments.kit.batches import Extent
from doral.experiments.kit.conduct import REPORT_FILE, AnyExtent, AnyFindings, Experiment, check, conduct


def command_of(name: str, extent: Extent, *, seed: int, main_only: str, words: Sequence[str] = ()) -> str:
    """The command that gives the same numbers; `main_only` is its option for the main table alone."""
    said = ["doral", name, *words, "--runs", str(extent.runs), "--seed", str(seed)]
    said += ["--quick"] if extent.is_quick else []
    said += [main_only] if extent.main_only else []
    return shlex.join(said)


def conduct_shown(
    experiment: Experiment[AnyExtent, AnyFindings],
    extent: AnyExtent,
    *,
    seed: int,
    jobs: int,
    cluster: str | None,
    out: Path,
    command: str,
) -> AnyFindings:
    """Conduct it with progress; what is wrong with the request is said before anything is compiled."""
    check(experiment.cells(extent), extent, seed=seed, out=out)
    with computing_on(cluster), progress() as shown:
        return conduct(experiment, extent, seed=seed, n_jobs=jobs, out=out, progress=shown, command=command)


def say_where(out: Path) -> None:
    """The last line: where to read more."""
    terminal.output().print(f"report: {out / REPORT_FILE}", soft_wrap=True, markup=False)
