"""No library: somebody who knows what every arm is worth, and keeps the budget in the plain ways.

What a library around which `plain.py` is written cannot expect to pass, whatever it learns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from plain import Plain
from play import Job, Tape

NAME = "true worths known, plain budget"


class Known(Plain):
    """Takes the arm that is worth most per unit of cost; contexts are ranked by what that is worth."""

    def __init__(self, tape: Tape, seed: int, way: str) -> None:
        super().__init__(tape.problem, seed, way)
        context = np.array(tape.context)
        self._worth = np.array(tape.worth) / self.costs[context]
        if self.problem.control is not None:
            self._worth[:, self.problem.control] = -np.inf
        best, number = self._worth.max(axis=1), np.bincount(context, minlength=self.problem.n_contexts)
        total = np.bincount(context, best, minlength=self.problem.n_contexts)
        self._values = total / np.maximum(number, 1)

    def values(self) -> Any:
        return self._values

    def choose(self, arrival: Any) -> int:
        worth = self._worth[arrival.round - 1]
        arm = max(arrival.available, key=worth.__getitem__)
        self.score = worth[arm]
        return int(arm)

    def learn(self, answer: Any, worth: float) -> None:
        pass


class _Told(Job):
    """A job whose policy is told the whole tape."""

    def made(self, maker: Any, tape: Tape, seed: int, way: str) -> Known:
        return Known(tape, seed, way)


def play_known(tapes: list[str], trial: str) -> dict[str, Any]:
    """As a peer is played: the way is chosen on the tape for trials."""
    told = {"policy": NAME, "limit_s": np.inf, "tapes": tapes, "trial": trial}
    return _Told(told).played(Known)
