"""Whoever is to be told of alarms is told: at least once, of each its beginning before its end, however often it takes.

What was delivered is noted in the books of the store, so that it survives a restart; of several processes one has a
message at a time. Whether the other end answers or not, the service goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import random
import time
from typing import Any

import httpx2

from doral.live.storage.service_tables import AlarmRow
from doral.service.service import Service

_LOOK_S = 2.0
_WITHIN_S = 10.0  # for the other end to answer
_LEASE_S = 60.0
_AT_ONCE = 5
_FIRST_WAIT_S, _LONGEST_WAIT_S = 5.0, 3_600.0

_logger = logging.getLogger("doral.service")


def message(row: AlarmRow) -> dict[str, Any]:
    """What is sent. Its id is the same whenever it is sent again."""
    event = "alarm.began" if row.told == 0 else "alarm.ended"
    named = json.dumps([event, row.campaign, row.rule, row.subject, row.since])
    return {
        "id": hashlib.sha256(named.encode()).hexdigest()[:32],
        "event": event,
        "campaign": row.campaign,
        "rule": row.rule,
        "subject": row.subject,
        "since": row.since,
        "ended_at": row.cleared_at if row.told else None,
        "words": row.words,
    }


def signature(secret: str, at: int, body: bytes) -> str:
    """The value of `Doral-Signature`.

    >>> signature("secret", 1, b"{}")[:12]
    't=1,v1=11227'
    """
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def wait_s(tries: int) -> float:
    """How long until the next try, longer each time and never at the same moment as others."""
    return min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(tries, 20)) * random.uniform(0.8, 1.2)


class Webhook:
    """Of one process."""

    def __init__(self, service: Service, url: str, secret: str, *, first_wait_s: float = _FIRST_WAIT_S) -> None:
        """Prepare to send.

        Args:
            service: Whose alarms are told.
            url: Where to; the operator's choice, private addresses included.
            secret: By which messages are signed.
            first_wait_s: Until the second try; each wait after that is twice as long.
        """
        self._service, self._url, self._secret = service, url, secret
        self._scale = first_wait_s / _FIRST_WAIT_S

    async def run(self) -> None:
        """For ever."""
        # No redirects: they would lead elsewhere than where the operator said. Nothing of the environment: credentials
        # of other programs have no place here.
        async with httpx2.AsyncClient(timeout=_WITHIN_S, follow_redirects=False, trust_env=False) as client:
            while True:
                try:
                    await self.deliver_due(client)
                except Exception:  # the store may be gone for a while
                    _logger.exception("alarms could not be told")
                await asyncio.sleep(_LOOK_S * min(1.0, self._scale))

    async def deliver_due(self, client: httpx2.AsyncClient) -> None:
        """All that are due now, some at the same time."""
        books, run = self._service.store.books, self._service.run
        while True:
            rows = await run(lambda: books.claim_deliveries(time.time(), lease_s=_LEASE_S, limit=_AT_ONCE))
            if not rows:
                return
            await asyncio.gather(*(self._deliver(client, row) for row in rows))

    async def _deliver(self, client: httpx2.AsyncClient, row: AlarmRow) -> None:
        books = self._service.store.books
        failure = await self._post(client, row)
        if failure is None:
            await self._service.run(lambda: books.delivered(row, row.told + 1))
            return
        wait = wait_s(row.tries) * self._scale
        _logger.warning(
            "the webhook was not told of %s in campaign %r (%s); next try in %.0f s",
            row.rule, row.campaign, failure, wait,
        )  # fmt: skip
        await self._service.run(lambda: books.put_off(row, next_try_at=time.time() + wait))

    async def _post(self, client: httpx2.AsyncClient, row: AlarmRow) -> str | None:
        """What went wrong; the URL, which may hold a secret, is in no word of it."""
        told = message(row)
        body = json.dumps(told, ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "doral",
            "Doral-Id": str(told["id"]),
            "Doral-Signature": signature(self._secret, int(time.time()), body),
        }
        try:
            async with (
                asyncio.timeout(_WITHIN_S),
                client.stream("POST", self._url, content=body, headers=headers) as answer,
            ):
                # What is said beside the status is not read, however much it is.
                return None if answer.is_success else f"it answered {answer.status_code}"
        except TimeoutError:
            return f"no answer within {_WITHIN_S:.0f} s"
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            return type(error).__name__
