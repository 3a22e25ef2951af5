"""Who comes to the campaigns of the demonstration, and what is true of them. The policy has to find that out.

Whatever happens to somebody is drawn from the seed and from their number alone: a demonstration that was stopped goes
on where it was, and the same people come whatever is decided for them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from doral.delays import Law, Never, Pareto
from doral.problem import Arm, Context, Problem

MAIN = "test-kits"  # the campaign that is shown first
_CANCELLED = 0.01  # of those who are served
_CANCELLED_WITHIN_S = 30.0
_SAVING = 0.3  # of the uses of an arm that may cost less
_CHANCE_OF_ADDED, _DELAY_OF_ADDED = 0.5, Never(Pareto(minimum=10.0, shape=1.0), p=0.2)  # of an arm that was added
_HOUR_S = 3600.0


class Outcome(NamedTuple):
    """What happens to somebody who gets an arm, by seconds after the decision."""

    reward: float
    after_s: float  # math.inf: no answer ever comes
    actual_cost: float | None  # None: what was reserved
    cancelled_after_s: float | None  # the decision turns out not to be carried out


@dataclass(frozen=True, kw_only=True)
class Population:
    """Those who come to one campaign.

    Attributes:
        name: Of the campaign.
        problem: What the policy knows.
        chances: That an answer is a yes, by context and arm.
        delays: Seconds until an answer comes, by arm.
        per_s: Who comes per second, on average.
        seed: Of all draws.
        saves: Share of its cost that an arm at times turns out not to need, by arm.
        silent_after_s: Arms that stop answering, by seconds after the campaign began.
    """

    name: str
    problem: Problem
    chances: Mapping[str, Mapping[str, float]]
    delays: Mapping[str, Law]
    per_s: float
    seed: int
    saves: Mapping[str, float] = field(default_factory=dict)
    silent_after_s: Mapping[str, float] = field(default_factory=dict)

    def arrival(self, number: int) -> tuple[float, str]:
        """Seconds between the one before and this one, and this one's context; they are counted from 1."""
        draws = np.random.default_rng([self.seed, number])
        gap_s = float(draws.exponential(1.0 / self.per_s))
        contexts = self.problem.contexts
        return gap_s, str(draws.choice([one.name for one in contexts], p=[one.share or 0.0 for one in contexts]))

    def outcome(self, number: int, context: str, arm: str, *, cost: float, began_s: float) -> Outcome:
        """What comes of it when this one gets this arm, which may be one that somebody has added.

        Args:
            number: Of the one who came.
            context: Theirs.
            arm: That was chosen.
            cost: Of its use.
            began_s: Seconds since the campaign began.
        """
        uniforms = np.random.default_rng([self.seed, number, zlib.crc32(arm.encode())]).random(5)
        chance = self.chances[context].get(arm, _CHANCE_OF_ADDED)
        after_s = float(self.delays.get(arm, _DELAY_OF_ADDED).sample(uniforms[1:2])[0])
        if began_s >= self.silent_after_s.get(arm, math.inf):
            after_s = math.inf
        saves = self.saves.get(arm, 0.0)
        return Outcome(
            reward=float(uniforms[0] < chance),
            after_s=after_s,
            actual_cost=round(cost * (1.0 - saves), 2) if saves and uniforms[2] < _SAVING else None,
            cancelled_after_s=_CANCELLED_WITHIN_S * float(uniforms[4]) if uniforms[3] < _CANCELLED else None,
        )


def main_population(seed: int) -> Population:
    """Test kits: three ways to hand them out, people with different needs, answers with heavy tails."""
    per_s, planned_h, per_arrival = 2.0, 2.0, 1.4
    horizon = round(per_s * _HOUR_S * planned_h)
    return Population(
        name=MAIN,
        problem=Problem(
            arms=[Arm("by post", cost=1.0), Arm("pharmacy", cost=2.0), Arm("home visit", cost=5.0)],
            contexts=[
                Context("student", share=0.5),
                Context("worker", share=0.3),
                Context("elderly", share=0.2, weight=2.0),
            ],
            budget=per_arrival * horizon,
            horizon=horizon,
            deadline=300.0,
        ),
        chances={
            "student": {"by post": 0.40, "pharmacy": 0.45, "home visit": 0.40},
            "worker": {"by post": 0.15, "pharmacy": 0.60, "home visit": 0.55},
            "elderly": {"by post": 0.05, "pharmacy": 0.20, "home visit": 0.90},
        },
        delays={
            "by post": Never(Pareto(minimum=20.0, shape=0.8), p=0.25),
            "pharmacy": Never(Pareto(minimum=6.0, shape=1.0), p=0.15),
            "home visit": Never(Pareto(minimum=3.0, shape=1.5), p=0.05),
        },
        per_s=per_s,
        seed=seed,
        saves={"home visit": 0.3},
    )


def silent_population(seed: int) -> Population:
    """Reminders: a small campaign, one arm of which has stopped answering some time ago."""
    per_s, planned_h, per_arrival = 0.5, 2.0, 0.5
    horizon = round(per_s * _HOUR_S * planned_h)
    return Population(
        name="reminders",
        problem=Problem(
            arms=[Arm("text message", cost=0.1), Arm("call", cost=1.0)],
            contexts=[Context("first visit", share=0.6), Context("check-up", share=0.4)],
            budget=per_arrival * horizon,
            horizon=horizon,
            deadline=120.0,
        ),
        chances={
            "first visit": {"text message": 0.5, "call": 0.6},
            "check-up": {"text message": 0.3, "call": 0.7},
        },
        delays={
            "text message": Never(Pareto(minimum=5.0, shape=1.2), p=0.1),
            "call": Never(Pareto(minimum=10.0, shape=1.5), p=0.2),
        },
        per_s=per_s,
        seed=seed + 1,
        silent_after_s={"text message": 1_500.0},
    )


def populations(seed: int = 0) -> tuple[Population, ...]:
    """Those of all campaigns of the demonstration, the main one first."""
    return (main_population(seed), silent_population(seed))
