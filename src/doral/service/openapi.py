"""The description of the API (OpenAPI 3.1): FastAPI's own, with the refusals that all routes have in common."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from doral.service.models.decisions import EventTold
from doral.service.models.reports import Problem
from doral.wire.problems import MEDIA_TYPE

PATH = "/v1/openapi.json"
TAGS = [
    {"name": "campaigns", "description": "Created, listed, shown."},
    {"name": "decisions", "description": "Who gets what."},
    {"name": "feedback", "description": "What came of it."},
    {"name": "records", "description": "Decisions that were made elsewhere."},
    {"name": "rank", "description": "Decisions and answers as Azure AI Personalizer has them."},
    {"name": "changes", "description": "Arms, budget, end, closing, expiry, clock, forgetting."},
    {"name": "looking", "description": "Reports, files, events."},
    {"name": "alarms", "description": "What needs attention."},
    {"name": "operation", "description": "Whether the service works, who asks, and what was done."},
]
DESCRIPTION = (
    "Keys are sent as `Authorization: Bearer KEY`. The scopes of an operation are the roles of keys: one of them, or "
    "`admin`, is enough. Every error is a problem document (RFC 9457)."
)
_REF = "#/components/schemas/{model}"
_REFUSALS = {
    400: "The request cannot be read: its path, or its body.",
    401: "No key was sent, or one that is not valid.",
    403: "The key may not do this.",
    404: "There is no such campaign, decision or arm.",
    408: "The body did not arrive in time.",
    409: "The campaign refuses this, as it stands.",
    410: "The campaign was deleted.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "The service does not go by the name that the header Host says.",
    422: "A value cannot be used: `field`, `value` and `remedy` say which, and what to do.",
    429: "Too many requests with this key: the header Retry-After says when to try again.",
    500: "The service has failed; `request_id` is for whoever runs it.",
    503: "The store or the service cannot do this now; Retry-After, where it is there, says when to try again.",
}
_RETRY_HEADER = {
    "Retry-After": {"description": "Seconds after which trying again may help.", "schema": {"type": "string"}}
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses` of a router: problem documents of these statuses; none given: of all."""
    return {
        status: {
            "description": _REFUSALS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}},
            **({"headers": _RETRY_HEADER} if status in (429, 503) else {}),
        }
        for status in statuses or _REFUSALS
    }


def describe(app: FastAPI) -> None:
    """Have an application answer with its description, and with pages that show it."""
    make = app.openapi

    def whole() -> dict[str, Any]:
        """With the models that no route returns by itself."""
        made = make()
        for model in (Problem, EventTold):
            schema = model.model_json_schema(ref_template=_REF)
            made["components"]["schemas"].update(schema.pop("$defs", {}))
            made["components"]["schemas"][model.__name__] = schema
        return made

    @cache
    def written() -> bytes:
        """Once: it takes longer than a decision, and anybody may ask."""
        return json.dumps(app.openapi(), ensure_ascii=False).encode()

    async def tell(_: Request) -> Response:
        return Response(written(), media_type="application/json")

    app.openapi = whole  # type: ignore[method-assign]
    app.add_route(PATH, tell, include_in_schema=False)
    for name, (kind, content) in _swagger_files().items():
        app.add_route(f"/docs{name}", _sending(kind, content), include_in_schema=False)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>DORAL API</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="docs/swagger-ui.css">
</head><body><div id="swagger"></div><script src="docs/swagger-ui.js"></script><script src="docs/begin.js"></script>
</body></html>
"""
_BEGIN = f"""SwaggerUIBundle({{
  url: {json.dumps(PATH[1:])}, dom_id: "#swagger", deepLinking: true, validatorUrl: null, persistAuthorization: false
}});
"""


def _swagger_files() -> dict[str, tuple[str, Callable[[], bytes]]]:
    """Swagger UI from its package: the page asks nothing of other sites."""
    static = Path(find_spec("fastapi_offline").submodule_search_locations[0]) / "static"  # type: ignore[union-attr, index]
    return {
        "": ("text/html; charset=utf-8", _PAGE.encode),
        "/begin.js": ("text/javascript; charset=utf-8", _BEGIN.encode),
        "/swagger-ui.js": ("text/javascript; charset=utf-8", (static / "swagger-ui-bundle.js").read_bytes),
        "/swagger-ui.css": ("text/css; charset=utf-8", (static / "swagger-ui.css").read_bytes),
    }


def _sending(kind: str, read: Callable[[], bytes]) -> Callable[[Request], Awaitable[Response]]:
    read_once = cache(read)

    async def send(_: Request) -> Response:
        return Response(read_once(), media_type=kind)

    return send
