"""Speed, mostly as ratios within one run: `make bench` prints a table and writes build/bench.json, names to figures."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import campaign
import engine_vs_c
import growth
import people_vs_c
import service_faults
from _kernel_run import new_task, play_once

import doral
import service
from doral.simulation.api import play_run

BUILD = Path(__file__).resolve().parent.parent / "build"
TURNS = 5
SHORT_RUNS = 500


@dataclass(frozen=True)
class Row:
    """One figure, what it should be at least (or at most, where less is better), and what it was made of."""

    name: str
    ratio: float
    target: float | None
    says: str
    less_is_better: bool = False

    @property
    def is_missed(self) -> bool:
        if self.target is None:
            return False
        return self.ratio > self.target if self.less_is_better else self.ratio < self.target

    @property
    def aim(self) -> str:
        """The target in words."""
        if self.target is None:
            return ""
        return f"{'<=' if self.less_is_better else '>='} {self.target:.1f}"


def engine_rows() -> list[Row]:
    """The engine against C, decisions checked to be the same."""
    engine_vs_c.check_decisions(runs=1)
    compared = engine_vs_c.compare_all()
    targets = {"engine_vs_c/d-linucb": 0.7, "engine_vs_c/doral": 0.6}
    speeds = {
        f"engine_vs_c/{row.name.partition('/')[0]}": (
            f"{row.engine_rounds_per_s / 1e6:.1f} of {row.c_rounds_per_s / 1e6:.1f} M rounds/s"
        )
        for row in compared
    }
    return [Row(name, ratio, targets[name], speeds[name]) for name, ratio in engine_vs_c.ratios(compared).items()]


def people_rows() -> list[Row]:
    """The engine against C where everybody has features, earnings checked to be the same within a point."""
    return [
        Row(
            f"people_vs_c/{one.n_numbers}_features",
            one.ratio,
            0.5,
            f"{one.engine_rounds_per_s / 1e3:.0f} of {one.c_rounds_per_s / 1e3:.0f} K rounds/s, "
            f"earned {one.engine_earned:.1f} and {one.c_earned:.1f}% of the clairvoyant",
        )
        for one in people_vs_c.compare_all()
    ]


def policy_rows() -> list[Row]:
    """doral-otf against doral on the same tape, in processor time."""
    seconds = {}
    for name in ("doral", "doral-otf"):
        task = new_task(doral.policy(name), doral.scenario("paper/diverse-pareto"), seed=1, run=0)
        play_once(task)
        seconds[name] = min(play_once(task).seconds for _ in range(TURNS))
    rounds = doral.scenario("paper/diverse-pareto").problem.horizon
    says = f"{rounds / seconds['doral-otf'] / 1e6:.1f} of {rounds / seconds['doral'] / 1e6:.1f} M rounds/s"
    return [Row("doral-otf_vs_doral", seconds["doral"] / seconds["doral-otf"], 0.85, says)]


def growth_rows() -> list[Row]:
    """The time per round at the largest size in times that at the smallest, and the exponent of the last step."""
    kinds = [(growth.measure, growth.BOUNDS, growth.EXPONENTS)]
    kinds.append((growth.measure_people, growth.PEOPLE_BOUNDS, growth.PEOPLE_EXPONENTS))
    rows = []
    for measure, bounds, exponents in kinds:
        for axis, bound in bounds.items():
            found = measure("doral-otf", axis)
            says = f"{found.sizes[-1]:,} against {found.sizes[0]:,}: {1 / found.seconds[-1]:,.0f} rounds/s"
            rows.append(Row(f"growth/{axis}", found.times, bound, says, less_is_better=True))
            says = "of the time per round, at the large end"
            rows.append(Row(f"growth/{axis}_exponent", found.exponent, exponents[axis], says, less_is_better=True))
    return rows


def setup_rows() -> list[Row]:
    """What a short run takes beyond its loop, in processor time: everything is made anew that runs do not share."""
    rows = []
    for name, place, most_us in (("run", "paper/diverse-pareto", 300.0), ("people_run", "people/linear", 1_500.0)):
        policy, scenario = doral.policy("doral-otf"), doral.scenario(place)
        short = dataclasses.replace(scenario, problem=dataclasses.replace(scenario.problem, horizon=200, budget=100))
        if short.problem.person:  # whom the simulator draws anew for every run: few, and always the same
            short = _same_people(short)
        task = new_task(policy, short, seed=1, run=0)
        loop = min(play_once(task).seconds for _ in range(SHORT_RUNS))
        whole = float("inf")
        for run in range(SHORT_RUNS):
            start = time.thread_time()
            play_run([policy], short, seed=1, run=run, keep_decisions=False)
            whole = min(whole, time.thread_time() - start)
        says = f"microseconds; the 200 rounds take {loop * 1e6:.0f} more"
        rows.append(Row(f"setup/{name}_us", (whole - loop) * 1e6, most_us, says, less_is_better=True))
    return rows


def _same_people(scenario: doral.Scenario) -> doral.Scenario:
    world = new_task(
        doral.policy("doral-otf"), dataclasses.replace(scenario, population=200), seed=1, run=0
    ).truth.world
    people = {name: world.people[:, i] for i, name in enumerate(scenario.problem.person_names)}
    return dataclasses.replace(scenario, people=people, population=None, means=world.means[0])


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


COLD_DECIDE = """
import doral
problem = doral.scenario("paper/diverse-pareto").problem
with doral.open("memory://") as store:
    store.create("cold", problem, policy="doral-otf", seed=1, clock="rounds").decide(problem.context_names[0])
"""


def cold_rows() -> list[Row]:
    """Processor time of a fresh process that finds nothing compiled."""
    simulate = ["-m", "doral.cli", "simulate", "paper/diverse-pareto", "-p", "doral-otf", "--runs", "1"]
    rows = []
    for name, words in (("simulate", simulate), ("decide", ["-c", COLD_DECIDE])):
        with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            environment = {**os.environ, "DORAL_CACHE_DIR": folder}
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        says = "seconds of processor time, nothing compiled before"
        rows.append(Row(f"start/cold_{name}_cpu_s", seconds, 12.0, says, less_is_better=True))
    return rows


def campaign_rows() -> list[Row]:
    """Durable decisions against bare commits; the numbers come from campaign.py."""
    return [Row(name, ratio, None, "") for name, ratio in campaign.measure().items()]


def service_rows() -> list[Row]:
    """Decisions over HTTP against a request that does nothing; the numbers come from service.py."""
    return [Row(*one) for one in service.rows()]


def service_fault_rows() -> list[Row]:
    """1 where a service that is killed all the time has kept whatever it acknowledged, and the budget adds up."""
    rows = []
    for storage in ("sqlite", "postgres"):
        try:
            found = service_faults.run_all(storages=(storage,))
        except AssertionError as error:
            rows.append(Row(f"service_faults/{storage}", 0.0, 1.0, f"{error}"))
            continue
        rows += [Row(f"service_faults/{name}", 1.0, 1.0, str(one)) for name, one in found.items()]
    return rows


def main() -> None:
    parts = (
        engine_rows,
        people_rows,
        policy_rows,
        growth_rows,
        setup_rows,
        core_rows,
        start_rows,
        cold_rows,
        campaign_rows,
        service_rows,
        service_fault_rows,
    )
    rows = [row for part in parts for row in part()]
    print(f"{'':44}{'figure':>12}{'target':>10}")
    for row in rows:
        print(f"{row.name:44}{row.ratio:12.2f}{row.aim:>10}   {row.says}{'  MISSED' if row.is_missed else ''}")
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench.json").write_text(json.dumps({row.name: round(row.ratio, 4) for row in rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
