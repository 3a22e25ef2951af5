"""DORAL in a process that does nothing else, measured as every peer is: import (beyond NumPy), memory, and

- `own_process.py simulate POLICY`: what the first call takes;
- `own_process.py online POLICY TAPE LIMIT_S`: rounds per second, a call from Python for each decision and each answer.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

from play import Job, Tape, peak_mb

before = time.process_time()
import doral  # noqa: E402

play = doral.simulate  # names are imported when they are first asked for
import_s = time.process_time() - before
TIMED = "paper/diverse-pareto"


class Online:
    """A campaign in memory, played by `play.py` as a peer is: names for numbers and back is its user's part."""

    WAYS = ("own",)

    def __init__(self, tape: Tape, policy: str) -> None:
        known, features = doral.scenario(TIMED).problem, tape.problem.arm_features.tolist()
        arms = [dataclasses.replace(arm, features=tuple(row)) for arm, row in zip(known.arms, features, strict=True)]
        problem = dataclasses.replace(known, arms=tuple(arms), horizon=tape.rounds, budget=tape.problem.budget)
        self._contexts, self._arms = problem.context_names, {name: arm for arm, name in enumerate(problem.arm_names)}
        self._campaign = doral.open("memory://").create("timed", problem, policy=policy, seed=1, clock="rounds")
        self._ids: dict[int, str] = {}  # by round

    def decide(self, arrival: Any) -> int | None:
        decision = self._campaign.decide(self._contexts[arrival.context])
        self._ids[arrival.round] = decision.id
        return None if decision.arm is None else self._arms[decision.arm]

    def observe(self, answer: Any) -> None:
        self._campaign.feedback(self._ids.pop(answer.decided), answer.reward)


class _Online(Job):
    def made(self, maker: Any, tape: Tape, seed: int, way: str) -> Online:
        return Online(tape, self.policy)


def simulate(policy: str) -> dict[str, Any]:
    started = time.process_time()
    play(policy, TIMED, runs=1, progress=False)
    return {"first_s": time.process_time() - started}


def online(policy: str, tape: str, limit_s: str) -> dict[str, Any]:
    warm = Online(Tape(Path(tape)), policy)  # compiled code is loaded before anything is timed, as a library is
    warm._campaign.decide(warm._contexts[0])
    told = {"policy": policy, "tapes": [tape], "limit_s": float(limit_s), "speed": True}
    (run,) = _Online(told).played(Online)["runs"]
    return {"rounds_per_s": run["rounds"] / run["own_seconds"], "earned": run["expected"]}


if __name__ == "__main__":
    found = {"simulate": simulate, "online": online}[sys.argv[1]](*sys.argv[2:])
    print(json.dumps({"import_s": import_s, "peak_mb": peak_mb(), **found}))
