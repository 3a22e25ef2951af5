"""The schema of a database: made, brought up to date, or refused.

Version 0.1 had its tables in `public` of PostgreSQL, and its revision in the `alembic_version` there, which other
programs use, too: they move to the schema `doral`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from doral.live.errors import NewerDatabase, StorageBusy, StorageError
from doral.live.storage import sqlite_file
from doral.live.storage.connection import CAMPAIGN_LOCKS, SCHEMA, Connection, Timeouts
from doral.live.storage.urls import PostgresDatabase, SqliteFile

if TYPE_CHECKING:
    import sqlalchemy
    from alembic.config import Config

HEAD = "0006"  # the revision of the tables that this version reads and writes; the last in migrations/versions
REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006")
COPIED_SINCE = "0005"  # since then, tables of campaigns are the same: a copy can be read as it is
_one_thread = Lock()
_FOLDER = Path(__file__).parent.parent / "migrations"


def revision(place: SqliteFile | PostgresDatabase, connection: Connection) -> str | None:
    """The revision that a database has; None where there is no doral in it yet, or only in its old place."""
    if isinstance(place, SqliteFile):
        return sqlite_file.look_into(place.path, REVISIONS).revision
    from doral.live.storage.schema import refuse_strangers

    refuse_strangers(connection.execute)
    schema = connection.schema
    there = connection.execute(f"SELECT to_regclass('{schema}alembic_version')")[0][0] is not None
    rows = connection.execute(f"SELECT version_num FROM {schema}alembic_version") if there else []
    return rows[0][0] if rows else None


def bring_up_to_date(place: SqliteFile | PostgresDatabase, connection: Connection, timeouts: Timeouts) -> None:
    """Make or upgrade the tables; a database of a newer version is refused before anything is touched."""
    found = revision(place, connection)
    if found == HEAD:
        return
    _refuse_newer(found)
    if connection.is_read_only:
        raise StorageError(
            f"{place.shown}: its tables are of an older version ({found or 'none'}), and it is read-only here: "
            "open it once where it can be written to"
        )
    # Alembic keeps its context in globals, so threads take turns here; processes in `env.py`, by the database's lock.
    with _one_thread:
        upgrade(place, timeouts=timeouts)


def _refuse_newer(found: str | None) -> None:
    if found is not None and found not in REVISIONS:
        raise NewerDatabase(
            f"the database has schema {found!r}, and this doral knows {REVISIONS[0]} to {HEAD}: "
            "it was written by a newer version; install that one"
        )


def config(place: SqliteFile | PostgresDatabase, timeouts: Timeouts) -> Config:
    """Alembic's settings, without a file."""
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    settings.attributes["place"] = place
    settings.attributes["timeouts"] = timeouts
    return settings


def upgrade(place: SqliteFile | PostgresDatabase, to: str = HEAD, timeouts: Timeouts | None = None) -> None:
    """Run Alembic."""
    from alembic import command
    from sqlalchemy.exc import SQLAlchemyError

    timeouts = timeouts or Timeouts()
    try:
        command.upgrade(config(place, timeouts), to)
    except SQLAlchemyError as error:
        said = str(getattr(error, "orig", None) or error).strip()
        if "lock timeout" in said or "database is locked" in said:
            raise StorageBusy(
                f"the tables could not be brought up to date: others have kept the database locked for "
                f"{timeouts.lock_s:g} s; nothing was changed: try again"
            ) from error
        raise StorageError(f"the tables could not be brought up to date: {said}; nothing was changed") from error


_FIRST = ("0001", "0002")  # the revisions of version 0.1
_OLD_PLACE = "public"
_ITS_COLUMNS = {
    "campaigns": {"id", "name", "tag", "created_at"},
    "events": {"campaign_id", "sequence", "kind", "clock", "at", "writer", "key", "decision", "data"},
}


_STRANGERS = f"""
    SELECT made.what, quote_ident(owner.rolname), quote_ident(current_user) FROM (
        SELECT 0 AS place, 'the schema {SCHEMA}' AS what, nspowner AS owner FROM pg_namespace WHERE nspname = '{SCHEMA}'
        UNION ALL
        SELECT 1, '{SCHEMA}.' || quote_ident(relname), relowner FROM pg_class
        WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = '{SCHEMA}')
    ) AS made
    JOIN pg_roles AS owner ON owner.oid = made.owner
    WHERE NOT pg_has_role(current_user, made.owner, 'MEMBER') AND NOT owner.rolsuper
    AND made.owner <> (SELECT datdba FROM pg_database WHERE datname = current_database())
    ORDER BY made.place, made.what LIMIT 1
"""


def refuse_strangers(run: Callable[[str], Iterable[Any]]) -> None:
    """Whoever owns the schema, or a table in it, decides what happens to all that is written there."""
    for what, owner, role in run(_STRANGERS):
        raise StorageError(
            f"PostgreSQL: {what} belongs to the role {owner}, and {role} is not a member of it; nothing was changed: "
            f"if that role may see and change all campaigns, have an administrator run GRANT {owner} TO {role}; "
            f"if not, have the schema {SCHEMA} removed"
        )


def prepare(connection: sqlalchemy.Connection, schema_lock: int) -> None:
    """In the transaction of a migration, and before it: one process at a time, a schema, and old tables in it."""
    run = connection.exec_driver_sql
    run(f"SELECT pg_advisory_xact_lock({CAMPAIGN_LOCKS:d}, {schema_lock:d})")
    if not run(f"SELECT 1 FROM pg_namespace WHERE nspname = '{SCHEMA}'").all():
        if not run("SELECT has_database_privilege(current_database(), 'CREATE')").scalar():
            raise _forbidden(connection, "make the schema")
        run(f"CREATE SCHEMA {SCHEMA}")
    elif run(f"SELECT to_regclass('{SCHEMA}.alembic_version')").scalar() is None and not (
        run(f"SELECT has_schema_privilege('{SCHEMA}', 'CREATE')").scalar()
    ):
        raise _forbidden(connection, "make tables in the schema")
    refuse_strangers(run)
    old = _old_revision(connection)
    if old is not None:
        _move(connection, old)
    run(f"SET LOCAL search_path = {SCHEMA}")  # where migrations make their tables


def _forbidden(connection: sqlalchemy.Connection, what: str) -> StorageError:
    role = connection.exec_driver_sql("SELECT quote_ident(current_user)").scalar()
    return StorageError(
        f"PostgreSQL: the role {role} may not {what} {SCHEMA!r}; nothing was changed: have an administrator run "
        f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} AUTHORIZATION {role}"
    )


def _old_revision(connection: sqlalchemy.Connection) -> str | None:
    """The revision of tables in the old place; None where there are none, or none of ours."""
    run = connection.exec_driver_sql
    if run(f"SELECT to_regclass('{SCHEMA}.alembic_version')").scalar() is not None:
        return None
    found: dict[str, set[str]] = {}
    rows = run(
        "SELECT table_name, column_name FROM information_schema.columns "
        f"WHERE table_schema = '{_OLD_PLACE}' AND table_name IN ('campaigns', 'events', 'alembic_version')"
    )
    for table, column in rows:
        found.setdefault(table, set()).add(column)
    if "version_num" not in found.get("alembic_version", ()):
        return None
    if not all(found.get(table, set()) >= columns for table, columns in _ITS_COLUMNS.items()):
        return None
    revisions = [row[0] for row in run(f"SELECT version_num FROM {_OLD_PLACE}.alembic_version")]
    return next((one for one in revisions if one in _FIRST), None)


def _move(connection: sqlalchemy.Connection, revision: str) -> None:
    run = connection.exec_driver_sql
    tables = ["campaigns", "events"] if revision == _FIRST[0] else ["campaigns", "events", "snapshots"]
    for table in tables:  # with their indexes, and the sequence of identifiers
        run(f"ALTER TABLE {_OLD_PLACE}.{table} SET SCHEMA {SCHEMA}")
    run(
        f"CREATE TABLE {SCHEMA}.alembic_version "
        "(version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    run(f"INSERT INTO {SCHEMA}.alembic_version VALUES ('{revision}')")
    run(f"DELETE FROM {_OLD_PLACE}.alembic_version WHERE version_num = '{revision}'")
    if not run(f"SELECT 1 FROM {_OLD_PLACE}.alembic_version LIMIT 1").all():
        run(f"DROP TABLE {_OLD_PLACE}.alembic_version")
