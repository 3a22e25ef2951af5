"""Campaigns of people for tests: random arrivals and answers, played by the compiled engine."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from doral._arrays import Floats
from doral.engine.engine import Decided, Engine, Heard, Who
from doral.engine.options import PolicyOptions
from doral.engine.options import policy_of as named_policy
from doral.engine.setup import Blueprint
from doral.person import Category, Number
from doral.problem import Arm, Context, Problem

ALL_ARMS = np.zeros((1, 0), dtype=np.uint8)


def problem_of(**changes: Any) -> Problem:
    """Two contexts that differ in all that they can, three numbers and a category."""
    words: dict[str, Any] = {
        "arms": [
            Arm("a", features=[1.0, 0.0], cost={"x": 1.0, "y": 1.5}),
            Arm("b", features=[0.0, 1.0], cost={"x": 2.0, "y": 1.0}),
            Arm("c", features=[0.5, 0.7]),
        ],
        "contexts": [Context("x", tier=1, weight=2.0), Context("y", deadline=20.0)],
        "person": [Number("age"), Number("km"), Category("clinic"), Number("returning")],
        "missing": "mean",
        "reserves": {1: 0.2},
        "budget": 253.7,  # no whole number of people per round: the price would be any of two
        "horizon": 400,
        "deadline": 12.0,
        **changes,
    }
    return Problem(**words)


def policy_of(**changes: Any) -> PolicyOptions:
    return named_policy("doral-otf", {"reservoir": 24, "start_share": 0.0, **changes})


@dataclasses.dataclass
class Made:
    """A decision that was played."""

    number: int
    context: int
    arm: int
    time: float
    who: Who
    reason: int


class Campaign:
    """People come one by one, and answer after a while, or never."""

    def __init__(
        self,
        problem: Problem,
        options: PolicyOptions,
        *,
        seed: int = 0,
        reward: Callable[[Any, Floats, int], float] | None = None,
        traits: Callable[[Any], Floats] | None = None,
        availability: float = 1.0,
        own_terms: float = 0.0,
        answered: float = 0.85,
    ) -> None:
        self.problem, self.engine = problem, Engine(Blueprint(options=options, problem=problem, seed=seed))
        self.rng = np.random.default_rng(seed)
        self.clock, self.spent = 0.0, 0.0
        self.made: list[Made] = []
        self.open: list[tuple[float, Made, float]] = []
        self.decided: list[Decided] = []
        self.reward, self.traits = reward or usual_reward, traits or self._traits
        self.availability, self.own_terms, self.answered = availability, own_terms, answered

    def _traits(self, rng: Any) -> Floats:
        traits = rng.normal(50.0, 10.0, self.problem.n_traits)
        for column in self.problem.category_columns:
            traits[column] = float(rng.geometric(0.2) - 1)
        if self.problem.missing == "mean":
            traits[rng.random(traits.size) < 0.05] = math.nan
        return np.asarray(traits)

    def hear(self) -> None:
        """Answers that are due by now."""
        due = [one for one in self.open if one[0] <= self.clock]
        self.open = [one for one in self.open if one[0] > self.clock]
        for when, made, reward in sorted(due, key=lambda one: one[0]):
            self.engine.answer([Heard(made.number, reward, when)], who=[made.who])
            if self.problem.paid == "on_answer":
                self.engine.pay(
                    number=made.number, context=made.context, arm=made.arm, age=when - made.time, change=reward > 1.0
                )

    def arrive(self) -> tuple[Decided, int, Who, Any]:
        self.clock += 1.0
        self.hear()
        rng = self.rng
        context, traits = int(rng.integers(self.problem.n_contexts)), self.traits(rng)
        who = Who(traits.tolist())
        if rng.random() < self.own_terms:
            who = who._replace(weight=float(rng.uniform(0.5, 3.0)), deadline=float(rng.uniform(2.0, 12.0)))
        offered = ALL_ARMS
        if rng.random() >= self.availability:
            offered = np.ones((1, self.problem.n_arms), dtype=np.uint8)
            offered[0, int(rng.integers(self.problem.n_arms))] = 0
        before = self.engine.played
        decided = self.engine.decide(context, offered, self.clock, who=who)
        self.decided.append(decided)
        if self.engine.played > before:
            arm = decided.arm if decided.arm >= 0 else self.problem.control
            assert arm is not None
            made = Made(before, context, arm, self.clock, who, decided.reason)
            self.made.append(made)
            self.spent += float(
                self.problem.costs_by_context[min(context, len(self.problem.costs_by_context) - 1), arm]
            )
            reward = self.reward(rng, traits, arm)
            if rng.random() < self.answered and (self.problem.feedback == "explicit" or reward != 0.0):
                self.open.append((self.clock + float(rng.exponential(4.0)), made, reward))
        return decided, context, who, offered

    def play(self, n: int) -> Campaign:
        for _ in range(n):
            self.arrive()
        return self


def usual_reward(rng: Any, traits: Floats, arm: int) -> float:
    x = (np.nan_to_num(traits, nan=50.0) - 50.0) / 10.0
    return float(3.0 + 0.5 * arm + 0.3 * x[0] + 0.3 * x[-1] * (arm - 1) + rng.normal())


def amended(campaign: Campaign, made: Made) -> None:
    """Set the features of a decision first, as live campaigns do."""
    campaign.engine.recall_features(made.number, made.context, made.who)


__all__ = ["ALL_ARMS", "Campaign", "Made", "amended", "policy_of", "problem_of", "usual_reward"]
