"""Answers that are sent part by part: what they hold meanwhile, and how they end with the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from doral.service.following import Following
from doral.service.operations.streams import Streams

_GRACE_S = 1.0  # in which streams end by themselves


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


class EndingStreams(Streams):
    """Ends streams by telling them: their last words are sent. Those that cannot send them are cut off."""

    def __init__(self, following: Following) -> None:
        super().__init__()
        self._following = following

    def end(self) -> None:
        """All of them: whoever follows comes again, and is answered by the next process."""
        self._following.end()
        asyncio.get_running_loop().call_later(_GRACE_S, super().end)
