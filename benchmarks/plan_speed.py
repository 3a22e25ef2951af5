"""How long `doral plan` takes for a large log, and how much memory: from a CSV file to the page.

    python -m benchmarks.plan_speed --rows 300000

The log is that of a simulated campaign with heavy-tailed delays. A first call, with few rows, compiles what is missing,
so that the time is that of every later call.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tests.logs import file_of, log_of

import doral

MINUTE = 60.0


def write_log(path: Path, rows: int) -> None:
    problem = doral.Problem(
        arms=[doral.Arm(f"arm-{i}", cost=1 + i % 3) for i in range(5)],
        contexts={f"context-{j}": 0.1 for j in range(10)},
        budget=0.5 * rows,
        horizon=rows,
        deadline=max(100, rows // 30),
    )
    scenario = doral.Scenario(
        name="large",
        problem=problem,
        means=np.random.default_rng(0).uniform(0.0, 0.1, (10, 5)),
        noise="bernoulli",
        delays=doral.delays.Pareto(minimum=max(5, rows // 600), shape=1.5),
    )
    file_of(log_of(scenario, "random", round_s=MINUTE)).write_csv(path)


def plan_in_s(path: Path, out: Path) -> float:
    started = time.perf_counter()
    command = [sys.executable, "-m", "doral.cli", "plan", str(path), "--out", str(out), "--jobs", "2", "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.csv", Path(folder) / "large.csv"
        write_log(small, 2_000)
        first_s = plan_in_s(small, Path(folder) / "small")
        write_log(large, options.rows)
        took_s = plan_in_s(large, Path(folder) / "large")
    # Of the largest single process; with two workers, three processes share the work.
    peak_gib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"2,000 rows, the first call: {first_s:.0f} s")
    print(f"{options.rows:,} rows: {took_s:.0f} s on two cores, at most {peak_gib:.2f} GiB in one process")


if __name__ == "__main__":
    main()
