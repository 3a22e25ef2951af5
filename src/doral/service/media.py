"""Bodies of the API are JSON: whatever says that it is something else is refused before it is read."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from doral.service.replies import problem_reply
from doral.wire.problems import ServiceError

_WITH_BODIES = ("POST", "PUT", "PATCH")
_REFUSAL = "the body must be JSON, and the header Content-Type must say so: application/json"


class JsonOnly:
    """Around the API; pages send forms."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in _WITH_BODIES and scope["path"].startswith("/v1/"):
            headers = Headers(scope=scope)
            has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
            if has_body and not _is_json(headers.get("content-type", "")):
                error = ServiceError(_REFUSAL, "unsupported-media-type", 415)
                await problem_reply(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
