"""The storage contract. `tests/live/test_storage_contract.py` runs the whole of it on every implementation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doral.live.chain import Placed
from doral.live.errors import BrokenLog, StorageError
from doral.live.events import Event
from doral.live.storage.archive_file import ArchiveFile
from doral.live.storage.books import Books

PAGE_EVENTS = 10_000  # read at a time
FOLD_EVENTS = 1_000  # the same while folding: with more of them at once, Python looks for garbage all the time
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Tail:
    """What others have appended since an event, as far as whoever goes on deciding has to know."""

    last: int
    head: bytes  # checksum of the last event
    round: int | None  # of the last arrival among them
    number: int | None  # of the last decision among them that was no skip
    clock: float | None  # of the last of them
    is_keyed: bool  # whether some of them have keys
    ended: tuple[int, ...]  # leases that ended, by the event with which they began


Pages = Callable[[], Iterator[list[Event]]]  # all events of a campaign in their order, as often as one asks


class Log(ABC):
    """The log of one campaign through one connection; used by one thread at a time."""

    archived = 0  # events up to this one, but the first, are in files; all decisions among them are finished

    @property
    def is_lost(self) -> bool:
        """Whether its connection was given up, and another log has to be opened."""
        return False

    @abstractmethod
    def begin(self, *, within_s: float | None = None) -> None:
        """Start a transaction that nobody else on this campaign overlaps with; where it raises, there is none.

        `within_s` shortens the wait for others; StorageBusy after it. With `AT_ONCE` nobody is waited for.
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
    def count(self, *, after: int = 0, upto: int) -> tuple[int, int, int] | None:
        """How many events there are after one and up to another, how many are about a decision, how many have or had a
        key; None where some of them are archived.
        """

    @abstractmethod
    def append(self, events: Sequence[Event]) -> None:
        """Only inside a transaction. An event that says what was forgotten takes it out of the log: keys, and what was
        known of people, of which snapshots are full: they go, too.
        """

    @abstractmethod
    def after(self, sequence: int, *, upto: int | None = None, limit: int = PAGE_EVENTS) -> list[Event]:
        """The next events in order, after this one. Whoever folds them checks the chain; all others give only events
        that are what was written after the one before them, and raise BrokenLog where one is not.
        """

    def following(self, sequence: int, *, upto: int, limit: int = PAGE_EVENTS) -> list[Event]:
        """The same, where there must be some."""
        events = self.after(sequence, upto=upto, limit=limit)
        if not events:
            raise BrokenLog(f"the log lacks the events after {sequence}")
        return events

    def by_others(self, sequence: int, *, upto: int, writer: int) -> list[Event]:
        """The events after this one, up to another, that this writer has not appended."""
        return [event for event in self.after(sequence, upto=upto) if event.writer != writer]

    @abstractmethod
    def events(self, sequences: Iterable[int]) -> dict[int, Event]:
        """Events by sequence number; those that do not exist are left out."""

    @abstractmethod
    def about(self, decisions: Iterable[int]) -> dict[int, list[Event]]:
        """Later events about these decisions, in order; decisions without any are left out."""

    @abstractmethod
    def about_range(self, first: int, last: int) -> dict[int, list[Event]]:
        """The same for all decisions from `first` to `last`."""

    @abstractmethod
    def by_keys(self, hashes: Iterable[bytes]) -> dict[bytes, Event]:
        """Events by the hash of their key; unknown ones are left out."""

    @abstractmethod
    def decided_after(self, sequence: int, *, upto: int, limit: int) -> list[Event]:
        """The next decided events in order, after this one."""

    @abstractmethod
    def of_kinds(self, kinds: Sequence[int]) -> list[Event]:
        """All events of kinds that are rare, in order."""

    @abstractmethod
    def tail(self, after: int, head: bytes) -> Tail | None:
        """What was appended after this event, which has this checksum. Only inside a transaction.

        None where the log does not go on from it, or not in events of `LEAVE_LEASES` alone; it may be None where there
        are very many.
        """

    def begin_after(self, sequence: int, head: bytes, *, within_s: float | None = None) -> Tail | None:
        """`begin`, and `tail` of this event; where it raises, there is no transaction."""
        self.begin(within_s=within_s)
        try:
            return self.tail(sequence, head)
        except BaseException:
            self.rollback()
            raise

    def pack(self, columns: Sequence[Sequence[Any]]) -> object:
        """What can be made of decisions before their place is known, for `append_and_commit`; None where nothing can.
        Outside a transaction.
        """
        del columns
        return None

    def append_and_commit(self, placed: Placed, packed: object = None) -> None:
        """Of a transaction in which nothing else was written; what can be open afterwards is said at `commit`."""
        del packed
        self.append(placed.events())
        self.commit()

    @abstractmethod
    def hold(self, writer: int) -> None:
        """This writer lives as long as this log is open."""

    @abstractmethod
    def is_held(self, writer: int) -> bool:
        """Whether that was said of him, and he still does, as far as one can tell. Only inside a transaction."""

    @abstractmethod
    def lead(self) -> bool:
        """Whether this log is the one that saves snapshots for all who lease: the first that asks, while it is open."""

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
    def own_deadlines(self, *, after: int, upto: int) -> list[Event]:
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

    def move_out(self, file: ArchiveFile, *, since: int) -> None:
        """Only inside a transaction: these events are in a file now; StorageBusy where others have archived, or
        forgotten keys, after the event `since`.
        """
        raise StorageError("this store cannot archive: use SQLite or PostgreSQL")

    def archives(self) -> list[ArchiveFile]:
        """The files that hold old events, in their order."""
        return []

    def relocate(self, file: ArchiveFile, path: Path) -> None:
        """Only inside a transaction: a file has moved."""
        raise StorageError(f"there is no archive {file.path} that could have moved to {path}")

    def check_indexes(self) -> None:  # noqa: B027  (not every database can tell)
        """BrokenLog where an index does not lead to what the log says, as far as the database can tell."""

    @abstractmethod
    def remove_all(self) -> None:
        """Only inside a transaction: the whole campaign."""

    @abstractmethod
    def wipe(self, sequences: Sequence[int] = (), *, people: Sequence[int] = ()) -> None:
        """Leave no trace of what was erased; of the keys of these events, and of the people of those, not in files
        either. Outside a transaction.
        """

    def rest(self) -> None:  # noqa: B027  (a log with a connection of its own keeps it)
        """It is not used for a while: outside a transaction, others may have its connection meanwhile."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back."""


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
    def create(self, *, name: str, tag: str, first: Event) -> CampaignRow:
        """A new campaign with its first event; CampaignExists where the name is taken."""

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
    def reading(self, *, holds_off_forks: bool = False) -> AbstractContextManager[list[tuple[CampaignRow, Log]]]:
        """All campaigns by name as they are at one moment, while others go on writing.

        Where a fork would end it, it ends with ConnectionLost, unless forks have to wait.
        """

    @abstractmethod
    def restore(self, campaigns: Sequence[tuple[CampaignRow, Pages]]) -> None:
        """Put whole campaigns in, together or not at all; CampaignExists where a name or a tag is taken."""

    @abstractmethod
    def delete(self, row: CampaignRow) -> None:
        """Take a campaign out; CampaignGone where it is not there any more."""

    def number(self) -> int | None:
        """Of one more session, by which others can see that this process lives; None where any number will do."""
        return None

    @abstractmethod
    def books(self) -> Books:
        """What a service keeps in this store beside the campaigns; the same object every time."""

    @abstractmethod
    def close(self) -> None:
        """Close everything."""
