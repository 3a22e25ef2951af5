"""Arrivals, answers, records, decisions, and events of a campaign."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, FailFast, Field

from doral.service.models.campaigns import Iso
from doral.service.requests import Body

Time: TypeAlias = Annotated[
    float | str | None,
    Field(description="Seconds since 1970 (or rounds, where the clock counts those), or ISO text with its zone."),
]
Key: TypeAlias = Annotated[
    str | None,
    Field(description="A name of this very request: the same key gives the same answer back. At most 200 characters."),
]
Item = TypeVar("Item")
Many: TypeAlias = Annotated[list[Item], FailFast()]  # the first fault is the one that is told
FeatureValue: TypeAlias = float | str | bool | None
Features: TypeAlias = Annotated[
    dict[str, FeatureValue] | list[FeatureValue] | None,
    Field(description="What is known of this one, where the problem says what is known of people."),
]
Weight: TypeAlias = Annotated[float | None, Field(description="What a unit of this one's reward is worth.")]
Deadline: TypeAlias = Annotated[float | None, Field(description="How long this one's answer counts.")]


class Arrival(Body):
    """Somebody for whom something is to be decided."""

    context: str | None = Field(None, description="Name of the context; may be left out where there is one.")
    available: list[str] | None = Field(None, description="Names of the arms that can be had now; left out: all.")
    key: Key = None
    at: Time = None
    features: Features = None
    weight: Weight = None
    deadline: Deadline = None


class Arrivals(Body):
    """Many of them, decided in their order, stored together or not at all."""

    arrivals: Many[Arrival]


class Answer(Body):
    """What came of a decision."""

    decision_id: str = Field(description="The `id` of the decision.")
    reward: float = Field(description="What came of it; zero is an answer.")
    key: Key = None
    actual_cost: float | None = Field(None, description="What it cost, at most what was reserved.")
    at: Time = None


class Answers(Body):
    """Many of them; what is wrong with one does not keep the others out, unless all are asked for together."""

    answers: Many[Answer]
    all_or_none: bool = Field(False, description="Store all of them, or none where something is wrong with one.")


class Cancellation(Body):
    """A decision was not carried out."""

    key: Key = None
    at: Time = None


class Record(Body):
    """A decision that was made elsewhere."""

    context: str | None = None
    arm: str | None = Field(description="Name of the arm; null for somebody who got nothing.")
    at: float | str = Field(description="When it was made.")
    reward: float | None = None
    answered_at: Time = None
    cost: float | None = None
    probability: float | None = None
    spend: bool = Field(False, description="Whether the campaign's budget pays for it.")
    key: Key = None
    features: Features = None
    weight: Weight = None
    deadline: Deadline = None


class Records(Body):
    """Many of them, stored together or not at all."""

    records: Many[Record]


class DecisionModel(BaseModel):
    """What was decided for one arrival, and what became of it; the words are those of `doral.Decision`."""

    id: str
    state: str
    context: str
    arm: str | None
    cost: float
    value: float | None
    price: float | None
    probability: float | None
    reason_code: str
    return_here: float | None
    reason: str
    round: int
    decided_at: float
    decided_at_iso: Iso
    key: str | None
    reward: float | None
    answered_at: float | None
    answered_at_iso: Iso
    actual_cost: float | None
    available: list[str] | None
    is_recorded: bool
    is_in_ledger: bool
    features: dict[str, FeatureValue] | None
    weight: float | None
    deadline: float | None
    base: float | None
    effects: dict[str, float] | None
    delay: float | None


class DecisionList(BaseModel):
    """Decisions in the order in which they were asked for."""

    decisions: list[DecisionModel]


class DecisionPart(DecisionList):
    """Some decisions; `next` is what to give as `after` for those that follow."""

    next: str | None


class RankedAction(BaseModel):
    """An arm, as Personalizer names it; what else is said of it is passed over."""

    id: str = Field(max_length=200)


class RankAsked(BaseModel):
    """As `POST /personalizer/v1.0/rank` takes it."""

    contextFeatures: list[dict[str, FeatureValue]] = Field(default_factory=list, max_length=1_000)  # noqa: N815
    actions: list[RankedAction] = Field(min_length=1, max_length=10_000)
    excludedActions: list[str] = Field(default_factory=list, max_length=10_000)  # noqa: N815
    eventId: Annotated[str, Field(min_length=1, max_length=200)] | None = None  # noqa: N815
    deferActivation: Literal[False] = False  # noqa: N815


class RankedShown(BaseModel):
    """`probability` is that of the choice; of the others none is known."""

    id: str
    probability: float | None


class Ranking(BaseModel):
    """The chosen action first."""

    ranking: list[RankedShown]
    eventId: str  # noqa: N815
    rewardActionId: str | None = Field(description="null: the budget is better spent elsewhere.")  # noqa: N815


class Reward(BaseModel):
    """As `POST /personalizer/v1.0/events/{eventId}/reward` takes it."""

    value: float = Field(allow_inf_nan=False)


class AnswerResult(BaseModel):
    """What became of one answer: the decision, or the problem."""

    decision: DecisionModel | None = None
    problem: dict[str, object] | None = None


class AnswerResults(BaseModel):
    """In the order of the answers."""

    results: list[AnswerResult]
    accepted: int
    refused: int


class EventTold(BaseModel):
    """`data` of one event; what it does not say is left out. Its `id` is the sequence, its `event` the kind."""

    sequence: int
    kind: str = Field(description='"decided", "answered", "topped up", "arm paused", "closed" and so on.')
    written_at: float = Field(description="Seconds since 1970, by the host that wrote it.")
    at: float = Field(description="When it happened, on the campaign's clock: seconds since 1970, or rounds.")
    key: str | None = None
    decision_id: str | None = None
    context: str | None = None
    arm: str | None = None
    state: str | None = Field(None, description="Of the decision, after this event.")
    reason: str | None = None
    round: int | None = None
    cost: float | None = None
    value: float | None = None
    price: float | None = None
    probability: float | None = None
    reward: float | None = None
    previous: float | None = Field(None, description="The reward that a correction replaces.")
    actual_cost: float | None = None
    delay: float | None = None
    amount: float | None = Field(None, description="That was added to the budget, or was leased in a log of before.")
    rounds: int | None = Field(None, description="Arrivals that were added.")
    until: float | None = Field(None, description="The new end.")
    decisions: int | None = Field(None, description="That expired.")
    is_released: bool | None = Field(None, description="Whether their reserved budget was released.")
    why: str | None = Field(None, description='Of the end of a lease: "returned" or "recovered".')
    keys: int | None = Field(None, description="That were forgotten.")
