"""Who calls, and what that key may do."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

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
