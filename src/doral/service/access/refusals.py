"""What callers are told who are not let in, and how that looks in HTTP."""

from __future__ import annotations

import math
from urllib.parse import quote

from doral.errors import DoralError, UnknownName
from doral.service.access.keys import Caller
from doral.wire.problems import ServiceError

_SEND_IT = "send it as `Authorization: Bearer KEY`; `doral keys create` makes one"


def no_key() -> ServiceError:
    """Nothing was sent."""
    return ServiceError(f"a key is needed: {_SEND_IT}", "no-key", 401)


def cookie_refused() -> ServiceError:
    """Somebody's browser has sent the cookie of a page along with a request that no page of ours makes."""
    return ServiceError(f"a key is needed, and the cookie of a page is none: {_SEND_IT}", "no-key", 401)


def no_such_form() -> ServiceError:
    """What was sent does not look like a key."""
    return ServiceError("what was sent is no key: one looks like doral_ID_SECRET, after `Bearer `", "unknown-key", 401)


def unknown_key() -> ServiceError:
    """The same words, whether there never was such a key, its secret is another, or it was revoked."""
    return ServiceError("this key is not known here, or was revoked: ask for another", "unknown-key", 401)


def expired_key(key_id: str) -> ServiceError:
    """Only said to whoever has the secret."""
    return ServiceError(f"key {key_id} has expired: ask for another", "expired-key", 401)


def not_allowed(words: str) -> ServiceError:
    """The key is known, and may not do this."""
    return ServiceError(words, "not-allowed", 403)


def foreign_form(words: str) -> ServiceError:
    """A form that no page of ours has sent."""
    return ServiceError(f"{words}: open the page again, and send the form from there", "foreign-form", 403)


def too_many(words: str, wait_s: float) -> ServiceError:
    """Too often."""
    return ServiceError(words, "too-many-requests", 429, float(max(1, math.ceil(wait_s))))


class SignInFirst(DoralError):
    """Whoever wants to see a page has to sign in, and is brought back then."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    @property
    def address(self) -> str:
        """Where to go."""
        return f"/sign-in?next={quote(self.wanted, safe='/')}" if self.wanted != "/" else "/sign-in"


def as_told_to(caller: Caller | None, error: DoralError) -> DoralError:
    """Nobody hears of campaigns that his key is not for, not even as what he might have meant."""
    if not isinstance(error, UnknownName) or error.kind != "campaign":
        return error
    return UnknownName(error.kind, error.name, [] if caller is None else filter(caller.sees, error.known))


def headers_of(error: DoralError) -> dict[str, str]:
    """That belong to this refusal."""
    found: dict[str, str] = {}
    if isinstance(error, ServiceError):
        if error.status == 401:
            found["WWW-Authenticate"] = "Bearer"
        if error.retry_after_s is not None:
            found["Retry-After"] = str(math.ceil(error.retry_after_s))
    return found
