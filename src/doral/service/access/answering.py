"""Refusals of those who stand before the routes: sent as they are, without any route."""

from __future__ import annotations

import json

from starlette.types import Scope, Send

from doral.service.access.refusals import headers_of
from doral.wire.problems import MEDIA_TYPE, ServiceError, to_problem


async def refuse(scope: Scope, send: Send, error: ServiceError, *, is_last: bool = False) -> None:
    """Answer with a problem; `is_last`: nothing else can come through this connection."""
    body = json.dumps({**to_problem(error), "instance": str(scope.get("path", ""))[:1_000]}).encode()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in headers_of(error).items()]
    if is_last:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
