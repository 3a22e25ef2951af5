"""What those who follow a campaign are told."""

from __future__ import annotations

from pydantic import BaseModel, Field


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
    is_released: bool | None = Field(None, description="Whether what was reserved for them came back.")
    why: str | None = Field(None, description='Of the end of a lease: "returned" or "recovered".')
    keys: int | None = Field(None, description="That were forgotten.")
