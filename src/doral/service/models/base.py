"""What models have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

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


class Told(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="forbid")
