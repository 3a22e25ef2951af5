"""Problem documents, and where they are declared."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


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
