"""Where everybody who arrives has features: the engine's speed as a share of hand-written C's (people.c).

Both play the same ready-made tapes, in turns, on one core; neither compiling nor recording a tape is timed. The program
does the same statistics and is not made to round as the engine does, so decisions differ now and then. That it does the
same work is seen from what it earns: within a point of the engine's share of the oracle, or this fails.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _kernel_run import Task, new_task, play_once
from engine_vs_c import BUILD, HERE, one_core

import doral
from doral.delays.kernels import PARETO
from doral.engine.setup import first_state
from doral.simulation.catalogue.people import many

# Decisions need not be the same to the bit: C may fuse.
FLAGS = ("-std=c11", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math")
MAGIC = 0x50504C45
NUMBERS = (5, 20)
RUNS = 4  # whose earnings are compared
ALIKE = 1.0  # points of the oracle's


@dataclass(frozen=True)
class PeopleComparison:
    """Medians over turns, and what both earn, in percent of the oracle."""

    n_numbers: int
    engine_rounds_per_s: float
    c_rounds_per_s: float
    ratio: float
    engine_earned: float
    c_earned: float


def scenario_of(n_numbers: int) -> doral.Scenario:
    """people/linear, or the same with numbers that have to do with nothing."""
    return doral.scenario("people/linear") if n_numbers == 5 else many(noise=n_numbers - 5)


def compile_program() -> Path:
    BUILD.mkdir(exist_ok=True)
    program = BUILD / "people-in-c"  # beside the folder of benchmarks/people.py
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, *FLAGS, "-o", str(program), str(HERE / "people.c"), "-lm"], check=True)
    return program


def write_input(task: Task, path: Path) -> None:
    """The file that `read_input` of people.c reads: a header, then arrays of 8-byte numbers."""
    world, problem, options = task.truth.world, task.scenario.problem, task.blueprint.options
    state, laws = first_state(task.blueprint), world.laws
    people = state.people
    if people.line.common.shape[1] != 1 or people.categories.size or np.unique(problem.costs).size > 1:
        raise AssertionError("people.c knows neither features of arms nor categories nor several prices")
    if not (laws.kind == PARETO).all() or laws.never.any():
        raise AssertionError("people.c knows Pareto delays alone")
    n_people, n_numbers = world.people.shape[0], problem.n_traits
    whole = [
        *(MAGIC, n_people, n_numbers, problem.n_arms, task.horizon, task.blueprint.ages.size),
        *(options.reservoir, state.rules.look_rounds, task.blueprint.run),
    ]
    real = [
        *(problem.budget, float(problem.deadlines[0]), world.noise_sd),
        *(options.exploration, 0.0, options.start_share),  # 0: people.c adds nothing to return probabilities
    ]
    arrays = [
        *(np.array(whole, dtype=np.int64), np.array(real, dtype=np.float64)),
        *(world.people[:, :n_numbers], world.means[0], laws.a[0, 0], laws.b[0, 0], task.blueprint.ages),
        *(task.tape.context, task.tape.noise, task.tape.delay),
    ]
    with path.open("wb") as file:
        for array in arrays:
            file.write(np.ascontiguousarray(array).tobytes())


def compare(n_numbers: int, program: Path, turns: int) -> PeopleComparison:
    """One number of features: what is earned in several runs, and the time that the first of them takes."""
    path, policy = BUILD / "people-input.bin", doral.policy("doral-otf")
    place = scenario_of(n_numbers)
    engine_s, c_s, engine_earned, c_earned = [], [], [], []
    try:
        for run in reversed(range(RUNS)):
            task = new_task(policy, place, seed=1, run=run)
            write_input(task, path)
            for _ in range(turns if run == 0 else 1):
                done = subprocess.run([str(program), str(path), "1"], check=True, capture_output=True, text=True)
                answer, played = json.loads(done.stdout), play_once(task)
                if run == 0:
                    c_s.append(answer["seconds"])
                    engine_s.append(played.seconds)
            engine_earned.append(100.0 * played.reward / task.truth.oracle)
            c_earned.append(100.0 * answer["reward"] / task.truth.oracle)
    finally:
        path.unlink(missing_ok=True)
    found = PeopleComparison(
        n_numbers=n_numbers,
        engine_rounds_per_s=task.horizon / statistics.median(engine_s),
        c_rounds_per_s=task.horizon / statistics.median(c_s),
        ratio=statistics.median(c / engine for c, engine in zip(c_s, engine_s, strict=True)),
        engine_earned=statistics.mean(engine_earned),
        c_earned=statistics.mean(c_earned),
    )
    if abs(found.engine_earned - found.c_earned) > ALIKE:
        raise AssertionError(f"people.c does something else: {found}")
    return found


def compare_all(*, turns: int = 9) -> list[PeopleComparison]:
    program = compile_program()
    with one_core():
        return [compare(n_numbers, program, turns) for n_numbers in NUMBERS]


if __name__ == "__main__":
    print(f"{'':12}{'engine':>10}{'C':>10}{'share':>8}   (thousand rounds per second)   earned: engine, C")
    for row in compare_all():
        speeds = f"{row.engine_rounds_per_s / 1e3:10.0f}{row.c_rounds_per_s / 1e3:10.0f}{row.ratio:8.2f}"
        earned = f"{row.engine_earned:.1f} and {row.c_earned:.1f}% of the oracle"
        print(f"{row.n_numbers:4} numbers{speeds}   {earned}")
