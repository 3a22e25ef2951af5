"""What breaks around a campaign: disks, files, clocks, connections, servers. Nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import resource
import shutil
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.errors import BrokenLog, NewerDatabase, OutcomeUnknown, StorageError
from doral.live.events.row import Row
from doral.live.storage import connection
from doral.live.storage.sqlite import SqliteConnection
from doral.live.storage.sqlite_file import make as make_file
from doral.live.store import Store
from tests.live import writer
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.damage import rewrite
from tests.live.tapes import same_bits

Opener = Callable[[str], Store]


def make(store: Store, name: str = "kits") -> Campaign:
    return store.create(name, writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")


def busy(campaign: Campaign, rounds: int = 60, seed: int = 0) -> None:
    """Some of everything."""
    rng = random.Random(seed)
    for _ in range(rounds):
        one = campaign.decide(rng.choice(writer.CONTEXTS))
        if one.arm is not None and rng.random() < 0.6:
            campaign.feedback(one.id, rng.random())
        elif one.arm is not None and rng.random() < 0.2:
            campaign.cancel(one.id)


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'campaigns.db'}"


# --- snapshots ----------------------------------------------------------------------------------------------------


def damage(data: bytes, how: str) -> bytes:
    if how == "empty":
        return b""
    if how == "cut off":
        return data[: len(data) // 2]
    if how == "not a snapshot":
        return b"x" * len(data)
    position = {"header": 80, "checksum": 20, "end": len(data) - 3}[how]
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


@pytest.mark.parametrize("how", ["empty", "cut off", "not a snapshot", "header", "checksum", "end"])
@pytest.mark.parametrize("which", ["the last", "all"])
def test_a_damaged_snapshot_is_ignored(how: str, which: str, tmp_path: Path, open_store: Opener) -> None:
    store = open_store(sqlite_url(tmp_path))
    campaign = make(store)
    busy(campaign)
    campaign.save_snapshot()
    busy(campaign, 10, seed=1)
    campaign.save_snapshot()
    busy(campaign, 5, seed=2)
    before, state = fold_of(campaign).to_json(), fold_of(campaign).engine.state
    numbers = campaign._session.read(lambda log, _: log.snapshots())
    connection = campaign._session._open()._connection  # type: ignore[attr-defined]
    for number in numbers if which == "all" else numbers[:1]:
        data = campaign._session.read(lambda log, _: log.load_snapshot(number))  # noqa: B023
        connection.execute("UPDATE snapshots SET data = ? WHERE sequence = ?", (damage(data, how), number))
    campaign._session.close()
    again = open_store(sqlite_url(tmp_path)).campaign("kits")
    assert fold_of(again).to_json() == before
    assert same_bits(fold_of(again).engine.state, state) == []
    assert again._session.reader.saved_at == (0 if which == "all" else numbers[1])


def test_a_snapshot_of_other_code_is_ignored(
    tmp_path: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = make(open_store(sqlite_url(tmp_path)))
    busy(campaign)
    monkeypatch.setattr("doral.live.state.snapshot.decisions_digest", lambda: "an earlier engine")
    campaign.save_snapshot()
    monkeypatch.undo()
    again = open_store(sqlite_url(tmp_path)).campaign("kits")
    assert fold_of(again).to_json() == fold_of(campaign).to_json()
    assert again._session.reader.saved_at == 0


def test_a_snapshot_that_cannot_be_written_does_no_harm(tmp_path: Path, open_store: Opener) -> None:
    campaign = make(open_store(sqlite_url(tmp_path)))
    campaign._session.reader.snapshot_every = 5
    campaign.decide("old")
    campaign._session._open()._connection.execute("DROP TABLE snapshots")  # type: ignore[attr-defined]
    busy(campaign, 20)
    assert campaign.report().arrivals == 21


# --- the log ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE events SET round = round + 1 WHERE sequence = 9", "round"),
        ("DELETE FROM events WHERE sequence = 5", "gap"),
        ("UPDATE events SET clock = 0.5 WHERE sequence = 9", "clock"),
        ("UPDATE events SET kind = 99 WHERE sequence = 9", "unknown kind"),
        ("DELETE FROM events WHERE sequence = 1", "no beginning|event 2"),
        ("UPDATE events SET arm = NULL, number = NULL WHERE sequence = 9", "number"),
        ("UPDATE events SET context = 1000000000 WHERE sequence = 9", "context"),
        ("UPDATE events SET arm = -7 WHERE sequence = 9", "arm"),
        ("UPDATE events SET arm = 3 WHERE sequence = 9", "arm"),
    ],
)
@pytest.mark.parametrize("with_chain", [False, True])
def test_a_log_that_contradicts_itself_is_refused(
    sql: str, words: str, with_chain: bool, tmp_path: Path, open_store: Opener
) -> None:
    """Also where whoever tampered with it has computed the chain anew."""
    campaign = make(open_store(sqlite_url(tmp_path)))
    campaign.decide_many(["old", "young"] * 10)
    rewrite(campaign, sql, with_chain=with_chain)
    campaign = open_store(sqlite_url(tmp_path)).campaign("kits")
    with pytest.raises(BrokenLog, match=words if with_chain else "not what was written|no beginning"):
        campaign.decide("old")


def test_a_campaign_under_another_name_is_refused(tmp_path: Path, open_store: Opener) -> None:
    campaign = make(open_store(sqlite_url(tmp_path)))
    campaign.decide("old")
    rewrite(campaign, "UPDATE campaigns SET name = 'coupons'")
    with pytest.raises(BrokenLog, match="its name was changed"):
        open_store(sqlite_url(tmp_path)).campaign("coupons").report()


def test_an_answer_that_the_index_hides_is_not_taken_twice(tmp_path: Path, open_store: Opener) -> None:
    """As a flipped bit in an index does; under a snapshot, so that nobody reads the event itself."""
    campaign = make(open_store(sqlite_url(tmp_path)))
    made = campaign.decide("old")
    campaign.feedback(made.id, 0.5)
    campaign.save_snapshot()
    rewrite(campaign, "UPDATE events SET decision = NULL WHERE kind = 3")
    with pytest.raises(BrokenLog):
        open_store(sqlite_url(tmp_path)).campaign("kits").feedback(made.id, 0.9)


def test_a_log_that_overdraws_is_refused(tmp_path: Path, open_store: Opener) -> None:
    campaign = make(open_store(sqlite_url(tmp_path)))
    made = campaign.decide("old")
    campaign.feedback(made.id, 1.0, actual_cost=0.0)
    rewrite(campaign, "UPDATE events SET previous_cost = 1e6 WHERE kind = 3", with_chain=True)
    with pytest.raises(BrokenLog, match="overdrawn"):
        campaign.report()


def test_a_log_restored_from_a_backup_is_the_truth(tmp_path: Path, open_store: Opener) -> None:
    campaign = make(open_store(sqlite_url(tmp_path)))
    campaign.decide_many(["old"] * 10)
    log = campaign._session._open()
    campaign.decide_many(["old"] * 5)
    run = log._connection.execute  # type: ignore[attr-defined]
    run("DELETE FROM events WHERE sequence > 11")
    with pytest.raises(BrokenLog, match="11"):  # that alone is damage
        campaign.report()
    run("UPDATE campaigns SET last_sequence = 11, head = (SELECT chain FROM events WHERE sequence = 11)")
    assert campaign.report().arrivals == 10
    assert campaign.decide("old").round == 11


def test_an_event_of_a_newer_definition_is_refused(tmp_path: Path, open_store: Opener) -> None:
    campaign = make(open_store(sqlite_url(tmp_path)))
    newer = """UPDATE events SET data = replace(data, '"format": 1', '"format": 2') WHERE sequence = 1"""
    rewrite(campaign, newer, with_chain=True)
    with pytest.raises(NewerDatabase, match="format 2"):
        campaign.report()


# --- files --------------------------------------------------------------------------------------------------------


def test_a_torn_last_write_is_as_if_it_had_not_begun(tmp_path: Path, open_store: Opener) -> None:
    """The write-ahead log, cut or damaged anywhere inside its last transaction."""
    folder = tmp_path / "whole"
    folder.mkdir()
    campaign = make(open_store(sqlite_url(folder)))
    busy(campaign, 30)
    wal = folder / "campaigns.db-wal"
    length = wal.stat().st_size
    before = fold_of(campaign).to_json()
    last = campaign.decide("old", key="last")
    whole = wal.read_bytes()
    assert len(whole) > length
    rng = random.Random(1)
    cuts = [length, length + 1, *(rng.randrange(length, len(whole)) for _ in range(8)), len(whole) - 1]
    for number, cut in enumerate([*cuts, -1]):
        place = tmp_path / f"torn-{number}"
        place.mkdir()
        shutil.copy(folder / "campaigns.db", place)
        torn = whole[:cut] if cut >= 0 else whole[: length + 40] + b"\xff" * 8 + whole[length + 48 :]
        (place / "campaigns.db-wal").write_bytes(torn)
        with doral.open(sqlite_url(place)) as store:
            again = store.campaign("kits")
            assert fold_of(again).to_json() == before
            assert again.decide("old", key="last").arm == last.arm
            log_is_whole(again)


def test_a_full_disk_changes_nothing(tmp_path: Path, open_store: Opener) -> None:
    campaign = make(open_store(sqlite_url(tmp_path)))
    busy(campaign, 20)
    connection = campaign._session._open()._connection  # type: ignore[attr-defined]
    pages = connection.execute("PRAGMA page_count")[0][0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    acknowledged = campaign.report().arrivals
    with pytest.raises(StorageError, match="full.*free some space"):  # noqa: PT012  (how many fit is not known)
        for _ in range(1000):
            campaign.decide("old")
            acknowledged += 1
    assert campaign.report().arrivals == acknowledged
    adds_up(campaign)
    connection.execute("PRAGMA max_page_count = 1000000")
    busy(campaign, 20)
    log_is_whole(campaign)


def test_a_file_that_may_not_grow_changes_nothing(tmp_path: Path, open_store: Opener) -> None:
    campaign = make(open_store(sqlite_url(tmp_path)))
    busy(campaign, 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    acknowledged = campaign.report().arrivals
    size = (tmp_path / "campaigns.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, hard))
    try:
        with pytest.raises(StorageError):  # noqa: PT012  (how many fit is not known)
            for _ in range(1000):
                campaign.decide("old")
                acknowledged += 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert campaign.report().arrivals == acknowledged
    busy(campaign, 5)
    adds_up(campaign)
    log_is_whole(campaign)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the privileges of root, to whom nothing is read-only."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_file_is_refused_clearly(open_store: Opener) -> None:
    folder = Path(tempfile.mkdtemp(prefix="doral-ro-"))
    try:
        with doral.open(sqlite_url(folder)) as store:
            made = make(store).decide("old")
        folder.chmod(0o555)
        (folder / "campaigns.db").chmod(0o444)
        with as_nobody(), pytest.raises(StorageError, match="campaigns.db.*(readonly|read-only|unable to open)"):
            doral.open(sqlite_url(folder)).campaign("kits").decide("old")
        folder.chmod(0o755)
        (folder / "campaigns.db").chmod(0o644)
        campaign = open_store(sqlite_url(folder)).campaign("kits")
        assert [one.id for one in campaign.decisions()] == [made.id]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to look like one" * 50, b"short"])
def test_a_file_that_is_no_database(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "campaigns.db").write_bytes(content)
    with pytest.raises(StorageError, match="campaigns.db"):
        doral.open(sqlite_url(tmp_path))
    assert (tmp_path / "campaigns.db").read_bytes() == content


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="folder"):
        doral.open(f"sqlite:///{tmp_path / 'missing' / 'campaigns.db'}")


def test_an_exception_in_the_middle_throws_the_state_away(tmp_path: Path, open_store: Opener) -> None:
    """Whatever interrupts a write after the engine has decided: the decision is as if it had never been made."""
    campaign = make(open_store(sqlite_url(tmp_path)))
    busy(campaign, 20)
    before = fold_of(campaign).to_json()
    log = campaign._session._open()
    append = log.append

    def interrupted(rows: Any) -> None:
        append(rows)
        raise KeyboardInterrupt

    log.append = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        campaign.decide("old")
    log.append = append  # type: ignore[method-assign]
    # Somebody else takes the number of the event that never was.
    other = open_store(sqlite_url(tmp_path)).campaign("kits")
    assert fold_of(other).to_json() == before
    other.decide("young")
    assert fold_of(campaign).to_json() == fold_of(other).to_json()
    campaign.decide("old")
    log_is_whole(campaign)


# --- the schema ---------------------------------------------------------------------------------------------------


def test_an_upgrade_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alembic.op.create_index", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        doral.open(sqlite_url(tmp_path))
    monkeypatch.undo()
    with doral.open(sqlite_url(tmp_path)) as store:
        assert store.list() == []


def test_many_open_a_new_database_at_once(durable_url: str) -> None:
    if durable_url.startswith("postgres"):
        with psycopg.connect(durable_url) as connection:
            connection.execute("DROP SCHEMA doral CASCADE")
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with doral.open(durable_url) as store:
                make(store, f"campaign {number}").decide("old")
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with doral.open(durable_url) as store:
        assert len(store.list()) == 4


def test_many_connect_to_a_new_file_at_once(tmp_path: Path) -> None:
    """SQLite does not wait by itself while another connection turns the write-ahead log on."""
    errors: list[BaseException] = []

    def work(path: Path) -> None:
        try:
            make_file(path)
            connection = SqliteConnection(path)
            connection.begin_reading()
            assert connection.fetch("PRAGMA journal_mode") == [("wal",)]
            connection.end_reading()
            connection.close()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    for trial in range(40):
        threads = [threading.Thread(target=work, args=(tmp_path / f"{trial}.db",)) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


# --- PostgreSQL ---------------------------------------------------------------------------------------------------


class Proxy:
    """Between a client and PostgreSQL; cuts the connection around a commit when told to."""

    def __init__(self, url: str) -> None:
        info = psycopg.conninfo.conninfo_to_dict(url)
        self._server = f"{info['host']}/.s.PGSQL.{info.get('port', 5432)}"
        self.folder = tempfile.mkdtemp(prefix="doral-px-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self.folder}/.s.PGSQL.5432")
        self._listener.listen()
        self.url = f"postgresql://{info['user']}@/{info['dbname']}?host={self.folder}"
        self.cut: str | None = None  # "before" the commit reaches the server, or "after" it, with its answer lost
        self.cuts = 0
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            threading.Thread(target=self._up, args=(client, server), daemon=True).start()
            threading.Thread(target=self._down, args=(client, server), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self.cut is not None and b"COMMIT\x00" in data:
                    self.cuts += 1
                    if self.cut == "after":
                        client.shutdown(socket.SHUT_WR)  # nothing more reaches the client
                        server.sendall(data)
                        time.sleep(0.05)
                    self.cut = None
                    break
                server.sendall(data)
        for end in (client, server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(5)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    if "host=/" not in postgres_url:
        pytest.skip("needs a server on a local socket")
    one = Proxy(postgres_url)
    yield one
    one.close()


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("key", ["k", None])
def test_a_connection_cut_in_the_middle_of_a_commit(
    cut: str, key: str | None, proxy: Proxy, open_store: Opener
) -> None:
    """Whether the commit happened is found out, and the decision is made exactly once, with a key or without."""
    campaign = make(open_store(proxy.url))
    busy(campaign, 20)
    arrivals = campaign.report().arrivals
    proxy.cut = cut
    made = campaign.decide("old", key=key)
    assert proxy.cuts == 1
    assert campaign.report().arrivals == arrivals + 1
    assert campaign.decision(made.id) == made
    proxy.cut = cut
    if made.arm is not None:
        campaign.feedback(made.id, 0.5)
        assert campaign.feedback(made.id, 0.5).reward == 0.5
    proxy.cut = cut
    campaign.decide_many(["old"] * 5)
    assert campaign.report().arrivals == arrivals + 6
    adds_up(campaign)
    log_is_whole(campaign)


def test_an_outcome_that_stays_unknown_is_said_so(
    proxy: Proxy, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RECONNECT_S", 0.2)
    campaign = make(open_store(proxy.url))
    campaign.decide("old")
    proxy.cut = "after"
    proxy._listener.shutdown(socket.SHUT_RDWR)  # nobody gets through any more
    proxy._listener.close()
    with pytest.raises(OutcomeUnknown, match="same key"):
        campaign.decide("old", key="k")
    direct = open_store(proxy.url.replace(proxy.folder, str(Path(proxy._server).parent))).campaign("kits")
    arrivals = direct.report().arrivals
    assert arrivals == 2  # it had happened
    assert direct.decide("old", key="k").round == 2
    assert direct.report().arrivals == 2


def test_backends_terminated_at_random(postgres_url: str, open_store: Opener) -> None:
    """At any moment, and up to three times while one decision is made: however slow the machine is, it is made."""
    campaign = make(open_store(postgres_url))
    stop = threading.Event()
    made: list[doral.Decision] = []
    hits: Counter[int] = Counter()  # terminations while so many decisions were made

    def terminate() -> None:
        rng = random.Random(3)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            while not stop.wait(rng.uniform(0.01, 0.06)):
                if hits[len(made)] < 3:
                    hits[len(made)] += 1
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                    )

    thread = threading.Thread(target=terminate)
    thread.start()
    try:
        while len(made) < 150 or (hits.total() < 30 and thread.is_alive()):
            made.append(campaign.decide("old"))
    finally:
        stop.set()
        thread.join()
    assert hits.total() >= 30
    assert [one.id for one in adds_up(campaign)] == [one.id for one in made]
    log_is_whole(campaign)


def test_postgres_restarted(postgres_url: str, request: pytest.FixtureRequest, open_store: Opener) -> None:
    if os.environ.get("DORAL_TEST_POSTGRES_URL"):
        pytest.skip("the server is not ours to restart")
    server = request.getfixturevalue("postgres_server")
    campaign = make(open_store(postgres_url))
    made = [campaign.decide("old") for _ in range(10)]
    stopped = threading.Thread(target=lambda: (server.stop(), server.start()))
    stopped.start()
    made += [campaign.decide("old") for _ in range(200)]
    stopped.join()
    made += [campaign.decide("old") for _ in range(10)]
    assert [one.id for one in adds_up(campaign)] == [one.id for one in made]
    log_is_whole(campaign)


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(StorageError, match="cannot reach PostgreSQL"):
        doral.open("postgresql://nobody@127.0.0.1:1/none")


def test_writer_is_part_of_the_event() -> None:
    """The outcome of a broken commit is settled by it."""
    assert "writer" in Row._fields
