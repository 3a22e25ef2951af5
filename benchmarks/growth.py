"""How what a simulation costs grows with rounds, runs, contexts, arms and features: fitted exponents and their bounds.

    python benchmarks/growth.py [axis ...]

Times are processor time of one process, the best of several. Where people have features only the loop is timed, for it
is the simulator that draws people and what is true of them. `campaign_growth.py` does the same for live campaigns.
"""

from __future__ import annotations

import dataclasses
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from _kernel_run import new_task, play_once
from fitting import Growth, again_if_over, show

import doral
from doral.simulation.api import play_run
from doral.simulation.catalogue.people import NUMBERS, REWARD_SD, Lines, Visitors

POLICY = "doral-otf"
BASE = {"contexts": 10, "arms": 10, "features": 5}
SIZES = {
    "rounds": (1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
    "contexts": (10, 100, 1_000, 2_000, 4_000, 8_000),
    "arms": (10, 100, 300, 600, 1_200, 2_400),
    "features": (5, 20, 45, 70, 105, 160),
}
# What the algorithm costs: `pacing/edges.py` has the blocks, `engine/schedule.py` says when rounds have paid for what
# looks at everything.
ORDERS = {
    "rounds": (1.0, "every round costs the same"),
    "contexts": (0.5, "an arrival goes over blocks, and there are about the square root of the contexts"),
    "arms": (1.0, "an arrival values every arm of its context"),
    "features": (2.0, "an answer updates one inverse; what goes by the cube waits until rounds have paid for it"),
    "people_features": (2.0, "a person is valued by squares of the columns"),
    "people_arms": (1.0, "a person is valued for every arm"),
}
# Rounds grow with the size: what is looked at first, and what a young policy does more often, is to stay the same part.
ROUNDS_PER_ONE = {"contexts": 100, "arms": 20, "features": 200}
FEWEST_ROUNDS = {"contexts": 20_000, "arms": 20_000, "features": 10_000}
# Where people have features: numbers of a person and arms.
PEOPLE_BASE = {"people_features": 5, "people_arms": 10}
PEOPLE_SIZES = {"people_features": (5, 10, 20, 35, 60), "people_arms": (10, 25, 50, 100, 200)}
PEOPLE_ROUNDS = 20_000
RUNS = (300, 1_000, 2_000, 4_000)
SHORT = 200  # rounds of a run, where runs are what grows
LEAST_S = 0.3  # a size is played again and again for so long


def scenario(*, contexts: int, arms: int, features: int, rounds: int) -> doral.Scenario:
    """Half of the rounds can be played; rewards are linear, delays differ by arm."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.0, 1.0, (arms, features)) / math.sqrt(features)
    return doral.Scenario(
        name=f"{contexts}x{arms}x{features}",
        problem=doral.Problem(
            arms=[doral.Arm(f"a{i}", features=row) for i, row in enumerate(rows.tolist())],
            contexts={f"c{j}": 1.0 / contexts for j in range(contexts)},
            budget=rounds / 2,
            horizon=rounds,
            deadline=200,
        ),
        delays=[doral.delays.Geometric(20.0 + 100.0 * i / arms) for i in range(arms)],
    )


def seconds_per_run(place: doral.Scenario) -> float:
    """The best of several, set-up included."""
    options, best, spent, run = [doral.policy(POLICY)], math.inf, 0.0, 0
    while spent < LEAST_S or run < 2:
        start = time.thread_time()
        play_run(options, place, seed=1, run=run, keep_decisions=False)
        took = time.thread_time() - start
        best, spent, run = min(best, took), spent + took, run + 1
    return best


def people_scenario(*, numbers: int, arms: int, rounds: int) -> doral.Scenario:
    """As people/linear, with numbers beside the first five that have to do with nothing."""
    noise = numbers - len(NUMBERS)
    return doral.Scenario(
        name=f"people {numbers}x{arms}",
        problem=doral.Problem(
            arms=[doral.Arm(f"a{i}") for i in range(arms)],
            person=[*NUMBERS, *(f"noise_{number}" for number in range(1, noise + 1))],
            budget=rounds / 2,
            horizon=rounds,
            deadline=200,
        ),
        people=Visitors(noise=noise),
        means=Lines(),
        population=2_000,
        delays=[doral.delays.Geometric(20.0 + 100.0 * i / arms) for i in range(arms)],
        noise_sd=REWARD_SD,
    )


def _rounds(axis: str, size: int) -> int:
    if axis == "rounds":
        return size
    return max(FEWEST_ROUNDS[axis], ROUNDS_PER_ONE[axis] * size)


def measure(axis: str) -> list[Growth]:
    """One axis, the others as in the paper."""
    found = []
    for size in SIZES[axis]:
        rounds = _rounds(axis, size)
        shape = BASE if axis == "rounds" else {**BASE, axis: size}
        took = seconds_per_run(scenario(**shape, rounds=rounds))
        found.append(1e3 * took if axis == "rounds" else 1e6 * took / rounds)
    return [_growth(axis, "ms per run" if axis == "rounds" else "us per round", SIZES[axis], found)]


def measure_people(axis: str) -> list[Growth]:
    """One axis, the other as in people/linear; the best of three runs of the loop."""
    found = []
    for size in PEOPLE_SIZES[axis]:
        shape = {**PEOPLE_BASE, axis: size}
        place = people_scenario(numbers=shape["people_features"], arms=shape["people_arms"], rounds=PEOPLE_ROUNDS)
        task = new_task(doral.policy(POLICY), place, seed=1, run=0)
        found.append(1e6 * min(play_once(task).seconds for _ in range(3)) / PEOPLE_ROUNDS)
    return [_growth(axis, "us per round", PEOPLE_SIZES[axis], found)]


def _growth(axis: str, unit: str, sizes: tuple[int, ...], costs: list[float]) -> Growth:
    order, why = ORDERS[axis]
    of = axis.replace("people_features", "features of people").replace("people_arms", "arms, with people")
    return Growth(name=axis, of=of, unit=unit, order=order, why=why, sizes=sizes, costs=tuple(costs))


def _most_kilobytes() -> int:
    """What this process has had in memory at most. (`ru_maxrss` begins with what its parent had.)"""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def _play_runs() -> None:
    """In a process of its own, so that its largest size is that of the runs."""
    place = doral.scenario("paper/diverse-pareto")
    short = dataclasses.replace(place, problem=dataclasses.replace(place.problem, horizon=SHORT, budget=SHORT / 2))
    doral.simulate([POLICY], short, runs=10, n_jobs=1)
    empty = _most_kilobytes()
    seconds, kilobytes = [], []
    for runs in RUNS:
        start = time.process_time()
        doral.simulate([POLICY], short, runs=runs, n_jobs=1)
        seconds.append(time.process_time() - start)
        kilobytes.append(_most_kilobytes() - empty)
    print(json.dumps([seconds, kilobytes]))


def measure_runs() -> list[Growth]:
    """Short runs in one call of `simulate`: its time, and the memory that it takes on top of what a few take."""
    done = subprocess.run([sys.executable, __file__, "--play-runs"], check=True, stdout=subprocess.PIPE, text=True)
    seconds, kilobytes = json.loads(done.stdout)
    return [
        Growth(
            name="runs", of="runs", unit="s", order=1.0, why="every run costs the same", sizes=RUNS,
            costs=tuple(seconds),
        ),
        Growth(
            name="runs_memory", of="runs", unit="kB", order=1.0, why="what each run brought is kept, and nothing else",
            sizes=RUNS, costs=tuple(kilobytes),
        ),
    ]  # fmt: skip


AXES: dict[str, Callable[[], list[Growth]]] = {
    **{axis: partial(measure, axis) for axis in SIZES},
    "runs": measure_runs,
    **{axis: partial(measure_people, axis) for axis in PEOPLE_SIZES},
}


def growths(names: list[str] | None = None) -> list[Growth]:
    """All axes, or those of these names; what is over its bound was measured again."""
    return [one for name in names or AXES for one in again_if_over(AXES[name])]


if __name__ == "__main__":
    if sys.argv[1:] == ["--play-runs"]:
        _play_runs()
    else:
        show(growths(sys.argv[1:]))
