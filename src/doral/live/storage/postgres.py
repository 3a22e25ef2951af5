"""Campaigns in a PostgreSQL database, in the schema `doral`; connections come from psycopg's own pool."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from threading import Lock
from typing import Any, NoReturn, Self, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from doral.errors import InvalidValue
from doral.live.errors import ConnectionLost, StorageBusy, StorageError
from doral.live.storage.connection import CAMPAIGN_LOCKS, SCHEMA, Connection, Timeouts, note_wait
from doral.live.storage.urls import PostgresDatabase

_WORTH_COPYING = 8  # rows; fewer are sent one by one
_GRACE_S = 2.0  # a server at work cancels a statement by itself before we give it up
STOPPED_S = 120.0  # between two statements of a transaction: no request, however many it decides on, takes as long
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_KEEP_TEXTS = ("UTF8", "SQL_ASCII")  # encodings in which a text stays what it is
_KEEPALIVE = {"keepalives": 1, "keepalives_idle": 5, "keepalives_interval": 3, "keepalives_count": 4}
T = TypeVar("T")


class Guarded(psycopg.Connection[tuple[Any, ...]]):
    """Gives a server up that does not answer: a time-out of the server itself is of no use once it is silent."""

    answer_within_s: float | None = None

    @classmethod
    def connect(  # type: ignore[override]
        cls, conninfo: str = "", *, on_failure: Callable[[Exception], StorageError] | None = None, **parameters: Any
    ) -> Self:
        """Connect; what goes wrong is handed to `on_failure`, and raised in the words that it gives."""
        try:
            return super().connect(conninfo, **parameters)
        except (psycopg.Error, UnicodeError) as error:
            if on_failure is None:
                raise
            said = str(on_failure(error))
        raise psycopg.OperationalError(said)

    def wait(self, gen: Any, *options: Any, **named: Any) -> Any:
        """All that is said to a server passes through here; psycopg wakes the generator every 0.1 s."""
        if self.answer_within_s is not None:
            gen = self._bounded(gen, self.answer_within_s)
        return super().wait(gen, *options, **named)

    def _bounded(self, gen: Generator[Any, Any, T], within_s: float) -> Generator[Any, Any, T]:
        heard_at = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() > heard_at + within_s:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer for {within_s:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value


def parameters_of(database: PostgresDatabase, timeouts: Timeouts) -> dict[str, Any]:
    """What libpq is told."""
    return {
        "connect_timeout": max(1, round(timeouts.connect_s)),
        "tcp_user_timeout": round(1000 * (timeouts.statement_s + _GRACE_S)),
        **_KEEPALIVE,
        **database.parameters,
        "client_encoding": "UTF8",  # the server says what it cannot hold, and nothing is decoded by guessing
    }


def connect(database: PostgresDatabase, timeouts: Timeouts, *, is_patient: bool = False) -> Guarded:
    """A connection in autocommit; a patient one lets a statement take as long as it needs."""
    try:
        connection = Guarded.connect("", autocommit=True, **parameters_of(database, timeouts))
        configure(connection, timeouts, is_patient=is_patient)
    except (psycopg.Error, UnicodeError) as error:
        said = unreachable(database, error)
    else:
        return connection
    # Outside of the handler: what the driver said may quote the password, and would go along as the context.
    raise ConnectionLost(said)


def unreachable(database: PostgresDatabase, error: Exception) -> str:
    """The message, without a password."""
    return f"cannot reach PostgreSQL at {database.shown}: {database.without_secrets(str(error).strip())}"


def configure(connection: Guarded, timeouts: Timeouts, *, is_patient: bool = False) -> None:
    """Say how this connection behaves, whatever the database and the role are set to."""
    slice_s = min(timeouts.lock_s, timeouts.statement_s / 2)  # of the wait for a lock: silence is noticed in between
    connection.answer_within_s = timeouts.statement_s + _GRACE_S
    cursor = connection.execute(
        # Nobody else's functions and operators come before the server's own, and numbers come back to the last bit.
        "SET search_path = pg_catalog, pg_temp; SET extra_float_digits = 3; SET synchronous_commit = on; "
        # Bytes are written and read as we write and read them; what is read after a lock includes what came before it.
        "SET standard_conforming_strings = on; SET bytea_output = hex; "
        "SET default_transaction_isolation = 'read committed'; "
        f"SET lock_timeout = {_milliseconds(timeouts.lock_s if is_patient else slice_s)}; "
        f"SET statement_timeout = {0 if is_patient else _milliseconds(timeouts.statement_s)}; "
        # Likewise the server gives us up: a process that is stopped in a transaction would keep others locked out.
        f"SET idle_in_transaction_session_timeout = {0 if is_patient else _milliseconds(STOPPED_S)}; "
        "SELECT pg_backend_pid()",
        prepare=False,
    )
    while cursor.nextset():
        pass
    if cursor.fetchall() != [(connection.info.backend_pid,)]:
        connection.close()
        raise StorageError(
            "PostgreSQL: a pooler such as PgBouncer stands in between, which may give each transaction another "
            "connection, without our settings and locks; nothing was changed: give the address of the server itself "
            "(doral has a pool of its own)"
        )
    if is_patient:
        connection.answer_within_s = None


def _beyond_ascii(parameters: Iterable[Any]) -> list[str]:
    return [one for one in parameters if isinstance(one, str) and not one.isascii()]


def _is_in(encoding: str, text: str) -> bool:
    """As far as Python knows the encoding by that name."""
    try:
        text.encode(encoding)
    except (LookupError, UnicodeError):
        return False
    return True


def _milliseconds(seconds: float) -> int:
    return max(1, round(1000 * seconds))


def check(database: PostgresDatabase) -> None:
    """Options that libpq does not know are refused before anything is tried."""
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    if not database.parameters.keys() <= known:
        raise InvalidValue("url", database.shown + "?...", "has an option that PostgreSQL's client does not know")


class PostgresConnection(Connection):
    """One advisory lock per campaign and transaction: it goes with the transaction, however that ends."""

    placeholder = "%s"
    schema = f"{SCHEMA}."

    def __init__(
        self, database: PostgresDatabase, timeouts: Timeouts | None = None, pool: PostgresPool | None = None
    ) -> None:
        """Connect; with a pool, a connection is borrowed with the first statement, until `rest`."""
        self._database = database
        self._timeouts = timeouts or Timeouts()
        self._pool = pool
        self._held = connect(database, self._timeouts) if pool is None else None

    @property
    def _connection(self) -> Guarded:
        if self._held is None:
            if self._pool is None:
                raise ConnectionLost("the connection to PostgreSQL was closed")
            self._held = self._pool.take()
        return self._held

    def rest(self) -> None:
        if self._pool is not None and self._held is not None:
            held, self._held = self._held, None
            self._pool.give(held)

    @property
    def _encoding(self) -> str:
        return self._connection.info.parameter_status("server_encoding") or "of the database"

    def _fail(self, error: Exception, parameters: Sequence[Any] = ()) -> NoReturn:
        raise self._translated(error, parameters) from (None if isinstance(error, UnicodeError) else error)

    def _translated(self, error: Exception, parameters: Sequence[Any]) -> StorageError | InvalidValue:
        said = self._database.without_secrets(str(error).strip() or type(error).__name__)
        errors = psycopg.errors
        if isinstance(error, UnicodeError | errors.UntranslatableCharacter | errors.CharacterNotInRepertoire):
            return self._not_held(parameters, said)
        if self._held is None or self._held.closed or isinstance(error, psycopg.InterfaceError):
            return ConnectionLost(f"the connection to PostgreSQL broke: {said}")
        if isinstance(error, errors.LockNotAvailable):
            return self._busy()
        if isinstance(error, errors.QueryCanceled):
            return StorageError(
                f"PostgreSQL: {said}; nothing was changed: try again, or give `doral.open` a longer statement_timeout_s"
            )
        if isinstance(error, errors.DiskFull):
            return StorageError(f"PostgreSQL: {said}; nothing was changed: free some space and try again")
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return StorageError(f"PostgreSQL: {said}; nothing was changed: connect to the primary server")
        if isinstance(error, errors.InsufficientPrivilege):
            return StorageError(
                f"PostgreSQL: {said}; nothing was changed: have the owner of the schema {SCHEMA!r} grant its use "
                "to this role"
            )
        if isinstance(error, errors.UndefinedTable):
            return StorageError(
                f"PostgreSQL: {said}; the tables are not there any more: was the database restored? "
                "Open the store again"
            )
        return StorageError(f"PostgreSQL: {said}")

    def _not_held(self, parameters: Sequence[Any], said: str) -> InvalidValue:
        texts = sorted(_beyond_ascii(parameters), key=lambda text: _is_in(self._encoding, text))
        return InvalidValue(
            "text",
            texts[0] if texts else said,
            f"cannot be stored, because the database's encoding {self._encoding} does not hold it; nothing was "
            "changed: use other characters, or a database with the encoding UTF8",
        )

    def _refuse_changed(self, parameters: Iterable[Any]) -> None:
        """Some encodings take a character for another that looks like it, and give that back."""
        if self._encoding in _KEEP_TEXTS:
            return
        for text in _beyond_ascii(parameters):
            try:
                kept = self._connection.execute("SELECT %s::text", (text,)).fetchall()[0][0]
            except (psycopg.Error, UnicodeError) as error:
                self._fail(error, (text,))
            if kept != text:
                raise self._not_held((text,), text)

    def _busy(self) -> StorageBusy:
        return StorageBusy(
            f"PostgreSQL: others have kept it locked for {self._timeouts.lock_s:g} s; nothing was changed: "
            "try again, or give `doral.open` a longer lock_timeout_s"
        )

    def begin(self, campaign_id: int, *, within_s: float | None = None) -> None:
        # In one message. Read committed: what is read after the lock was granted includes all that came before.
        sql = f"{_BEGIN}; SELECT pg_advisory_xact_lock({CAMPAIGN_LOCKS:d}, {campaign_id:d})"
        self._await_lock(campaign_id, within_s, lambda: self._connection.execute(sql, prepare=False))

    def _await_lock(self, campaign_id: int, within_s: float | None, ask: Callable[[], T]) -> T:
        since = time.monotonic()
        until = since + (self._timeouts.lock_s if within_s is None else min(within_s, self._timeouts.lock_s))
        while True:
            try:
                found = ask()
            except psycopg.errors.LockNotAvailable as error:
                self.rollback()
                if time.monotonic() >= until - 0.01:
                    raise self._busy() from error
            except psycopg.Error as error:
                self.rollback()
                self._fail(error)
            except BaseException:  # an interrupt, or what nobody can read: the lock may have been granted
                self.rollback()
                raise
            else:
                note_wait(since, f"campaign {campaign_id}")
                return found

    def begin_reading(self) -> None:
        try:
            # Whoever reads keeps nobody out, and may take his time with what he has read.
            self._connection.execute(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0",
                prepare=False,
            )
        except psycopg.Error as error:
            self._fail(error)

    def wipe(self) -> None:
        """Only the server's VACUUM can, and who may run it when is for its owner to say."""

    def be_thorough(self) -> None:
        """See `wipe`."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self._refuse_changed(parameters)
        try:
            cursor = self._connection.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []
        except (psycopg.Error, UnicodeError) as error:
            self._fail(error, parameters)

    def fetch(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, parameters, binary=True).fetchall()
        except (psycopg.Error, UnicodeError) as error:
            self._fail(error, parameters)

    def server_time(self) -> float | None:
        return float(self.execute("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0])

    def has_table(self, name: str) -> bool:
        return self.execute("SELECT to_regclass(%s)", (self.schema + name,))[0][0] is not None

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        self._refuse_changed(each for row in rows for each in row)
        try:
            with self._connection.cursor() as cursor:
                if len(rows) == 1:
                    cursor.execute(sql, rows[0])
                else:
                    cursor.executemany(sql, rows)
                return cursor.rowcount
        except (psycopg.Error, UnicodeError) as error:
            self._fail(error, [each for row in rows for each in row])

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        if len(rows) < _WORTH_COPYING:
            return super().insert(table, columns, rows)
        self._refuse_changed(each for row in rows for each in row)
        try:
            with self._connection.cursor() as cursor:
                with cursor.copy(f"COPY {self.schema}{table} ({', '.join(columns)}) FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
                return cursor.rowcount
        except (psycopg.Error, UnicodeError) as error:
            self._fail(error, [each for row in rows for each in row])

    def commit(self) -> None:
        if self._held is None:  # another connection would commit nothing, and say that it did
            raise ConnectionLost("the connection of this transaction is gone")
        try:
            done = self._connection.execute("COMMIT", prepare=False).statusmessage
        except psycopg.Error as error:
            self._fail(error)
        if done != "COMMIT":  # of a transaction in which something failed: the server calls that no error
            raise StorageError(f"PostgreSQL undid the transaction ({done}); nothing was changed: try again")

    def rollback(self) -> None:
        if self._held is None or self._held.closed:
            return
        try:
            self._held.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            self._held.close()

    def close(self) -> None:
        self.rest()
        if self._held is not None:
            self._held.close()


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
