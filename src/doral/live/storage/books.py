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
    """Something that somebody should look after. Of the same campaign, rule and subject one is raised at a time."""

    campaign: str
    rule: str
    subject: str  # of the rule, such as an arm; may be empty
    since: float  # tells it from earlier ones of the same subject
    words: str
    cleared_at: float | None = None
    told: int = 0  # 1: that it began was delivered; 2: and that it ended
    tries: int = 0
    next_try_at: float = 0.0


LONGEST_UNTOLD_S = 30 * 86_400.0  # an alarm that ended is kept for whoever has to be told of it, and no longer


def after(since: float, last: float | None) -> float:
    """When an alarm began, which is after the last one of the same subject, however coarse the clock is."""
    return since if last is None or since > last else last + 0.001


class Books(ABC):
    """Safe to share between threads and processes."""

    @abstractmethod
    def add_key(self, row: KeyRow, act: ActRow | None = None) -> None:
        """One more; its id is not taken. `act` is noted with it, in one transaction."""

    @abstractmethod
    def add_first_key(self, row: KeyRow, act: ActRow | None = None) -> bool:
        """Only where there was never a key: of several processes that begin together, one succeeds."""

    @abstractmethod
    def key(self, key_id: str) -> KeyRow | None:
        """A key or a session, whatever has become of it."""

    @abstractmethod
    def all_keys(self) -> list[KeyRow]:
        """All, the oldest first; without sessions. Those that were revoked stay in the list."""

    @abstractmethod
    def revoke_key(self, key_id: str, at: float, act: ActRow | None = None) -> bool:
        """With all its sessions; False where there is no such key, or it was revoked before."""

    @abstractmethod
    def drop_sessions(self, *, expired_before: float) -> int:
        """Forget sessions that ended; how many."""

    @abstractmethod
    def note(self, row: ActRow) -> None:
        """One more; its number is given here."""

    @abstractmethod
    def acts(self, *, before: int | None = None, limit: int = 100) -> list[ActRow]:
        """The newest first; only those with a number below `before`."""

    @abstractmethod
    def raise_alarm(self, row: AlarmRow) -> bool:
        """False where it is raised already: its words are then brought up to date."""

    @abstractmethod
    def clear_alarm(self, campaign: str, rule: str, subject: str, at: float) -> bool:
        """False where it was not raised. Whoever was told that it began is still to be told that it ended."""

    @abstractmethod
    def alarms(self, *, campaign: str | None = None) -> list[AlarmRow]:
        """Those that are raised, the newest first."""

    @abstractmethod
    def claim_deliveries(self, now: float, *, lease_s: float, limit: int = 20) -> list[AlarmRow]:
        """Those of which somebody has to be told now, the oldest first; nobody else gets them before the lease ends."""

    @abstractmethod
    def delivered(self, row: AlarmRow, told: int) -> None:
        """What was claimed was delivered; a row that is cleared and told of is forgotten."""

    @abstractmethod
    def put_off(self, row: AlarmRow, *, next_try_at: float) -> None:
        """What was claimed could not be delivered."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back; whoever asks again opens another."""
