"""Campaigns as they are created, changed and shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from doral.problem.limits import MAX_AMOUNT, MIN_AMOUNT
from doral.service.requests import Body

Time = Annotated[
    float | str,
    Field(
        description="Seconds since 1970, or ISO text with its zone; a number of rounds where the clock counts those.",
        examples=["2026-03-01T12:00:00Z"],
    ),
]
Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="A name of this very request, of your choice: a repeated one counts once. The header "
        "Idempotency-Key stands in for it.",
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=200)]


Iso = Annotated[str | None, Field(description="The same in ISO 8601, in UTC.", examples=["2026-03-01T12:00:00.000Z"])]


class Told(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="forbid")


_PROBLEM: JsonDict = {
    "arms": [{"name": "letter", "cost": 1}, {"name": "call", "cost": 3}],
    "contexts": {"young": 0.5, "old": 0.5},
    "budget": 1000,
    "horizon": 1000,
    "deadline": "14d",
}
_ALIKE: JsonDict = {"type": "object", "required": ["arms", "budget"], "additionalProperties": True}

ProblemGiven = Annotated[
    dict[str, Any],
    Field(
        description="As `Problem.to_dict` writes it, or as people write it by hand: arms (objects, names, or a mapping "
        "from name to cost), contexts (likewise, with shares), budget, horizon or until, deadline (seconds, or text "
        "such as 14d), and whatever else a problem says.",
        examples=[_PROBLEM],
        json_schema_extra=_ALIKE,
    ),
]


class CampaignGiven(Body):
    """A campaign to create."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "autumn", "problem": _PROBLEM, "policy": "doral-otf", "options": {}, "seed": 7}]
        }
    )

    name: Name = Field(description="No other campaign of the store may have it.")
    problem: ProblemGiven
    policy: str = Field("doral-otf", description="A name as `doral policies` lists them.", max_length=100)
    options: dict[str, Any] = Field(default_factory=dict, description="Of the policy, by name.")
    label: str | None = Field(None, description="What the policy is called, if not by its name and options.")
    seed: int | None = Field(None, ge=0, description="Of the policy's coin; drawn if not given.")
    clock: Literal["seconds", "rounds"] = Field("seconds", description="What delays and deadlines are measured in.")
    at: Time | None = Field(None, description="Where a clock in seconds starts; now if not given.")
    until: Time | None = Field(None, description="Ends the campaign with a date in place of the problem's end.")


class Summary(Told):
    """Where a campaign stands. What is null was not read for this answer: ask for the campaign itself."""

    name: str
    created_at: float | None = Field(None, description="Seconds since 1970: where its clock starts.")
    created_at_iso: Iso = None
    state: Literal["racing", "open", "paused", "closed"] | None = None
    policy: str | None = None
    clock: Literal["seconds", "rounds"] | None = None
    events: int | None = Field(None, description="In the log; all else is as of the last of them.")
    arrivals: int | None = None
    horizon: int | None = Field(None, description="Arrivals that are planned for, or forecast.")
    ends_at: float | None = Field(None, description="Seconds since 1970, where the end is a date.")
    ends_at_iso: Iso = None
    total: float | None = Field(None, description="The budget.")
    spent: float | None = None
    reserved: float | None = None
    left: float | None = None
    reward: float | None = None
    pending: int | None = Field(None, description="Decisions that wait for an answer.")


class Campaigns(Told):
    """Some of the campaigns, by name."""

    campaigns: list[Summary]
    next: str | None = Field(description="Give it as `after` for those that follow; null: there are no more.")


class ArmShown(Told):
    """An arm as it is now."""

    name: str
    status: Literal["active", "paused", "retired"]


class CampaignShown(Told):
    """What a campaign is, and where it stands."""

    name: str
    summary: Summary
    problem: dict[str, Any] = Field(description="As `Problem.from_dict` reads it, with the arms that were added.")
    policy: dict[str, Any] = Field(description="Its name, and every option.")
    seed: int
    clock: Literal["seconds", "rounds"]
    created_at: float = Field(description="Seconds since 1970: where its clock starts.")
    created_at_iso: Iso
    arms: list[ArmShown]
    engine: str = Field(description="The version of doral that made it.")


class ArmGiven(Body):
    """A new arm."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "visit", "cost": 5, "key": "add-visit"}]})

    name: Name
    features: list[float] = Field(default_factory=list, description="As many as the other arms have.")
    cost: float | dict[str, float] = Field(1.0, description="Of a use; by context, where it differs.")
    key: Key | None = None


class TopUp(Body):
    """More budget."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"amount": 500, "key": "invoice-12"}]})

    amount: float = Field(ge=MIN_AMOUNT, le=MAX_AMOUNT, description="How much more, in the unit of the budget.")
    key: Key | None = None


class Extension(Body):
    """More arrivals, or a later end: one of the two."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"rounds": 200, "key": "second-wave"}]})

    rounds: int | None = Field(None, ge=1, description="How many more arrivals, where the end is a number of them.")
    until: Time | None = Field(None, description="The new end, where the end is a date.")
    key: Key | None = None


class Expiry(Body):
    """Settle what is too old for an answer to count."""

    now: Time | None = Field(None, description="By what time; now if not given.")
    key: Key | None = None


class ClockSetting(Body):
    """Set the campaign's clock back after a wrong one has carried it away."""

    to: Time | None = Field(None, description="What it is to show; what the service's host shows, if not given.")
    key: Key | None = None


class Forgetting(Body):
    """Keys to erase, with what is known of the people whom their decisions were for."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"keys": ["visit-17"]}]})

    keys: list[Key] = Field(min_length=1, max_length=10_000)
    key: Key | None = Field(None, description="Of this request; none of those that are erased.")


class Nothing(Body):
    """No more need be said."""

    key: Key | None = None


class Expired(Told):
    """How many decisions expired."""

    expired: int


class Forgotten(Told):
    """How many events lost their key."""

    forgotten: int
