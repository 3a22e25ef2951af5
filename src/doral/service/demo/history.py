"""The last half hour of a campaign of the demonstration, told to it in the order in which it happened."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

from doral.errors import InvalidValue
from doral.live.campaign import Campaign
from doral.live.store import Store
from doral.live.views.decision import Decision
from doral.service.demo.population import Population

HISTORY_S = 1_800.0
_SLICE_S = 60.0  # that is stored at once: what came back before it is known to whoever decides in it
_NEVER_S = 86_400.0  # heavy tails reach further than anybody looks
_KEY = "demo/"


class Due(NamedTuple):
    """Something that will be told; ordered by when."""

    at: float  # seconds since 1970
    number: int
    decision_id: str
    reward: float | None  # None: the decision is cancelled
    actual_cost: float | None

    @property
    def answer(self) -> dict[str, object]:
        """As `Campaign.feedback` takes it."""
        return {
            "decision_id": self.decision_id,
            "reward": self.reward,
            "actual_cost": self.actual_cost,
            "key": f"{_KEY}{self.number}",
        }


@dataclass(kw_only=True)
class Crowd:
    """Those who have come to one campaign, and what they still have to say."""

    population: Population
    began_at: float  # the campaign, in seconds since 1970
    came: int = 0
    due: list[Due] = field(default_factory=list)

    def next_arrival(self) -> tuple[float, dict[str, object]]:
        """Seconds after the one before, and what is asked of `Campaign.decide`."""
        self.came += 1
        gap_s, context = self.population.arrival(self.came)
        return gap_s, {"context": context, "key": f"{_KEY}{self.came}"}

    def hear(self, decision: Decision) -> None:
        """What was decided for one of them: what they will say about it."""
        if decision.arm is None or decision.key is None or not decision.key.startswith(_KEY):
            return
        number, made_at = int(decision.key.removeprefix(_KEY)), decision.decided_at
        outcome = self.population.outcome(
            number, decision.context, decision.arm, cost=decision.cost, began_s=made_at - self.began_at
        )
        if outcome.cancelled_after_s is not None:
            heapq.heappush(self.due, Due(made_at + outcome.cancelled_after_s, number, decision.id, None, None))
        elif outcome.after_s < _NEVER_S:
            told = Due(made_at + outcome.after_s, number, decision.id, outcome.reward, outcome.actual_cost)
            heapq.heappush(self.due, told)

    def take_due(self, until: float) -> list[Due]:
        """What is to be told by then, in its order; it is taken out."""
        found = []
        while self.due and self.due[0].at <= until:
            found.append(heapq.heappop(self.due))
        return found


def is_of(campaign: Campaign, population: Population) -> bool:
    """Whether it is a campaign of the demonstration: what people added to it while they played is no difference."""
    own, found = population.problem, campaign.problem
    return found.contexts == own.contexts and found.arms[: len(own.arms)] == own.arms


def refuse_others(store: Store, populations: tuple[Population, ...]) -> None:
    """A store with campaigns that are not the demonstration's is somebody's work."""
    known = {one.name: one for one in populations}
    for name in store.list():
        if name not in known or not is_of(store.campaign(name), known[name]):
            remedy = "is not of the demonstration; leave --storage out, or name a store that is empty"
            raise InvalidValue("campaign in the store", name, remedy)


def prepare(store: Store, population: Population, *, now: float) -> Crowd:
    """The campaign with its last half hour; one that is there goes on where it was."""
    if population.name in store.list():
        return _resume(store.campaign(population.name), population)
    began_at = now - HISTORY_S
    campaign = store.create(population.name, population.problem, seed=population.seed, at=began_at)
    crowd = Crowd(population=population, began_at=began_at)
    gap_s, arrival = crowd.next_arrival()
    at = began_at + gap_s
    end = began_at
    while end < now:
        end = min(end + _SLICE_S, now)
        arrivals = []
        while at < end:
            arrivals.append({**arrival, "at": at})
            gap_s, arrival = crowd.next_arrival()
            at += gap_s
        for decision in campaign.decide_many(arrivals):
            crowd.hear(decision)
        _tell(campaign, crowd.take_due(end))
        campaign.expire(now=end)
    crowd.came -= 1  # the one who comes next
    return crowd


def _tell(campaign: Campaign, due: list[Due]) -> None:
    campaign.feedback_many([{**one.answer, "at": one.at} for one in due if one.reward is not None])
    for one in due:
        if one.reward is None:
            campaign.cancel(one.decision_id, at=one.at)


def _resume(campaign: Campaign, population: Population) -> Crowd:
    began_at, came = campaign.session.read(lambda _, state: (state.definition.epoch, state.round))
    crowd = Crowd(population=population, began_at=began_at, came=came)
    for decision in campaign.decisions("pending"):
        crowd.hear(decision)
    return crowd
