"""What happens to the file of a store, and to those who share it: nothing is acknowledged that is not there."""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.errors import InvalidValue
from doral.live.campaign import Campaign
from doral.live.errors import NewerDatabase, OutcomeUnknown, StorageBusy, StorageError
from doral.live.storage.sql_log import rows_of
from doral.live.storage.sqlite import SqliteConnection, WriterQueue
from doral.live.store import Store
from tests.live import writer
from tests.live.checks import adds_up, log_is_whole
from tests.live.conftest import Zygote

Opener = Callable[[str], Store]
NOBODY = 65534


def make(store: Store, name: str = "kits") -> Campaign:
    return store.create(name, writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "campaigns.db"


@pytest.fixture
def campaign(path: Path, open_store: Opener) -> Campaign:
    made = make(open_store(f"sqlite:///{path}"))
    for _ in range(5):
        made.decide("old")
    return made


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {one.name: (one.stat().st_mtime_ns, one.read_bytes()) for one in folder.iterdir()}


def arrivals(path: Path) -> int:
    with doral.open(f"sqlite:///{path}", create=False) as store:
        return store.campaign("kits").report().arrivals


# --- a file that goes away ----------------------------------------------------------------------------------------


def delete(path: Path) -> None:
    path.unlink()


def delete_all(path: Path) -> None:
    for one in path.parent.glob("campaigns.db*"):
        one.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def replace_by_a_copy(path: Path) -> None:
    shutil.copy(path, path.with_name("copy.db"))
    path.with_name("copy.db").rename(path)


def replace_by_another_store(path: Path) -> None:
    with doral.open(f"sqlite:///{path.with_name('other.db')}") as store:
        make(store).decide("young")
    path.with_name("other.db").rename(path)


def delete_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def delete_index(path: Path) -> None:
    Path(f"{path}-shm").unlink()


def replace_index(path: Path) -> None:
    delete_index(path)
    Path(f"{path}-shm").touch()
    time.sleep(0.12)  # what is beside the file is looked at closely ten times a second


AWAY = [delete, delete_all, move, replace_by_a_copy, replace_by_another_store, delete_log, delete_index, replace_index]


@pytest.mark.parametrize("away", AWAY)
def test_a_file_that_goes_away_is_noticed_before_anything_is_acknowledged(
    away: Callable[[Path], None], campaign: Campaign, path: Path
) -> None:
    away(path)
    before = path.exists()
    for _ in range(3):
        with pytest.raises(StorageError, match=r"campaigns\.db.*(gone|another file).*open the store again"):
            campaign.decide("old")
    assert path.exists() == before


@pytest.mark.parametrize("away", [delete, delete_all, move, replace_by_another_store, delete_log])
def test_a_file_that_goes_away_during_a_commit(away: Callable[[Path], None], campaign: Campaign, path: Path) -> None:
    """After the check at the beginning: the answer does not leave."""
    log = campaign._session._open()
    append = log.append

    def meanwhile(rows: Any) -> None:
        append(rows)
        away(path)

    log.append = meanwhile  # type: ignore[method-assign]
    with pytest.raises(OutcomeUnknown, match="same key"):
        campaign.decide("old")
    log.append = append  # type: ignore[method-assign]
    with pytest.raises(StorageError):
        campaign.decide("old")


def test_reading_notices_a_file_that_was_replaced(campaign: Campaign, path: Path) -> None:
    replace_by_another_store(path)
    with pytest.raises(StorageError, match="another file"):
        campaign.report()


def test_whatever_was_acknowledged_is_in_the_file_that_was_moved(campaign: Campaign, path: Path) -> None:
    """Moved with what belongs to it, at a moment that nobody knows."""
    moved = path.with_name("moved.db")

    def take_away() -> None:
        time.sleep(0.05)
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{moved}{suffix}")

    thread = threading.Thread(target=take_away)
    thread.start()
    told = 5
    with pytest.raises(StorageError):  # noqa: PT012  (how many fit is not known)
        while True:
            campaign.decide("old")
            told += 1
    thread.join()
    campaign._session.close()
    assert arrivals(moved) in (told, told + 1)


def test_only_open_makes_a_file(campaign: Campaign, path: Path, open_store: Opener) -> None:
    store = open_store(f"sqlite:///{path}")
    delete_all(path)
    campaign._session.close()
    for attempt in (campaign.report, lambda: campaign.decide("old"), store.list, lambda: make(store, "more")):
        with pytest.raises(StorageError, match="no such file"):
            attempt()
    assert not path.exists()


def test_a_missing_file_is_an_error_where_none_is_to_be_made(path: Path) -> None:
    with pytest.raises(StorageError, match=r"campaigns\.db: there is no such file"):
        doral.open(f"sqlite:///{path}", create=False)
    assert not path.exists()
    doral.open(f"sqlite:///{path}").close()
    doral.open(f"sqlite:///{path}", create=False).close()


def test_another_working_directory_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_store: Opener
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///campaigns.db")
    campaign = make(store)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    campaign.decide("old")
    campaign._session.close()
    campaign.decide("old")
    assert store.list() == ["kits"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_campaign_is_known_by_its_tag(campaign: Campaign, path: Path) -> None:
    """The same number and name in a file of somebody else."""
    campaign._session.close()
    delete_all(path)
    replace_by_another_store(path)
    for attempt in (campaign.report, lambda: campaign.decide("old")):
        with pytest.raises(StorageError, match="not the one that was opened"):
            attempt()
    assert arrivals(path) == 1


def test_another_store_restored_into_the_file_is_noticed(campaign: Campaign, path: Path) -> None:
    """The same file, by SQLite's own means, while it is open."""
    with doral.open(f"sqlite:///{path.with_name('other.db')}") as store:
        make(store).decide_many(["young"] * 5)
    with sqlite3.connect(path.with_name("other.db")) as other, sqlite3.connect(path) as here:
        other.backup(here)
    other.close()
    here.close()
    for attempt in (campaign.report, lambda: campaign.decide("old")):
        with pytest.raises(StorageError, match="not the one that was opened"):
            attempt()
    assert arrivals(path) == 5


@pytest.mark.parametrize("what", ["an old copy", "another store", "nonsense"])
def test_a_file_that_is_overwritten_is_noticed(what: str, campaign: Campaign, path: Path) -> None:
    """A copy over the file, which stays the same file: `cp backup.db campaigns.db`."""
    backup = path.with_name("backup.db")
    campaign._session.close()  # so that the file itself holds all
    shutil.copyfile(path, backup)
    if what == "another store":
        backup.unlink()
        with doral.open(f"sqlite:///{backup}") as store:
            make(store).decide_many(["young"] * 500)
    elif what == "nonsense":
        backup.write_bytes(b"nonsense" * 4000)
    campaign.decide_many(["old"] * 300)
    campaign._session.close()
    campaign.decide("old")
    shutil.copyfile(backup, path)
    for _ in range(3):
        with pytest.raises(StorageError, match="overwritten with something else"):
            campaign.decide("old")


def test_a_link_leads_to_one_file_and_one_queue(campaign: Campaign, path: Path, open_store: Opener) -> None:
    (path.parent / "links").mkdir()
    link = path.parent / "links" / "link.db"
    link.symlink_to(path)
    through = open_store(f"sqlite:///{link}").campaign("kits")
    through.decide("old")
    assert [one.name for one in link.parent.iterdir()] == ["link.db"]
    assert campaign.report().arrivals == 6
    link.unlink()
    link.symlink_to(path.with_name("campaigns.db-queue"))
    with pytest.raises(StorageError, match="another file"):
        through.decide("old")
    campaign.decide("old")


def test_a_file_that_has_become_something_else_is_not_touched(campaign: Campaign, path: Path) -> None:
    campaign._session.close()
    delete_all(path)
    foreign(path)
    before = everything(path.parent)
    with pytest.raises(StorageError, match="another program"):
        campaign.decide("old")
    delete_all(path)
    path.touch()
    with pytest.raises(StorageError, match="not the database that was opened"):
        campaign.decide("old")
    assert before.keys() == {"campaigns.db"}
    assert path.read_bytes() == b""


# --- files of others ----------------------------------------------------------------------------------------------


def foreign(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        for statement in statements or ("CREATE TABLE orders (id)", "INSERT INTO orders VALUES (1)"):
            connection.execute(statement)
    connection.close()


def foreign_wal(path: Path) -> None:
    foreign(path, "PRAGMA journal_mode = WAL", "CREATE TABLE orders (id)")


def foreign_alembic(path: Path) -> None:
    foreign(path, "CREATE TABLE alembic_version (version_num)", "INSERT INTO alembic_version VALUES ('ae1027a6acf')")


def foreign_namesake(path: Path) -> None:
    foreign(path, "CREATE TABLE campaigns (id)", "CREATE TABLE events (id)")
    foreign_alembic(path)


def newer(path: Path) -> None:
    with doral.open(f"sqlite:///{path}") as store:
        make(store)
    foreign(path, "UPDATE alembic_version SET version_num = '9999'")
    Path(f"{path}-queue").unlink()


def no_database(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to look like one" * 50)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("made", "error", "says"),
    [
        (foreign, StorageError, "another program.*orders"),
        (foreign_wal, StorageError, "another program.*orders"),
        (foreign_alembic, StorageError, "another program"),
        (foreign_namesake, StorageError, "another program"),
        (newer, NewerDatabase, "newer version"),
        (no_database, StorageError, "no SQLite database"),
        (folder, StorageError, "is a folder"),
    ],
)
def test_what_is_not_ours_is_not_touched(
    made: Callable[[Path], None], error: type[Exception], says: str, path: Path
) -> None:
    made(path)
    if path.is_dir():
        before: object = sorted(path.parent.iterdir())
    else:
        os.utime(path, ns=(10**18, 10**18))
        before = everything(path.parent)
    for create in (True, False):
        with pytest.raises(error, match=f"campaigns.db.*{says}"):
            doral.open(f"sqlite:///{path}", create=create)
    assert before == (sorted(path.parent.iterdir()) if path.is_dir() else everything(path.parent))


def test_a_foreign_file_in_use_is_not_touched(path: Path) -> None:
    """Its tables are in a write-ahead log so far."""
    with sqlite3.connect(path, isolation_level=None) as owner:
        owner.execute("PRAGMA journal_mode = WAL")
        owner.execute("CREATE TABLE orders (id)")
        before = {name: data for name, (_, data) in everything(path.parent).items() if not name.endswith("-shm")}
        with pytest.raises(StorageError, match="another program"):
            doral.open(f"sqlite:///{path}")
        after = {name: data for name, (_, data) in everything(path.parent).items() if not name.endswith("-shm")}
        assert before == after
    owner.close()


def test_an_empty_file_becomes_a_store(path: Path, open_store: Opener) -> None:
    path.touch(mode=0o640)
    make(open_store(f"sqlite:///{path}")).decide("old")
    assert path.stat().st_mode & 0o777 == 0o640


KILLED_IN_A_CHANGE = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = DELETE")
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE events SET data = hex(zeroblob(20000)), reward = 7")
os.kill(os.getpid(), 9)
"""


def test_a_change_that_was_cut_off_with_a_rollback_journal_is_undone(campaign: Campaign, path: Path) -> None:
    """As a switch to the write-ahead log leaves one, when the process is killed that opens a backup or an old file."""
    before = list(campaign.decisions())
    campaign.session.close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy = path.with_name("copy.db")
    shutil.copyfile(path, copy)
    subprocess.run([sys.executable, "-c", KILLED_IN_A_CHANGE, str(copy)], check=False, timeout=60)
    assert copy.with_name("copy.db-journal").stat().st_size > 0
    with doral.open(f"sqlite:///{copy}") as store:
        assert list(store.campaign(campaign.name).decisions()) == before
        assert store.campaign(campaign.name).decide("old").id


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_new_files_are_for_this_user_alone(umask: int, path: Path, open_store: Opener) -> None:
    old = os.umask(umask)
    try:
        make(open_store(f"sqlite:///{path}")).decide("old")
    finally:
        os.umask(old)
    modes = {one.name: one.stat().st_mode & 0o777 for one in path.parent.iterdir()}
    assert modes == dict.fromkeys(["campaigns.db", "campaigns.db-wal", "campaigns.db-shm", "campaigns.db-queue"], 0o600)


@pytest.mark.parametrize("bad", ["a%00b.db", "a\x00b.db", "a%zz.db", "a%", "%ff.db", "folder/", "", "x?mode=ro", "x#y"])
def test_paths_that_are_none(bad: str) -> None:
    with pytest.raises(InvalidValue, match="url = "):
        doral.open(f"sqlite:///{bad}")


@pytest.mark.parametrize("name", ["lock", "statement", "connect"])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "soon", None])
def test_timeouts_that_are_none(name: str, bad: Any) -> None:
    with pytest.raises(InvalidValue, match=f"{name}_timeout_s = "):
        doral.open("memory://", **{f"{name}_timeout_s": bad})


# --- files that can only be read ----------------------------------------------------------------------------------


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the privileges of root, to whom nothing is read-only."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that others can enter."""
    folder = Path(tempfile.mkdtemp(prefix="doral-ro-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def fill(path: Path) -> list[str]:
    with doral.open(f"sqlite:///{path}") as store:
        made = [one.id for one in make(store).decide_many(["old"] * 5)]
    path.chmod(0o644)
    Path(f"{path}-queue").unlink()
    return made


@pytest.mark.parametrize("mode", [0o555, 0o777])
def test_who_may_only_read_can_read(mode: int, shared: Path) -> None:
    """And makes no files that would be in the way of those who write."""
    import polars  # noqa: F401  (nobody may not be able to)

    path = shared / "campaigns.db"
    made = fill(path)
    path.chmod(0o444)
    shared.chmod(mode)
    with as_nobody(), doral.open(f"sqlite:///{path}") as store:
        campaign = store.campaign("kits")
        assert store.list() == ["kits"]
        assert [one.id for one in campaign.decisions()] == made
        assert campaign.report().arrivals == 5
        for attempt in (lambda: campaign.decide("old"), lambda: make(store, "more"), campaign.save_snapshot):
            with pytest.raises(StorageError, match="campaigns.db: is read-only here; nothing was changed"):
                attempt()
        with tempfile.TemporaryDirectory() as out:
            campaign.export(Path(out) / "decisions.csv")
    assert [one.name for one in shared.iterdir()] == ["campaigns.db"]


def test_who_may_only_read_sees_what_is_written_meanwhile(shared: Path, open_store: Opener) -> None:
    path = shared / "campaigns.db"
    fill(path)
    shared.chmod(0o755)
    with as_nobody():
        readers = open_store(f"sqlite:///{path}").campaign("kits")
        assert readers.report().arrivals == 5
    if os.geteuid() != 0:
        pytest.skip("needs two users")
    with doral.open(f"sqlite:///{path}") as store:
        writers = store.campaign("kits")
        for expected in range(6, 12):
            writers.decide("old")
            with as_nobody():
                assert readers.report().arrivals == expected
    with as_nobody():
        assert readers.report().arrivals == 11
    with doral.open(f"sqlite:///{path}") as store:
        store.campaign("kits").decide("old")
    with as_nobody():
        assert readers.report().arrivals == 12
        readers._session.close()


def test_a_log_that_cannot_be_read_is_said_so(shared: Path) -> None:
    """Left by a process that was killed: its last changes can only be read with an index, which needs a place."""
    path = shared / "campaigns.db"
    campaign = make(doral.open(f"sqlite:///{path}"))
    campaign.decide("old")
    saved = shared / "saved"
    saved.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", saved)
    campaign._session.close()
    for one in saved.iterdir():
        one.chmod(0o444)
    saved.chmod(0o555)
    with as_nobody(), pytest.raises(StorageError, match="last changes are in .*-wal.*copy both"):
        doral.open(f"sqlite:///{saved / 'campaigns.db'}")
    saved.chmod(0o755)


def test_an_old_file_that_can_only_be_read(shared: Path) -> None:
    from tests.live.first_schema import downgrade_to_first

    path = shared / "campaigns.db"
    fill(path)
    downgrade_to_first(f"sqlite:///{path}")
    shared.chmod(0o555)
    path.chmod(0o444)
    with as_nobody(), pytest.raises(StorageError, match="older version.*open it once where"):
        doral.open(f"sqlite:///{path}")


# --- a disk that fails --------------------------------------------------------------------------------------------

_FAILING_SYNC = """
import ctypes, platform, struct, sys
import doral
from tests.live import writer

def fail_syncs():
    # seccomp: fsync and fdatasync end with EIO, all else goes on
    fsync, fdatasync = {"x86_64": (74, 75), "aarch64": (82, 83)}[platform.machine()]
    load, equal, give = 0x20, 0x15, 0x06
    code = [(load, 0, 0, 0), (equal, 1, 0, fsync), (equal, 0, 1, fdatasync)]
    code += [(give, 0, 0, 0x00050000 | 5), (give, 0, 0, 0x7FFF0000)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    header = ctypes.create_string_buffer(struct.pack("H6xQ", len(code), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    if libc.prctl(22, 2, header) != 0:
        print("no seccomp")
        sys.exit(0)

campaign = doral.open(sys.argv[1]).campaign("kits")
campaign.decide("old", key="before")
events = campaign.report().events
fail_syncs()
for _ in range(2):
    try:
        campaign.decide("old", key="k")
        print("acknowledged")
    except doral.DoralError as error:
        print(type(error).__name__, error)
assert campaign._session._state is None
"""


def test_an_error_of_fsync_leaves_the_outcome_open(campaign: Campaign, path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _FAILING_SYNC, f"sqlite:///{path}"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    if "no seccomp" in ran.stdout:
        pytest.skip("the kernel has no filters for system calls")
    said = ran.stdout.splitlines()
    assert len(said) == 2
    for line in said:
        assert line.startswith("OutcomeUnknown")
        assert "disk I/O error" in line
        assert "same key" in line
        assert "nothing was changed" not in line
    assert campaign.decide("old", key="k") == campaign.decide("old", key="k")
    adds_up(campaign)
    log_is_whole(campaign)


# --- many writers -------------------------------------------------------------------------------------------------


def test_writers_are_served_in_turn(path: Path, zygote: Zygote, tmp_path: Path, open_store: Opener) -> None:
    """While all of them want to write. Each gets as much time as the machine has for it: that is not counted here."""
    campaign = make(open_store(f"sqlite:///{path}"))
    assert zygote.run("compete", f"sqlite:///{path}", "kits", writer.COMPETING, tmp_path / "notes") == [0] * 4
    made = sorted(int(one.read_text()) for one in tmp_path.glob("notes-*"))
    assert len(made) == 4
    assert campaign.report().arrivals == sum(made)
    served = campaign._session.read(lambda log, _: [one.writer for one in log.after(1)])
    writers = set(served)
    assert len(writers) == 4
    together = served[max(map(served.index, writers)) : len(served) - max(map(served[::-1].index, writers))]
    assert len(together) > 8, served
    twice = sum(one == other for one, other in itertools.pairwise(together))
    assert twice < len(together) / 3, together


def test_whoever_has_just_written_stands_behind_the_one_who_waits(campaign: Campaign, path: Path) -> None:
    del campaign  # there is a file now
    said: list[str] = []
    one, other = (SqliteConnection(path) for _ in range(2))
    looking = WriterQueue(path)

    def wait_and_write() -> None:
        other.begin(1)
        said.append("other")
        other.rollback()

    for _ in range(20):
        one.begin(1)
        waiting = threading.Thread(target=wait_and_write, daemon=True)
        waiting.start()
        until = time.monotonic() + 30.0
        while looking.take(0.0):  # until the other one is next
            looking.leave()
            assert time.monotonic() < until, "whoever waits holds no place"
        one.rollback()
        one.begin(1)  # at once, and without a pause in which anybody could be quicker
        said.append("one")
        one.rollback()
        waiting.join()
    for connection in (one, other):
        connection.close()
    looking.close()
    assert said == ["other", "one"] * 20


def test_others_who_keep_the_lock_are_waited_for_as_long_as_was_said(
    campaign: Campaign, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with doral.open(f"sqlite:///{path}", lock_timeout_s=0.3) as store:
        hasty = store.campaign("kits")
        hasty.report()
        blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        blocker.execute("BEGIN IMMEDIATE")
        for attempt in (lambda: hasty.decide("old"), lambda: make(store, "more")):
            since = time.monotonic()
            with pytest.raises(StorageBusy, match=r"0\.3 s; nothing was changed.*lock_timeout_s"):
                attempt()
            assert 0.25 < time.monotonic() - since < 2.0
        threading.Timer(1.2, lambda: blocker.execute("ROLLBACK")).start()
        with caplog.at_level(logging.WARNING, "doral.live"):
            campaign.decide("old")
        assert "waited 1." in caplog.text
        blocker.close()
        hasty.decide("old")


def test_the_queue_survives_whoever_stands_in_it(campaign: Campaign, path: Path) -> None:
    """Killed at the head of the queue, with a child that it has forked and that lives on."""
    at_head, said = os.pipe()
    holder = os.fork()
    if holder == 0:
        turns = WriterQueue(path)
        turns.take(time.monotonic() + 5)
        child = os.fork()
        if child == 0:
            os.write(said, b"%d\n" % os.getpid())
            signal.pause()
        signal.pause()
        os._exit(0)
    child = int(os.read(at_head, 20))
    try:
        with doral.open(f"sqlite:///{path}", lock_timeout_s=0.2) as store, pytest.raises(StorageBusy):
            store.campaign("kits").decide("old")
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        campaign.decide("old")
    finally:
        os.kill(child, signal.SIGKILL)


def test_without_a_queue_writers_still_wait_for_each_other(path: Path, open_store: Opener) -> None:
    """Where the file cannot be made: a folder is in its place."""
    Path(f"{path}-queue").mkdir()
    campaign = make(open_store(f"sqlite:///{path}"))
    threads = [
        threading.Thread(target=lambda: [open_store(f"sqlite:///{path}").campaign("kits").decide("old") for _ in "123"])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert campaign.report().arrivals == 12
    log_is_whole(campaign)


def test_a_reading_that_ends_leaves_no_transaction(path: Path, campaign: Campaign) -> None:
    """What was read once can be read again through the same connection, and is then what is there now."""
    del campaign
    connection = SqliteConnection(path)
    try:
        for expected in (["kits"], ["kits", "more"]):
            connection.begin_reading()
            assert [row.name for row in rows_of(connection)] == expected
            connection.end_reading()
            with doral.open(f"sqlite:///{path}") as store:
                make(store, secrets.token_hex(3) if len(expected) > 1 else "more")
    finally:
        connection.close()
