"""Carries requests, and waits for their answers. Safe to share between threads, and in a forked child."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from random import Random
from threading import Lock
from typing import BinaryIO, TypeAlias, TypeVar

import httpx2

from doral._forks import renew_in_child
from doral.client.attempts import Attempts, Failure, Reply
from doral.client.calls import Call, Download, Page
from doral.client.following import CampaignEvent, EventReader, Feed
from doral.client.transport import (
    ALL_CAME,
    ERRORS,
    SILENCE_S,
    Wiring,
    bounded,
    deadline,
    failure_of,
    headers_of,
    looking,
    reply_of,
    streams_events,
    too_slow,
)

Result = TypeVar("Result")
Item = TypeVar("Item")

Streaming: TypeAlias = AbstractContextManager[httpx2.Response]


class Connection:
    """To one service; connections are made when they are needed, and kept for the next request."""

    def __init__(self, wiring: Wiring, chance: Random | None = None) -> None:
        """`chance` spreads the tries of many clients that were cut off together."""
        self.wiring = wiring
        self._chance = Random() if chance is None else chance
        self._abandoned: list[httpx2.Client] = []
        self._client: httpx2.Client | None = None
        self._has_worked = False
        self._lock = Lock()
        renew_in_child(self)

    def renew(self) -> None:
        """In a forked child: the parent's connections are not used, and not closed either."""
        self._lock = Lock()
        if self._client is not None:
            self._abandoned.append(self._client)
            self._client = None

    def close(self) -> None:
        """Give all connections back; whoever asks again makes new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def send(self, call: Call[Result]) -> Result:
        """The answer, or the error; sent again as long as that may help and there is time."""
        attempts = self._attempts(call)
        while True:
            outcome = self._exchange(call, attempts.try_timeout_s(time.monotonic()))
            wait_s = attempts.wait_s(outcome, time.monotonic())
            if wait_s is None:
                return attempts.result()
            time.sleep(wait_s)

    def pages(self, call: Call[Page[Item]]) -> Iterator[Item]:
        """All items, asked for page by page."""
        following: Call[Page[Item]] | None = call
        while following is not None:
            page = self.send(following)
            yield from page.items
            following = page.following

    def download(self, asked: Download, file: BinaryIO) -> None:
        """Into the file, from its beginning; a download that breaks off begins anew."""
        attempts = self._attempts(looking(asked.path))
        while True:
            file.seek(0)
            file.truncate()
            outcome = self._fetch(asked, file, attempts.try_timeout_s(time.monotonic()))
            wait_s = attempts.wait_s(outcome, time.monotonic())
            if wait_s is None:
                return attempts.result()
            time.sleep(wait_s)

    def follow(self, feed: Feed) -> Iterator[CampaignEvent]:
        """Events without an end; a stream that breaks off is taken up after the last event that came."""
        reader = EventReader(self.send(feed.last) if feed.after is None else feed.after)
        attempts = self._attempts(looking(feed.path))
        while True:
            outcome: Reply | Failure
            try:
                with self._streaming("GET", feed.path, headers=reader.headers, timeout_s=SILENCE_S) as response:
                    if streams_events(response):
                        reader.begin()
                        for part in response.iter_bytes():
                            attempts = self._attempts(looking(feed.path))
                            yield from reader.feed(part)
                        outcome = Failure(words="the stream of events ended", may_have_arrived=True)
                    else:
                        outcome = reply_of(response.status_code, response.headers, response.read())
            except (*ERRORS, ValueError) as error:
                outcome = failure_of(error, self.wiring.address.url)
            wait_s = attempts.wait_s(outcome, time.monotonic())
            if wait_s is None:
                return attempts.result()
            time.sleep(wait_s)

    # --- one try ----------------------------------------------------------------------------------------------------

    def _exchange(self, call: Call[Result], timeout_s: float) -> Reply | Failure:
        try:
            with (
                deadline(timeout_s),
                self._streaming(
                    call.method, call.path, content=call.body, headers=headers_of(call), timeout_s=timeout_s
                ) as response,
            ):
                self._has_worked = True
                return reply_of(response.status_code, response.headers, response.read())
        except httpx2.ReadTimeout:
            return too_slow(self.wiring.address.url, timeout_s)
        except ERRORS as error:
            return failure_of(error, self.wiring.address.url)

    def _fetch(self, asked: Download, file: BinaryIO, timeout_s: float) -> Reply | Failure:
        try:
            with self._streaming("GET", asked.path, headers={"Accept": "*/*"}, timeout_s=timeout_s) as response:
                if response.status_code != httpx2.codes.OK:
                    return reply_of(response.status_code, response.headers, response.read())
                for part in response.iter_bytes():
                    file.write(part)
                return ALL_CAME
        except ERRORS as error:
            return failure_of(error, self.wiring.address.url)

    def _streaming(
        self, method: str, path: str, *, headers: dict[str, str], timeout_s: float, content: bytes | None = None
    ) -> Streaming:
        with self._lock:
            if self._client is None:
                self._client = bounded(httpx2.Client(**self.wiring.client_options()))
            client = self._client
        url = self.wiring.url_of(path)
        return client.stream(method, url, content=content, headers=headers, timeout=httpx2.Timeout(timeout_s))

    def _attempts(self, call: Call[Result]) -> Attempts[Result]:
        is_first = not self._has_worked
        return Attempts(call, self.wiring.patience, self._chance, time.monotonic(), is_first=is_first)
