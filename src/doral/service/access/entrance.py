"""Where every request comes in: which key it has, and whether that is one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any

from doral.live.storage.service_tables import Books
from doral.service.access import refusals
from doral.service.access.caller import Caller, calling
from doral.service.access.cookies import cookie_in, cookie_name, csrf_of
from doral.service.access.keyring import Held, Keyring
from doral.service.access.keys import Presented, has_expired, read_key
from doral.service.access.limits import Failures, Rates
from doral.service.settings import ServiceSettings
from doral.service.threads import Run
from doral.wire.problems import ServiceError

_CALLER = "caller"  # in a request's state, once it is known
_TOO_MANY = "too many wrong keys from this address: wait {:.0f} s"
_READS = frozenset(("GET", "HEAD"))
_OWN_SITE = frozenset((b"same-origin", b"none"))


class Entrance:
    """Of one process. What is found out of a request is found out once."""

    def __init__(self, books: Books, settings: ServiceSettings, run: Run) -> None:
        limits = settings.limits
        self.books, self.settings = books, settings
        self.keyring = Keyring(books, run)
        self._rates = Rates(limits.rate_per_s, limits.burst)
        self._failures = Failures(limits.sign_in_failures)
        self._strays = Failures(limits.sign_in_failures)
        self._doubtful = asyncio.Semaphore(1)  # look-ups for addresses that have sent many wrong keys
        self._cookie = cookie_name(settings)

    async def caller(self, scope: MutableMapping[str, Any]) -> Caller:
        """By the key that was sent; for looking, by the cookie of a page of ours, too. A ServiceError says why not."""
        known = _known(scope)
        # A form's sender was found by a cookie: that is no key for anything else.
        if known is not None and (known.csrf is None or scope["method"] in _READS):
            calling.set(known.key_id)
            return known
        sent, cookies, site = _sent(scope)
        if sent:
            if len(sent) > 1:
                raise refusals.no_such_form()
            scheme, _, word = sent[0].partition(b" ")
            if scheme.lower() != b"bearer":
                raise refusals.no_such_form()
            found = await self.key(word.decode("latin-1").strip(), address_of(scope))
        elif cookies is not None and cookie_in(cookies, self._cookie) is not None:
            if scope["method"] not in _READS or (site is not None and site not in _OWN_SITE):
                raise refusals.cookie_refused()
            found = await self.session(scope)
        else:
            raise refusals.no_key()
        return self._remember(scope, found)

    async def holds(self, scope: MutableMapping[str, Any]) -> bool:
        """Whether the caller of a long answer, such as a stream, would still be let in. Costs no request of a rate."""
        sent, _, _ = _sent(scope)
        try:
            if sent:
                await self.key(sent[0].partition(b" ")[2].decode("latin-1").strip(), address_of(scope))
            else:
                await self.session(scope)
        except ServiceError:
            return False
        return True

    async def page_caller(self, scope: MutableMapping[str, Any]) -> Caller:
        """Of a page or a form: by the cookie; without one, by a key."""
        known = _known(scope)
        if known is not None:
            return known
        _, cookies, _ = _sent(scope)
        if cookies is not None and cookie_in(cookies, self._cookie) is not None:
            return self._remember(scope, await self.session(scope))
        return await self.caller(scope)

    def _remember(self, scope: MutableMapping[str, Any], found: Caller) -> Caller:
        state = scope.setdefault("state", {})
        wait_s = self._rates.wait_s(found.key_id)
        if wait_s > 0:
            raise refusals.too_many(f"key {found.key_id} asks too often: wait {wait_s:.3g} s", wait_s)
        state[_CALLER] = found
        calling.set(found.key_id)
        return found

    async def key(self, text: str, address: str | None) -> Caller:
        """Whose key this is. Where there is no address, wrong ones are not counted."""
        presented = read_key(text)
        if presented is None:
            raise self._wrong(address, refusals.no_such_form())
        wait_s = 0.0 if address is None else self._failures.wait_s(address)
        held = self.keyring.fresh(presented.id) or await self._find(presented, wait_s)
        is_known = presented.matches(held.row)
        if not is_known or held.row is None or held.row.parent is not None:  # a cookie is no key
            raise self._wrong(address, refusals.unknown_key())
        return _in_force(held)

    def presented_session(self, scope: MutableMapping[str, Any]) -> Presented | None:
        """What is in the cookie."""
        _, cookies, _ = _sent(scope)
        text = None if cookies is None else cookie_in(cookies, self._cookie)
        return None if text is None else read_key(text)

    async def session(self, scope: MutableMapping[str, Any]) -> Caller:
        """Who has signed in."""
        address = address_of(scope)
        presented = self.presented_session(scope)
        if presented is None:
            raise refusals.unknown_key()
        # Cookies of sessions that ended long ago are counted for themselves: pages that were left open send them
        # again and again, and that must not slow the signing in.
        held = self.keyring.fresh(presented.id) or await self._find(presented, self._strays.wait_s(address))
        is_known = presented.matches(held.row)
        if not is_known or held.row is None or held.row.parent is None:  # nor is a key a cookie
            self._strays.add(address)
            raise refusals.unknown_key()
        return replace(_in_force(held), csrf=csrf_of(presented))

    async def _find(self, presented: Presented, wait_s: float) -> Held:
        """The row of a key. A valid key always gets in, also from an address that many wrong ones came from, such as
        that of a proxy; but look-ups for such an address go one by one, so that guesses slow nobody else.
        """
        if wait_s <= 0 or self.keyring.knows(presented.id):
            return await self.keyring.find(presented.id)
        async with self._doubtful:
            return await self.keyring.find(presented.id)

    def _wrong(self, address: str | None, error: ServiceError) -> ServiceError:
        """One more that was wrong; once they are too many, they are all told the same."""
        if address is None:
            return error
        wait_s = self._failures.wait_s(address)
        self._failures.add(address)
        return error if wait_s <= 0 else refusals.too_many(_TOO_MANY.format(wait_s), wait_s)


def _known(scope: MutableMapping[str, Any]) -> Caller | None:
    found = scope.get("state", {}).get(_CALLER)
    return found if isinstance(found, Caller) else None


def _in_force(held: Held) -> Caller:
    """Whose key it is, if nobody has revoked it and its time is not over. (To be wrong here is to guess nothing.)"""
    rows = [row for row in (held.row, held.parent) if row is not None]
    is_whole = held.row is not None and (held.row.parent is None or held.parent is not None)
    if held.caller is None or not is_whole or any(row.revoked_at is not None for row in rows):
        raise refusals.unknown_key()
    now = time.time()
    if any(has_expired(row, now) for row in rows):
        raise refusals.expired_key(held.caller.key_id)
    return held.caller


def _sent(scope: MutableMapping[str, Any]) -> tuple[list[bytes], str | None, bytes | None]:
    """What a request says of who sends it."""
    keys: list[bytes] = []
    cookies: str | None = None
    site: bytes | None = None
    for name, value in scope["headers"]:
        if name == b"authorization":
            keys.append(value)
        elif name == b"cookie":
            text = value.decode("latin-1")
            cookies = text if cookies is None else f"{cookies}; {text}"
        elif name == b"sec-fetch-site":
            site = value
    return keys, cookies, site


def address_of(scope: MutableMapping[str, Any]) -> str:
    """Where a request came from; empty where the server does not say."""
    client = scope.get("client")
    return str(client[0]) if client else ""
