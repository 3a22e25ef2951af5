"""Small problems of every kind, with the presets that can play them, and random games on interpreted kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from doral.engine.events import prepare
from doral.engine.options import POLICY_NAMES, PolicyOptions, policy_of
from doral.engine.setup import Blueprint, check_problem, first_state
from doral.engine.state import State
from doral.errors import InvalidValue
from doral.person import Category, Number
from doral.problem import Arm, Context, Problem
from tests.engine.interpreted import Player, as_python, small_problem

N_TRUE = 500  # arrivals for which true values are drawn

_CONTEXTS = [Context("x", 0.5, deadline=6.0, tier=1), Context("y", 0.3, weight=2.0), Context("z", 0.2)]
_COSTS: tuple[float | dict[str, float], ...] = (1.0, {"x": 0.5, "y": 2.0, "z": 1.5}, 0.0)
_PEOPLE: dict[str, Any] = {"person": [Number("age"), Category("clinic")], "missing": "mean"}


def _dear(**changes: Any) -> Problem:
    """Return a problem with costs by context, tiers, and deadlines of its contexts."""
    words: dict[str, Any] = {"budget": 60.0, "horizon": 120, "deadline": 15.0, "reserves": {1: 0.3}, **changes}
    arms = [Arm(f"a{i}", features=[1.0, 0.3 * i], cost=cost) for i, cost in enumerate(_COSTS)]
    return Problem(arms=arms, contexts=_CONTEXTS, **words)


KINDS: dict[str, Problem] = {
    "plain": small_problem(),
    "shares unknown": small_problem(contexts=["x", "y"]),
    "no deadline": small_problem(deadline=None),
    "many features": Problem(
        arms=[Arm(f"a{i}", features=np.roll(np.linspace(0.0, 1.0, 16), i)) for i in range(3)],
        contexts=["x", "y"],
        budget=50.0,
        horizon=100,
        deadline=20.0,
    ),
    "silent": small_problem(feedback="silent"),
    "by end": small_problem(counted="by_end"),
    "until a date": small_problem(horizon=0, until=80.0, expected_arrivals=90),
    "costs by context": _dear(),
    "paid on answer": _dear(paid="on_answer", reserve=0.9),
    "known baseline": small_problem(baseline=0.3),
    "observed baseline": small_problem(baseline="observed"),
    "silent baseline": small_problem(baseline="observed", feedback="silent"),
    "people": small_problem(**_PEOPLE),
    "silent people": small_problem(feedback="silent", **_PEOPLE),
    "people paid on answer": _dear(paid="on_answer", **_PEOPLE),
}
CHANGED: dict[str, tuple[str, dict[str, Any]]] = {  # parts of the state that no preset has
    "min_age race": ("doral", {"censoring": "min_age", "min_answers": 3}),
    "curves of outcomes": ("doral-otf", {"outcome_split": 0.5}),
    "half-life": ("doral-otf", {"half_life": 20.0}),
    "window": ("doral", {"learner": "thinned", "screening": "none"}),
    "explore": ("doral-otf", {"explore": 0.2}),
    "factors": ("doral", {"learner": "scaled", "screening": "none", "cutoff": 10.0}),
}


def policies() -> dict[str, PolicyOptions]:
    """Return the presets by name, and a few changed ones; with few rows, because kernels are interpreted."""
    named = {**{name: (name, dict[str, Any]()) for name in POLICY_NAMES}, **CHANGED}
    return {label: policy_of(name, {"reservoir": 12, **options}) for label, (name, options) in named.items()}


@dataclass(frozen=True, eq=False)
class Case:
    """A policy for a problem."""

    policy: str
    kind: str
    blueprint: Blueprint

    def __repr__(self) -> str:
        return f"{self.policy}, {self.kind}"


def blueprint_of(options: PolicyOptions, problem: Problem, *, seed: int = 3) -> Blueprint:
    """Return a blueprint with true values and return probabilities where the policy is given them."""
    rng = np.random.default_rng(seed)
    n_true = N_TRUE if problem.person else problem.n_contexts
    return Blueprint(
        options=options,
        problem=problem,
        seed=seed,
        oracle=np.linspace(0.0, 1.0, 30)[None, None].repeat(problem.n_arms, axis=1),
        true_values=rng.uniform(-0.2, 1.0, (2, n_true, problem.n_arms)) if options.sampling == "oracle" else None,
    )


def cases() -> Iterator[Case]:
    """Iterate over all policies with all problems that they accept."""
    for name, options in policies().items():
        for kind, problem in KINDS.items():
            try:
                check_problem(options, problem)
                blueprint = blueprint_of(options, problem)
                assert blueprint.cutoff is not None
            except InvalidValue:
                continue
            yield Case(name, kind, blueprint)


CASES = tuple(cases())


def new_player(blueprint: Blueprint) -> Player:
    """Return a player on a prepared first state, for interpreted kernels."""
    state: State = as_python(first_state(blueprint))
    prepare(state)
    return Player(state)


class Game:
    """Random arrivals and answers; two games with the same seed have the same events."""

    def __init__(self, player: Player, problem: Problem, seed: int) -> None:
        self.player, self.problem = player, problem
        self.rng = np.random.default_rng(seed)
        self.clock, self.pending = 0.0, list[tuple[float, int]]()

    def play(self, n: int) -> list[tuple[Any, ...]]:
        """Play n arrivals with the answers that are due; return what was decided."""
        decided = []
        for _ in range(n):
            self.clock += float(self.rng.exponential(0.8))
            self._answer()
            context, people = int(self.rng.integers(self.problem.n_contexts)), self.problem.person
            traits = np.array([self.rng.normal(), float(self.rng.integers(40)), 1.0][: len(people) + 1])
            who = int(self.rng.integers(N_TRUE))
            before = int(self.player.state.now[0].next)
            words: dict[str, Any] = {}
            if people:
                words["traits"] = np.append(traits[: len(people)], who)
            choice = self.player.decide(context, self.clock, **words)
            decided.append(tuple(choice))
            delay = float(self.rng.exponential(5.0))
            if self.player.state.now[0].next > before and self.rng.random() < 0.7:
                self.pending.append((self.clock + delay, before))
        return decided

    def _answer(self) -> None:
        due = sorted(one for one in self.pending if one[0] <= self.clock)
        self.pending = [one for one in self.pending if one[0] > self.clock]
        for when, number in due:
            self.player.answer(number, float(self.rng.choice([0.0, 0.4, 1.0])), when)
