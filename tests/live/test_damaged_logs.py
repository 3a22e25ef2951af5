"""A log that somebody has damaged by SQL, value by value: a typed error or the truth, whatever is asked of it.

`DORAL_TORTURE=1` tries every case, otherwise a part of them.
"""

from __future__ import annotations

import math
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import doral
from doral.errors import DoralError
from doral.live.errors import BrokenLog
from doral.live.events.row import CLOSED, COLUMNS, CORRECTED
from tests.live import damage
from tests.live.attacked import (
    ALL_KINDS,
    NAME,
    Questions,
    answers,
    in_child,
    is_error,
    is_internal,
    live_through_everything,
)

IS_TORTURE = "DORAL_TORTURE" in os.environ
CASES = {"sqlite": 80, "postgres": 20}  # of each kind of log and attacker
FLIPS = 3_000 if IS_TORTURE else 160

_WHOLE = ("sequence", "writer", "decision", "number", "engine")
_SMALL = ("kind", "context", "arm", "round", "reason", "was", "state", "outcome")
_TEXTS = ("key", "data", "person")
_BYTES = ("available", "key_hash", "chain", "person_hash")
NUMBERS: tuple[object, ...] = (None, 0, 1, 2, -1, 7, 1000, -32768, 32767)
LARGE: tuple[object, ...] = (10**9, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
FLOATS: tuple[object, ...] = (
    *(None, 0.0, -0.0, 1.0, -1.0, 0.30000000000000004, 1e9, 1e308, -1e308, 5e-324),
    *(math.inf, -math.inf, math.nan),
)
TEXTS: tuple[object, ...] = (
    *(None, "", "x", "{}", "[]", "null", "1e999", "NaN", '["1"]', "[" * 5000, "d:visit-1", '{"format": 1}'),
    *('{"upto": [1], "expired": 5}', '{"rounds": -5}', '{"rounds": 1e99}', '{"spend": 3, "cost": "a"}'),
    *('{"events": [1, 2]}', '{"name": "z", "features": [1], "cost": -3}'),
)
BYTES: tuple[object, ...] = (None, b"", b"\0", b"\xff" * 16, b"x" * 1000)
FOREIGN: tuple[object, ...] = ("text", b"\xfe\0", 1.5, "12")  # of another type: only SQLite takes them


WRITES = ("same decide", "same answer", "same change", "decide", "feedback", "cancel", "expire")


class Damage(NamedTuple):
    """SQL with `?` for parameters."""

    sql: tuple[tuple[str, tuple[object, ...]], ...]

    def __str__(self) -> str:
        return "; ".join(f"{sql} {parameters!r:.200}" for sql, parameters in self.sql)


def values_for(column: str, *, is_sqlite: bool) -> tuple[object, ...]:
    if column in _TEXTS:
        return TEXTS + (FOREIGN[1:3] if is_sqlite else ())
    if column in _BYTES:
        return BYTES + (FOREIGN if is_sqlite else ())
    numbers = FLOATS
    if column in (*_WHOLE, *_SMALL):
        numbers = NUMBERS + (LARGE if column in _WHOLE or is_sqlite else ())
    return numbers + (FOREIGN if is_sqlite else ())


def single_values(kinds: dict[int, int], *, is_sqlite: bool) -> Iterator[Damage]:
    """Every column of every kind of event."""
    for sequence in kinds.values():
        where = f"WHERE campaign_id = 1 AND sequence = {sequence}"
        for column in COLUMNS:
            for value in values_for(column, is_sqlite=is_sqlite):
                yield Damage(((f"UPDATE events SET {column} = ? {where}", (value,)),))
            before = f"WHERE one.campaign_id = 1 AND one.sequence = {sequence - 1}"
            neighbour = f"(SELECT {column} FROM events AS one {before})"
            yield Damage(((f"UPDATE events SET {column} = {neighbour} {where}", ()),))
            if is_sqlite:
                yield Damage(((f"UPDATE events SET {column} = CAST(x'ff80' AS TEXT) {where}", ()),))


def whole_rows(last: int) -> Iterator[Damage]:
    """Removed, doubled, swapped, put in, moved to another campaign; with and without the note of the last event."""
    columns = ", ".join(COLUMNS[1:])
    for sequence in range(1, last + 1):
        here = f"WHERE campaign_id = 1 AND sequence = {sequence}"
        copy = f"INSERT INTO events (campaign_id, sequence, {columns}) SELECT {{}}, {{}}, {columns} FROM events {here}"
        clear = (f"UPDATE events SET key_hash = NULL {here}", ())
        yield Damage(((f"DELETE FROM events {here}", ()),))
        yield Damage((clear, (copy.format(1, last + 1), ())))
        yield Damage((clear, (copy.format(1, last + 2), ())))
        yield Damage((clear, (copy.format(1, -1), ())))
        yield Damage((clear, (copy.format(1, 0), ())))
        yield Damage((clear, (copy.format(1, last + 1), ()), ("UPDATE campaigns SET last_sequence = ?", (last + 1,))))
        yield Damage(((f"UPDATE events SET campaign_id = 2, sequence = 1000 {here}", ()),))
        foreign = copy.replace(here, "WHERE campaign_id = 2 AND sequence = 2").format(1, sequence)
        yield Damage(((f"DELETE FROM events {here}", ()), (foreign, ())))
        for other in (sequence + 1, (sequence * 7) % last + 1):
            there = f"WHERE campaign_id = 1 AND sequence = {other}"
            yield Damage((
                (f"UPDATE events SET sequence = -5 {here}", ()),
                (f"UPDATE events SET sequence = {sequence} {there}", ()),
                (f"UPDATE events SET sequence = {other} WHERE campaign_id = 1 AND sequence = -5", ()),
            ))  # fmt: skip
    for upto in range(1, last, 3):  # the end is cut off, and the note of the last event goes along
        end = f"(SELECT chain FROM events WHERE campaign_id = 1 AND sequence = {upto})"
        yield Damage((
            (f"DELETE FROM events WHERE campaign_id = 1 AND sequence > {upto}", ()),
            (f"UPDATE campaigns SET last_sequence = {upto} WHERE id = 1", ()),
        ))  # fmt: skip
        yield Damage(((f"UPDATE campaigns SET last_sequence = {upto}, head = {end} WHERE id = 1", ()),))
    yield Damage((("DELETE FROM events WHERE campaign_id = 1", ()),))
    yield Damage((("DELETE FROM campaigns WHERE id = 1", ()),))


def beside_the_log(*, is_sqlite: bool) -> Iterator[Damage]:
    foreign = FOREIGN if is_sqlite else ()
    for column, values in {
        "name": ("", "x", NAME.upper(), *foreign),
        "tag": ("", "00000000", "x' OR 1=1", *foreign),
        "created_at": (0.0, -1.0, 1e300, math.nan, math.inf, *foreign),
        "last_sequence": (None, 0, 1, 5, -1, 10**6, 2**62, *foreign),
        "head": (None, b"", b"\0" * 16, *foreign),
    }.items():
        for value in values:
            yield Damage(((f"UPDATE campaigns SET {column} = ? WHERE id = 1", (value,)),))
    yield Damage((("UPDATE campaigns SET id = 77 WHERE id = 1", ()),))


def in_snapshots(data: bytes, *, is_sqlite: bool) -> Iterator[Damage]:
    rng = random.Random(3)
    for value in (0, 1, 5, -1, 10**6, 2**62, *(FOREIGN if is_sqlite else ())):
        yield Damage((("UPDATE snapshots SET sequence = ? WHERE campaign_id = 1", (value,)),))
    flipped = []
    for _ in range(60):
        place = rng.randrange(len(data))
        flipped.append(data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :])
    for value in (b"", data[:40], data[:-1], data + b"x", *flipped, *(FOREIGN if is_sqlite else ())):
        yield Damage((("UPDATE snapshots SET data = ? WHERE campaign_id = 1", (value,)),))


class Sqlite:
    """One file, copied back before each case."""

    def __init__(self, folder: Path, *, with_snapshot: bool, is_closed: bool) -> None:
        self._folder, self._copies = folder, 0
        self.path = folder / "attacked.db"
        self.url = f"sqlite:///{self.path}"
        with doral.open(self.url) as store:
            self.learn(store, with_snapshot=with_snapshot, is_closed=is_closed)
        self.whole = self.path.read_bytes()

    def learn(self, store: Any, *, with_snapshot: bool, is_closed: bool) -> None:
        campaign = live_through_everything(store, with_snapshot=with_snapshot, is_closed=is_closed)
        store.create("neighbour", campaign._session.read(lambda _, fold: fold.problem), clock="rounds").decide("x")
        self.questions = Questions(campaign)
        events = campaign._session.read(lambda log, _: log.after(0))
        self.last = len(events)
        self.kinds: dict[int, int] = {}
        for event in events:
            self.kinds[event.kind] = event.sequence
        self.snapshot = campaign._session.read(lambda log, _: log.load_snapshot(self.last))

    def restore(self) -> None:
        for old in self._folder.glob("*.db*"):
            old.unlink()
        self._copies += 1
        self.path = self._folder / f"copy-{self._copies}.db"
        self.url = f"sqlite:///{self.path}"
        self.path.write_bytes(self.whole)

    def damage(self, what: Damage) -> bool:
        """Whether the database took it."""
        if what.sql[0][0].startswith("bit "):
            place, bit = divmod(int(what.sql[0][0][4:]), 8)
            flipped = bytearray(self.whole)
            flipped[place] ^= 1 << bit
            self.path.write_bytes(flipped)
            return True
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            for sql, parameters in what.sql:
                connection.execute(sql, parameters)
        except (sqlite3.IntegrityError, OverflowError):
            return False
        finally:
            connection.close()
        return True


class Postgres(Sqlite):
    """Tables beside the tables, copied back before each case."""

    def __init__(self, url: str, *, with_snapshot: bool, is_closed: bool) -> None:
        self.url = url
        with doral.open(url) as store:
            self.learn(store, with_snapshot=with_snapshot, is_closed=is_closed)
        self._connection: psycopg.Connection[Any] | None = None
        with psycopg.connect(url) as connection:
            for table in ("campaigns", "events", "snapshots"):
                connection.execute(f"DROP TABLE IF EXISTS doral.whole_{table}")
                connection.execute(f"CREATE TABLE doral.whole_{table} AS SELECT * FROM doral.{table}")

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = psycopg.connect(self.url, options="-c search_path=doral -c synchronous_commit=off")
        return self._connection

    def restore(self) -> None:
        with self._open().transaction():
            for table in ("campaigns", "events", "snapshots"):
                self._open().execute(f"DELETE FROM {table}")
                self._open().execute(f"INSERT INTO {table} SELECT * FROM whole_{table}")
        self._open().commit()

    def damage(self, what: Damage) -> bool:
        try:
            with self._open().transaction():
                for sql, parameters in what.sql:
                    self._open().execute(sql.replace("?", "%s"), parameters)
        except (psycopg.IntegrityError, psycopg.DataError):
            return False
        self._open().commit()
        return True


@pytest.fixture
def fast_folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is possible: a database is made anew for each case."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="doral-damage-", dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgres"])
def make_database(request: pytest.FixtureRequest, fast_folder: Path) -> Callable[..., Sqlite]:
    def make(*, with_snapshot: bool, is_closed: bool = False) -> Sqlite:
        if request.param == "sqlite":
            return Sqlite(fast_folder, with_snapshot=with_snapshot, is_closed=is_closed)
        url = str(request.getfixturevalue("postgres_url"))
        return Postgres(url, with_snapshot=with_snapshot, is_closed=is_closed)

    return make


def problems_of(
    database: Sqlite, cases: Sequence[Damage], folder: Path, *, with_chain: bool, may_hide: bool
) -> list[str]:
    """Try all of them in a process of their own; what came out that must not."""

    def work(say: Callable[[str], None]) -> None:
        database.restore()
        truth = answers(database.url, database.questions, folder)
        assert not any(map(is_internal, truth.values())), truth
        for number, case in enumerate(cases):
            database.restore()
            if not database.damage(case):
                continue
            say(f"TRIES {case}")
            if with_chain:
                try:
                    damage.seal_by_url(database.url)
                except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError, DoralError):
                    continue  # no chain can be computed over that
            found = answers(database.url, database.questions, folder, is_brief=number % 10 != 0)
            for problem in judged(truth, found, case, with_chain=with_chain, may_hide=may_hide):
                say(f"PROBLEM {problem} AFTER {case}")
        say("DONE")

    log = folder / "said"
    log.unlink(missing_ok=True)
    code, said = in_child(work, log)
    problems = [line for line in said if line.startswith(("PROBLEM", "BROKEN"))]
    if code != 0 or said[-1] != "DONE":
        problems.append(f"PROBLEM exit code {code} AFTER {said[-1] if said else 'nothing'}")
    assert problems or sum(line.startswith("TRIES") for line in said) > len(cases) / 4
    return problems


def judged(
    truth: dict[str, Any], found: dict[str, Any], case: Damage, *, with_chain: bool, may_hide: bool
) -> Iterator[str]:
    for name, answer in found.items():
        if is_internal(answer):
            yield f"{name}: {answer}"
    if with_chain:
        return
    # Names stand beside the log, and are not covered by its chain.
    is_renamed = any(words in str(case) for words in ("campaigns SET name", "FROM campaigns", "bit "))
    changed = []
    for name, answer in found.items():
        if is_error(answer) and name in WRITES:
            break  # what follows depends on it
        if answer != truth.get(name) and not is_error(answer) and not (name == "list" and is_renamed):
            changed.append(name)
    if "decisions" in changed or "export" in changed or (changed and not (may_hide and is_error(found.get("verify")))):
        yield f"silently changed: {changed}"


def some_of(cases: Sequence[Damage], database: Sqlite, seed: int) -> Sequence[Damage]:
    if IS_TORTURE:
        return cases
    return random.Random(seed).sample(cases, CASES["postgres" if isinstance(database, Postgres) else "sqlite"])


@pytest.mark.parametrize("with_chain", [False, True], ids=["", "chain"])
@pytest.mark.parametrize("with_snapshot", [False, True], ids=["", "snapshot"])
def test_damage_by_sql(
    make_database: Callable[..., Sqlite], fast_folder: Path, with_snapshot: bool, with_chain: bool
) -> None:
    """Also by somebody who computes the chain anew: then the meaning is his, but nothing breaks.

    Under a snapshot old events are not read at opening; lists of decisions notice what is missing, `verify` all.
    """
    database = make_database(with_snapshot=with_snapshot)
    is_sqlite = not isinstance(database, Postgres)
    cases = [
        *single_values(database.kinds, is_sqlite=is_sqlite),
        *whole_rows(database.last),
        *beside_the_log(is_sqlite=is_sqlite),
    ]
    if with_snapshot:
        cases += in_snapshots(database.snapshot, is_sqlite=is_sqlite)
    cases = list(some_of(cases, database, 2 * with_snapshot + with_chain))
    assert problems_of(database, cases, fast_folder, with_chain=with_chain, may_hide=with_snapshot) == []


def test_damage_to_the_end_of_a_campaign(make_database: Callable[..., Sqlite], fast_folder: Path) -> None:
    database = make_database(with_snapshot=False, is_closed=True)
    kinds = {CLOSED: database.kinds[CLOSED]}
    cases = list(single_values(kinds, is_sqlite=not isinstance(database, Postgres)))
    assert problems_of(database, some_of(cases, database, 1), fast_folder, with_chain=False, may_hide=False) == []


def test_the_attacked_campaign_has_seen_everything(fast_folder: Path) -> None:
    database = Sqlite(fast_folder, with_snapshot=False, is_closed=True)
    assert database.kinds.keys() == ALL_KINDS
    assert set(database.questions.by_state) == {"skipped", "pending", "returned", "expired", "late", "cancelled"}


def test_bits_flipped_in_the_file(fast_folder: Path) -> None:
    """A bit in an index can hide an event from those who look it up: lists and `verify` tell."""
    database = Sqlite(fast_folder, with_snapshot=False, is_closed=False)
    rng = random.Random(4)
    used = [8 * place + bit for place, byte in enumerate(database.whole) if byte for bit in range(8)]
    anywhere = range(8 * len(database.whole))
    cases = [Damage(((f"bit {rng.choice(used if rng.random() < 0.8 else anywhere)}", ()),)) for _ in range(FLIPS)]
    assert problems_of(database, cases, fast_folder, with_chain=False, may_hide=True) == []


def test_a_correction_that_was_removed_is_missed(store: doral.Store) -> None:
    """Under a snapshot nobody reads the old events: the list of decisions counts them."""
    campaign = live_through_everything(store, with_snapshot=True)
    if "memory" in repr(store):
        pytest.skip("has no SQL")
    corrected = campaign._session.read(lambda log, _: next(one for one in log.after(0) if one.kind == CORRECTED))
    damage.rewrite(campaign, f"UPDATE events SET decision = 99999 WHERE sequence = {corrected.sequence}")
    campaign.report()
    with pytest.raises(BrokenLog, match="'corrections': 0"):
        list(campaign.decisions())


def test_a_first_event_that_means_nothing(open_store: Callable[[str], doral.Store], fast_folder: Path) -> None:
    campaign = live_through_everything(open_store(f"sqlite:///{fast_folder / 'one.db'}"), with_snapshot=False)
    for data in ("[]", "{", "NaN", '{"format": 1}', "[" * 5000):
        damage.rewrite(campaign, f"UPDATE events SET data = '{data}' WHERE sequence = 1", with_chain=True)
        with pytest.raises(BrokenLog, match="first event"):
            campaign.report()


def test_values_of_another_type(open_store: Callable[[str], doral.Store], fast_folder: Path) -> None:
    """Which SQLite takes, and whose chain somebody has computed anew."""
    campaign = live_through_everything(open_store(f"sqlite:///{fast_folder / 'one.db'}"), with_snapshot=False)
    decided = list(campaign.decisions())[-1]
    sequence = int(decided.id.split("-")[1])
    for column, value in (("price", "'text'"), ("state", "1000"), ("state", "1.5"), ("round", "'x'")):
        campaign.save_snapshot()
        damage.rewrite(campaign, f"UPDATE events SET {column} = {value} WHERE sequence = {sequence}", with_chain=True)
        for call in (campaign.decision, campaign.cancel):
            with pytest.raises(BrokenLog):
                call(decided.id)
        damage.rewrite(campaign, f"UPDATE events SET {column} = 1 WHERE sequence = {sequence}", with_chain=True)
