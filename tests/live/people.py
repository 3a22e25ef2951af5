"""Campaigns for people who have features, and an engine beside them that is told the same without a log."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

import doral
from doral.engine.engine import Engine, Heard, Who
from doral.live.campaign import Campaign
from doral.live.state.state import _blueprint
from doral.live.store import Store
from doral.live.views.decision import Decision
from doral.person import Levels, traits_of
from tests.live.checks import fold_of

ARMS = [doral.Arm(f"a{i}", features=[0.1 * i], cost=cost) for i, cost in enumerate((0.7, 1.1, 1.6))]
PERSON: list[str | doral.Number | doral.Category] = ["age", doral.Category("clinic", levels=["north"]), "km"]
CLINICS = ("south", "north", "west", "the moor")
ALL = np.zeros((1, 0), dtype=np.uint8)


def make_problem(**more: Any) -> doral.Problem:
    given: dict[str, Any] = {"budget": 260.0, "horizon": 900, "deadline": 60, **more}
    return doral.Problem(arms=ARMS, person=PERSON, **given)


def make(store: Store, name: str = "kits", problem: doral.Problem | None = None, **more: Any) -> Campaign:
    return store.create(name, problem or make_problem(), seed=3, clock="rounds", **more)


def somebody(rng: random.Random) -> dict[str, Any]:
    return {"age": rng.uniform(18, 95), "clinic": rng.choice(CLINICS), "km": rng.expovariate(0.1)}


def brings(decision: Decision, rng: random.Random) -> float:
    assert decision.features is not None
    age, clinic = decision.features["age"], decision.features["clinic"]
    assert isinstance(age, float)
    return 0.01 * age * (decision.arm != "a1") + 0.3 * (clinic == "west") + rng.gauss(0.2, 0.1)


def busy(campaign: Campaign, rounds: int, seed: int = 1, *, own: bool = True, keyed: bool = False) -> list[Decision]:
    """Arrivals, most of which are answered after a while."""
    rng = random.Random(seed)
    made: list[Decision] = []
    waiting: list[tuple[int, Decision]] = []
    contexts = campaign.problem.context_names
    for i in range(rounds):
        for due, one in [pair for pair in waiting if pair[0] <= i]:
            campaign.feedback(one.id, brings(one, rng))
            waiting.remove((due, one))
        asked: dict[str, Any] = {"context": rng.choice(contexts), "features": somebody(rng)}
        if own:
            asked["weight"] = rng.choice((None, 0.5, 3.0))
            asked["deadline"] = rng.choice((None, None, 7.0, 20.0))
        if keyed:
            asked["key"] = f"visit-{seed}-{i}"
        one = campaign.decide(**asked)
        made.append(one)
        if one.arm is not None and rng.random() < 0.7:
            waiting.append((i + rng.randint(1, 30), one))
    return made


class Beside:
    """An engine that is told what a campaign was told, event by event, without a log."""

    def __init__(self, campaign: Campaign) -> None:
        fold = fold_of(campaign)
        self.problem = fold.problem
        self.engine = Engine(_blueprint(fold.definition, fold.problem))
        self.levels = Levels(self.problem.person)
        self.numbers: dict[str, int] = {}

    def who(self, one: Decision, *, forgotten: bool = False) -> Who:
        assert one.features is not None
        values = [None if forgotten else one.features[name] for name in self.problem.person_names]
        own = (math.nan if value is None else value for value in (one.weight, one.deadline))
        return Who(traits_of(self.problem.person, self.levels, values), *own)

    def decide(self, one: Decision, *, forgotten: bool = False) -> None:
        """As the log of the campaign has it."""
        context, arm = self.problem.context_index(one.context), -1
        if one.arm is not None:
            arm, self.numbers[one.id] = self.problem.arm_index(one.arm), self.engine.played
        who = [self.who(one, forgotten=forgotten)]
        recorded = [(arm, one.cost)]
        list(self.engine.decide_many([context], ALL, [one.decided_at], recorded=recorded, who=who))

    def asks(self, one: Decision) -> None:
        """And it decides the same by itself."""
        if one.arm is not None:
            self.numbers[one.id] = self.engine.played
        chosen = self.engine.decide(self.problem.context_index(one.context), ALL, one.decided_at, who=self.who(one))
        assert (None if chosen.arm < 0 else self.problem.arm_names[chosen.arm]) == one.arm
        assert (chosen.value, chosen.price, chosen.probability) == (one.value, one.price, one.probability)

    def answer(self, one: Decision, *, at: float, forgotten: bool = False, is_recalled: bool = False) -> None:
        assert one.reward is not None
        assert one.arm is not None
        heard = Heard(
            self.numbers[one.id],
            one.reward,
            at,
            is_recalled=is_recalled,
            context=self.problem.context_index(one.context),
            arm=self.problem.arm_index(one.arm),
            age=at - one.decided_at,
        )
        self.engine.answer([heard], who=[self.who(one, forgotten=forgotten)])
