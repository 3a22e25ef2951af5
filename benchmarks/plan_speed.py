"""How long `doral plan` takes for a large log, and how much memory: from a CSV file to the page.

    python -m benchmarks.plan_speed --rows 300000

The log is that of a simulated campaign with heavy-tailed delays. A first call, with few rows, compiles what is missing,
so that the time is that of every later call. Memory is the sum over all processes of their proportional set size, so
that pages which they share count once (Linux).
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

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


class Cost(NamedTuple):
    wall_s: float
    cpu_s: float
    peak_gib: float


def plan_cost(path: Path, out: Path) -> Cost:
    """Plan from a file to the page, and return what it took."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "doral", "plan", str(path), "--out-dir", str(out), "--jobs", "2", "--quiet"]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ)
    peak_kib = 0
    while running.poll() is None:
        peak_kib = max(peak_kib, sum(map(_kib, _family(running.pid))))
        time.sleep(0.2)
    if running.returncode:
        raise SystemExit(running.returncode)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Cost(time.perf_counter() - started, cpu_s, peak_kib / 2**20)


def _family(pid: int) -> list[int]:
    """A process and all that it has started."""
    children: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            children += map(int, path.read_text().split())
    return [pid, *(one for child in children for one in _family(child))]


def _kib(pid: int) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.csv", Path(folder) / "large.csv"
        for path, rows in ((small, 2_000), (large, options.rows)):
            write_log(path, rows)
            cost = plan_cost(path, path.with_suffix(""))
            print(
                f"{rows:,} rows: {cost.wall_s:.0f} s with two workers, {cost.cpu_s:.0f} s of processor time, "
                f"at most {cost.peak_gib:.2f} GiB in all processes",
                flush=True,
            )


if __name__ == "__main__":
    main()
