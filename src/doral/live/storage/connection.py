"""What SQLite and PostgreSQL have in common: a DBAPI connection with explicit transactions and our errors."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from doral import _check
from doral.live.errors import StorageError

SCHEMA_LOCK = 0  # in the place of a campaign: taken while campaigns are made, and the schema is brought up to date
BOOKS_LOCK = -1  # likewise: taken while keys, acts and alarms are written
AT_ONCE = -1.0  # in the place of seconds to wait: 0 is of those who have no patience left, and still make a connection
_MOST_S = 1e6  # a week and more; PostgreSQL counts milliseconds in 31 bits
_WORTH_A_LINE_S = 1.0
_log = logging.getLogger("doral.live")


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """How long to wait: for others' locks, for one answer of the server, and for a connection to be made."""

    lock_s: float = 60.0
    statement_s: float = 20.0
    connect_s: float = 10.0

    def __post_init__(self) -> None:
        for name in ("lock", "statement", "connect"):
            given = getattr(self, f"{name}_s")
            number = _check.finite_number(f"{name}_timeout_s", given, at_least=0.001, at_most=_MOST_S)
            _check.set_fields(self, **{f"{name}_s": number})


class Connection(ABC):
    """One connection, used by one thread at a time."""

    placeholder: str
    schema: str  # before the name of a table
    is_read_only = False
    is_lost = False  # it was given up, and another one has to be made

    def server_time(self) -> float | None:
        """What the clock of the server shows, in seconds since 1970; None where there is no server."""
        return None

    def index_hint(self, index: str) -> str:
        """What follows a table's name where this index has to be used."""
        del index
        return ""

    def check_indexes(self) -> None:  # noqa: B027  (not every database can tell)
        """BrokenLog where an index does not lead to what its table says, as far as the database can tell."""

    @abstractmethod
    def begin(self, campaign_id: int, *, within_s: float | None = None) -> None:
        """Start a transaction that excludes all other writers of the campaign; where it raises, there is none.

        `within_s` shortens the wait for the lock; with `AT_ONCE` there is none, nor for a server that has to be reached
        first.
        """

    def begin_with(
        self, campaign_id: int, sql: str, parameters: Sequence[int], *, then: str, within_s: float | None = None
    ) -> list[tuple[Any, ...]]:
        """`begin`, and what a statement gives after that: with one wait for the server, where it can be done.

        `then` is the statement of the `insert_and_commit` that may follow.
        """
        del then
        self.begin(campaign_id, within_s=within_s)
        try:
            return self.execute(sql, parameters)
        except BaseException:
            self.rollback()
            raise

    @abstractmethod
    def begin_reading(self) -> None:
        """Until `rollback`, see everything as it is now, and keep nobody from writing."""

    def end_reading(self) -> None:
        """StorageBusy where what was seen was not all of one moment."""
        self.rollback()

    @abstractmethod
    def wipe(self) -> None:
        """Leave no trace of what was deleted or replaced, where that is in our hands. Outside a transaction."""

    @abstractmethod
    def be_thorough(self) -> None:
        """What this connection deletes or replaces from now on is overwritten, where that is in our hands."""

    @abstractmethod
    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def fetch(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The same for many rows of numbers, texts and bytes, in the form that is read soonest."""
        return self.execute(sql, parameters)

    def hold(self, writer: int) -> bool:
        """This writer lives as long as this connection does; False where somebody else seems to say it of him."""
        raise StorageError(f"writer {writer}: leases need PostgreSQL")

    def is_held(self, writer: int) -> bool:
        """Whether that was said of him through a connection that is still there; where nobody can tell, it is not.

        Inside a transaction.
        """
        del writer
        return False

    def lead(self, campaign_id: int) -> bool:
        """Whether this connection is the one of all that has something to do for the others."""
        del campaign_id
        return True

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Whether one of our tables is there: to ask one that is not would end a transaction."""

    @abstractmethod
    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """How many rows of the table it has made or changed."""

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        """Rows into one of our tables; how many it has made."""
        marks = ", ".join([self.placeholder] * len(columns))
        return self.execute_many(f"INSERT INTO {self.schema}{table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def pack(self, table: str, columns: Mapping[str, Sequence[Any]], holes: Sequence[str]) -> object:
        """Rows for `insert_and_commit`, but for what they will have in some columns; None where it cannot do that."""
        del table, columns, holes
        return None

    def insert_and_commit(
        self, packed: Any, filled: Sequence[Sequence[Any]], sql: str, parameters: Sequence[Any]
    ) -> int:
        """Store what was packed, with these columns in its holes, run a statement with numbers and bytes, and `commit`,
        with as few waits for the server as can be; how many rows were stored.

        Where the statement divides by zero nothing is committed, and fewer rows are told than were asked for.
        """
        raise NotImplementedError

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None:
        """Never raises: what cannot be rolled back is gone anyway."""

    def rest(self) -> None:  # noqa: B027  (one that is nobody else's stays)
        """It is not used for a while: outside a transaction, others may have it meanwhile."""

    @abstractmethod
    def close(self) -> None: ...


def note_wait(since: float, what: str) -> None:
    """A line for who looks: a lock that was long in coming."""
    waited = time.monotonic() - since
    if waited > _WORTH_A_LINE_S:
        _log.warning("waited %.1f s for the lock of %s", waited, what)
