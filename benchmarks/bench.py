"""Speed, mostly as ratios within one run: `make bench` prints a table and writes build/bench.json, names to figures.

    python benchmarks/bench.py [part ...]

Only one thing makes it fail: a cost that grows faster than its algorithm does (exit code 1, after all is printed and
written). A ratio that misses its target is shown as missed, for it says as much of the machine as of the code. A part
that cannot be measured, say for want of a PostgreSQL, is a row that says why, and the others go on.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import campaign
import campaign_growth
import engine_vs_c
import growth
import people_vs_c
import service_faults
from _kernel_run import new_task, play_once
from fitting import Growth

import doral
from doral.simulation.api import play_run

BUILD = Path(__file__).resolve().parent.parent / "build"
TURNS = 5
SHORT_RUNS = 500
RANDOM_SEEDS, RANDOM_PROBLEMS = 120, 40
# Programs of this folder with a `rows()` of their own: name, figure, target or None, what it is made of and, where it
# is so, that less is better. With less than they do by themselves, so that all of it takes some thirteen minutes.
WITH_ROWS: dict[str, dict[str, float]] = {
    "service": {},
    "cluster": {"many": 20_000},
}


@dataclass(frozen=True)
class Row:
    """One figure, what it should be at least (or at most, where less is better), and what it was made of."""

    name: str
    ratio: float
    target: float | None
    says: str
    less_is_better: bool = False
    is_bound: bool = False  # whether it fails the whole to miss the target

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
        return f"{'<=' if self.less_is_better else '>='} {self.target:.2f}"


def engine_rows() -> list[Row]:
    """The engine against C, decisions checked to be the same."""
    engine_vs_c.check_decisions(runs=1)
    compared = engine_vs_c.compare_all()
    targets = {"engine_vs_c/d-linucb": 0.95, "engine_vs_c/doral": 0.6}
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
            0.6,
            f"{one.engine_rounds_per_s / 1e3:.0f} of {one.c_rounds_per_s / 1e3:.0f} K rounds/s, "
            f"earned {one.engine_earned:.1f} and {one.c_earned:.1f}% of the oracle",
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
    return [Row("doral-otf_vs_doral", seconds["doral"] / seconds["doral-otf"], 0.65, says)]


def exponent_rows(found: Iterable[Growth]) -> list[Row]:
    """The exponent of each cost, which must not be over its bound."""
    return [
        Row(f"growth/{one.name}_exponent", one.fit.exponent, one.bound, str(one), less_is_better=True, is_bound=True)
        for one in found
    ]


def growth_rows() -> list[Row]:
    """What a simulation costs, against rounds, runs, contexts, arms and features."""
    return [*exponent_rows(growth.growths()), many_contexts_row()]


def many_contexts_row() -> Row:
    """Time per round of 5,000 contexts against that of 10, in 60,000 rounds: a short life for so many."""
    seconds = {}
    for contexts in (10, 5_000):
        place = growth.scenario(contexts=contexts, arms=10, features=5, rounds=60_000)
        task = new_task(doral.policy(growth.POLICY), place, seed=1, run=0)
        seconds[contexts] = min(play_once(task).seconds for _ in range(TURNS))
    says = f"{seconds[5_000] / 60_000 * 1e6:.2f} of {seconds[10] / 60_000 * 1e6:.2f} microseconds per round"
    return Row("growth/5000_contexts_vs_10", seconds[5_000] / seconds[10], 10.0, says, less_is_better=True)


def campaign_growth_rows() -> list[Row]:
    """What campaigns cost, against events, open decisions and their number."""
    return exponent_rows(campaign_growth.growths())


def setup_rows() -> list[Row]:
    """What a short run takes beyond its loop, in processor time: everything is made anew that runs do not share."""
    rows = []
    for name, place, most_us in (("run", "paper/diverse-pareto", 250.0), ("people_run", "people/linear", 1_500.0)):
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


def random_rows() -> list[Row]:
    """What doral-otf earns on short random problems, beside a simple rival."""
    from random_problems.panel import play_panel, problems_of  # here: it needs half of the package

    policies = ("doral-otf", "explore-then-lp")
    played = play_panel(policies, problems_of(range(RANDOM_SEEDS), ["short"])[:RANDOM_PROBLEMS], runs=2)
    own, rival = (fmean(fmean(one.shares[policy]) for one in played) for policy in policies)
    says = f"{own:.1f} against {rival:.1f}% of the oracle, a mean over {len(played)} problems"
    return [Row("random_problems/doral-otf_vs_explore-then-lp", own / rival, 1.0, says)]


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
    """Imports and help; the first answer of a process without compiled code; a simulation without and with it."""
    return [*import_rows(), first_decide_row(), *simulate_rows()]


def import_rows() -> list[Row]:
    """How much of the allowance a start leaves: above 1 is quicker than promised."""
    rows = []
    for name, words, allowed_s in (
        ("start/import", ["-c", "import doral"], 0.3),
        ("start/help", ["-m", "doral", "--help"], 0.5),
    ):
        best = float("inf")
        for _ in range(TURNS):
            start = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            best = min(best, time.perf_counter() - start)
        rows.append(Row(name, allowed_s / best, 1.0, f"{best:.2f} s of {allowed_s} s"))
    return rows


FIRST_DECIDE = """
import sys
import doral
problem = doral.scenario("paper/diverse-pareto").problem
with doral.open(f"sqlite:///{sys.argv[1]}/first.db") as store:
    store.create("first", problem, policy="doral-otf", seed=1, clock="rounds").decide(problem.context_names[0])
    print("decided", flush=True)
"""


def first_decide_row() -> Row:
    """Wall clock of a fresh process, with nothing compiled, from its start to its first durable decision."""
    best = float("inf")
    for _ in range(3):
        with tempfile.TemporaryDirectory(prefix="doral-bench-", ignore_cleanup_errors=True) as folder:
            environment = {**os.environ, "DORAL_CACHE_DIR": f"{folder}/cache"}
            words = [sys.executable, "-c", FIRST_DECIDE, folder]
            start = time.perf_counter()
            # A session of its own, because its compiler may be a process of its own.
            process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, start_new_session=True)
            try:
                assert process.stdout is not None
                answer = process.stdout.readline()
                best = min(best, time.perf_counter() - start)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
            if answer != b"decided\n":
                raise RuntimeError("the process ended without a decision")
    says = "seconds from the start of a process to its first durable decision, nothing compiled before"
    return Row("start/first_decide_s", best, 1.5, says, less_is_better=True)


def simulate_rows() -> list[Row]:
    """Processor time of `doral simulate my.toml`, five policies, as `doral init` writes the file."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder:
        environment = {**os.environ, "DORAL_CACHE_DIR": f"{folder}/cache"}
        for name, turns, most_s in (("cold", 1, 14.0), ("warm", TURNS, 1.0)):
            if name == "cold":
                _cpu_seconds(["init", "my.toml"], folder, environment)
            best = min(_cpu_seconds(["simulate", "my.toml"], folder, environment) for _ in range(turns))
            says = f"seconds of processor time, {'nothing' if name == 'cold' else 'everything'} compiled before"
            rows.append(Row(f"start/simulate_{name}_cpu_s", best, most_s, says, less_is_better=True))
    return rows


def _cpu_seconds(command: list[str], folder: str, environment: Mapping[str, str]) -> float:
    """Return the processor time of a command of ours and of its children, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-m", "doral", *command]
    subprocess.run(words, check=True, capture_output=True, cwd=folder, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def campaign_rows() -> list[Row]:
    """Durable decisions against bare commits; the numbers come from campaign.py."""
    return [Row(name, ratio, None, "") for name, ratio in campaign.measure().items()]


def rows_of(program: str) -> list[Row]:
    """Those that a program of this folder tells of itself."""
    return [Row(*one) for one in importlib.import_module(program).rows(**WITH_ROWS[program])]


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


PARTS: dict[str, Callable[[], list[Row]]] = {
    "engine": engine_rows,
    "people": people_rows,
    "policies": policy_rows,
    "growth": growth_rows,
    "campaign_growth": campaign_growth_rows,
    "setup": setup_rows,
    "random": random_rows,
    "cores": core_rows,
    "start": start_rows,
    "campaign": campaign_rows,
    **{program: partial(rows_of, program) for program in WITH_ROWS},
    "service_faults": service_fault_rows,
}
MUST_BE_MEASURED = ("growth", "campaign_growth")


def measure(parts: Mapping[str, Callable[[], list[Row]]]) -> list[Row]:
    """All rows; a part that ends with an error is one row that says so."""
    rows = []
    for name, part in parts.items():
        try:
            rows += part()
        except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever it is, the other parts can be measured)
            says = f"not measured: {type(error).__name__}: {' '.join(str(error).split())}"
            rows.append(Row(f"{name}/measured", 0.0, 1.0, says, is_bound=name in MUST_BE_MEASURED))
    return rows


def show(rows: Sequence[Row]) -> None:
    print(f"{'':44}{'figure':>12}{'target':>10}")
    for row in rows:
        missed = "" if not row.is_missed else "  OVER ITS BOUND" if row.is_bound else "  MISSED"
        print(f"{row.name:44}{row.ratio:12.2f}{row.aim:>10}   {row.says}{missed}")


def main(parts: Mapping[str, Callable[[], list[Row]]] = PARTS, *, folder: Path = BUILD) -> int:
    """The exit code: 1 where a cost grows faster than it may, or where that could not be found out."""
    rows = measure(parts)
    show(rows)
    folder.mkdir(exist_ok=True)
    (folder / "bench.json").write_text(json.dumps({row.name: round(row.ratio, 4) for row in rows}, indent=2) + "\n")
    over = [row.name for row in rows if row.is_bound and row.is_missed]
    if over:
        print(f"over their bounds, or not measured: {', '.join(over)}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"one of {', '.join(PARTS)}; without any: all")
    asked = parser.parse_args().parts or list(PARTS)
    if unknown := [name for name in asked if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}: it is one of {', '.join(PARTS)}")
    sys.exit(main({name: PARTS[name] for name in asked}))
