"""Answers that are sent part by part, and what they hold meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class OwningStream(StreamingResponse):
    """Gives back what it holds, however it ends: even where nobody takes the first byte of it."""

    def __init__(
        self,
        content: AsyncIterator[bytes],
        stack: AsyncExitStack,
        *,
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(content, headers=headers, media_type=media_type)
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._stack:
            await super().__call__(scope, receive, send)
