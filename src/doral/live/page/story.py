"""What is known of one decision: how it was made, and what became of it, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from doral.live.events.event import IS_EXPIRED, IS_LATE, Answered, Cancelled, Corrected, Settled
from doral.live.kinds.request import Subject
from doral.live.runtime.session import Session
from doral.live.state.parts import read_id
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision
from doral.live.views.text import span
from doral.pages.numbers import figure


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something that happened to it."""

    kind: str  # "decided", "answered", "corrected", "cancelled", "expired"
    at: float | None  # on the campaign's clock for people; None: nobody noted when
    words: str


@dataclass(frozen=True, kw_only=True)
class Story:
    """Of one decision.

    Attributes:
        campaign: Its name.
        clock: In "seconds" or "rounds".
        policy: That has decided.
        decision: As it stands.
        n_arms: That there are in the campaign by now.
        weight: What a unit of its reward is worth.
        counts_until: Up to when an answer counts, where that is limited.
        steps: In their order.
    """

    campaign: str
    clock: str
    policy: str
    decision: Decision
    n_arms: int
    weight: float
    counts_until: float | None
    steps: tuple[Step, ...]


def story(session: Session, decision_id: str) -> Story:
    """UnknownDecision where there is none of this id."""

    def look(log: Log, state: CampaignState) -> Story:
        found = Subject.find(log, state, read_id(state.names.tag, decision_id))
        arrival = found.decided.arrival
        limit = state.age_limit(arrival.context, arrival.deadline)
        decision = found.decision()
        until = decision.decided_at + limit
        return Story(
            campaign=session.row.name,
            clock=state.definition.clock,
            policy=state.definition.policy.name,
            decision=decision,
            n_arms=state.problem.n_arms,
            weight=state.problem.contexts[arrival.context].weight if decision.weight is None else decision.weight,
            counts_until=until if until < float("inf") else None,
            steps=tuple(_steps(state, found, decision)),
        )

    return session.read(look)


def _steps(state: CampaignState, found: Subject, decision: Decision) -> Iterator[Step]:
    clock, names = state.definition.clock, state.names
    what = "recorded, as it was made elsewhere" if decision.is_recorded else "decided"
    given = "nobody was served" if decision.arm is None else f"{figure(decision.cost)} reserved"
    yield Step(kind="decided", at=decision.decided_at, words=f"{what}: {given}")
    if decision.state == "expired" or (found.later and found.later[0].settlement.was == IS_EXPIRED):
        released = decision.state == "expired" and decision.actual_cost == 0.0 and decision.cost > 0.0
        money = "its reserved budget was released" if released else "it was settled without an answer"
        yield Step(kind="expired", at=None, words=f"expired: {money}")
    for event in found.later:
        at = names.epoch + names.own_time(event)
        yield Step(kind=_KINDS[type(event)], at=at, words=_words(event, clock))


_KINDS: dict[type[Settled], str] = {Answered: "answered", Corrected: "corrected", Cancelled: "cancelled"}


def _words(event: Settled, clock: str) -> str:
    said = event.settlement.actual_cost
    paid = "" if said is None else f", and cost {figure(said)}"
    if isinstance(event, Corrected):
        return f"corrected from {figure(event.previous)} to {figure(event.reward)}{paid}"
    if not isinstance(event, Answered):
        return "cancelled: it was not carried out, and its budget was released"
    late = ", too late to count" if event.settlement.state == IS_LATE else ""
    delay = "" if event.delay is None else f" after {span(event.delay, clock)}"
    return f"answered{delay} with a reward of {figure(event.reward)}{late}{paid}"
