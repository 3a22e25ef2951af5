"""Keys: `doral_<id>_<secret>`. The id is no secret; of the secret only a checksum is kept.

A secret is 256 random bits, so that a plain SHA-256 of it tells nobody anything: slow hashes are for passwords, which
people choose.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from doral import _check
from doral.errors import InvalidValue, UnknownName
from doral.live.storage.service_tables import Books, KeyRow
from doral.service.access.acts import act_by_hand
from doral.service.access.caller import ROLES

if TYPE_CHECKING:
    from collections.abc import Sequence

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
