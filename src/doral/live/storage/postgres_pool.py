"""Connections to PostgreSQL that all campaigns of a store share: one is borrowed for a request, and given back.

A server forks a process for each connection, and has 100 for everybody unless its operator says otherwise. Campaigns
may be thousands; what is bounded by nature is how many threads ask for something at once.
"""

from __future__ import annotations

import os
import secrets
import select
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from threading import Condition, Lock, get_ident
from typing import Any

from doral._forks import renew_in_child
from doral.live.errors import ConnectionLost, StorageBusy
from doral.live.storage.connection import AT_ONCE, Connection
from doral.live.storage.postgres import PostgresConnection

KEPT_IDLE = 16  # connections that nobody uses at the moment; what a moment of many threads has opened is closed again
_SESSIONS = 2**20  # of one process that have numbers of their own, one after the other


class PostgresPool:
    """Of one store and process. Safe to share between threads; a forked child begins with none."""

    def __init__(self, connect: Callable[[], PostgresConnection], *, wait_s: float, most: int | None = None) -> None:
        self._connect, self._wait_s = connect, wait_s
        self.most = most  # that are borrowed at once; None: as many as threads ask for
        self._inherited: list[object] = []
        self._begin()
        renew_in_child(self)

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._life_number = _life_of(secrets.randbits(62))
        self._numbers = count()
        self._life: PostgresConnection | None = None
        self._is_seen = False  # whether others can tell by it that this process lives
        self._life_lock = Lock()  # apart from the other: to connect may take a while
        self._changed = Condition()
        self._idle: list[PostgresConnection] = []  # the one that was used last at the end
        self._lent: dict[int, int] = {}  # by thread
        self._is_closed = False

    def renew(self) -> None:
        """In a forked child. The parent's connections are not ours to use, nor to close."""
        if os.getpid() != self._pid:
            self._inherited += [self._idle, self._life]
            self._begin()

    def number(self) -> int:
        """Of one more session. Others can tell by it whether this process lives, once it has said `live`.

        No two have the same: what one has leased, another must not spend.
        """
        self.renew()
        return self._life_number + next(self._numbers) % _SESSIONS

    def is_own(self, number: int) -> bool:
        """Whether this process has given it to a session."""
        self.renew()
        return _life_of(number) == self._life_number

    def live(self) -> None:
        """Say so, through a connection that is used for nothing else: it ends when this process does."""
        with self._life_lock:
            self._living()

    def lead(self, campaign_id: int) -> bool:
        """Whether this process is the one that has something to do for all others of this campaign, while it lives."""
        with self._life_lock:
            return self._living().lead(campaign_id)

    def _living(self) -> PostgresConnection:
        if self._is_closed:  # nobody would close it once more
            raise ConnectionLost("the store was closed")
        if self._life is None or not _is_usable(self._life):
            if self._life is not None:
                _discard(self._life)
            self._life, self._is_seen = None, False
            self._life = self._connect()
        if not self._is_seen:  # somebody may be looking for it at this moment, and then has the lock
            self._is_seen = self._life.hold(self._life_number)
        return self._life

    @property
    def n_lent(self) -> int:
        """Connections that somebody uses now."""
        return sum(self._lent.values())

    @property
    def n_idle(self) -> int:
        """Connections that wait for somebody."""
        return len(self._idle)

    def take(self) -> PostgresConnection:
        """One that nobody else uses, made where there is none; StorageBusy where too many are in use for too long."""
        if os.getpid() != self._pid:  # forked by something that does not tell Python
            self.renew()
        me = get_ident()
        with self._changed:
            self._wait_for_room(me)
            self._lent[me] = self._lent.get(me, 0) + 1
            found = self._next_idle()
        if found is not None:
            return found
        try:
            return self._connect()
        except BaseException:
            self._count_back(me)
            raise

    def take_idle(self) -> PostgresConnection:
        """One that is there and that nobody uses; StorageBusy where there is none."""
        me = get_ident()
        with self._changed:
            found = self._next_idle() if os.getpid() == self._pid else None
            if found is None:
                raise StorageBusy("PostgreSQL: no connection is idle; nothing was changed: try again")
            self._lent[me] = self._lent.get(me, 0) + 1
        return found

    def _wait_for_room(self, me: int) -> None:
        """Whoever has one already gets another at once: two who wait for each other's would wait for ever."""
        until = time.monotonic() + self._wait_s
        while self.most is not None and self.n_lent >= self.most and me not in self._lent:
            left_s = until - time.monotonic()
            if left_s <= 0 or not self._changed.wait(left_s):
                raise StorageBusy(
                    f"PostgreSQL: all {self.most} connections of this process were in use for {self._wait_s:g} s; "
                    "nothing was changed: try again"
                )

    def _next_idle(self) -> PostgresConnection | None:
        while self._idle:
            found = self._idle.pop()
            if _is_usable(found):
                return found
            _discard(found)
        return None

    def give(self, connection: PostgresConnection, taker: int) -> None:
        """Give one back that a thread has taken.

        Args:
            connection: What `take` gave. One that is broken, or in the middle of something, is closed.
            taker: The thread for which it was taken.
        """
        if os.getpid() != self._pid:
            self._inherited.append(connection)
            return
        surplus: list[PostgresConnection] = []
        with self._changed:
            if connection.is_clean and not self._is_closed and len(self._idle) < KEPT_IDLE:
                self._idle.append(connection)
            else:
                surplus.append(connection)
                if connection.is_broken:  # what ended this one has probably ended all of them
                    surplus += self._idle
                    self._idle = []
        for one in surplus:
            _discard(one)
        self._count_back(taker)

    def _count_back(self, taker: int) -> None:
        with self._changed:
            left = self._lent.get(taker, 0) - 1
            if left > 0:
                self._lent[taker] = left
            else:
                self._lent.pop(taker, None)
            self._changed.notify()

    def close(self) -> None:
        """Those that nobody uses; the others when they are given back."""
        with self._changed:
            idle, self._idle, self._is_closed = self._idle, [], True
        with self._life_lock:
            if self._life is not None:
                idle.append(self._life)
                self._life = None
        for one in idle:
            _discard(one)


def _life_of(number: int) -> int:
    return number - number % _SESSIONS


def _is_usable(connection: PostgresConnection) -> bool:
    """Nobody has asked it anything: where something can be read, the server has said good-bye."""
    if not connection.is_clean:
        return False
    looked = select.poll()
    looked.register(connection.fileno(), select.POLLIN)
    return not looked.poll(0)


def _discard(connection: PostgresConnection) -> None:
    connection.close()


class PooledConnection(Connection):
    """As a connection of one's own; a real one is borrowed with the first statement, until `rest`."""

    placeholder, schema = PostgresConnection.placeholder, PostgresConnection.schema

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool
        self._held: PostgresConnection | None = None
        self._taker = 0

    @property
    def is_lost(self) -> bool:  # type: ignore[override]
        return self._held is not None and self._held.is_lost

    def _use(self) -> PostgresConnection:
        if self._held is None:
            self._taker = get_ident()
            self._held = self._pool.take()
        return self._held

    def rest(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._pool.give(held, self._taker)

    def close(self) -> None:
        self.rest()

    # --- as it is said there ----------------------------------------------------------------------------------------

    def server_time(self) -> float | None:
        return self._use().server_time()

    def begin(self, campaign_id: int, *, within_s: float | None = None) -> None:
        if within_s == AT_ONCE and self._held is None:
            self._taker, self._held = get_ident(), self._pool.take_idle()
        self._use().begin(campaign_id, within_s=within_s)

    def begin_with(
        self, campaign_id: int, sql: str, parameters: Sequence[int], *, then: str, within_s: float | None = None
    ) -> list[tuple[Any, ...]]:
        if within_s == AT_ONCE:
            return super().begin_with(campaign_id, sql, parameters, then=then, within_s=within_s)
        return self._use().begin_with(campaign_id, sql, parameters, then=then, within_s=within_s)

    def begin_reading(self) -> None:
        self._use().begin_reading()

    def end_reading(self) -> None:
        self._use().end_reading()

    def hold(self, writer: int) -> bool:
        # Where the server has no connection for that, others may end the lease, and all else goes on.
        with suppress(ConnectionLost):
            self._pool.live()
        return True

    def is_held(self, writer: int) -> bool:
        return self._pool.is_own(writer) or self._use().is_held(_life_of(writer))

    def lead(self, campaign_id: int) -> bool:
        return self._pool.lead(campaign_id)

    def wipe(self) -> None:
        self._use().wipe()

    def be_thorough(self) -> None:
        self._use().be_thorough()

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._use().execute(sql, parameters)

    def fetch(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._use().fetch(sql, parameters)

    def has_table(self, name: str) -> bool:
        return self._use().has_table(name)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        return self._use().insert(table, columns, rows)

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        return self._use().execute_many(sql, rows)

    def pack(self, table: str, columns: Mapping[str, Sequence[Any]], holes: Sequence[str]) -> object:
        return self._use().pack(table, columns, holes)

    def insert_and_commit(
        self, packed: Any, filled: Sequence[Sequence[Any]], sql: str, parameters: Sequence[Any]
    ) -> int:
        return self._transacting().insert_and_commit(packed, filled, sql, parameters)

    def commit(self) -> None:
        self._transacting().commit()

    def _transacting(self) -> PostgresConnection:
        if self._held is None:  # another connection would commit nothing, and say that it did
            raise ConnectionLost("the connection of this transaction is gone")
        return self._held

    def rollback(self) -> None:
        if self._held is not None:
            self._held.rollback()
