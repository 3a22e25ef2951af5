"""Changes while a campaign runs."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from doral.problem.limits import MAX_AMOUNT, MIN_AMOUNT
from doral.service.bodies import Body
from doral.service.models.base import Key, Name, Time, Told


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
