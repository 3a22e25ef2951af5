"""Where every request comes in: which key it has, whether that is one, and how often it may be used.

Keys are remembered for a moment, so that not every request reads the database. A key that is revoked, by whichever
process, is of no use after `STALE_S`: what was read longer ago is read again before a request is let in. In use, it is
read again after half of that, while the request goes on. Rates and failures are counted in each process for itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from doral.live.storage.service_tables import Books, KeyRow
from doral.service.access import refusals
from doral.service.access.keys import Caller, Presented, calling, has_expired, read_key
from doral.service.responses import Run
from doral.service.settings import ServiceSettings
from doral.wire.problems import ServiceError

# --- how often --------------------------------------------------------------------------------------------------------

_WINDOW_S = 60.0
_MOST_ADDRESSES = 10_000


class Rates:
    """A bucket of tokens for every key: each request takes one, and they come back at a steady rate."""

    def __init__(self, rate_per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate_per_s, max(1, burst), clock
        self._buckets: dict[str, tuple[float, float]] = {}  # what was left in it, and when

    def wait_s(self, key_id: str) -> float:
        """0 where the request may go on; else after how many seconds the next may."""
        if not self._rate > 0:
            return 0.0
        now = self._clock()
        left, at = self._buckets.get(key_id, (float(self._burst), now))
        left = min(float(self._burst), left + (now - at) * self._rate)
        if left < 1.0:
            self._buckets[key_id] = (left, now)
            return (1.0 - left) / self._rate
        self._buckets[key_id] = (left - 1.0, now)
        return 0.0


class Failures:
    """Wrong keys from each address in the last minute or so."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._counted: dict[str, tuple[float, int]] = {}  # when its minute began, and how many

    def wait_s(self, address: str) -> float:
        """0 where another may be tried; else how long to wait."""
        began, count = self._counted.get(_network(address), (0.0, 0))
        left = began + _WINDOW_S - self._clock()
        return left if count >= self._most and left > 0 else 0.0

    def add(self, address: str) -> None:
        """One more."""
        now, network = self._clock(), _network(address)
        began, count = self._counted.get(network, (now, 0))
        if now >= began + _WINDOW_S:
            del self._counted[network]  # so that they stand in the order in which they began
            began, count = now, 0
        self._counted[network] = (began, count + 1)
        if len(self._counted) > _MOST_ADDRESSES:
            del self._counted[next(iter(self._counted))]


def _network(address: str) -> str:
    """Whoever has one address of IPv6 has 2**64 of them."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.IPv6Network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address


# --- keys as this process knows them ----------------------------------------------------------------------------------

STALE_S = 2.0
_AGEING_S = STALE_S / 2
_MOST_HELD = 10_000


@dataclass(frozen=True, slots=True)
class Held:
    """A key or a session, as it was at one moment; no row: there is none of that id."""

    row: KeyRow | None
    parent: KeyRow | None
    caller: Caller | None
    read_at: float  # when the reading began, by a clock that is never set


class Keyring:
    """Of one process; used on its event loop alone."""

    def __init__(self, books: Books, run: Run) -> None:
        self._books, self._run = books, run
        self._held: dict[str, Held] = {}
        self._reading: dict[str, asyncio.Task[Held]] = {}

    def knows(self, key_id: str) -> bool:
        """Whether there was such a key when it was last read."""
        held = self._held.get(key_id)
        return held is not None and held.row is not None

    def fresh(self, key_id: str) -> Held | None:
        """What was read just now; None where it has to be found first."""
        held = self._held.get(key_id)
        return held if held is not None and time.monotonic() - held.read_at < _AGEING_S else None

    async def find(self, key_id: str) -> Held:
        """As it was less than `STALE_S` ago."""
        held = self._held.get(key_id)
        age = STALE_S if held is None else time.monotonic() - held.read_at
        if held is not None and age < _AGEING_S:
            return held
        reading = self._reading.get(key_id)
        if reading is None:
            reading = self._reading[key_id] = asyncio.ensure_future(self._read(key_id))
            reading.add_done_callback(lambda done: self._forget_reading(key_id, done))
        if held is not None and age < STALE_S:
            return held
        return await asyncio.shield(reading)

    def forget(self, key_id: str) -> None:
        """Its row has changed: read it before it is used again."""
        self._held.pop(key_id, None)
        self._reading.pop(key_id, None)

    async def _read(self, key_id: str) -> Held:
        began = time.monotonic()

        def look() -> tuple[KeyRow | None, KeyRow | None]:
            row = self._books.key(key_id)
            return row, None if row is None or row.parent is None else self._books.key(row.parent)

        row, parent = await self._run(look)
        held = Held(row, parent, None if row is None else _caller_of(row, parent), began)
        if self._reading.get(key_id) is asyncio.current_task():
            self._held.pop(key_id, None)
            self._held[key_id] = held
            while len(self._held) > _MOST_HELD:
                del self._held[next(iter(self._held))]
        return held

    def _forget_reading(self, key_id: str, done: asyncio.Task[Held]) -> None:
        if self._reading.get(key_id) is done:
            del self._reading[key_id]
        if not done.cancelled():
            done.exception()  # whoever waits for it is told; where nobody does, the next request tries again


def _caller_of(row: KeyRow, parent: KeyRow | None) -> Caller:
    return Caller(
        key_id=row.id if parent is None else parent.id,
        name=row.name,
        roles=frozenset(row.roles),
        campaigns=None if row.campaigns is None else frozenset(row.campaigns),
        expires_at=row.expires_at,
    )


# --- cookies of pages -------------------------------------------------------------------------------------------------

CSRF_FIELD = "csrf"
_PURPOSE = b"doral form"


def is_encrypted(settings: ServiceSettings) -> bool:
    """Whether people reach the service over TLS: its own, or that of the proxy before it."""
    if settings.public_url is not None:
        return urlsplit(settings.public_url).scheme == "https"
    return settings.tls_cert is not None


def cookie_name(settings: ServiceSettings) -> str:
    """Over TLS a name that browsers take from this very host alone."""
    return "__Host-doral" if is_encrypted(settings) else "doral"


def set_cookie(settings: ServiceSettings, value: str, *, seconds: int) -> str:
    """The header `Set-Cookie`; 0 seconds: it is taken back."""
    secure = "; Secure" if is_encrypted(settings) else ""
    return f"{cookie_name(settings)}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}"


def cookie_in(header: str, name: str) -> str | None:
    """The value of the first cookie of this name."""
    for one in header.split(";"):
        found, _, value = one.strip().partition("=")
        if found == name:
            return value
    return None


def csrf_of(session: Presented) -> str:
    """What forms have to send: only pages of this session can know it, and it gives nothing away of the session."""
    return hmac.new(session.secret.encode(), _PURPOSE, hashlib.sha256).hexdigest()


def is_same_text(given: object, wanted: str) -> bool:
    """Compared in a time that does not tell how far they agree."""
    return isinstance(given, str) and hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def origin_of(url: str) -> str:
    """Scheme, host and port, as browsers send them: without the port that goes without saying."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{host}" + ("" if parts.port in (None, usual) else f":{parts.port}")


# --- the entrance -----------------------------------------------------------------------------------------------------

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
