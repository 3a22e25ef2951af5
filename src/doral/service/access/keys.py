"""Keys, who calls with one, and the notes of administrative acts.

A key is `doral_<id>_<secret>`. The id is no secret; of the secret only a digest is stored: it is 256 random bits, so
that a plain SHA-256 of it tells nothing. (Slow hashes are for passwords, which people choose.)
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doral import _check
from doral.errors import InvalidValue, UnknownName
from doral.live.storage.service_tables import ActRow, Books, KeyRow

if TYPE_CHECKING:
    from collections.abc import Sequence


ROLES = ("admin", "decide", "feedback", "read")


# The id of the key that the request in this context came with; None outside of requests, and before it is known.
calling: ContextVar[str | None] = ContextVar("calling", default=None)


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Of one request.

    Attributes:
        key_id: Of the key, which is no secret.
        name: What people call the key.
        roles: Of `ROLES`; "admin" may do all.
        campaigns: Those that the key is for; None: all.
        csrf: What forms of this caller's pages have to send; None where a key was sent with the request itself.
        expires_at: When the key ends, in seconds since 1970; None: never.
    """

    key_id: str
    name: str
    roles: frozenset[str]
    campaigns: frozenset[str] | None = None
    csrf: str | None = None
    expires_at: float | None = None

    def may(self, *roles: str, campaign: str | None = None) -> bool:
        """Whether one of these roles is the caller's, for this campaign (None: for all of them)."""
        has_role = "admin" in self.roles or not self.roles.isdisjoint(roles)
        return has_role and (self.campaigns is None or campaign in self.campaigns)

    def sees(self, campaign: str) -> bool:
        """Whether the key is for it at all."""
        return self.campaigns is None or campaign in self.campaigns


COMMAND_LINE = "command line"  # in the place of an address
_LONGEST = 4_000  # characters of details


def act_row(
    act: str,
    campaign: str | None,
    details: Mapping[str, Any],
    *,
    at: float,
    key_id: str,
    key_name: str,
    request_id: str = "",
    address: str = "",
) -> ActRow:
    """A row to be stored."""
    return ActRow(
        number=0,
        at=at,
        key_id=key_id,
        key_name=key_name,
        act=act,
        campaign=campaign,
        details=written(details),
        request_id=request_id,
        address=address,
    )


def act_by_hand(act: str, details: Mapping[str, Any], *, at: float, who: str) -> ActRow:
    """What was done without a key: on the machine itself, with access to the store."""
    return act_row(act, None, details, at=at, key_id="", key_name=who, address=COMMAND_LINE)


def written(details: Mapping[str, Any]) -> str:
    """As JSON of bounded length.

    >>> written({"arm": "letter"})
    '{"arm": "letter"}'
    """
    text = json.dumps(details, default=str, ensure_ascii=False, sort_keys=True)
    text = text.encode(errors="replace").decode()  # a lone surrogate is no text that a database takes
    return text if len(text) <= _LONGEST else json.dumps({"begins": text[:_LONGEST]}, ensure_ascii=False)


PREFIX = "doral"
_ID_BYTES, _SECRET_BYTES = 6, 32
_FORM = re.compile(rf"{PREFIX}_([0-9a-f]{{12}})_([A-Za-z0-9_-]{{43}})")
_NO_DIGEST = bytes(32)  # compared with, where there is no such key: it takes as long


@dataclass(frozen=True, kw_only=True)
class Presented:
    """What somebody has sent as a key. The secret is in no representation of it."""

    id: str
    secret: str

    def __repr__(self) -> str:
        return f"<key {self.id}>"

    def matches(self, row: KeyRow | None) -> bool:
        """Whether it is this very key; as slow where there is none."""
        is_same = hmac.compare_digest(digest_of(self.secret), _NO_DIGEST if row is None else row.digest)
        return is_same and row is not None


def digest_of(secret: str) -> bytes:
    """What is kept of it."""
    return hashlib.sha256(secret.encode()).digest()


def read_key(text: str) -> Presented | None:
    """None where this is no key at all.

    >>> read_key("doral_0123456789ab_" + "x" * 43), read_key("password")
    (<key 0123456789ab>, None)
    """
    found = _FORM.fullmatch(text)
    return None if found is None else Presented(id=found[1], secret=found[2])


def new_key(
    name: str,
    roles: Iterable[str],
    *,
    now: float,
    campaigns: Iterable[str] | None = None,
    expires_at: float | None = None,
    parent: str | None = None,
) -> tuple[KeyRow, str]:
    """What is kept of a new key, and the key itself, which is nowhere else.

    Args:
        name: What people call it.
        roles: Of `ROLES`.
        now: In seconds since 1970.
        campaigns: Names of those that it is for, whether they are there yet or not; None: all.
        expires_at: After which it is of no use; None: never.
        parent: Of a session: the key that it was opened with.
    """
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    row = KeyRow(
        id=secrets.token_hex(_ID_BYTES),
        name=_check.name("name of a key", name),
        roles=_roles(roles),
        campaigns=None if campaigns is None else _campaigns(campaigns),
        digest=digest_of(secret),
        created_at=now,
        expires_at=expires_at,
        parent=parent,
    )
    if expires_at is not None and not expires_at > now:
        raise InvalidValue("expires", expires_at, "must be in the future")
    return row, f"{PREFIX}_{row.id}_{secret}"


def make_first_key(books: Books, now: float) -> str | None:
    """The key of an administrator, to be shown once, where there was never a key; None where there was."""
    if books.all_keys():
        return None
    row, key = new_key("first", ["admin"], now=now)
    act = act_by_hand("key created", described(row), at=now, who="first start")
    return key if books.add_first_key(row, act) else None


def described(row: KeyRow) -> dict[str, object]:
    """What may be told of a key."""
    campaigns = None if row.campaigns is None else list(row.campaigns)
    return {
        "id": row.id,
        "name": row.name,
        "roles": list(row.roles),
        "campaigns": campaigns,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
    }


def has_expired(row: KeyRow, now: float) -> bool:
    """Whether its time is over."""
    return row.expires_at is not None and now >= row.expires_at


def state_of(row: KeyRow, now: float) -> str:
    """In a word: "valid", "expired" or "revoked"."""
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if has_expired(row, now) else "valid"


def is_administrator(row: KeyRow, now: float) -> bool:
    """Whether it may do everything, in all campaigns, now."""
    return "admin" in row.roles and row.campaigns is None and state_of(row, now) == "valid"


def _roles(given: Iterable[str]) -> tuple[str, ...]:
    asked = list(given)
    for one in asked:
        if one not in ROLES:
            raise UnknownName("role", one, ROLES)
    if not asked:
        raise InvalidValue("roles", asked, f"a key needs one of {', '.join(ROLES)} at least")
    return tuple(one for one in ROLES if one in asked)


def _campaigns(given: Iterable[str]) -> tuple[str, ...]:
    found: Sequence[str] = [_check.name("name of a campaign", one) for one in given]
    if not found:
        raise InvalidValue("campaigns", found, "must name one at least; leave it out for a key for all")
    return tuple(dict.fromkeys(found))
