"""How the cost of a round grows with contexts, arms and features: seconds per round, set-up included, and exponents.

An arrival concerns one context, so the number of contexts should hardly matter; arms may cost in proportion, features
in proportion to their square. The same holds for features of people; there only the loop is timed, for it is the
simulator that draws people and what is true of them.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from _kernel_run import new_task, play_once

import doral
from doral.simulation.api import play_run
from doral.simulation.scenarios.people_scenarios import NUMBERS, REWARD_SD, Lines, Visitors

BASE = (10, 10, 5)  # contexts, arms, features
AXES = {"contexts": 0, "arms": 1, "features": 2}
SIZES = {"contexts": (10, 100, 1_000, 5_000), "arms": (10, 100, 1_000, 5_000), "features": (5, 20, 80, 200)}
# The time per round at the largest size, in times that at the smallest: at most.
BOUNDS = {"contexts": 8.0, "arms": 600.0, "features": 1_600.0}
# An arrival concerns one context; arms may cost in proportion, features in proportion to their square.
EXPONENTS = {"contexts": 0.6, "arms": 1.2, "features": 2.4}
ROUNDS = {"contexts": 200_000, "arms": 20_000, "features": 40_000}
# Where people have features: numbers of a person and arms.
PEOPLE_BASE = (5, 10)
PEOPLE_SIZES = {"people_features": (5, 10, 20, 50), "people_arms": (10, 50, 200)}
PEOPLE_BOUNDS = {"people_features": 40.0, "people_arms": 20.0}
PEOPLE_EXPONENTS = {"people_features": 2.4, "people_arms": 1.2}
PEOPLE_ROUNDS = 20_000
LEAST_S = 0.3  # a size is played again and again for so long


@dataclass(frozen=True)
class Growth:
    """Seconds per round along one axis."""

    policy: str
    axis: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def times(self) -> float:
        """The largest size in times of the smallest."""
        return self.seconds[-1] / self.seconds[0]

    @property
    def exponent(self) -> float:
        """Of the size, between the two largest: what matters in the long run."""
        return math.log(self.seconds[-1] / self.seconds[-2]) / math.log(self.sizes[-1] / self.sizes[-2])


def scenario(n_contexts: int, n_arms: int, n_features: int, rounds: int) -> doral.Scenario:
    """Half of the rounds can be played; rewards are linear, delays differ by arm."""
    rng = np.random.default_rng(0)
    features = rng.uniform(0.0, 1.0, (n_arms, n_features)) / math.sqrt(n_features)
    return doral.Scenario(
        name=f"{n_contexts}x{n_arms}x{n_features}",
        problem=doral.Problem(
            arms=[doral.Arm(f"a{i}", features=row) for i, row in enumerate(features.tolist())],
            contexts={f"c{j}": 1.0 / n_contexts for j in range(n_contexts)},
            budget=rounds / 2,
            horizon=rounds,
            deadline=200,
        ),
        delays=[doral.delays.Geometric(20.0 + 100.0 * i / n_arms) for i in range(n_arms)],
    )


def seconds_per_round(policy: str, place: doral.Scenario) -> float:
    """The best of several runs, in processor time."""
    options, best, spent, run = [doral.policy(policy)], math.inf, 0.0, 0
    while spent < LEAST_S or run < 2:
        start = time.thread_time()
        play_run(options, place, seed=1, run=run, keep_decisions=False)
        took = time.thread_time() - start
        best, spent, run = min(best, took), spent + took, run + 1
    return best / place.problem.horizon


def people_scenario(n_numbers: int, n_arms: int, rounds: int) -> doral.Scenario:
    """As people/linear, with numbers beside the first five that have to do with nothing."""
    noise = n_numbers - len(NUMBERS)
    return doral.Scenario(
        name=f"people {n_numbers}x{n_arms}",
        problem=doral.Problem(
            arms=[doral.Arm(f"a{i}") for i in range(n_arms)],
            person=[*NUMBERS, *(f"noise_{number}" for number in range(1, noise + 1))],
            budget=rounds / 2,
            horizon=rounds,
            deadline=200,
        ),
        people=Visitors(noise=noise),
        means=Lines(),
        population=2_000,
        delays=[doral.delays.Geometric(20.0 + 100.0 * i / n_arms) for i in range(n_arms)],
        noise_sd=REWARD_SD,
    )


def measure_people(policy: str, axis: str) -> Growth:
    """One axis, the other as in people/linear; the best of three runs of the loop."""
    found = []
    for size in PEOPLE_SIZES[axis]:
        n_numbers, n_arms = (size, PEOPLE_BASE[1]) if axis == "people_features" else (PEOPLE_BASE[0], size)
        task = new_task(doral.policy(policy), people_scenario(n_numbers, n_arms, PEOPLE_ROUNDS), seed=1, run=0)
        found.append(min(play_once(task).seconds for _ in range(3)) / PEOPLE_ROUNDS)
    return Growth(policy, axis, PEOPLE_SIZES[axis], tuple(found))


def measure(policy: str, axis: str) -> Growth:
    """One axis, the others as in the paper."""
    found = []
    for size in SIZES[axis]:
        shape = list(BASE)
        shape[AXES[axis]] = size
        found.append(seconds_per_round(policy, scenario(*shape, rounds=ROUNDS[axis])))
    return Growth(policy, axis, SIZES[axis], tuple(found))


def main() -> None:
    for policy in ("doral-otf", "d-lints", "d-linucb"):
        for axis in AXES:
            _show(measure(policy, axis))
    for axis in PEOPLE_SIZES:
        _show(measure_people("doral-otf", axis))


def _show(growth: Growth) -> None:
    speeds = ", ".join(f"{n:,}: {1.0 / s:,.0f}" for n, s in zip(growth.sizes, growth.seconds, strict=True))
    print(
        f"{growth.policy:10} {growth.axis:15} {growth.times:8.1f} times, exponent {growth.exponent:5.2f}   "
        f"rounds/s {speeds}"
    )


if __name__ == "__main__":
    main()
