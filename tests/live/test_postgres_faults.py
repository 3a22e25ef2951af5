"""PostgreSQL that is locked, slow, silent, shared with others, or of another encoding."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

import doral
from doral.errors import InvalidValue
from doral.live.campaign import Campaign
from doral.live.errors import CampaignExists, NewerDatabase, OutcomeUnknown, StorageBusy, StorageError
from doral.live.storage import connection
from doral.live.storage.connection import CAMPAIGN_LOCKS
from doral.live.storage.schema import HEAD
from doral.live.store import Store
from tests.live import writer
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.first_schema import POSTGRES, downgrade_to_first
from tests.live.test_faults import Proxy

MakeDatabase = Callable[..., str]


def make(store: Store, name: str = "kits") -> Campaign:
    return store.create(name, writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")


@pytest.fixture
def new_database(postgres_database: str) -> Iterator[MakeDatabase]:
    """Databases of one test; `options` end CREATE DATABASE."""
    made = []
    with psycopg.connect(postgres_database, autocommit=True) as admin:

        def one(options: str = "") -> str:
            name = f"doral_{secrets.token_hex(4)}"
            admin.execute(f"CREATE DATABASE {name} {options}")
            made.append(name)
            return urlunsplit(urlsplit(postgres_database)._replace(path=f"/{name}"))

        yield one
        for name in made:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT schemaname || '.' || tablename FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
        )
        return [row[0] for row in rows]


def run(url: str, *statements: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


# --- waiting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lock_s", "statement_s"), [(0.5, 20.0), (1.2, 0.8)])
def test_a_lock_is_waited_for_as_long_as_was_said(
    lock_s: float, statement_s: float, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        doral.open(postgres_url, lock_timeout_s=lock_s, statement_timeout_s=statement_s) as store,
        psycopg.connect(postgres_url, autocommit=True) as other,
    ):
        campaign = make(store)
        campaign.decide("old")
        for number, attempt in ((1, lambda: campaign.decide("old")), (0, lambda: make(store, "more"))):
            other.execute(f"SELECT pg_advisory_lock({CAMPAIGN_LOCKS}, {number})")
            since = time.monotonic()
            with pytest.raises(StorageBusy, match="locked for .* s; nothing was changed.*lock_timeout_s"):
                attempt()
            assert lock_s * 0.8 < time.monotonic() - since < lock_s + 2.0
            other.execute(f"SELECT pg_advisory_unlock({CAMPAIGN_LOCKS}, {number})")
            attempt()
        assert campaign.report().arrivals == 2
        log_is_whole(campaign)
    with doral.open(postgres_url) as store, psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(f"SELECT pg_advisory_lock({CAMPAIGN_LOCKS}, 1)")
        threading.Timer(1.2, other.close).start()
        with caplog.at_level(logging.WARNING, "doral.live"):
            store.campaign("kits").decide("old")
        assert "waited 1." in caplog.text


def test_a_locked_table_is_not_waited_for_without_end(postgres_url: str) -> None:
    with doral.open(postgres_url, lock_timeout_s=0.5) as store, psycopg.connect(postgres_url) as other:
        campaign = make(store)
        campaign.decide("old")
        other.execute("LOCK TABLE doral.events IN ACCESS EXCLUSIVE MODE")
        for attempt in (lambda: campaign.decide("old"), campaign.report):
            with pytest.raises(StorageBusy):
                attempt()
        other.rollback()
        other.execute("LOCK TABLE doral.events IN SHARE MODE")  # which only keeps off those who write
        with pytest.raises(StorageBusy, match="nothing was changed"):
            campaign.decide("old")
        other.rollback()
        campaign.decide("old")
        log_is_whole(campaign)


def test_a_statement_that_takes_too_long(postgres_url: str) -> None:
    with doral.open(postgres_url, statement_timeout_s=0.5) as store:
        campaign = make(store)
        connection = campaign._session._open()._connection  # type: ignore[attr-defined]
        with pytest.raises(StorageError, match="statement timeout.*statement_timeout_s"):
            connection.execute("SELECT pg_sleep(10)")
        campaign.decide("old")


# --- silence ------------------------------------------------------------------------------------------------------


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that neither answers nor ends."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def backend(campaign: Campaign) -> int:
    connection = campaign._session._open()._connection  # type: ignore[attr-defined]
    return int(connection._connection.info.backend_pid)  # the one that it borrows next


@pytest.fixture
def local(postgres_url: str) -> str:
    if "host=/" not in postgres_url:
        pytest.skip("needs a server on this machine")
    return postgres_url


def test_a_server_that_stops_answering_is_left(local: str) -> None:
    with doral.open(local, statement_timeout_s=0.5) as store:
        campaign = make(store)
        made = [campaign.decide("old")]
        for attempt in (lambda: made.append(campaign.decide("old")), campaign.report):
            since = time.monotonic()
            with stopped(backend(campaign)):
                attempt()
            assert 0.4 < time.monotonic() - since < 6.0
        assert [one.id for one in adds_up(campaign)] == [one.id for one in made]
        log_is_whole(campaign)


def test_a_server_that_stops_answering_during_a_commit(local: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the lock, and may still commit when it goes on: nobody can know."""
    monkeypatch.setattr(connection, "RECONNECT_S", 1.0)
    with doral.open(local, statement_timeout_s=0.5) as store:
        campaign = make(store)
        campaign.decide("old")
        log = campaign._session._open()
        append = log.append
        pid = backend(campaign)

        def stop_after(rows: Any) -> None:
            append(rows)
            os.kill(pid, signal.SIGSTOP)

        log.append = stop_after  # type: ignore[method-assign]
        since = time.monotonic()
        try:
            with pytest.raises(OutcomeUnknown, match="same key") as caught:
                campaign.decide("old", key="k")
            assert "nothing was changed" not in str(caught.value)
            assert time.monotonic() - since < 8.0
        finally:
            os.kill(pid, signal.SIGCONT)
        made = campaign.decide("old", key="k")
        assert campaign.decide("old", key="k") == made
        assert campaign.report().arrivals == 2
        log_is_whole(campaign)


def test_a_server_that_accepts_and_says_nothing(local: str, request: pytest.FixtureRequest) -> None:
    if os.environ.get("DORAL_TEST_POSTGRES_URL"):
        pytest.skip("the server is not ours to stop")
    server = request.getfixturevalue("postgres_server")
    with stopped(server.get_pid()):
        since = time.monotonic()
        with pytest.raises(StorageError, match="cannot reach PostgreSQL.*timeout"):
            doral.open(local, connect_timeout_s=1)
        assert time.monotonic() - since < 8.0


# --- asked again --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_connection_cut_while_a_campaign_is_made(cut: str, local: str) -> None:
    """It is made exactly once, and is not said to have been there before."""
    proxy = Proxy(local)
    try:
        with doral.open(proxy.url) as store:
            proxy.cut = cut
            campaign = make(store)
            assert proxy.cuts == 1
            assert store.list() == ["kits"]
            campaign.decide("old")
            log_is_whole(campaign)
            with pytest.raises(CampaignExists):
                make(store)
    finally:
        proxy.close()


def test_making_and_listing_wait_for_a_server_that_restarts(local: str, request: pytest.FixtureRequest) -> None:
    if os.environ.get("DORAL_TEST_POSTGRES_URL"):
        pytest.skip("the server is not ours to restart")
    server = request.getfixturevalue("postgres_server")
    with doral.open(local) as store:
        restarting = threading.Thread(target=lambda: (server.stop(), server.start()))
        restarting.start()
        names: list[str] = []
        while restarting.is_alive() or len(names) < 3:
            names.append(f"campaign {len(names):06d}")
            make(store, names[-1])
            assert store.list() == names
        restarting.join()


def test_a_server_that_stays_away_is_given_up(
    monkeypatch: pytest.MonkeyPatch, local: str, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "RECONNECT_S", 0.3)
    proxy = Proxy(local)
    with doral.open(proxy.url) as store:
        proxy.close()
        for attempt in (store.list, lambda: make(store)):
            caplog.clear()
            with (
                caplog.at_level(logging.WARNING, "doral.live"),
                pytest.raises(StorageError, match="cannot reach PostgreSQL"),
            ):
                attempt()
            assert "trying again" in caplog.text


# --- a schema of its own ------------------------------------------------------------------------------------------

_OURS = ["alembic_version", "archived_keys", "archives", "campaigns", "events"]
_OURS += ["service_acts", "service_alarm_subjects", "service_alarms", "service_keys", "snapshots"]
OURS = [f"doral.{table}" for table in _OURS]


def test_a_schema_of_its_own(new_database: MakeDatabase) -> None:
    url = new_database()
    with doral.open(url) as store:
        make(store).decide("old")
    assert tables(url) == OURS


@pytest.mark.parametrize("theirs", ["ae1027a6acf", "0001", "0002", "9999"])
def test_other_programs_have_their_own_versions(theirs: str, new_database: MakeDatabase) -> None:
    url = new_database()
    run(
        url,
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
        f"INSERT INTO alembic_version VALUES ('{theirs}')",
        "CREATE TABLE campaigns (id INTEGER, title TEXT)",
        "CREATE TABLE events (id INTEGER)",
        "INSERT INTO campaigns VALUES (7, 'theirs')",
    )
    for _ in range(2):
        with doral.open(url) as store:
            make(store, secrets.token_hex(4)).decide("old")
    assert tables(url) == [*OURS, "public.alembic_version", "public.campaigns", "public.events"]
    assert run(url, "SELECT version_num FROM public.alembic_version") == [(theirs,)]
    assert run(url, "SELECT * FROM public.campaigns") == [(7, "theirs")]


SNAPSHOTS = (
    "CREATE TABLE snapshots (campaign_id INTEGER, sequence BIGINT, data BYTEA, PRIMARY KEY (campaign_id, sequence))"
)


@pytest.mark.parametrize("old", ["0001", "0002"])
@pytest.mark.parametrize("is_shared", [False, True])
def test_tables_of_the_first_version_move(old: str, is_shared: bool, new_database: MakeDatabase) -> None:
    """With all that is in them; of a version table that others use, only our row goes."""
    url = new_database()
    with doral.open(url) as store:
        campaign = make(store)
        made = campaign.decide_many(["old"] * 10)
        state = fold_of(campaign).to_json()
    downgrade_to_first(url)
    if old == "0002":
        run(url, SNAPSHOTS, "UPDATE alembic_version SET version_num = '0002'")
    if is_shared:
        run(url, "INSERT INTO alembic_version VALUES ('ae1027a6acf')")
    assert "public.events" in tables(url)
    with doral.open(url) as store:
        campaign = store.campaign("kits")
        found = fold_of(campaign).to_json()
        assert {**found, "head": None, "salt": None} == {**state, "head": None, "salt": None}  # then there was no chain
        assert [one.id for one in campaign.decisions()] == [one.id for one in made]
        campaign.decide("old")
        campaign.save_snapshot()
        make(store, "another").decide("young")
        log_is_whole(campaign)
    assert tables(url) == OURS + (["public.alembic_version"] if is_shared else [])
    assert run(url, "SELECT version_num FROM doral.alembic_version") == [(HEAD,)]
    if is_shared:
        assert run(url, "SELECT version_num FROM public.alembic_version") == [("ae1027a6acf",)]


def test_a_move_that_fails_moves_nothing(new_database: MakeDatabase) -> None:
    url = new_database()
    doral.open(url).close()
    run(url, "DROP SCHEMA doral CASCADE", *[one for one in POSTGRES.split(";") if one.strip()])
    run(url, "CREATE SCHEMA doral", "CREATE TABLE doral.snapshots (theirs INTEGER)")  # in the way of a later step
    before = tables(url)
    with pytest.raises(StorageError, match="could not be brought up to date.*nothing was changed"):
        doral.open(url)
    assert tables(url) == before
    assert run(url, "SELECT version_num FROM public.alembic_version") == [("0001",)]


def test_a_newer_schema_is_left_alone_whatever_else_is_there(new_database: MakeDatabase) -> None:
    url = new_database()
    with doral.open(url) as store:
        make(store)
    run(url, "UPDATE doral.alembic_version SET version_num = '9999'", "CREATE TABLE alembic_version (version_num TEXT)")
    before = tables(url)
    with pytest.raises(NewerDatabase, match="newer version"):
        doral.open(url)
    assert tables(url) == before
    assert run(url, "SELECT version_num FROM doral.alembic_version") == [("9999",)]


def test_many_move_old_tables_at_once(new_database: MakeDatabase) -> None:
    url = new_database()
    with doral.open(url) as store:
        make(store).decide("old")
    downgrade_to_first(url)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with doral.open(url) as store:
                store.campaign("kits").decide("old")
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert tables(url) == OURS


def test_a_role_that_may_not_make_a_schema(new_database: MakeDatabase) -> None:
    url = new_database()
    role = f"limited_{secrets.token_hex(3)}"
    run(url, f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    parts = urlsplit(url)
    limited = urlunsplit(parts._replace(netloc=f"{role}:x@{parts.netloc.rpartition('@')[2]}"))
    try:
        with pytest.raises(StorageError, match=f"may not make the schema 'doral'.*AUTHORIZATION {role}") as caught:
            doral.open(limited)
        assert tables(url) == []
        run(url, "CREATE SCHEMA doral")
        with pytest.raises(StorageError, match="permission denied for schema doral.*grant|may not make tables"):
            doral.open(limited)
        run(url, "DROP SCHEMA doral", str(caught.value).partition(" run ")[2])
        with doral.open(limited) as store:
            make(store).decide("old")
        assert tables(url) == OURS
    finally:
        run(url, f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")


@contextmanager
def roles(url: str, count: int) -> Iterator[list[str]]:
    """Roles that may do nothing yet; the password of each is `x`."""
    names = [f"limited_{secrets.token_hex(3)}" for _ in range(count)]
    run(url, *(f"CREATE ROLE {name} LOGIN PASSWORD 'x'" for name in names))
    try:
        yield names
    finally:
        run(url, *(f"DROP OWNED BY {name} CASCADE" for name in names), *(f"DROP ROLE {name}" for name in names))


def as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{role}:x@{parts.netloc.rpartition('@')[2]}"))


def test_a_schema_of_strangers_is_refused(new_database: MakeDatabase) -> None:
    url = new_database()
    with roles(url, 2) as (stranger, role):
        run(url, f"CREATE SCHEMA doral AUTHORIZATION {stranger}", f"GRANT ALL ON SCHEMA doral TO {role}")
        with pytest.raises(StorageError, match=f"the schema doral belongs to the role {stranger}") as caught:
            doral.open(as_role(url, role))
        assert tables(url) == []
        run(url, str(caught.value).partition(" run ")[2].partition(";")[0])
        with doral.open(as_role(url, role)) as store:
            make(store).decide("old")
        run(url, f"REVOKE {stranger} FROM {role}", f"ALTER SCHEMA doral OWNER TO {role}")
        doral.open(as_role(url, role)).close()
        run(url, f"ALTER TABLE doral.events OWNER TO {stranger}", f"GRANT ALL ON doral.events TO {role}")
        with pytest.raises(StorageError, match=f"doral.events belongs to the role {stranger}.*GRANT"):
            doral.open(as_role(url, role))
        run(url, "ALTER TABLE doral.events OWNER TO CURRENT_USER")  # a superuser sees everything anyway
        doral.open(as_role(url, role)).close()


@pytest.mark.parametrize(
    "trap",
    [
        "CREATE RULE trap AS ON INSERT TO doral.events DO INSTEAD NOTHING",
        "CREATE RULE trap AS ON UPDATE TO doral.campaigns DO INSTEAD NOTHING",
        "CREATE TRIGGER trap BEFORE INSERT ON doral.events FOR EACH ROW WHEN (NEW.sequence = 5) EXECUTE FUNCTION no()",
    ],
)
def test_what_was_not_stored_is_not_acknowledged(trap: str, new_database: MakeDatabase) -> None:
    url = new_database()
    with doral.open(url) as store:
        campaign = make(store)
        campaign.decide("old")
        before = campaign.report().events
        run(url, "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$", trap)
        asked: list[Callable[[], object]] = [lambda: campaign.decide_many(["old"] * 5)]
        if "RULE" in trap:
            asked.append(lambda: campaign.decide("old"))
        if "RULE trap AS ON INSERT" in trap:
            asked.append(lambda: make(store, "more"))
        for ask in asked:
            with pytest.raises(StorageError, match=r"stored \d of \d rows.*nothing was changed"):
                ask()
            assert campaign.report().events == before
        assert store.list() == ["kits"]
        kind, table = ("TRIGGER" if "TRIGGER" in trap else "RULE"), ("campaigns" if "UPDATE" in trap else "events")
        run(url, f"DROP {kind} trap ON doral.{table}")
        campaign.decide_many(["old"] * 5)
        log_is_whole(campaign)


def test_planted_functions_are_not_run(new_database: MakeDatabase) -> None:
    """In `public`, where a neighbour may make a function that fits better than the server's own."""
    url = new_database()
    run(url, "CREATE TABLE public.heard (what TEXT)")
    for name, takes, gives, body in (
        ("has_database_privilege", "name, text", "boolean", "true"),
        ("has_database_privilege", "name, varchar", "boolean", "true"),
        ("has_schema_privilege", "text, varchar", "boolean", "true"),
        ("quote_ident", "name", "text", "'theirs'"),
        ("to_regclass", "varchar", "regclass", "NULL::regclass"),
        ("pg_advisory_xact_lock", "bigint, integer", "void", "NULL::void"),
        ("pg_has_role", "name, oid, varchar", "boolean", "true"),
        ("max", "integer", "integer", "7"),
        ("count", "integer", "bigint", "7"),
    ):
        run(
            url,
            f"CREATE FUNCTION public.{name}({takes}) RETURNS {gives} LANGUAGE plpgsql AS "
            f"$$ BEGIN INSERT INTO public.heard VALUES ('{name}'); RETURN {body if gives != 'void' else ''}; END $$",
        )
    run(
        url,
        "CREATE FUNCTION public.same(name, text) RETURNS boolean LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO public.heard VALUES ('='); RETURN $1::text = $2; END $$",
        "CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.same)",
    )
    path = "SET search_path = public, pg_catalog"
    assert run(url, path, "SELECT quote_ident(current_user)") == [("theirs",)]  # as it would be
    run(url, "TRUNCATE heard", f"ALTER DATABASE {urlsplit(url).path[1:]} {path}")
    for _ in range(2):
        with doral.open(url) as store:
            campaign = make(store, secrets.token_hex(4))
            campaign.decide_many(["old"] * 3)
            assert campaign.health().is_well
            campaign.verify()
    assert run(url, "SELECT * FROM public.heard") == []


def test_numbers_come_back_to_the_last_bit(new_database: MakeDatabase) -> None:
    url = new_database()
    run(url, f"ALTER DATABASE {urlsplit(url).path[1:]} SET extra_float_digits = 0")
    assert run(url, "SELECT 0.1::float8 + 0.2::float8 = '0.3'::float8, (0.1::float8 + 0.2::float8)::text") == [
        (False, "0.3")
    ]
    with doral.open(url) as store:
        campaign = make(store)
        made = campaign.decide_many(["old", "young"] * 10)
        campaign._session.close()
        assert list(campaign.decisions()) == made
        campaign.verify()
        log_is_whole(campaign)


# --- encodings ----------------------------------------------------------------------------------------------------


def test_text_that_the_encoding_cannot_hold(new_database: MakeDatabase) -> None:
    url = new_database("ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with doral.open(url) as store:
        campaign = make(store, "café")
        campaign.decide("old", key="über")
        for attempt in (
            lambda: campaign.decide("old", key="дом"),
            lambda: campaign.decide_many([{"context": "old"}, {"context": "old", "key": "дом"}]),
            lambda: make(store, "дом"),
        ):
            with pytest.raises(InvalidValue, match="дом.*encoding LATIN1 does not hold it; nothing was changed"):
                attempt()
        assert store.list() == ["café"]
        assert [one.key for one in campaign.decisions()] == ["über"]
        log_is_whole(campaign)


def test_the_text_that_is_not_held_is_named(new_database: MakeDatabase) -> None:
    url = new_database("ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with doral.open(url) as store:
        keys = [{"context": "old", "key": key} for key in ("é", "☃")]
        with pytest.raises(InvalidValue, match="☃"):
            make(store).decide_many(keys)


def test_text_that_the_encoding_would_change(new_database: MakeDatabase) -> None:
    """EUC_JP takes a broken bar for another that looks like it: the log would not be what was written."""
    url = new_database("ENCODING 'EUC_JP' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with doral.open(url) as store:
        campaign = make(store, "家")
        made = campaign.decide("old", key="家")
        many = [{"context": "old", "key": f"a¦{i}"} for i in range(20)]
        for attempt in (
            lambda: campaign.decide("old", key="a¦b"),
            lambda: campaign.decide_many(many),
            lambda: make(store, "a¦b"),
        ):
            with pytest.raises(InvalidValue, match="a¦.*encoding EUC_JP does not hold it; nothing was changed"):
                attempt()
        assert store.list() == ["家"]
        assert campaign.decide("old", key="家") == made
        log_is_whole(campaign)


def test_a_transaction_that_was_undone_is_not_taken_for_stored(postgres_url: str) -> None:
    """The server answers the COMMIT of a transaction in which something failed with ROLLBACK, and no error."""
    with doral.open(postgres_url) as store:
        connection = store._storage._opened()  # type: ignore[attr-defined]
        connection.begin(1)
        with pytest.raises(StorageError):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(StorageError, match="undid the transaction"):
            connection.commit()
        connection.close()


def test_a_database_without_an_encoding_holds_everything(new_database: MakeDatabase) -> None:
    url = new_database("ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with doral.open(url) as store:
        campaign = make(store, "дом")
        made = campaign.decide("old", key="дом")
        assert store.list() == ["дом"]
        assert campaign.decide("old", key="дом") == made
        log_is_whole(campaign)
