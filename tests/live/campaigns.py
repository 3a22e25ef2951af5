"""Small campaigns of every kind, for tests of what they show of themselves."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import doral
from doral.live.campaign import Campaign
from doral.live.store import Store
from tests.live import people

DAY = 86_400.0
ARMS = [
    doral.Arm("home kit", features=[0.2, 0.7], cost=1.0),
    doral.Arm("clinic visit", features=[0.9, 0.1], cost=4.0),
    doral.Arm("letter", features=[0.1, 0.1], cost=0.5),
]
USUAL = [doral.Arm("usual", features=[0.0, 0.0], cost=0.0), *ARMS]


def in_rounds(store: Store, name: str = "rounds", n: int = 150, policy: Any = "doral-otf", **changes: Any) -> Campaign:
    """Answers come at once, or never."""
    given: dict[str, Any] = {"arms": ARMS, "contexts": {"old": 0.4, "young": 0.6}, "budget": 200.0, "horizon": 400}
    problem = doral.Problem(**{**given, "deadline": 20, **changes})
    campaign = store.create(name, problem, policy=policy, seed=1, clock="rounds")
    rng = random.Random(2)
    for i in range(n):
        made = campaign.decide(rng.choice(problem.context_names))
        if made.state == "pending" and rng.random() < 0.6:
            paid: Any = {"actual_cost": made.cost / 2} if problem.paid == "on_answer" else {}
            campaign.feedback(made.id, float(rng.random() < 0.5), **paid)
        if i % 50 == 49:
            campaign.expire()
    return campaign


def in_days(
    store: Store, name: str = "days", n: int = 240, days: int = 20, until: float | None = None, **changes: Any
) -> Campaign:
    """Answers take days; some are late, corrected or cancelled."""
    given: dict[str, Any] = {"arms": ARMS, "contexts": {"old": 0.4, "young": 0.6}, "budget": 300.0, "horizon": 600}
    problem = doral.Problem(**{**given, "deadline": 5 * DAY, **changes})
    began = time.time() - days * DAY
    end: Any = {} if until is None else {"until": began + (days + until) * DAY}
    campaign = store.create(name, problem, seed=1, at=began, **end)
    rng, waiting = random.Random(4), list[tuple[float, str]]()
    for i in range(n):
        at = began + (i + 0.5) * days * DAY / n
        while waiting and waiting[0][0] <= at:
            came, answered = waiting.pop(0)
            campaign.feedback(answered, float(rng.random() < 0.5), at=came)
            if i % 30 == 7:
                campaign.correct(answered, 0.25, at=at)
        if i % 40 == 39:
            campaign.expire(now=at)
        made = campaign.decide(rng.choice(problem.context_names), at=at)
        if made.state == "pending" and i % 25 == 3:
            campaign.cancel(made.id, at=at)
        elif made.state == "pending" and rng.random() < 0.7:
            waiting.append((at + rng.expovariate(1 / (2 * DAY)), made.id))
            waiting.sort()
    campaign.top_up(50.0)
    campaign.pause_arm(problem.arm_names[-1])
    return campaign


def of_people(store: Store) -> Campaign:
    campaign = people.make(store, "people")
    people.busy(campaign, 80)
    return campaign


def closed(store: Store) -> Campaign:
    campaign = in_rounds(store, "closed", 40)
    campaign.close()
    return campaign


KINDS: dict[str, Callable[[Store], Campaign]] = {
    "rounds": in_rounds,
    "days": in_days,
    "until a date": lambda store: in_days(store, "until", 120, until=15.0),
    "empty": lambda store: in_rounds(store, "empty", 0),
    "empty in seconds": lambda store: store.create("empty-s", in_rounds(store, "e", 0).problem),
    "one decision": lambda store: in_rounds(store, "one", 1, arms=ARMS[:1], contexts=["all"]),
    "closed": closed,
    "racing": lambda store: in_rounds(store, "racing", 30, policy="doral"),
    "raced": lambda store: in_rounds(store, "raced", 200, policy="doral"),
    "used up": lambda store: in_rounds(store, "used", budget=5.0),
    "no deadline": lambda store: in_rounds(store, "endless", deadline=None),
    "baseline": lambda store: in_rounds(store, "baseline", baseline=0.2),
    "observed baseline": lambda store: in_rounds(store, "observed", baseline="observed"),
    "control": lambda store: in_rounds(store, "control", arms=USUAL, baseline="usual"),
    "paid on answer": lambda store: in_rounds(store, "paid", paid="on_answer"),
    "likely reserve": lambda store: in_rounds(store, "likely", paid="on_answer", reserve=0.9),
    "people": of_people,
}  # fmt: skip
