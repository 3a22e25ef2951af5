"""Connections to PostgreSQL that all campaigns of a store share, in psycopg's own pool.

A server forks a process for each connection, and has 100 for all its clients unless its operator says otherwise.
Campaigns may be thousands; what is bounded by nature is how many threads ask for something at once.
"""

from __future__ import annotations

import select
import time
from threading import Lock

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from doral.live.errors import ConnectionLost, StorageBusy, StorageError
from doral.live.storage.connection import Timeouts
from doral.live.storage.postgres import Guarded, configure, parameters_of, unreachable
from doral.live.storage.urls import PostgresDatabase

MOST = 32  # connections of one store, unless it is told otherwise
_IDLE_S = 60.0  # after which one that is not used is closed
_TRIED_S = 0.2  # for so long the pool itself tries to connect again
_SLICE_S = 0.1  # of the wait for a connection: a server that cannot be reached is heard of in between


class PostgresPool:
    """Of one store and process. Safe to share between threads."""

    def __init__(self, database: PostgresDatabase, timeouts: Timeouts, *, most: int = MOST) -> None:
        self._database, self._timeouts, self._most = database, timeouts, most
        self._lock = Lock()
        self._pool: ConnectionPool[Guarded] | None = None
        self._lenders: dict[Guarded, ConnectionPool[Guarded]] = {}
        self._failure: tuple[float, StorageError] | None = None  # the last, and when it was

    @property
    def n_lent(self) -> int:
        """Connections that are in use now."""
        return len(self._lenders)

    def lend_at_most(self, connections: int) -> None:
        """Allow so many at once; further threads wait."""
        with self._lock:
            self._most = connections
            if self._pool is not None:
                self._pool.resize(0, connections)

    def _opened(self) -> ConnectionPool[Guarded]:
        with self._lock:
            if self._pool is None:
                self._pool = ConnectionPool(
                    connection_class=Guarded,
                    kwargs={
                        "autocommit": True,
                        "on_failure": self._note,
                        **parameters_of(self._database, self._timeouts),
                    },
                    configure=self._configure,
                    min_size=0,
                    max_size=self._most,
                    max_idle=_IDLE_S,
                    reconnect_timeout=_TRIED_S,
                    num_workers=1,
                    name="doral",
                    open=True,
                )
            return self._pool

    def _note(self, error: Exception) -> StorageError:
        said = error if isinstance(error, StorageError) else ConnectionLost(unreachable(self._database, error))
        self._failure = (time.monotonic(), said)
        return said

    def _configure(self, connection: Guarded) -> None:
        try:
            configure(connection, self._timeouts)
        except (psycopg.Error, StorageError) as error:
            self._note(error)
            raise

    def take(self) -> Guarded:
        """A connection that no other thread uses; StorageBusy where all are in use for too long."""
        since = time.monotonic()
        while True:
            pool = self._opened()
            try:
                found = pool.getconn(timeout=_SLICE_S)
            except PoolTimeout:
                if self._failure is not None and self._failure[0] > since:
                    raise self._failure[1] from None
                if time.monotonic() - since > self._timeouts.lock_s:
                    raise StorageBusy(
                        f"PostgreSQL: all {self._most} connections of this process were in use for "
                        f"{self._timeouts.lock_s:g} s; nothing was changed: try again"
                    ) from None
                continue
            except PoolClosed:  # by another thread, just now
                continue
            if _is_usable(found):
                self._lenders[found] = pool
                return found
            found.close()
            pool.putconn(found)
            pool.drain()  # what ended this one has probably ended all that are idle

    def give(self, connection: Guarded) -> None:
        """Give one back; one that is broken, or in the middle of something, is closed."""
        pool = self._lenders.pop(connection)
        is_broken = connection.closed
        if not is_broken and connection.pgconn.transaction_status != TransactionStatus.IDLE:
            connection.close()
        pool.putconn(connection)
        if is_broken:
            pool.drain()

    def close(self) -> None:
        """Close those that are idle now, the others when they are given back."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


def _is_usable(connection: Guarded) -> bool:
    """Nothing was asked through it: where something can be read, the server has ended it."""
    if connection.closed:
        return False
    looked = select.poll()
    looked.register(connection.fileno(), select.POLLIN)
    return not looked.poll(0)
