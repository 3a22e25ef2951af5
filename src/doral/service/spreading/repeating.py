"""Which requests may be served a second time, where nobody knows whether they were served: told by what routes take."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from doral.service.bodies import Body, Taken
from doral.service.idempotency import RAW_HEADER

_KEY = "key"


def may_be_repeated(routes: Sequence[BaseRoute], scope: Scope, body: bytes) -> bool:
    """Whether a request that is served twice changes no more than one that is served once.

    Args:
        routes: All that are described.
        scope: Of the request, with the path that routes are found by.
        body: Of the request.
    """
    if scope["method"] in ("GET", "HEAD"):
        return True
    found = [route for route in routes if route.matches(scope)[0] is Match.FULL]
    if not found:
        return True  # it is refused, both times
    taken = getattr(found[0], "openapi_extra", None)
    return isinstance(taken, Taken) and (taken.is_same_again or _is_keyed(taken, scope, body))


def _is_keyed(taken: Taken, scope: Scope, body: bytes) -> bool:
    """The body is read as the route reads it: whatever is wrong with it is refused, both times."""
    try:
        found = taken.model.model_validate_json(b"{}" if taken.may_be_empty and not body else body)
    except ValidationError:
        return True
    has_header = any(name == RAW_HEADER for name, _ in scope["headers"])
    keyed = _keyed(found)
    return bool(keyed) and (has_header or all(getattr(one, _KEY) is not None for one in keyed))


def _keyed(found: Body) -> list[Body]:
    """What could have a key of its own: the request itself, or each of the many that it holds."""
    if _KEY in type(found).model_fields:
        return [found]
    lists = [value for value in vars(found).values() if isinstance(value, list)]
    return [one for many in lists for one in many if isinstance(one, Body) and _KEY in type(one).model_fields]
