"""The engine's speed as a share of hand-written C's (engine.c), on the same work with the same decisions.

Both play the same ready-made tapes, in turns, on one core; neither compiling nor recording a tape is timed. The program
is compiled for this machine like the engine's own code, and must agree with the engine on every decision: a faster
program that does something else is no yardstick.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _kernel_run import Played, Task, checkpoints, new_task, play_once

import doral
from doral.engine.learn import REFRESH_ROUNDS
from doral.engine.race import DELTA, TAIL_EXPONENT, width_constant
from doral.estimators.ridge import REFACTOR_EVERY
from doral.simulation.catalogue.paper import BUDGET, HORIZON

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
# No fused multiply-add: the engine's compiler does not fuse, and one fused operation would change decisions. The other
# two flags change no result; they spare C work that the engine's compiler does not do either.
FLAGS = ("-std=c11", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")

MAGIC = 0x444F5243
POLICIES = {"d-linucb": 0, "doral": 1}
SETTINGS = {"geometric": "paper/diverse-geometric", "pareto": "paper/diverse-pareto"}


@dataclass(frozen=True)
class Comparison:
    """One policy in one setting."""

    name: str
    engine_rounds_per_s: float
    c_rounds_per_s: float

    @property
    def ratio(self) -> float:
        return self.engine_rounds_per_s / self.c_rounds_per_s


def compile_program() -> Path:
    """build/engine, made anew: -march=native is for the machine at hand."""
    BUILD.mkdir(exist_ok=True)
    program = BUILD / "engine"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, *FLAGS, "-o", str(program), str(HERE / "engine.c"), "-lm"], check=True)
    return program


def paper_task(setting: str, policy: str, *, budget: float = BUDGET, run: int = 0, unit_costs: bool = True) -> Task:
    """The paper's diverse settings: 10 contexts, 10 arms, 5 features."""
    scenario = doral.scenario(SETTINGS[setting])
    costs = np.ones(scenario.problem.n_arms) if unit_costs else np.random.default_rng(run).integers(1, 5, 10) / 2.0
    arms = tuple(
        doral.Arm(arm.name, features=arm.features, cost=cost)
        for arm, cost in zip(scenario.problem.arms, costs.tolist(), strict=True)
    )
    problem = dataclasses.replace(scenario.problem, budget=budget, arms=arms)
    return new_task(doral.policy(policy), dataclasses.replace(scenario, problem=problem), seed=1, run=run)


def write_input(task: Task, policy: str, path: Path) -> None:
    """The file that `read_input` of engine.c reads: a header, then arrays of 8-byte numbers."""
    blueprint, laws, problem = task.blueprint, task.truth.world.laws, task.scenario.problem
    options, ages = blueprint.options, blueprint.ages
    whole = [
        *(MAGIC, POLICIES[policy], problem.n_contexts, problem.n_arms, problem.n_features, task.horizon),
        *(REFRESH_ROUNDS, REFACTOR_EVERY, ages.size, checkpoints(task).size, laws.kind.shape[1]),
        *(blueprint.seed, blueprint.run, options.accepted_of(problem.n_arms), options.min_answers),
    ]
    real = [
        *(problem.budget, blueprint.cutoff, problem.deadline, options.penalty, options.delta, options.exploration),
        *(DELTA, TAIL_EXPONENT, width_constant(problem.budget)),
        *(options.race_budget_share, task.truth.world.noise_sd),
    ]
    by_cost = np.argsort(problem.costs, kind="stable").astype(np.int64)
    arrays = [
        *(np.array(whole, dtype=np.int64), np.array(real, dtype=np.float64)),
        *(blueprint.features, task.truth.world.means),
        *(problem.shares, problem.costs, by_cost, laws.kind, laws.a, laws.b, laws.never, laws.threshold),
        *(ages, checkpoints(task), task.tape.context, task.tape.noise, task.tape.delay),
    ]
    with path.open("wb") as file:
        for array in arrays:
            file.write(np.ascontiguousarray(array).tobytes())


def checksum(played: Played) -> int:
    """One number for all decisions, as engine.c computes it."""
    n = played.decisions
    n_arms = np.uint64(played.state.hulls.costs.size)
    x = played.book.entries["round"][:n].astype(np.uint64) * n_arms + played.book.entries["arm"][:n].astype(np.uint64)
    x *= np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(32)
    return int((x * np.uint64(0xD2E7470EE14C6C93)).sum(dtype=np.uint64))


def check_same(name: str, played: Played, answer: dict[str, Any]) -> None:
    """Raises unless both did the same."""
    mine = {
        "decisions": played.decisions,
        "race_rounds": played.race_rounds,
        "checksum": checksum(played),
        "spend": played.spend,
        "cutoff": played.cutoff,
    }
    wrong = [f"{key}: engine {value}, C {answer[key]}" for key, value in mine.items() if value != answer[key]]
    if not abs(played.reward - answer["reward"]) <= 1e-9 * abs(played.reward):
        wrong.append(f"reward: engine {played.reward}, C {answer['reward']}")
    if wrong:
        raise AssertionError(f"{name}: engine and C differ; " + "; ".join(wrong))


@contextmanager
def one_core() -> Iterator[None]:
    """This process and the programs that it starts stay on one core, where the system can do that."""
    if sys.platform != "linux":
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def compare(name: str, task: Task, policy: str, program: Path, turns: int, repeats: int) -> Comparison:
    """The best time of each, over `turns` turns of `repeats` runs."""
    path = BUILD / "engine-input.bin"
    write_input(task, policy, path)
    play_once(task)  # compiles
    c_seconds, engine_seconds = float("inf"), float("inf")
    try:
        for _ in range(turns):
            done = subprocess.run([str(program), str(path), str(repeats)], check=True, capture_output=True, text=True)
            answer = json.loads(done.stdout)
            c_seconds = min(c_seconds, answer["seconds"])
            for _ in range(repeats):
                played = play_once(task)
                engine_seconds = min(engine_seconds, played.seconds)
            check_same(name, played, answer)
    finally:
        path.unlink()
    return Comparison(name, task.horizon / engine_seconds, task.horizon / c_seconds)


def compare_all(*, turns: int = 5, repeats: int = 4) -> list[Comparison]:
    """Both policies in both settings. D-LinUCB has a budget for every round: otherwise it skips the second half."""
    program = compile_program()
    with one_core():
        return [
            compare(
                f"{policy}/{setting}",
                paper_task(setting, policy, budget=budget),
                policy,
                program,
                turns,
                repeats,
            )
            for policy, budget in (("d-linucb", float(HORIZON)), ("doral", BUDGET))
            for setting in SETTINGS
        ]


def check_decisions(runs: int = 3) -> None:
    """Same decisions also where it is not timed: other seeds, a budget that runs out, different costs."""
    program = compile_program()
    for policy in POLICIES:
        for setting in SETTINGS:
            for run in range(runs):
                for unit_costs in (True, False):
                    task = paper_task(setting, policy, run=run, unit_costs=unit_costs)
                    compare(f"{policy}/{setting}/run {run}", task, policy, program, turns=1, repeats=1)


def ratios(comparisons: list[Comparison]) -> dict[str, float]:
    """`engine_vs_c/<policy>`: the engine's speed as a share of C's, the smaller of the two settings'."""
    found: dict[str, float] = {}
    for comparison in comparisons:
        key = f"engine_vs_c/{comparison.name.partition('/')[0]}"
        found[key] = min(found.get(key, float("inf")), comparison.ratio)
    return found


if __name__ == "__main__":
    check_decisions()
    compared = compare_all()
    print(f"{'':22}{'engine':>12}{'C':>12}{'share':>8}   (million rounds per second)")
    for row in compared:
        print(f"{row.name:22}{row.engine_rounds_per_s / 1e6:12.2f}{row.c_rounds_per_s / 1e6:12.2f}{row.ratio:8.2f}")
    print(json.dumps(ratios(compared)))
