"""What a service keeps beside its campaigns: the whole contract, on every storage, and under processes that race."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import doral
from doral.live.errors import StorageError
from doral.live.storage.service_tables import LONGEST_UNTOLD_S, ActRow, AlarmRow, Books, KeyRow
from doral.live.store import Store
from tests.live.conftest import Zygote

KEY = KeyRow(
    id="0123456789ab",
    name="shop é'\"%s?",
    roles=("decide", "read"),
    campaigns=("kits", "été"),
    digest=bytes(range(32)),
    created_at=1_700_000_000.25,
    expires_at=1_800_000_000.5,
)
ACT = ActRow(
    number=0,
    at=5.5,
    key_id=KEY.id,
    key_name=KEY.name,
    act="campaign created",
    campaign="kits",
    details='{"budget": 1e3, "service_": "?%s"}',
    request_id="r-1",
    address="::1",
)
ALARM = AlarmRow(campaign="kits", rule="silent-arm", subject="letter", since=10.0, words="No answers: 100% lost?")


@pytest.fixture
def books(store: Store) -> Books:
    return store.books


def session(number: int, *, parent: str = KEY.id, expires_at: float = 100.0) -> KeyRow:
    return replace(KEY, id=f"{number:012x}", parent=parent, expires_at=expires_at)


def test_keys_come_back_as_they_were(books: Books) -> None:
    everywhere = replace(KEY, id="b" * 12, campaigns=None, expires_at=None, created_at=1.0)
    for row in (KEY, everywhere, session(1)):
        books.add_key(row)
        assert books.key(row.id) == row
    assert books.all_keys() == [everywhere, KEY]
    assert books.key("c" * 12) is None
    with pytest.raises(StorageError, match="already"):
        books.add_key(replace(KEY, name="another"))
    assert books.key(KEY.id) == KEY


def test_a_first_key_is_made_once_and_for_all(books: Books) -> None:
    assert books.add_first_key(KEY)
    assert not books.add_first_key(replace(KEY, id="b" * 12))
    assert books.revoke_key(KEY.id, 5.0)
    assert not books.add_first_key(replace(KEY, id="b" * 12)), "a store whose keys were all revoked stays shut"
    assert [one.id for one in books.all_keys()] == [KEY.id]


def test_a_revoked_key_takes_its_sessions_along(books: Books) -> None:
    books.add_key(KEY)
    books.add_key(replace(KEY, id="b" * 12))
    for row in (session(1), session(2), session(3, parent="b" * 12)):
        books.add_key(row)
    assert books.revoke_key(session(2).id, 4.0)
    assert books.revoke_key(KEY.id, 5.0)
    assert not books.revoke_key(KEY.id, 6.0)
    assert not books.revoke_key("nobody", 6.0)
    now = [books.key(session(number).id) for number in (1, 2, 3)]
    assert [row and row.revoked_at for row in now] == [5.0, 4.0, None]
    assert [one.revoked_at for one in books.all_keys()] == [5.0, None]


def test_sessions_that_ended_are_dropped_and_keys_never(books: Books) -> None:
    books.add_key(replace(KEY, expires_at=1.0))
    books.add_key(session(1, expires_at=50.0))
    books.add_key(session(2, expires_at=100.0))
    books.add_key(session(3, expires_at=200.0))
    books.revoke_key(session(3).id, 60.0)
    assert books.drop_sessions(expired_before=100.0) == 2
    assert books.drop_sessions(expired_before=100.0) == 0
    assert books.key(session(2).id) is not None
    assert books.key(KEY.id) is not None


def test_acts_are_numbered_and_paged(books: Books) -> None:
    for number in range(5):
        books.note(replace(ACT, at=float(number), campaign=None if number == 3 else "kits"))
    newest = books.acts(limit=2)
    assert [one.at for one in newest] == [4.0, 3.0]
    assert newest[1] == replace(ACT, number=newest[1].number, at=3.0, campaign=None)
    rest = books.acts(before=newest[-1].number)
    assert [one.at for one in rest] == [2.0, 1.0, 0.0]
    assert books.acts(before=rest[-1].number) == []


def test_an_alarm_is_raised_once_and_can_come_again(books: Books) -> None:
    assert books.raise_alarm(ALARM)
    assert not books.raise_alarm(replace(ALARM, since=99.0, words="worse"))
    assert books.alarms() == [replace(ALARM, words="worse")]
    assert books.raise_alarm(replace(ALARM, subject="call", since=11.0))
    assert books.raise_alarm(replace(ALARM, campaign="other", since=12.0))
    assert [one.since for one in books.alarms()] == [12.0, 11.0, 10.0]
    assert [one.subject for one in books.alarms(campaign="kits")] == ["call", "letter"]
    assert books.clear_alarm("kits", "silent-arm", "letter", 20.0)
    assert not books.clear_alarm("kits", "silent-arm", "letter", 21.0)
    assert [one.subject for one in books.alarms(campaign="kits")] == ["call"]
    assert books.raise_alarm(ALARM), "the same again, by a clock that has not moved"
    assert [one.subject for one in books.alarms(campaign="kits")] == ["call", "letter"]


def test_a_test_is_used_once_by_whoever_asks(books: Books) -> None:
    assert books.claim_test("t1", "pace-off", "", 3)
    assert not books.claim_test("t1", "pace-off", "", 3)
    assert not books.claim_test("t1", "pace-off", "", 2)
    assert books.claim_test("t1", "pace-off", "", 4)
    assert books.claim_test("t2", "pace-off", "", 1), "a campaign of the same name, made anew, has another tag"
    assert books.claim_test("t1", "curve-moved", "letter", 1)


def test_alarms_are_acknowledged_and_muted(books: Books) -> None:
    assert not books.acknowledge_alarm("kits", ALARM.rule, ALARM.subject, 5.0, "eve")
    books.raise_alarm(ALARM)
    assert books.acknowledge_alarm("kits", ALARM.rule, ALARM.subject, 11.0, "eve", ACT)
    assert books.acknowledge_alarm("kits", ALARM.rule, ALARM.subject, 12.0, "adam")
    found = books.alarms()[0]
    assert (found.acknowledged_at, found.acknowledged_by) == (11.0, "eve")
    assert len(books.acts()) == 1
    books.clear_alarm("kits", ALARM.rule, ALARM.subject, 13.0)
    books.raise_alarm(replace(ALARM, since=14.0))
    assert books.alarms()[0].acknowledged_at is None, "it has come again"
    books.mute_alarm("t1", "overdue", "", 100.0)
    assert books.muted_alarms("t1", 99.0) == {("overdue", ""): 100.0}
    assert books.muted_alarms("t1", 100.0) == books.muted_alarms("t2", 1.0) == {}
    assert books.claim_test("t1", "overdue", "", 1)
    books.mute_alarm("t1", "overdue", "", None)
    assert books.muted_alarms("t1", 1.0) == {}
    assert not books.claim_test("t1", "overdue", "", 1)


def test_what_has_to_be_told_is_told_to_the_end(books: Books) -> None:
    assert books.claim_deliveries(15.0, lease_s=10.0) == []
    books.raise_alarm(ALARM)
    claimed = books.claim_deliveries(15.0, lease_s=10.0)
    assert claimed == [replace(ALARM, next_try_at=25.0)]
    assert books.claim_deliveries(24.9, lease_s=10.0) == []
    books.put_off(claimed[0], next_try_at=40.0)
    assert books.claim_deliveries(39.0, lease_s=10.0) == []
    [again] = books.claim_deliveries(40.0, lease_s=10.0)
    assert again.tries == 1
    books.clear_alarm("kits", "silent-arm", "letter", 41.0)  # while it is on its way
    books.delivered(again, 1)
    [end] = books.claim_deliveries(41.0, lease_s=10.0)
    assert (end.told, end.cleared_at, end.tries) == (1, 41.0, 0)
    books.delivered(end, 2)
    assert books.claim_deliveries(1e9, lease_s=10.0) == []
    books.delivered(end, 2)  # by one whose lease had ended
    books.put_off(end, next_try_at=1.0)
    assert books.alarms() == []


def test_at_most_so_many_are_claimed_the_oldest_first(books: Books) -> None:
    for number in range(5):
        books.raise_alarm(replace(ALARM, subject=str(number), since=50.0 - number))
    assert [one.subject for one in books.claim_deliveries(60.0, lease_s=9.0, limit=2)] == ["4", "3"]
    assert [one.subject for one in books.claim_deliveries(60.0, lease_s=9.0)] == ["2", "1", "0"]


def test_of_what_nobody_fetches_nothing_is_kept_for_ever(books: Books) -> None:
    books.raise_alarm(ALARM)
    books.clear_alarm("kits", "silent-arm", "letter", 20.0)
    assert not books.clear_alarm("kits", "silent-arm", "letter", 21.0 + LONGEST_UNTOLD_S)
    assert books.claim_deliveries(1e10, lease_s=1.0) == []


def test_threads_that_race(url: str, open_store: Callable[[str], Store]) -> None:
    one = open_store(url)
    stores = [one] * 4 if url == "memory://" else [one, open_store(url), one, open_store(url)]
    firsts, raised, claimed = list[bool](), list[bool](), list[str]()
    ready = threading.Barrier(len(stores))

    def race(number: int) -> None:
        books = stores[number].books
        ready.wait()
        firsts.append(books.add_first_key(replace(KEY, id=f"{number:012x}")))
        for subject in "abcdef":
            raised.append(books.raise_alarm(replace(ALARM, subject=subject)))
        for _ in range(3):
            claimed.extend(each.subject for each in books.claim_deliveries(99.0, lease_s=9.0, limit=2))

    threads = [threading.Thread(target=race, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(firsts) == [False, False, False, True]
    assert sum(raised) == 6
    assert sorted(claimed) == list("abcdef")


def test_processes_that_race(durable_url: str, zygote: Zygote, tmp_path: Path) -> None:
    doral.open(durable_url).close()
    assert zygote.run("books", durable_url, "kits", 4, tmp_path / "won") == [0] * 4
    won = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("won-*"))]
    rules = [f"rule-{number}" for number in range(9)]
    assert [one["key"] for one in won].count(True) == 1
    assert sorted(rule for one in won for rule in one["raised"]) == rules
    assert sorted(rule for one in won for rule in one["claimed"]) == rules


def test_what_was_kept_is_there_when_the_store_is_opened_again(durable_url: str) -> None:
    with doral.open(durable_url) as store:
        store.books.add_key(KEY)
        store.books.note(ACT)
        store.books.raise_alarm(ALARM)
    with doral.open(durable_url) as store:
        assert store.books.all_keys() == [KEY]
        assert store.books.acts() == [replace(ACT, number=1)]
        assert store.books.alarms() == [ALARM]


def test_a_connection_that_broke_is_made_again(postgres_url: str, open_store: Callable[[str], Store]) -> None:
    books = open_store(postgres_url).books
    books.add_key(KEY)
    asked: list[Callable[[], object]] = [lambda: books.key(KEY.id), lambda: books.note(ACT)]
    for ask in asked:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            mine = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            other.execute(mine + " AND datname = current_database()")
        ask()
    assert books.key(KEY.id) == KEY
    assert len(books.acts()) == 1


def test_where_nothing_can_be_written_keys_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'campaigns.db'}"
    with doral.open(url) as store:
        store.books.add_key(KEY)
    monkeypatch.setattr("doral.live.storage.sqlite_file.can_write", lambda _: False)  # for root may write everywhere
    with doral.open(url) as store:
        assert store.books.key(KEY.id) == KEY
        with pytest.raises(StorageError, match="read-only"):
            store.books.revoke_key(KEY.id, 1.0)
        with pytest.raises(StorageError, match="read-only"):
            store.books.note(ACT)


def test_a_backup_holds_no_key(store: Store, tmp_path: Path) -> None:
    problem = doral.Problem(arms=[doral.Arm("a", cost=1.0)], contexts={"x": 1.0}, budget=10, horizon=10, deadline=5)
    store.create("kits", problem, policy="d-linucb", seed=1).decide("x")
    books = store.books
    secret_digest = b"\xd1\x9e\x57" + b"digest-of-a-secret-" * 2
    books.add_key(replace(KEY, digest=secret_digest, name="name-of-the-key"))
    books.add_key(replace(session(1), digest=secret_digest))
    books.note(ACT)
    books.raise_alarm(ALARM)
    target = tmp_path / "backup.db"
    assert store.backup(target) == 1
    written = target.read_bytes()
    assert b"kits" in written
    for secret in (secret_digest, b"name-of-the-key", KEY.id.encode(), b"r-1"):
        assert secret not in written
    with sqlite3.connect(target) as copy:
        for table in ("service_keys", "service_acts", "service_alarms"):
            assert copy.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    copy.close()
    store.delete("kits")
    assert store.restore(target) == ["kits"]
    assert [one.id for one in books.all_keys()] == [KEY.id], "the keys of the store are as they were"


def test_a_backup_can_hold_keys(store: Store, tmp_path: Path) -> None:
    books = store.books
    revoked = replace(KEY, id="c" * 12, created_at=KEY.created_at + 1.0, revoked_at=1.0)
    for row in (KEY, revoked, session(1)):
        books.add_key(row)
    books.note(ACT)
    store.backup(tmp_path / "backup.db", keys=True)
    with doral.open("memory://") as other:
        assert other.restore(tmp_path / "backup.db") == []
        assert other.books.all_keys() == []
        other.books.add_key(replace(KEY, name="it has changed since"))
        other.restore(tmp_path / "backup.db", keys=True)
        assert other.books.all_keys() == [replace(KEY, name="it has changed since"), revoked]
        assert other.books.key(session(1).id) is None
        assert other.books.acts() == []


def test_keys_are_read_while_somebody_waits_to_write(tmp_path: Path) -> None:
    path = tmp_path / "campaigns.db"
    with doral.open(f"sqlite:///{path}", lock_timeout_s=20) as store:
        store.books.add_key(KEY)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writer = threading.Thread(target=store.books.note, args=(ACT,))
        writer.start()
        try:
            writer.join(timeout=0.1)  # it waits for the other by now
            found: list[KeyRow | None] = []
            reader = threading.Thread(target=lambda: found.append(store.books.key(KEY.id)))
            reader.start()
            reader.join(timeout=10)
            assert found == [KEY]
            assert writer.is_alive()
        finally:
            other.execute("ROLLBACK")
            writer.join()
            reader.join()
            other.close()
        assert [one.act for one in store.books.acts()] == [ACT.act]
