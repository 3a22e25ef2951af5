"""Carries requests while others go on: as `connection`, awaited. What is sent, and what is made of it, is the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import BinaryIO, TypeAlias, TypeVar

import httpx2

from doral.client.attempts import Attempts, Failure, Reply
from doral.client.calls import Call, Download, Page
from doral.client.following import CampaignEvent, EventReader, Feed
from doral.client.transport import (
    ALL_CAME,
    ERRORS,
    SILENCE_S,
    Wiring,
    failure_of,
    headers_of,
    looking,
    reply_of,
    streams_events,
    too_slow,
)

Result = TypeVar("Result")
Item = TypeVar("Item")
Streaming: TypeAlias = AbstractAsyncContextManager[httpx2.Response]


class AsyncConnection:
    """To one service, for one event loop."""

    def __init__(self, wiring: Wiring, chance: Random | None = None) -> None:
        self.wiring = wiring
        self._chance = Random() if chance is None else chance
        self._client: httpx2.AsyncClient | None = None
        self._has_worked = False

    async def close(self) -> None:
        """Give all connections back; whoever asks again makes new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def send(self, call: Call[Result]) -> Result:
        """The answer, or the error; sent again as long as that may help and there is time."""
        attempts = self._attempts(call)
        while True:
            outcome = await self._exchange(call, attempts.try_timeout_s(time.monotonic()))
            wait_s = attempts.wait_s(outcome, time.monotonic())
            if wait_s is None:
                return attempts.result()
            await asyncio.sleep(wait_s)

    async def pages(self, call: Call[Page[Item]]) -> AsyncIterator[Item]:
        """All items, asked for page by page."""
        following: Call[Page[Item]] | None = call
        while following is not None:
            page = await self.send(following)
            for item in page.items:
                yield item
            following = page.following

    async def download(self, asked: Download, file: BinaryIO) -> None:
        """Into the file, from its beginning; a download that breaks off begins anew."""
        attempts = self._attempts(looking(asked.path))
        while True:
            file.seek(0)
            file.truncate()
            outcome = await self._fetch(asked, file, attempts.try_timeout_s(time.monotonic()))
            wait_s = attempts.wait_s(outcome, time.monotonic())
            if wait_s is None:
                return attempts.result()
            await asyncio.sleep(wait_s)

    async def follow(self, feed: Feed) -> AsyncIterator[CampaignEvent]:
        """Events without an end; a stream that breaks off is taken up after the last event that came."""
        reader = EventReader(await self.send(feed.last) if feed.after is None else feed.after)
        attempts = self._attempts(looking(feed.path))
        while True:
            outcome: Reply | Failure
            try:
                async with self._streaming("GET", feed.path, headers=reader.headers, timeout_s=SILENCE_S) as response:
                    if streams_events(response):
                        reader.begin()
                        async for part in response.aiter_bytes():
                            attempts = self._attempts(looking(feed.path))
                            for event in reader.feed(part):
                                yield event
                        outcome = Failure(words="the stream of events ended", may_have_arrived=True)
                    else:
                        outcome = reply_of(response.status_code, response.headers, await response.aread())
            except (*ERRORS, ValueError) as error:
                outcome = failure_of(error, self.wiring.address.url)
            wait_s = attempts.wait_s(outcome, time.monotonic())
            if wait_s is None:
                attempts.result()
                return
            await asyncio.sleep(wait_s)

    # --- one try ----------------------------------------------------------------------------------------------------

    async def _exchange(self, call: Call[Result], timeout_s: float) -> Reply | Failure:
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._streaming(
                    call.method, call.path, content=call.body, headers=headers_of(call), timeout_s=timeout_s
                ) as response,
            ):
                self._has_worked = True
                return reply_of(response.status_code, response.headers, await response.aread())
        except ERRORS as error:
            return failure_of(error, self.wiring.address.url)
        except TimeoutError:
            return too_slow(self.wiring.address.url, timeout_s)

    async def _fetch(self, asked: Download, file: BinaryIO, timeout_s: float) -> Reply | Failure:
        try:
            async with self._streaming("GET", asked.path, headers={"Accept": "*/*"}, timeout_s=timeout_s) as response:
                if response.status_code != httpx2.codes.OK:
                    return reply_of(response.status_code, response.headers, await response.aread())
                async for part in response.aiter_bytes():
                    file.write(part)
                return ALL_CAME
        except ERRORS as error:
            return failure_of(error, self.wiring.address.url)

    def _streaming(
        self, method: str, path: str, *, headers: dict[str, str], timeout_s: float, content: bytes | None = None
    ) -> Streaming:
        if self._client is None:
            self._client = httpx2.AsyncClient(**self.wiring.client_options())
        url, timeout = self.wiring.url_of(path), httpx2.Timeout(timeout_s)
        return self._client.stream(method, url, content=content, headers=headers, timeout=timeout)

    def _attempts(self, call: Call[Result]) -> Attempts[Result]:
        is_first = not self._has_worked
        return Attempts(call, self.wiring.patience, self._chance, time.monotonic(), is_first=is_first)
