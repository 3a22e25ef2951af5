"""What the body of a request says, ready for a campaign: times as moments, and the header Idempotency-Key for keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from fastapi import Request

from doral.service.bodies import Body, moment, read_body, refuse_too_many
from doral.service.idempotency import header_key, item_key, key_of
from doral.service.service import service_of
from doral.service.threads import in_thread_if_many

Given = TypeVar("Given", bound=Body)
_TIMES = ("at", "answered_at")


def given(model: type[Given], *, may_be_empty: bool = False) -> Callable[[Request], Awaitable[Given]]:
    """A dependency: the body as this model. Put it after the one that says who calls: it is read only once it is known
    that the caller may ask at all.

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


async def given_item(request: Request, model: type[Body], *, may_be_empty: bool = False) -> dict[str, Any]:
    """The fields of a body that is about one decision.

    Args:
        request: Whose body is read.
        model: What it has to be.
        may_be_empty: Whether no body at all is an empty object.
    """
    found = _fields(await read_body(request, model, may_be_empty=may_be_empty))
    found["key"] = key_of(header_key(request), found["key"])
    return found


async def given_items(request: Request, model: type[Given], field: str) -> tuple[Given, list[dict[str, Any]]]:
    """A body that is about many, and the fields of each; others are not kept waiting while it is read.

    Args:
        request: Whose body is read.
        model: What it has to be.
        field: Where the many are.
    """
    service = service_of(request)
    body = await read_body(request, model)
    items: Sequence[Body] = getattr(body, field)
    refuse_too_many(field, items, service.settings.limits.batch)
    header = header_key(request)

    def read() -> list[dict[str, Any]]:
        found = [_fields(one) for one in items]
        own = {one["key"] for one in found}
        for index, one in enumerate(found):
            one["key"] = item_key(header, index, one["key"], own)
        return found

    return body, await in_thread_if_many(service.run, len(items), read)


def _fields(body: Body) -> dict[str, Any]:
    found = dict(vars(body))
    for name in _TIMES:
        if isinstance(found.get(name), str):
            found[name] = moment(name, found[name])
    return found
