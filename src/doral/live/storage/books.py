"""What a service keeps beside its campaigns, in the same store: keys, administrative acts, alarms.

`tests/live/test_books.py` runs the whole contract on every implementation. No method changes a campaign.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KeyRow:
    """A key, or the session of somebody who signed in with one. The secret itself is nowhere."""

    id: str
    name: str
    roles: tuple[str, ...]
    campaigns: tuple[str, ...] | None  # None: all
    digest: bytes  # SHA-256 of the secret, which is 256 random bits
    created_at: float  # seconds since 1970, as all times here
    expires_at: float | None
    revoked_at: float | None = None
    parent: str | None = None  # of a session: the key that it was opened with


@dataclass(frozen=True, kw_only=True)
class ActRow:
    """Something that an administrator has done."""

    number: int  # 0: not stored yet
    at: float
    key_id: str
    key_name: str
    act: str  # such as "campaign created"
    campaign: str | None
    details: str  # JSON
    request_id: str
    address: str


@dataclass(frozen=True, kw_only=True)
class AlarmRow:
    """Something that somebody should look after."""

    campaign: str
    rule: str
    subject: str  # of the rule, such as an arm; may be empty
    since: float
    words: str
    cleared_at: float | None = None
    told: int = 0  # 1: that it began was delivered; 2: and that it ended
    tries: int = 0
    next_try_at: float = 0.0


class Books(ABC):
    """Safe to share between threads and processes."""

    @abstractmethod
    def add_key(self, row: KeyRow) -> None: ...

    @abstractmethod
    def add_first_key(self, row: KeyRow) -> bool:
        """Only where there was never a key: of several processes that begin together, one succeeds."""

    @abstractmethod
    def key(self, key_id: str) -> KeyRow | None: ...

    @abstractmethod
    def keys(self) -> list[KeyRow]:
        """All, the oldest first; without sessions."""

    @abstractmethod
    def revoke_key(self, key_id: str, at: float) -> bool:
        """With all its sessions; False where there is no such key, or it was revoked before."""

    @abstractmethod
    def drop_sessions(self, *, expired_before: float) -> int:
        """Forget sessions that ended; how many."""

    @abstractmethod
    def note(self, row: ActRow) -> None: ...

    @abstractmethod
    def acts(self, *, before: int | None = None, limit: int = 100) -> list[ActRow]:
        """The newest first."""

    @abstractmethod
    def raise_alarm(self, row: AlarmRow) -> bool:
        """False where it is raised already: its words are then brought up to date."""

    @abstractmethod
    def clear_alarm(self, campaign: str, rule: str, subject: str, at: float) -> bool:
        """False where it was not raised."""

    @abstractmethod
    def alarms(self, *, campaign: str | None = None) -> list[AlarmRow]:
        """Those that are raised, the newest first."""

    @abstractmethod
    def claim_deliveries(self, now: float, *, lease_s: float, limit: int = 20) -> list[AlarmRow]:
        """Those of which somebody has to be told now; nobody else gets them before the lease ends."""

    @abstractmethod
    def delivered(self, row: AlarmRow, told: int) -> None:
        """What was claimed was delivered; a row that is cleared and told of is forgotten."""

    @abstractmethod
    def put_off(self, row: AlarmRow, *, next_try_at: float) -> None:
        """What was claimed could not be delivered."""
