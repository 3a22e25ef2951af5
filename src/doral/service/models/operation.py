"""Whether the service works, and who asks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from doral.service.models.base import Told


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
