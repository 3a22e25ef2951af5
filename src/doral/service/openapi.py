"""The description of the API (OpenAPI 3.1): what FastAPI knows of the routes, and what stands around them all."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.requests import Request
from starlette.responses import Response

from doral.service.access.guard import needs
from doral.service.models.decisions import EventTold
from doral.service.models.reports import Problem
from doral.wire.problems import MEDIA_TYPE

PATH = "/v1/openapi.json"
TAGS = [
    {"name": "campaigns", "description": "Created, listed, shown."},
    {"name": "decisions", "description": "Who gets what."},
    {"name": "feedback", "description": "What came of it."},
    {"name": "records", "description": "Decisions that were made elsewhere."},
    {"name": "changes", "description": "Arms, budget, end, closing, expiry, clock, forgetting."},
    {"name": "looking", "description": "Reports, files, events."},
    {"name": "alarms", "description": "What somebody should look after."},
    {"name": "access", "description": "Keys, and what was done with them."},
    {"name": "operation", "description": "Whether the service works."},
]
_REFUSALS = {
    400: "The request cannot be read: its path, or its body.",
    401: "No key was sent, or one that is not valid.",
    403: "The key may not do this.",
    404: "There is no such campaign, decision or arm.",
    409: "The campaign refuses this, as it stands.",
    410: "The campaign was deleted.",
    413: "The body is too large.",
    408: "The body did not arrive in time.",
    415: "The body is not JSON.",
    421: "The service does not go by the name that the header Host says.",
    422: "A value cannot be used: `field`, `value` and `remedy` say which, and what to do.",
    429: "Too many requests with this key: the header Retry-After says when to try again.",
    500: "The service has failed; `request_id` is for whoever runs it.",
    503: "The store or the service cannot do this now: the header Retry-After, where it is there, says when to try "
    "again.",
}
_HELPS_TO_RETRY = (429, 503)
_RETRY_HEADER = {
    "Retry-After": {"description": "Seconds after which trying again may help.", "schema": {"type": "string"}}
}
_KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A name of this very request, in UTF-8: sent again, it counts once. It stands in for `key` where "
    "the body has none; in a batch, item number i without a key gets this one, a slash and i.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
}
_OF_BODIES = (408, 413, 415)
_OF_CAMPAIGNS = (404, 409, 410)


def describe(app: FastAPI) -> None:
    """Have an application answer with its description."""
    app.openapi = lambda: _made(app)  # type: ignore[method-assign]

    @cache
    def written() -> bytes:
        """Once: it takes longer than a decision, and anybody may ask."""
        return json.dumps(app.openapi(), ensure_ascii=False).encode()

    async def tell(request: Request) -> Response:
        del request
        return Response(written(), media_type="application/json")

    app.add_route(PATH, tell, include_in_schema=False)


def _made(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema:
        return app.openapi_schema
    made = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        summary=app.summary,
        description="Keys are sent as `Authorization: Bearer KEY`. Every error is a problem document (RFC 9457).",
        routes=app.routes,
        tags=TAGS,
    )
    components = made.setdefault("components", {})
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "A key, as `doral keys` makes it."}
    }
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = _without_definitions(Problem.model_json_schema(ref_template=_REF), schemas)
    schemas["EventTold"] = EventTold.model_json_schema(ref_template=_REF)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    roles = dict(_roles(app))
    for path, item in made.get("paths", {}).items():
        for method, operation in item.items():
            _complete(path, operation, roles.get((path, method)))
    app.openapi_schema = made
    return made


_REF = "#/components/schemas/{model}"


def _without_definitions(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    schemas.update(schema.pop("$defs", {}))
    return schema


def _roles(app: FastAPI) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    """Which roles each operation needs, as its dependencies say."""
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, APIRoute):
            for found in _asked_roles(route.dependant):
                for method in context.methods or ():
                    yield (str(context.path_format), method.lower()), found


def _asked_roles(dependant: Dependant) -> Iterator[tuple[str, ...]]:
    for one in dependant.dependencies:
        if inspect.isfunction(one.call) and one.call.__module__ == needs.__module__:
            found = inspect.getclosurevars(one.call).nonlocals.get("roles")
            if isinstance(found, tuple):
                yield found
        yield from _asked_roles(one)


def _takes_key(path: str, operation: dict[str, Any]) -> bool:
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return path == "/v1/campaigns" or path.endswith("/batch") or "key" in schema.get("properties", {})


def _complete(path: str, operation: dict[str, Any], roles: tuple[str, ...] | None) -> None:
    """What every operation has, whoever wrote it."""
    responses = operation.setdefault("responses", {})
    is_open = path in ("/healthz", "/readyz")
    wanted = {400, 421, 500}
    if path == "/readyz":
        wanted |= {503}
    if not is_open:
        wanted |= {401, 403, 422, 429, 503}
        operation.setdefault("security", [{"key": []}])
    if "{name}" in path:
        wanted |= set(_OF_CAMPAIGNS)
    if "requestBody" in operation:
        wanted |= {*_OF_BODIES, 409}
        if _takes_key(path, operation):
            operation.setdefault("parameters", []).append(_KEY_HEADER)
    if roles is not None:
        operation["x-doral-roles"] = list(roles)
        said = " or ".join(f"`{one}`" for one in dict.fromkeys((*roles, "admin")))
        operation["description"] = f"{operation.get('description', '')}\n\nNeeds a key with the role {said}.".strip()
    for status in sorted(wanted):
        own = responses.get(str(status), {})
        content = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
        responses[str(status)] = {
            "description": _REFUSALS[status],
            **{name: value for name, value in own.items() if name not in ("content", "description")},
            "content": content,
            **({"headers": _RETRY_HEADER} if status in _HELPS_TO_RETRY else {}),
        }
    operation["responses"] = dict(sorted(responses.items()))
