"""What is looked at: reports, ledgers, facts, health; whether the service works; problem documents.

Models of answers are made of the library's own dataclasses: the description of the API stays in step with them.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from doral.live.page.facts import CampaignFacts
from doral.live.views.health import Health
from doral.live.views.report import Report
from doral.live.views.verify import Verification
from doral.service.models.campaigns import Iso, Told
from doral.service.requests import Body

_ATTRIBUTE = re.compile(r"^        (\w+): (.+(?:\n            .+)*)", re.MULTILINE)


@cache
def plain_model(kind: type, *, leave_out: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> type[BaseModel]:
    """The model of what `dataclasses.asdict` makes of this class, or `_asdict` of a named tuple.

    Args:
        kind: A dataclass, or a named tuple.
        leave_out: Fields that are not sent.
        optional: Fields that are not always sent.
    """
    hints = get_type_hints(kind)
    words = {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(kind.__doc__ or "")}
    fields: dict[str, Any] = {}
    for name in _names(kind):
        if name not in leave_out:
            default = None if name in optional else ...
            is_taken = hasattr(BaseModel, name)  # pydantic has something of its own there
            described = Field(default, description=words.get(name), alias=name if is_taken else None)
            fields[f"{name}_" if is_taken else name] = (_plain(hints[name]), described)
    doc = (kind.__doc__ or "").strip().split("\n")[0]
    made = create_model(kind.__name__, __config__=ConfigDict(extra="forbid"), __doc__=doc, **fields)
    return cast(type[BaseModel], made)


def _names(kind: type) -> list[str]:
    if dataclasses.is_dataclass(kind):
        return [one.name for one in dataclasses.fields(kind)]
    return list(kind._fields)  # type: ignore[attr-defined]


def _plain(hint: Any) -> Any:
    """The type of a field as JSON has it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is float or hint is Decimal:
        return float | None
    if origin in (Union, types.UnionType):
        return Union[tuple(_plain(one) for one in inner)]  # noqa: UP007  (made of what is only known now)
    if origin is tuple:
        return list[_plain(inner[0])]  # type: ignore[misc]
    if origin is list:
        return list[_plain(inner[0])]  # type: ignore[misc]
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _plain(inner[1])]  # type: ignore[misc]
    if origin is Callable:
        return Any
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
        return plain_model(hint)
    return hint


_AMOUNT = r"^-?[0-9]+(\.[0-9]+)?$"

ReportShown = plain_model(Report, leave_out=("read_served",), optional=("effects", "person"))
FactsShown = plain_model(CampaignFacts)
VerificationShown = plain_model(Verification)
HealthShown: type[BaseModel] = create_model(
    "HealthShown",
    __base__=plain_model(Health),
    __doc__="Whether the store can be used, how the clocks stand, and what somebody should look after.",
    is_well=(bool, Field(description="Nothing needs attention.")),
)


class LedgerShown(Told):
    """Where the budget is, to the last digit: spent + reserved + left = total. Decimals as text."""

    total: str = Field(pattern=_AMOUNT, examples=["1000.0"])
    spent: str = Field(pattern=_AMOUNT)
    reserved: str = Field(pattern=_AMOUNT)
    released: str = Field(pattern=_AMOUNT, description="Came back so far.")
    left: str = Field(pattern=_AMOUNT)


class Alive(Told):
    """The process answers."""

    status: Literal["alive"]


class Ready(Told):
    """The store can be read and written."""

    status: Literal["ready"]


class Me(Told):
    """The key that a request was sent with."""

    key_id: str
    name: str
    roles: list[Literal["admin", "decide", "feedback", "read"]]
    campaigns: list[str] | None = Field(description="Those that the key is for; null: all.")
    expires_at: float | None = Field(description="Seconds since 1970; null: never.")
    expires_at_iso: Iso


class Act(Told):
    """An administrative act."""

    number: int
    at: float = Field(description="Seconds since 1970.")
    at_iso: Iso
    key_id: str
    key_name: str
    act: str = Field(description='Such as "arm paused".')
    campaign: str | None
    details: dict[str, Any]
    request_id: str
    address: str = Field(description='Where the request came from; "command line" for `doral keys`.')


class Acts(Told):
    """The newest first."""

    acts: list[Act]
    next: int | None = Field(description="To be sent as `before` for those that came earlier; null at the end.")


class Alarm(Told):
    """Something that needs attention."""

    campaign: str
    rule: str = Field(description="Which rule has found it, such as `arm-silent`.")
    subject: str = Field(description="What it is about, such as an arm; empty: the campaign.")
    since: float = Field(description="Seconds since 1970.")
    since_iso: Iso
    words: str = Field(description="What is wrong, and what to do.")
    acknowledged_at: float | None = Field(description="Seconds since 1970; null: not yet.")
    acknowledged_by: str | None = Field(description="Name of the key.")


class Alarms(Told):
    """Those that are raised, the newest first."""

    alarms: list[Alarm]


class AlarmSubject(Body):
    """Of which alarm."""

    rule: str = Field(max_length=100)
    subject: str = Field("", max_length=200)


class AlarmMute(AlarmSubject):
    """Of which alarm, and for how long."""

    days: float = Field(7.0, ge=0, le=3650)


class Fault(BaseModel):
    """One of several things that are wrong with a request."""

    field: str
    value: Any = None
    remedy: str


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:doral:problem:invalid-value",
                    "title": "A value cannot be used",
                    "status": 422,
                    "detail": "amount = -3: must be a finite number above 0",
                    "field": "amount",
                    "value": -3,
                    "remedy": "must be a finite number above 0",
                }
            ]
        },
    )

    type: str = Field(description="Says which problem it is, for programs.")
    title: str = Field(description="The same for people.")
    status: int = Field(description="Of the answer.", ge=400, le=599)
    detail: str = Field(description="What is wrong this time, and what to do.")
    instance: str | None = Field(None, description="The path that was asked for.")
    field: str | None = Field(None, description="Which value is wrong.")
    value: Any = Field(None, description="What it was; shortened where it is long.")
    remedy: str | None = Field(None, description="What it must be, or what to do.")
    kind: str | None = Field(None, description="Of what a name is unknown.")
    known: list[str] | None = Field(None, description="Names that are known, the first hundred.")
    errors: list[Fault] | None = Field(None, description="All faults of a body, the first twenty.")
    n_errors: int | None = Field(None, description="How many there are.")
    retry_after_s: float | None = Field(None, description="When to try again.")
    request_id: str | None = Field(None, description="To be told to whoever runs the service.")
