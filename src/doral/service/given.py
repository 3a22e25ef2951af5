"""The body of a request as a dependency of its route: read only after it is known that the caller may ask at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi import Request

from doral.service.bodies import Body, read_body
from doral.service.idempotency import header_key, key_of

Given = TypeVar("Given", bound=Body)


def given(model: type[Given], *, may_be_empty: bool = False) -> Callable[[Request], Awaitable[Given]]:
    """A dependency: the body as this model. Put it after the one that says who calls.

    Args:
        model: With a field `key`, the header Idempotency-Key stands in for it.
        may_be_empty: Whether no body at all is an empty object.
    """

    async def find(request: Request) -> Given:
        found = await read_body(request, model, may_be_empty=may_be_empty)
        if "key" in model.model_fields:
            found = found.model_copy(update={"key": key_of(header_key(request), getattr(found, "key", None))})
        return found

    return find
