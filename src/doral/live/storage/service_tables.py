"""What a service keeps beside its campaigns, in the same store: keys, administrative acts, alarms.

`tests/live/test_service_tables.py` runs the whole contract on every implementation. No method changes a campaign.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from threading import RLock
from typing import Any, TypeVar

from doral.live.errors import ConnectionLost, OutcomeUnknown, StorageError
from doral.live.storage.connection import BOOKS_LOCK, Connection, Retry, refuse_child


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
    acknowledged_at: float | None = None
    acknowledged_by: str | None = None  # name of the key


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
    def acknowledge_alarm(
        self, campaign: str, rule: str, subject: str, at: float, by: str, act: ActRow | None = None
    ) -> bool:
        """Note who has seen a raised alarm; False where it is not raised. The first acknowledgement stays."""

    @abstractmethod
    def mute_alarm(
        self, campaign_tag: str, rule: str, subject: str, until: float | None, act: ActRow | None = None
    ) -> None:
        """Raise no alarm of this rule and subject before `until`; None: from now on again."""

    @abstractmethod
    def muted_alarms(self, campaign_tag: str, now: float) -> dict[tuple[str, str], float]:
        """Return until when each (rule, subject) of a campaign is muted, for those that are."""

    @abstractmethod
    def claim_test(self, campaign_tag: str, rule: str, subject: str, number: int) -> bool:
        """Use up the test of this number. False where it, or a later one, was used before, in whichever process."""

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


Result = TypeVar("Result")
_KEY = ", ".join(one.name for one in fields(KeyRow))
_ACT = ", ".join(one.name for one in fields(ActRow))
_SAID = _ACT.removeprefix("number, ")
_ALARM = ", ".join(one.name for one in fields(AlarmRow))
_THIS = "campaign = ? AND rule = ? AND subject = ?"
_SUBJECT = "campaign_tag = ? AND rule = ? AND subject = ?"
_WATCHED = "campaign_tag, rule, subject, tests_used, muted_until"
_NEEDS_TELLING = "((cleared_at IS NULL AND told < 1) OR (cleared_at IS NOT NULL AND told < 2))"


class _Asked:
    """One transaction, or one look: SQL with `?`, and tables by their names alone.

    `again`: an attempt before this one may have been stored, though its answer was lost.
    """

    def __init__(self, connection: Connection, *, again: bool) -> None:
        self._connection, self.again = connection, again

    def __call__(self, sql: str, *given: Any) -> list[tuple[Any, ...]]:
        sql = sql.replace("service_", f"{self._connection.schema}service_")
        return self._connection.execute(sql.replace("?", self._connection.placeholder), given)

    def change(self, sql: str, *given: Any) -> int:
        """How many rows it has made or changed."""
        sql = sql.replace("service_", f"{self._connection.schema}service_")
        return self._connection.execute_many(sql.replace("?", self._connection.placeholder), [given])


class _Line:
    """A connection that is made when it is needed, for one thread at a time."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self.lock = RLock()
        self._connection: Connection | None = None

    def opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def close(self) -> None:
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


class SqlBooks(Books):
    """Of one database. A connection that broke is made again, and what was asked is asked again.

    Looking has a connection of its own: keys are looked up for every request, and must not wait for somebody who waits
    for his turn to write.
    """

    def __init__(self, connect: Callable[[], Connection], *, has_one_connection: bool = False) -> None:
        self._reading = _Line(connect)
        self._writing = self._reading if has_one_connection else _Line(connect)
        self._pid = os.getpid()

    def close(self) -> None:
        self._reading.close()
        self._writing.close()

    # --- asking -----------------------------------------------------------------------------------------------------

    def _read(self, ask: Callable[[_Asked], Result]) -> Result:
        refuse_child(self._pid)
        retry, line = Retry(), self._reading
        with line.lock:
            while True:
                try:
                    return ask(_Asked(line.opened(), again=False))
                except ConnectionLost as error:
                    line.close()
                    retry.wait(error)
                except StorageError:  # another file may be in its place: look at it anew the next time
                    line.close()
                    raise

    def _write(self, ask: Callable[[_Asked], Result]) -> Result:
        refuse_child(self._pid)
        retry, line = Retry(), self._writing
        again = False
        with line.lock:
            while True:
                try:
                    connection = line.opened()
                    connection.begin(BOOKS_LOCK, within_s=retry.left_s)
                    try:
                        found = ask(_Asked(connection, again=again))
                        again = True
                        connection.commit()
                    except BaseException:
                        connection.rollback()
                        raise
                except ConnectionLost as error:
                    line.close()
                    self._wait(retry, error, again=again)
                except StorageError:
                    line.close()
                    raise
                else:
                    return found

    @staticmethod
    def _wait(retry: Retry, error: ConnectionLost, *, again: bool) -> None:
        try:
            retry.wait(error)
        except ConnectionLost:
            if not again:
                raise
            raise OutcomeUnknown(
                f"{error}; whether it was written is not known: look, and ask again if it was not"
            ) from error

    # --- keys -------------------------------------------------------------------------------------------------------

    def add_key(self, row: KeyRow, act: ActRow | None = None) -> None:
        def add(sql: _Asked) -> None:
            if sql.again and _key_in(sql, row.id) == row:
                return
            if _key_in(sql, row.id) is not None:
                raise StorageError(f"there is a key {row.id!r} already; nothing was changed: make another")
            _insert_key(sql, row)
            _note(sql, act)

        self._write(add)

    def add_first_key(self, row: KeyRow, act: ActRow | None = None) -> bool:
        def add(sql: _Asked) -> bool:
            if sql.again and _key_in(sql, row.id) == row:
                return True
            if sql("SELECT 1 FROM service_keys WHERE parent IS NULL LIMIT 1"):
                return False
            _insert_key(sql, row)
            _note(sql, act)
            return True

        return self._write(add)

    def key(self, key_id: str) -> KeyRow | None:
        return self._read(lambda sql: _key_in(sql, key_id))

    def all_keys(self) -> list[KeyRow]:
        rows = self._read(lambda sql: sql(f"SELECT {_KEY} FROM service_keys WHERE parent IS NULL"))
        return sorted((_key(row) for row in rows), key=lambda one: (one.created_at, one.id))

    def revoke_key(self, key_id: str, at: float, act: ActRow | None = None) -> bool:
        def revoke(sql: _Asked) -> bool:
            row = _key_in(sql, key_id)
            if row is None or row.revoked_at is not None:
                return row is not None and sql.again and row.revoked_at == at
            these = "(id = ? OR parent = ?) AND revoked_at IS NULL"
            sql(f"UPDATE service_keys SET revoked_at = ? WHERE {these}", at, key_id, key_id)
            _note(sql, act)
            return True

        return self._write(revoke)

    def drop_sessions(self, *, expired_before: float) -> int:
        ended = "DELETE FROM service_keys WHERE parent IS NOT NULL AND (expires_at < ? OR revoked_at < ?)"
        return self._write(lambda sql: sql.change(ended, expired_before, expired_before))

    # --- acts -------------------------------------------------------------------------------------------------------

    def note(self, row: ActRow) -> None:
        given = _said(row)

        def add(sql: _Asked) -> None:
            if sql.again:
                found = sql(f"SELECT {_SAID} FROM service_acts ORDER BY number DESC LIMIT 1000")
                if given in [tuple(one) for one in found]:
                    return
            _note(sql, row)

        self._write(add)

    def acts(self, *, before: int | None = None, limit: int = 100) -> list[ActRow]:
        where, given = ("", []) if before is None else ("WHERE number < ? ", [before])
        rows = self._read(
            lambda sql: sql(f"SELECT {_ACT} FROM service_acts {where}ORDER BY number DESC LIMIT ?", *given, limit)
        )
        return [ActRow(**dict(zip(_ACT.split(", "), row, strict=True))) for row in rows]

    # --- alarms -----------------------------------------------------------------------------------------------------

    def raise_alarm(self, row: AlarmRow) -> bool:
        subject = (row.campaign, row.rule, row.subject)

        def add(sql: _Asked) -> bool:
            same = f"UPDATE service_alarms SET words = ? WHERE {_THIS} AND cleared_at IS NULL"
            if sql.change(same, row.words, *subject):
                raised = sql(f"SELECT since FROM service_alarms WHERE {_THIS} AND cleared_at IS NULL", *subject)
                return sql.again and raised[0][0] == row.since
            last = sql(f"SELECT max(since) FROM service_alarms WHERE {_THIS}", *subject)[0][0]
            new = _values(replace(row, since=after(row.since, last)))
            sql(f"INSERT INTO service_alarms ({_ALARM}) VALUES ({_marks(new)})", *new)
            return True

        return self._write(add)

    def clear_alarm(self, campaign: str, rule: str, subject: str, at: float) -> bool:
        def clear(sql: _Asked) -> bool:
            sql("DELETE FROM service_alarms WHERE cleared_at < ?", at - LONGEST_UNTOLD_S)
            this = (campaign, rule, subject)
            if sql.change(f"UPDATE service_alarms SET cleared_at = ? WHERE {_THIS} AND cleared_at IS NULL", at, *this):
                return True
            return sql.again and bool(sql(f"SELECT 1 FROM service_alarms WHERE {_THIS} AND cleared_at = ?", *this, at))

        return self._write(clear)

    def alarms(self, *, campaign: str | None = None) -> list[AlarmRow]:
        where, given = ("", []) if campaign is None else (" AND campaign = ?", [campaign])
        rows = self._read(
            lambda sql: sql(f"SELECT {_ALARM} FROM service_alarms WHERE cleared_at IS NULL{where}", *given)
        )
        return sorted(map(_alarm, rows), key=lambda one: (-one.since, one.campaign, one.rule, one.subject))

    def acknowledge_alarm(
        self, campaign: str, rule: str, subject: str, at: float, by: str, act: ActRow | None = None
    ) -> bool:
        def acknowledge(sql: _Asked) -> bool:
            this = (campaign, rule, subject)
            seen = f"UPDATE service_alarms SET acknowledged_at = ?, acknowledged_by = ? WHERE {_THIS}"
            if sql.change(f"{seen} AND cleared_at IS NULL AND acknowledged_at IS NULL", at, by, *this):
                _note(sql, act)
                return True
            return bool(sql(f"SELECT 1 FROM service_alarms WHERE {_THIS} AND cleared_at IS NULL", *this))

        return self._write(acknowledge)

    def mute_alarm(
        self, campaign_tag: str, rule: str, subject: str, until: float | None, act: ActRow | None = None
    ) -> None:
        def mute(sql: _Asked) -> None:
            this = (campaign_tag, rule, subject)
            if not sql.change(f"UPDATE service_alarm_subjects SET muted_until = ? WHERE {_SUBJECT}", until, *this):
                sql(f"INSERT INTO service_alarm_subjects ({_WATCHED}) VALUES (?, ?, ?, 0, ?)", *this, until)
            if not sql.again:
                _note(sql, act)

        self._write(mute)

    def muted_alarms(self, campaign_tag: str, now: float) -> dict[tuple[str, str], float]:
        muted = (
            "SELECT rule, subject, muted_until FROM service_alarm_subjects WHERE campaign_tag = ? AND muted_until > ?"
        )
        rows = self._read(lambda sql: sql(muted, campaign_tag, now))
        return {(rule, subject): until for rule, subject, until in rows}

    def claim_test(self, campaign_tag: str, rule: str, subject: str, number: int) -> bool:
        def claim(sql: _Asked) -> bool:
            this = (campaign_tag, rule, subject)
            use = f"UPDATE service_alarm_subjects SET tests_used = ? WHERE {_SUBJECT} AND tests_used < ?"
            if sql.change(use, number, *this, number):
                return True
            if sql(f"SELECT 1 FROM service_alarm_subjects WHERE {_SUBJECT}", *this):
                return False  # after a lost answer, too: a test that may have been used is not used again
            sql(f"INSERT INTO service_alarm_subjects ({_WATCHED}) VALUES (?, ?, ?, ?, NULL)", *this, number)
            return True

        return self._write(claim)

    def claim_deliveries(self, now: float, *, lease_s: float, limit: int = 20) -> list[AlarmRow]:
        def claim(sql: _Asked) -> list[AlarmRow]:
            due = sql(
                f"SELECT {_ALARM} FROM service_alarms WHERE next_try_at <= ? AND {_NEEDS_TELLING} "
                "ORDER BY since, campaign, rule, subject LIMIT ?",
                now,
                limit,
            )
            claimed = [replace(_alarm(row), next_try_at=now + lease_s) for row in due]
            for one in claimed:
                change = f"UPDATE service_alarms SET next_try_at = ? WHERE {_THIS} AND since = ?"
                sql(change, one.next_try_at, *_place(one))
            return claimed

        if not self._read(lambda sql: sql(f"SELECT 1 FROM service_alarms WHERE {_NEEDS_TELLING} LIMIT 1")):
            return []  # nearly always: nobody is kept from writing for it
        return self._write(claim)

    def delivered(self, row: AlarmRow, told: int) -> None:
        def note(sql: _Asked) -> None:
            change = f"UPDATE service_alarms SET told = ?, tries = 0, next_try_at = 0 WHERE {_THIS} AND since = ?"
            sql(change, told, *_place(row))
            done = f"{_THIS} AND since = ? AND cleared_at IS NOT NULL AND told >= 2"
            sql(f"DELETE FROM service_alarms WHERE {done}", *_place(row))

        self._write(note)

    def put_off(self, row: AlarmRow, *, next_try_at: float) -> None:
        change = f"UPDATE service_alarms SET tries = ?, next_try_at = ? WHERE {_THIS} AND since = ?"
        self._write(lambda sql: sql(change, row.tries + 1, next_try_at, *_place(row)))


def note_in(connection: Connection, row: ActRow) -> None:
    """Note an act in a transaction that is open."""
    _note(_Asked(connection, again=False), row)


def _note(sql: _Asked, row: ActRow | None) -> None:
    if row is not None:
        given = _said(row)
        sql(f"INSERT INTO service_acts ({_SAID}) VALUES ({_marks(given)})", *given)


def _said(row: ActRow) -> tuple[Any, ...]:
    return row.at, row.key_id, row.key_name, row.act, row.campaign, row.details, row.request_id, row.address


def _marks(given: Sequence[object]) -> str:
    return ", ".join("?" * len(given))


def _values(row: KeyRow | AlarmRow) -> tuple[Any, ...]:
    return tuple(getattr(row, one.name) for one in fields(row))


def _key_in(sql: _Asked, key_id: str) -> KeyRow | None:
    rows = sql(f"SELECT {_KEY} FROM service_keys WHERE id = ?", key_id)
    return _key(rows[0]) if rows else None


def _insert_key(sql: _Asked, row: KeyRow) -> None:
    given = [json.dumps(one) if isinstance(one, tuple) else one for one in _values(row)]
    sql(f"INSERT INTO service_keys ({_KEY}) VALUES ({_marks(given)})", *given)


def put_keys_in(connection: Connection, keys: Sequence[KeyRow]) -> None:
    """Add keys inside a transaction that is open."""
    for row in keys:
        _insert_key(_Asked(connection, again=False), row)


def _key(row: Sequence[Any]) -> KeyRow:
    found = dict(zip(_KEY.split(", "), row, strict=True))
    found["roles"] = tuple(json.loads(found["roles"]))
    found["campaigns"] = None if found["campaigns"] is None else tuple(json.loads(found["campaigns"]))
    return KeyRow(**found)


def _alarm(row: Sequence[Any]) -> AlarmRow:
    return AlarmRow(**dict(zip(_ALARM.split(", "), row, strict=True)))


def _place(row: AlarmRow) -> tuple[str, str, str, float]:
    return row.campaign, row.rule, row.subject, row.since
