"""What SQLite and PostgreSQL have in common: connections with explicit transactions, retries, and forked processes."""

from __future__ import annotations

import ctypes
import logging
import os
import time
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from doral import _check
from doral.live.errors import ConnectionLost, StorageError

SCHEMA = "doral"  # of PostgreSQL
CAMPAIGN_LOCKS = 0x646F72  # PostgreSQL's advisory locks are shared by all programs of a database: these are ours
SCHEMA_LOCK = 0  # in the place of a campaign: taken while campaigns are made, and the schema is brought up to date
BOOKS_LOCK = -1  # likewise: taken while keys, acts and alarms are written
_MOST_S = 1e6  # a week and more; PostgreSQL counts milliseconds in 31 bits
WORTH_A_LINE_S = 1.0
logger = logging.getLogger("doral.live")


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

        `within_s` shortens the wait for the lock.
        """

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
    if waited > WORTH_A_LINE_S:
        logger.warning("waited %.1f s for the lock of %s", waited, what)


RECONNECT_S = 20.0
_PAUSE_S = 0.05
logger = logging.getLogger("doral.live")


class Retry:
    """Of one request."""

    gives_up_at: float | None = None
    _pause_s = _PAUSE_S

    def wait(self, error: ConnectionLost) -> None:
        """A pause before the next attempt; the error itself, once it has lasted too long."""
        now = time.monotonic()
        if self.gives_up_at is None:
            self.gives_up_at = now + RECONNECT_S
        if now > self.gives_up_at:
            raise error
        logger.warning("%s; trying again", error)
        time.sleep(self._pause_s)
        self._pause_s = min(1.0, 2.0 * self._pause_s)

    @property
    def left_s(self) -> float | None:
        """How much is left after a connection broke; None as long as none did."""
        return None if self.gives_up_at is None else max(0.0, self.gives_up_at - time.monotonic())


Identity: TypeAlias = tuple[int, int]  # device and inode


class Inheritable(Protocol):
    """Something that holds a connection to a SQLite file."""

    def inherited(self) -> object:
        """The connection."""


_open: Counter[Identity] = Counter()  # files that this process has open
_inherited: set[Identity] = set()
_connections: weakref.WeakSet[Inheritable] = weakref.WeakSet()


def note_open(file: Identity, connection: Inheritable) -> None:
    """This process has the file open until `note_closed`."""
    _open[file] += 1
    _connections.add(connection)


def note_closed(file: Identity) -> None:
    """As often as `note_open`."""
    _open[file] -= 1


@contextmanager
def open_briefly(file: Identity | None) -> Iterator[None]:
    """The file is open inside the block."""
    if file is None:
        yield
        return
    _open[file] += 1
    try:
        yield
    finally:
        _open[file] -= 1


def refuse_inherited(file: Identity | None, path: object) -> None:
    """StorageError where the parent of this process had the file open when it forked."""
    if file in _inherited:
        raise StorageError(
            f"{path}: was open in the process that this one was forked from, and SQLite cannot open it here: fork "
            "before the store is opened, or start processes with multiprocessing.get_context('spawn')"
        )


def refuse_child(opened_in: int) -> None:
    """StorageError where what was opened in the process of that number is used in another one."""
    if os.getpid() != opened_in:
        raise StorageError(
            "this store was opened in the process that this one was forked from: open it again here, with doral.open()"
        )


def _after_fork() -> None:
    for one in list(_connections):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one.inherited()))  # never closed, not even at the very end
    _connections.clear()
    _inherited.update(file for file, count in _open.items() if count > 0)
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
