"""The whole storage contract, on every storage."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from doral.errors import InvalidValue
from doral.live.errors import CampaignExists, NewerDatabase, StorageError
from doral.live.events.codec import decode
from doral.live.events.row import ANSWERED, CANCELLED, CLOSED, CREATED, DECIDED, Row, beginning, hash_key, seal
from doral.live.storage.contract import KEPT_SNAPSHOTS, Log, Storage
from doral.live.storage.schema import HEAD
from doral.live.storage.sql import _connect, _read_url
from doral.live.storage.sqlite import SqliteConnection
from doral.live.storage.sqlite_file import make
from doral.live.storage.urls import read_sqlite
from doral.live.store import _storage


@pytest.fixture
def storage(url: str) -> Iterator[Storage]:
    opened = _storage(url)
    yield opened
    opened.close()


@pytest.fixture
def log(storage: Storage) -> Iterator[Log]:
    opened = storage.open_log(storage.create(name="one", tag="00000001", first=created()))
    yield opened
    opened.close()


def created(tag: str = "00000001") -> Row:
    return seal(Row(1, CREATED, 0.0, 12.5, 99, data="{}"), before=beginning(tag), salt=b"", engine=1)


def decided(sequence: int, clock: float, arm: int | None = 0, key: str | None = None) -> Row:
    return Row(
        sequence,
        DECIDED,
        clock,
        clock,
        99,
        key,
        None,
        sequence,
        1,
        arm,
        0.1,
        sequence,
        1,
        1 / 3,
        1e-300,
        0.1,
        b"\xa0\x00",
    )


def about(sequence: int, decision: int, kind: int = ANSWERED) -> Row:
    return Row(sequence, kind, 50.0, 50.0, 99, decision=decision, reward=0.25, was=1, state=2, outcome=0)


def fill(log: Log, *events: Row) -> list[Row]:
    """Append them, sealed as they follow what is there."""
    with log.writing():
        return append(log, *events)


def append(log: Log, *events: Row) -> list[Row]:
    head, salt = log.head()[1], salt_of(log)
    sealed = []
    for event in events:
        sealed.append(seal(event, before=head, salt=salt, engine=1))
        head = sealed[-1].chain or b""
    log.append(sealed)
    return sealed


def salt_of(log: Log) -> bytes:
    return log.after(0, limit=1)[0].chain or b""


def test_events_come_back_bit_for_bit(log: Log) -> None:
    events = [decided(2, 1.0, key="d:é'\"%s?"), about(3, 2), decided(4, 2.0, arm=None)]
    events = fill(log, *events)
    assert log.after(0) == [created(), *events]
    assert log.after(1, limit=2) == events[:2]
    assert log.after(1, upto=3) == events[:2]
    assert log.after(4) == []
    assert log.head() == (4, events[-1].chain)
    assert log.events([2, 4, 17]) == {2: decode(events[0]), 4: decode(events[2])}


def test_events_by_decision_and_key(log: Log) -> None:
    fill(log, decided(2, 1.0, key="d:x"), decided(3, 2.0), about(4, 3), about(5, 3, CANCELLED), about(6, 2))
    assert {d: [e.sequence for e in found] for d, found in log.about([2, 3, 9]).items()} == {2: [6], 3: [4, 5]}
    assert {d: [e.sequence for e in found] for d, found in log.about_range(3, 9).items()} == {3: [4, 5]}
    used = hash_key(salt_of(log), "d:x")
    assert {hashed: event.sequence for hashed, event in log.by_keys([used, b"unused"]).items()} == {used: 2}
    assert log.about([]) == {}
    assert log.events([]) == {}
    assert log.by_keys([]) == {}
    assert len(log.events(range(2000))) == 6


def test_decided_events_in_pages(log: Log) -> None:
    fill(log, decided(2, 1.0), about(3, 2), decided(4, 2.0), decided(5, 3.0))
    assert [event.sequence for event in log.decided_after(0, upto=9, limit=2)] == [2, 4]
    assert [event.sequence for event in log.decided_after(4, upto=9, limit=2)] == [5]
    assert [event.sequence for event in log.decided_after(2, upto=4, limit=9)] == [4]
    assert [event.sequence for event in log.of_kinds((CREATED, ANSWERED))] == [1, 3]


def test_overdue_decisions(log: Log) -> None:
    fill(
        log,
        decided(2, 1.0, arm=0),
        decided(3, 2.0, arm=None),
        decided(4, 2.0, arm=1),
        decided(5, 3.0, arm=1),
        about(6, 4),
        decided(7, 9.0, arm=2),
    )
    log_overdue = partial(log.overdue, upto=7)
    assert log_overdue(after=0, clock=12.0, age_limit=9.5) == (4, [(1, 0.1, 1)])
    assert log_overdue(after=0, clock=12.0, age_limit=9.0) == (4, [(1, 0.1, 1)])  # of exactly 9 is inside the limit
    assert log_overdue(after=4, clock=14.0, age_limit=9.0) == (6, [(1, 0.1, 1)])
    assert log_overdue(after=0, clock=100.0, age_limit=9.0) == (7, [(1, 0.1, 3)])
    assert log_overdue(after=0, clock=100.0, age_limit=9.0, contexts=[0]) == (7, [])
    assert log_overdue(after=5, clock=12.0, age_limit=float("inf")) == (5, [])


def test_overdue_by_their_own_time(log: Log) -> None:
    """Decisions of the past wait for younger ones that stand before them; a clock that was set back made none later."""
    fill(
        log,
        decided(2, 50.0)._replace(happened=10.0),
        decided(3, 50.0),
        decided(4, 50.0, arm=2)._replace(happened=5.0, cost=0.7),
    )
    assert log.overdue(after=0, upto=4, clock=55.0, age_limit=9.0) == (2, [(1, 0.1, 1)])
    assert log.overdue(after=2, upto=4, clock=59.5, age_limit=9.0) == (4, [(1, 0.1, 1), (1, 0.7, 1)])
    back = [(4, 20.0), (9, 45.0)]
    assert log.overdue(after=0, upto=4, clock=31.0, age_limit=9.0, repairs=back) == (4, [(1, 0.1, 2), (1, 0.7, 1)])
    assert log.overdue(after=0, upto=4, clock=28.0, age_limit=9.0, repairs=back) == (2, [(1, 0.1, 1)])


def test_a_failed_write_leaves_nothing(log: Log) -> None:
    def fails() -> None:
        with log.writing():
            append(log, decided(2, 1.0, key="d:x"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert log.head() == (1, created().chain)
    assert log.by_keys([hash_key(salt_of(log), "d:x")]) == {}
    fill(log, decided(2, 1.0, key="d:x"))
    assert log.head()[0] == 2


def test_the_database_itself_refuses_a_second_event_of_a_number_or_key(durable_url: str) -> None:
    storage = _storage(durable_url)
    log = storage.open_log(storage.create(name="one", tag="00000001", first=created()))
    there = fill(log, decided(2, 1.0, key="d:x"))
    for twin in (decided(2, 2.0), decided(3, 2.0, key="d:x")):
        with pytest.raises(StorageError):
            fill(log, twin)
    assert log.after(1) == there
    log.close()
    storage.close()


def test_campaigns_are_separate(storage: Storage, log: Log) -> None:
    other = storage.open_log(storage.create(name="another", tag="00000002", first=created("00000002")))
    fill(log, decided(2, 1.0, key="d:x"))
    fill(other, decided(2, 5.0, key="d:x"), about(3, 2))
    assert log.about([2]) == {}
    assert [event.clock for event in other.by_keys([hash_key(salt_of(other), "d:x")]).values()] == [5.0]
    assert [(row.name, row.tag, row.created_at) for row in storage.campaigns()] == [
        ("another", "00000002", 12.5),
        ("one", "00000001", 12.5),
    ]
    other.close()


def test_a_name_is_taken_once(storage: Storage, log: Log) -> None:
    with pytest.raises(CampaignExists, match="'one'"):
        storage.create(name="one", tag="00000003", first=created())
    assert len(storage.campaigns()) == 1


def test_writers_exclude_each_other(storage: Storage, log: Log) -> None:
    """Each of several threads reads the last number and appends the next one: none is lost, none taken twice."""

    def work() -> None:
        mine = storage.open_log(storage.campaigns()[0])
        for _ in range(20):
            with mine.writing():
                last = mine.head()[0]
                append(mine, decided(last + 1, float(last)))
        mine.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.sequence for event in log.after(0)] == list(range(1, 82))


def test_snapshots(log: Log) -> None:
    assert log.snapshots() == []
    for sequence in (5, 9, 7, 9):
        log.save_snapshot(sequence, bytes([sequence]) * 1000)
    assert log.snapshots() == [9, 7][:KEPT_SNAPSHOTS]
    assert log.load_snapshot(9) == b"\x09" * 1000
    assert log.load_snapshot(5) == b""


def test_another_connection_sees_what_is_committed(storage: Storage, log: Log) -> None:
    reader = storage.open_log(storage.campaigns()[0])
    fill(log, decided(2, 1.0), Row(3, CLOSED, 1.0, 1.0, 99))
    assert reader.head() == log.head()
    assert reader.head()[0] == 3
    reader.close()


@pytest.mark.parametrize(
    "bad", ["", "mysql://x", "sqlite://file.db", "sqlite:///", "sqlite:///x?mode=ro", "file.db", None, 3]
)
def test_urls_that_are_none(bad: object) -> None:
    with pytest.raises(InvalidValue, match="url = "):
        _storage(bad)


def test_sqlite_urls() -> None:
    assert read_sqlite("sqlite:///a%20b.db").path == Path.cwd() / "a b.db"
    assert read_sqlite("sqlite:////tmp/x.db").path == Path("/tmp/x.db")


def test_sqlite_commits_survive_a_power_cut(tmp_path: Path) -> None:
    make(tmp_path / "x.db")
    connection = SqliteConnection(tmp_path / "x.db")
    assert connection.execute("PRAGMA journal_mode") == [("wal",)]
    assert connection.execute("PRAGMA synchronous") == [(2,)]  # FULL
    connection.close()


def test_a_newer_database_is_refused_and_left_alone(durable_url: str) -> None:
    _storage(durable_url).close()
    connection = _connect(_read_url(durable_url))
    versions = f"{connection.schema}alembic_version"
    connection.execute(f"UPDATE {versions} SET version_num = '9999'")
    try:
        with pytest.raises(NewerDatabase, match="newer version"):
            _storage(durable_url)
        assert connection.execute(f"SELECT version_num FROM {versions}") == [("9999",)]
    finally:
        connection.execute(f"UPDATE {versions} SET version_num = '{HEAD}'")
        connection.close()
