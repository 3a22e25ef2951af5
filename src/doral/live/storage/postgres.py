"""Campaigns in a PostgreSQL database, in the schema `doral`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NoReturn, TypeVar

import psycopg

from doral._forks import renew_in_child
from doral.errors import InvalidValue
from doral.live.errors import ConnectionLost, StorageBusy, StorageError
from doral.live.storage.connection import AT_ONCE, Connection, Timeouts, note_wait
from doral.live.storage.postgres_copy import Packed
from doral.live.storage.postgres_talk import asking, copied, copying, rows_of
from doral.live.storage.urls import PostgresDatabase

SCHEMA = "doral"
CAMPAIGN_LOCKS = 0x646F72  # PostgreSQL's advisory locks are shared by all programs of a database: these are ours
LEADER_LOCKS = CAMPAIGN_LOCKS + 1
_WORTH_COPYING = 8  # rows; fewer are sent one by one
_GRACE_S = 2.0  # a server at work cancels a statement by itself before we give it up
STOPPED_S = 120.0  # between two statements of a transaction: no request, however many it decides on, takes as long
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
# Of a transaction whose statements are prepared, and find what they want by an index, however large the table gets.
_PLAN_ONCE = (
    "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; "
    "SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off"
)
_KEEP_TEXTS = ("UTF8", "SQL_ASCII")  # encodings in which a text stays what it is
_KEEPALIVE = {"keepalives": 1, "keepalives_idle": 5, "keepalives_interval": 3, "keepalives_count": 4}
T = TypeVar("T")
_inherited: list[_Guarded] = []  # from a parent: never closed


class _Guarded(psycopg.Connection[tuple[Any, ...]]):
    """Gives a server up that does not answer: a time-out of the server itself is of no use once it is silent."""

    answer_within_s: float | None = None

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


def connect(database: PostgresDatabase, timeouts: Timeouts, *, is_patient: bool = False) -> _Guarded:
    """A connection in autocommit; a patient one lets a statement take as long as it needs."""
    parameters: dict[str, Any] = {
        "connect_timeout": max(1, round(timeouts.connect_s)),
        "tcp_user_timeout": round(1000 * (timeouts.statement_s + _GRACE_S)),
        **_KEEPALIVE,
        **database.parameters,
        "client_encoding": "UTF8",  # the server says what it cannot hold, and nothing is decoded by guessing
    }
    slice_s = min(timeouts.lock_s, timeouts.statement_s / 2)  # of the wait for a lock: silence is noticed in between
    try:
        connection = _Guarded.connect("", autocommit=True, **parameters)
        connection.answer_within_s = timeouts.statement_s + _GRACE_S
        connection.execute(
            # Nobody else's functions and operators come before the server's own, and numbers come back to the last bit.
            "SET search_path = pg_catalog, pg_temp; SET extra_float_digits = 3; SET synchronous_commit = on; "
            # Bytes are written and read as we write and read them, however the database or the role is set.
            "SET standard_conforming_strings = on; SET bytea_output = hex; "
            f"SET lock_timeout = {_milliseconds(timeouts.lock_s if is_patient else slice_s)}; "
            f"SET statement_timeout = {0 if is_patient else _milliseconds(timeouts.statement_s)}; "
            # Likewise the server gives us up: a process that is stopped in a transaction would keep others locked out.
            f"SET idle_in_transaction_session_timeout = {0 if is_patient else _milliseconds(STOPPED_S)}",
            prepare=False,
        )
        if is_patient:
            connection.answer_within_s = None
    except (psycopg.Error, UnicodeError) as error:
        said = database.without_secrets(str(error).strip())
    else:
        return connection
    # Outside of the handler: what the driver said may quote the password, and would go along as the context.
    raise ConnectionLost(f"cannot reach PostgreSQL at {database.shown}: {said}")


def _beyond_ascii(parameters: Iterable[Any]) -> list[str]:
    return [one for one in parameters if isinstance(one, str) and not one.isascii()]


def _is_in(encoding: str, text: str) -> bool:
    """As far as Python knows the encoding by that name."""
    try:
        text.encode(encoding)
    except (LookupError, UnicodeError):
        return False
    return True


def _does_not_fit(error: Exception) -> StorageError:
    return StorageError(f"PostgreSQL: a value does not fit its column: {error}; nothing was changed")


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

    def __init__(self, database: PostgresDatabase, timeouts: Timeouts | None = None) -> None:
        self._database = database
        self._timeouts = timeouts or Timeouts()
        self._connection = connect(database, self._timeouts)
        self.is_broken = False  # it was found to be
        self._may_change_texts = self._encoding not in _KEEP_TEXTS
        self._leads: set[int] = set()  # campaigns for which it has a lock as long as it lives
        self._prepared: dict[str, str] = {}  # names of statements that the server knows
        self._numbers = count()  # of names: none is used again, whatever the server still knows by it
        renew_in_child(self)

    @property
    def is_clean(self) -> bool:
        """Whether somebody else could use it: it works, as far as is known, and no transaction is open."""
        if self.is_lost or self.is_broken or self._connection.closed:
            return False
        return self._connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE

    @property
    def _encoding(self) -> str:
        return self._connection.info.parameter_status("server_encoding") or "of the database"

    def fileno(self) -> int:
        """Of its socket."""
        return self._connection.fileno()

    def renew(self) -> None:
        """A child lets go of the parent's socket without a word: the server would think that the parent has left.

        Nor may it keep it: the server would not notice the parent's death, and keep its locks.
        """
        self.is_lost = True
        _inherited.append(self._connection)
        if not self._connection.closed:
            nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            os.dup2(nothing, self._connection.pgconn.socket, inheritable=False)
            os.close(nothing)

    def _fail(self, error: Exception, parameters: Sequence[Any] = ()) -> NoReturn:
        raise self._translated(error, parameters) from (None if isinstance(error, UnicodeError) else error)

    def _translated(self, error: Exception, parameters: Sequence[Any]) -> StorageError | InvalidValue:
        said = self._database.without_secrets(str(error).strip() or type(error).__name__)
        errors = psycopg.errors
        if isinstance(error, UnicodeError | errors.UntranslatableCharacter | errors.CharacterNotInRepertoire):
            return self._not_held(parameters, said)
        if self._connection.closed or isinstance(error, psycopg.InterfaceError):
            self.is_broken = True
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
        if not self._may_change_texts:
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
        if within_s == AT_ONCE:
            self._begin_at_once(campaign_id)
        else:
            # In one message. Read committed: what is read after the lock was granted includes all that came before.
            sql = f"{_BEGIN}; SELECT pg_advisory_xact_lock({CAMPAIGN_LOCKS:d}, {campaign_id:d})"
            self._await_lock(campaign_id, within_s, lambda: self._connection.execute(sql, prepare=False))

    def begin_with(
        self, campaign_id: int, sql: str, parameters: Sequence[int], *, then: str, within_s: float | None = None
    ) -> list[tuple[Any, ...]]:
        if within_s == AT_ONCE:
            return super().begin_with(campaign_id, sql, parameters, then=then, within_s=within_s)
        if sql not in self._prepared or then not in self._prepared:
            self._prepare(sql, then)
        lock = f"{_BEGIN}; {_PLAN_ONCE}; SELECT pg_advisory_xact_lock({CAMPAIGN_LOCKS:d}, {campaign_id:d})"
        given = ", ".join(f"{one:d}" for one in parameters)

        def ask() -> list[tuple[Any, ...]]:
            message = f"{lock}; EXECUTE {self._prepared[sql]} ({given})"
            return rows_of(self._connection.wait(asking(self._connection.pgconn, message)))

        def ask_again() -> list[tuple[Any, ...]]:
            try:
                return ask()
            except psycopg.errors.InvalidSqlStatementName:  # at times, the driver has the server forget all of them
                self.rollback()
                self._prepared.clear()
                self._prepare(sql, then)
                return ask()

        return self._await_lock(campaign_id, within_s, ask_again)

    def _prepare(self, *statements: str) -> None:
        """Have them planned once: to do so takes longer than they do, and others wait. Outside a transaction."""
        for sql in statements:
            name = f"doral_{next(self._numbers)}"
            parts = sql.split(self.placeholder)
            marked = "".join(f"{part}${place}" for place, part in enumerate(parts[:-1], 1)) + parts[-1]
            try:
                self._connection.execute(f"PREPARE {name} AS {marked}".encode(), prepare=False)
            except psycopg.Error as error:
                self._fail(error)
            self._prepared[sql] = name

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

    def _begin_at_once(self, campaign_id: int) -> None:
        try:
            self._connection.execute(_BEGIN, prepare=False)
            sql = f"SELECT pg_try_advisory_xact_lock({CAMPAIGN_LOCKS:d}, {campaign_id:d})"
            is_ours = self._connection.execute(sql, prepare=False).fetchall()[0][0]
        except psycopg.Error as error:
            self.rollback()
            self._fail(error)
        if not is_ours:
            self.rollback()
            raise self._busy()

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

    def hold(self, writer: int) -> bool:
        # One number of 64 bits: these locks are not those of campaigns, which are two of 32. Whoever has it already is
        # an earlier connection of this process, of whose end the server has not heard yet, or looks for it.
        return bool(self.execute("SELECT pg_try_advisory_lock(%s::bigint)", (writer,))[0][0])

    def is_held(self, writer: int) -> bool:
        return not self.execute("SELECT pg_try_advisory_xact_lock(%s::bigint)", (writer,))[0][0]

    def lead(self, campaign_id: int) -> bool:
        if campaign_id not in self._leads:
            sql = f"SELECT pg_try_advisory_lock({LEADER_LOCKS:d}, {campaign_id:d})"
            if not self.execute(sql)[0][0]:
                return False
            self._leads.add(campaign_id)
        return True

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
                packed = Packed(self.schema + table, columns, tuple(zip(*rows, strict=True)))
                with cursor.copy(packed.statement) as copy:
                    copy.write(packed.filled())
                return cursor.rowcount
        except (psycopg.Error, UnicodeError) as error:
            self._fail(error, [each for row in rows for each in row])
        except (TypeError, ValueError, OverflowError) as error:
            raise _does_not_fit(error) from error

    def pack(self, table: str, columns: Mapping[str, Sequence[Any]], holes: Sequence[str]) -> object:
        if len(next(iter(columns.values()))) < _WORTH_COPYING:
            return None
        self._refuse_changed(each for column in columns.values() for each in column)
        try:
            return Packed(self.schema + table, tuple(columns), tuple(columns.values()), holes)
        except UnicodeError as error:
            self._fail(error, [each for column in columns.values() for each in column])
        except (TypeError, ValueError, OverflowError) as error:
            raise _does_not_fit(error) from error

    def insert_and_commit(
        self, packed: Packed, filled: Sequence[Sequence[Any]], sql: str, parameters: Sequence[Any]
    ) -> int:
        given = ", ".join(
            f"decode('{one.hex()}', 'hex')" if isinstance(one, bytes) else f"{one:d}" for one in parameters
        )
        try:
            message = f"{packed.statement}; EXECUTE {self._prepared[sql]} ({given}); COMMIT"
            talk = copying(self._connection.pgconn, message, packed.filled(filled))
            stored, failure = copied(self._connection.wait(talk))
        except psycopg.Error as error:
            self._fail(error)
        except (TypeError, ValueError, OverflowError) as error:
            raise _does_not_fit(error) from error
        if isinstance(failure, psycopg.errors.DivisionByZero):
            return min(stored, packed.n_rows - 1)
        if failure is not None:
            self._fail(failure)
        return packed.n_rows  # it is committed, and so the statement has counted them, wherever a trigger put them

    def commit(self) -> None:
        try:
            done = self._connection.execute("COMMIT", prepare=False).statusmessage
        except psycopg.Error as error:
            self._fail(error)
        if done != "COMMIT":  # of a transaction in which something failed: the server calls that no error
            raise StorageError(f"PostgreSQL undid the transaction ({done}); nothing was changed: try again")

    def rollback(self) -> None:
        if self._connection.closed:
            return
        try:
            self._connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            self._connection.close()

    def close(self) -> None:
        self._connection.close()
