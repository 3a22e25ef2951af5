"""Steps per second of environments: many runs at once beside Gymnasium's own loop over single ones, in turns.

    python benchmarks/environments.py [name ...]

Processor time, because machines are shared; the ratio is the median of the turns.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import gymnasium

import doral.gym

NAMES = ("doral/Tiny-v0", "doral/DiversePareto-v0", "doral/PeopleLinear-v0")
TURNS, STEPS = 5, 20_000


def rate(envs: Any, n: int) -> float:
    """Steps per second, of all runs together."""
    envs.reset(seed=0)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(50)]
    started = time.process_time()
    for i in range(STEPS // n):
        envs.step(actions[i % len(actions)])
    return STEPS / (time.process_time() - started)


def main() -> None:
    gymnasium.register_envs(doral.gym)
    for name in sys.argv[1:] or NAMES:
        for n in (8, 64):
            both = [gymnasium.make_vec(name, n, mode) for mode in ("vector_entry_point", "sync")]
            turns = [[rate(envs, n) for envs in both] for _ in range(TURNS)]
            many, one_by_one = (statistics.median(column) for column in zip(*turns, strict=True))
            ratio = statistics.median(mine / theirs for mine, theirs in turns)
            print(f"{name}, {n} at once: {many:,.0f} steps/s, one by one {one_by_one:,.0f}, ratio {ratio:.1f}")


if __name__ == "__main__":
    main()
