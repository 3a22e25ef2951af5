"""Speed, as ratios within one run: `make bench` prints a table and writes build/bench.json, names to ratios."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import campaign
import engine_vs_c
from _kernel_run import new_task, play_once

import doral
from doral.simulation.scenarios.stress_scenarios import many_arms

BUILD = Path(__file__).resolve().parent.parent / "build"
TURNS = 5


@dataclass(frozen=True)
class Row:
    """One ratio, what it should be at least, and what it was made of."""

    name: str
    ratio: float
    target: float | None
    says: str


def engine_rows() -> list[Row]:
    """The engine against C, decisions checked to be the same."""
    engine_vs_c.check_decisions(runs=1)
    compared = engine_vs_c.compare_all()
    targets = {"engine_vs_c/d-linucb": 0.6, "engine_vs_c/doral": 0.5}
    speeds = {
        f"engine_vs_c/{row.name.partition('/')[0]}": (
            f"{row.engine_rounds_per_s / 1e6:.1f} of {row.c_rounds_per_s / 1e6:.1f} M rounds/s"
        )
        for row in compared
    }
    return [Row(name, ratio, targets[name], speeds[name]) for name, ratio in engine_vs_c.ratios(compared).items()]


def policy_rows() -> list[Row]:
    """doral-otf against doral on the same tape, in processor time."""
    seconds = {}
    for name in ("doral", "doral-otf"):
        task = new_task(doral.policy(name), doral.scenario("paper/diverse-pareto"), seed=1, run=0)
        play_once(task)
        seconds[name] = min(play_once(task).seconds for _ in range(TURNS))
    rounds = doral.scenario("paper/diverse-pareto").problem.horizon
    says = f"{rounds / seconds['doral-otf'] / 1e6:.1f} of {rounds / seconds['doral'] / 1e6:.1f} M rounds/s"
    return [Row("doral-otf_vs_doral", seconds["doral"] / seconds["doral-otf"], 0.5, says)]


def scaling_rows() -> list[Row]:
    """Four times as many arms: the time per arm should stay what it is. 1 is linear, above 1 is better than that."""
    few, many = 500, 2_000
    seconds = {}
    for n_arms in (few, many):
        task = new_task(doral.policy("doral-otf"), many_arms(n_arms), seed=1, run=0)
        play_once(task)
        seconds[n_arms] = min(play_once(task).seconds for _ in range(TURNS))
    says = f"{seconds[few]:.2f} s with {few} arms, {seconds[many]:.2f} s with {many:,}"
    return [Row("many_arms/time_per_arm", many / few * seconds[few] / seconds[many], 0.8, says)]


def core_rows() -> list[Row]:
    """Two jobs against one, wall clock, in turns."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if cores < 2:
        return []
    seconds = {1: float("inf"), 2: float("inf")}
    for _ in range(TURNS):
        for n_jobs in seconds:
            start = time.perf_counter()
            doral.simulate(["doral", "d-linucb"], "paper/diverse-geometric", runs=8, n_jobs=n_jobs)
            seconds[n_jobs] = min(seconds[n_jobs], time.perf_counter() - start)
    return [Row("two_cores_vs_one", seconds[1] / seconds[2], 1.7, f"{seconds[1]:.2f} s against {seconds[2]:.2f} s")]


def start_rows() -> list[Row]:
    """How much of the allowance a start leaves: above 1 is quicker than promised."""
    rows = []
    for name, words, allowed_s in (
        ("start/import", ["-c", "import doral"], 0.3),
        ("start/help", ["-m", "doral.cli", "--help"], 0.5),
    ):
        best = float("inf")
        for _ in range(TURNS):
            start = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            best = min(best, time.perf_counter() - start)
        rows.append(Row(name, allowed_s / best, 1.0, f"{best:.2f} s of {allowed_s} s"))
    return rows


def campaign_rows() -> list[Row]:
    """Durable decisions against bare commits; the numbers come from campaign.py."""
    return [Row(name, ratio, None, "") for name, ratio in campaign.measure().items()]


def main() -> None:
    rows = [*engine_rows(), *policy_rows(), *scaling_rows(), *core_rows(), *start_rows(), *campaign_rows()]
    print(f"{'':32}{'ratio':>8}{'at least':>10}")
    for row in rows:
        target = "" if row.target is None else f"{row.target:.1f}"
        missed = "  MISSED" if row.target is not None and row.ratio < row.target else ""
        print(f"{row.name:32}{row.ratio:8.2f}{target:>10}   {row.says}{missed}")
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench.json").write_text(json.dumps({row.name: round(row.ratio, 4) for row in rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
