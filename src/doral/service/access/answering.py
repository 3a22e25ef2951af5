"""Refusals of those who stand before the routes: sent as they are, without any route."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from doral.errors import DoralError
from doral.service.replies import problem_reply


async def refuse(scope: Scope, receive: Receive, send: Send, error: DoralError, *, is_last: bool = False) -> None:
    """Answer with a problem; `is_last`: nothing else can come through this connection."""
    headers = {"Connection": "close"} if is_last else None
    await problem_reply(error, instance=str(scope.get("path", ""))[:1_000], headers=headers)(scope, receive, send)
