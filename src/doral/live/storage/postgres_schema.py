"""The schema `doral` of a PostgreSQL database: made for a new store, and where tables of version 0.1 move to.

Version 0.1 had its tables in `public`, and its revision in the `alembic_version` there, which other programs use, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from doral.live.errors import StorageError
from doral.live.storage.postgres import CAMPAIGN_LOCKS, SCHEMA

if TYPE_CHECKING:
    from sqlalchemy import Connection

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


def prepare(connection: Connection, schema_lock: int) -> None:
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


def _forbidden(connection: Connection, what: str) -> StorageError:
    role = connection.exec_driver_sql("SELECT quote_ident(current_user)").scalar()
    return StorageError(
        f"PostgreSQL: the role {role} may not {what} {SCHEMA!r}; nothing was changed: have an administrator run "
        f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} AUTHORIZATION {role}"
    )


def _old_revision(connection: Connection) -> str | None:
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


def _move(connection: Connection, revision: str) -> None:
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
