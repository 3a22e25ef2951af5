"""The storage contract. `tests/live/test_storage_contract.py` runs the whole of it on every implementation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from doral.live.errors import BrokenLog
from doral.live.events.event import Deciding, Event, Settled
from doral.live.events.row import Row
from doral.live.storage.service_tables import ActRow, Books

PAGE_EVENTS = 10_000  # read at a time
REPLAYED_EVENTS = 1_000  # the same while replaying: with more of them at once, Python looks for garbage all the time
KEPT_SNAPSHOTS = 2  # the one before the last serves when the last is damaged


@dataclass(frozen=True, kw_only=True)
class CampaignRow:
    """One campaign of a store."""

    id: int
    name: str
    tag: str  # begins the identifiers of its decisions
    created_at: float
    # Number of the last event when the row was read, where somebody asked for it; -1: the log says another.
    last_event: int | None = field(default=None, compare=False)


Pages = Callable[[], Iterator[list[Row]]]  # all rows of a campaign in their order, as often as one asks


class Log(ABC):
    """The log of one campaign through one connection; used by one thread at a time."""

    @abstractmethod
    def begin(self, *, within_s: float | None = None) -> None:
        """Start a transaction that nobody else on this campaign overlaps with; where it raises, there is none.

        `within_s` shortens the wait for others; StorageBusy after it.
        """

    @abstractmethod
    def commit(self) -> None:
        """Make it durable. Whether it happened is open after ConnectionLost (the connection broke) and OutcomeUnknown
        (the disk failed, or the file is not at its path any more).
        """

    @abstractmethod
    def rollback(self) -> None:
        """Undo it. Never raises, and does nothing where there is no transaction."""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction around a block."""
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.rollback()
            raise

    def try_to_write(self) -> None:
        """Whatever keeps this process from writing is raised; nothing is changed. Outside a transaction."""
        self.begin()
        self.rollback()

    @abstractmethod
    def head(self) -> tuple[int, bytes]:
        """The sequence number and the checksum of the last event, as noted beside the log.

        BrokenLog where the last event that is there is another one.
        """

    @abstractmethod
    def count(self, *, upto: int) -> tuple[int, int]:
        """How many events up to this one are about a decision, and how many have or had a key: told by indexes."""

    @abstractmethod
    def append(self, rows: Sequence[Row]) -> None:
        """Only inside a transaction."""

    @abstractmethod
    def erase(self, *, keys: Sequence[int], people: Sequence[int]) -> None:
        """Only inside a transaction: take the keys of these events out of the log, and the people of those, of which
        snapshots are full: they go, too. Hashes stay.
        """

    @abstractmethod
    def note(self, act: ActRow) -> None:
        """Only inside a transaction: an administrative act that is kept with what it has changed."""

    @abstractmethod
    def after(self, sequence: int, *, upto: int | None = None, limit: int = PAGE_EVENTS) -> list[Row]:
        """The next rows in order, after this one. A replay checks their chain; all others give only events that are
        what was written after the one before them, and raise BrokenLog where one is not.
        """

    def following(self, sequence: int, *, upto: int, limit: int = PAGE_EVENTS) -> list[Row]:
        """The same, where there must be some."""
        rows = self.after(sequence, upto=upto, limit=limit)
        if not rows:
            raise BrokenLog(f"the log lacks the events after {sequence}")
        return rows

    @abstractmethod
    def events(self, sequences: Iterable[int]) -> dict[int, Event]:
        """Events by sequence number; those that do not exist are left out."""

    @abstractmethod
    def about(self, decisions: Iterable[int]) -> dict[int, list[Settled]]:
        """Later events about these decisions, in order; decisions without any are left out."""

    @abstractmethod
    def about_range(self, first: int, last: int) -> dict[int, list[Settled]]:
        """The same for all decisions from `first` to `last`."""

    @abstractmethod
    def by_keys(self, hashes: Iterable[bytes]) -> dict[bytes, Event]:
        """Events by the hash of their key; unknown ones are left out."""

    @abstractmethod
    def decided_after(self, sequence: int, *, upto: int, limit: int) -> list[Deciding]:
        """The next decided events in order, after this one."""

    @abstractmethod
    def of_kinds(self, kinds: Sequence[int]) -> list[Event]:
        """All events of kinds that are rare, in order."""

    @abstractmethod
    def overdue(
        self,
        *,
        after: int,
        upto: int,
        clock: float,
        age_limit: float,
        repairs: Sequence[tuple[int, float]] = (),
        contexts: Sequence[int] | None = None,
    ) -> tuple[int, list[tuple[int, float, int]]]:
        """The last event up to which all decisions after `after` are older than the limit, and of how many of those
        nothing has become, by context and cost; only of these contexts, where some are given.

        `repairs` says to what the clock was set back after which event: no decision before it was made later. Decisions
        with a deadline of their own are not among these.
        """

    @abstractmethod
    def own_deadlines(self, *, after: int, upto: int) -> list[Deciding]:
        """Decisions with a deadline of their own of which nothing has become."""

    def server_time(self) -> float | None:
        """What the clock of the database's server shows, in seconds since 1970; None where it is this host's."""
        return None

    def schema_revision(self) -> str | None:
        """Of the tables; None where there are none."""
        return None

    @abstractmethod
    def save_snapshot(self, sequence: int, data: bytes) -> None:
        """Keep a snapshot, and only the last few; unless something was forgotten since. Outside a transaction."""

    @abstractmethod
    def snapshots(self) -> list[int]:
        """Their sequence numbers, newest first."""

    @abstractmethod
    def load_snapshot(self, sequence: int) -> bytes:
        """Empty where it is gone."""

    def check_indexes(self) -> None:  # noqa: B027  (not every database can tell)
        """BrokenLog where an index does not lead to what the log says, as far as the database can tell."""

    @abstractmethod
    def remove_all(self) -> None:
        """Only inside a transaction: the whole campaign."""

    @abstractmethod
    def wipe(self, sequences: Sequence[int] = (), *, people: Sequence[int] = ()) -> None:
        """Leave no trace of what was erased: of the keys of these events, and of the people of those. Outside a
        transaction.
        """

    def rest(self) -> None:  # noqa: B027  (a log with a connection of its own keeps it)
        """It is not used for a while: outside a transaction, others may have its connection meanwhile."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back."""


def by_decision(events: Iterable[Settled]) -> dict[int, list[Settled]]:
    """Group events by the decision that they are about."""
    found: dict[int, list[Settled]] = {}
    for event in events:
        found.setdefault(event.about.decision, []).append(event)
    return found


def _last_event(row: CampaignRow, log: Log) -> int:
    if row.last_event is not None:
        return row.last_event
    try:
        return log.head()[0]
    except BrokenLog:
        return -1


class Storage(ABC):
    """All campaigns of one store."""

    url: str  # to be shown: without a password
    shares_connections = False  # whether a campaign holds one only while it is used

    @abstractmethod
    def create(self, *, name: str, tag: str, first: Row, act: ActRow | None = None) -> CampaignRow:
        """A new campaign with its first event; CampaignExists where the name is taken. `act` is noted with it."""

    @abstractmethod
    def campaigns(self) -> list[CampaignRow]:
        """All campaigns by name."""

    def find(self, name: str) -> CampaignRow | None:
        """One of them; None where there is none of that name."""
        return next((row for row in self.campaigns() if row.name == name), None)

    def heads(self) -> dict[str, int]:
        """The number of the last event of every campaign; -1 where its log cannot be read."""
        with self.reading() as found:
            return {row.name: _last_event(row, log) for row, log in found}

    def lend_at_most(self, connections: int) -> None:  # noqa: B027  (only where they are shared)
        """So many connections are in use at once; whoever needs another waits."""

    @abstractmethod
    def open_log(self, row: CampaignRow) -> Log:
        """A log with a connection of its own; StorageError where the campaign of that number is another one now."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[list[tuple[CampaignRow, Log]]]:
        """All campaigns by name as they are at one moment, while others go on writing."""

    @abstractmethod
    def restore(self, campaigns: Sequence[tuple[CampaignRow, Pages]]) -> None:
        """Put whole campaigns in, together or not at all; CampaignExists where a name or a tag is taken."""

    @abstractmethod
    def delete(self, row: CampaignRow) -> None:
        """Take a campaign out; CampaignGone where it is not there any more."""

    @abstractmethod
    def books(self) -> Books:
        """What a service keeps in this store beside the campaigns; the same object every time."""

    @abstractmethod
    def close(self) -> None:
        """Close everything."""
