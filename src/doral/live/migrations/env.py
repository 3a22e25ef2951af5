"""Run by Alembic: connect, and make all changes in one transaction."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy
from alembic import context

from doral.live.storage.connection import SCHEMA, SCHEMA_LOCK, Timeouts
from doral.live.storage.urls import PostgresDatabase, SqliteFile


def run() -> None:
    place, timeouts = context.config.attributes["place"], context.config.attributes["timeouts"]
    if isinstance(place, SqliteFile):
        on_sqlite(place.path, timeouts)
    else:
        on_postgres(place, timeouts)


def engine_of(kind: str, connect: Any) -> sqlalchemy.Engine:
    """SQLAlchemy is given connections and no address: it has nothing to show in a message."""
    return sqlalchemy.create_engine(f"{kind}://", poolclass=sqlalchemy.pool.NullPool, creator=connect)


def on_sqlite(path: Path, timeouts: Timeouts) -> None:
    from doral.live.storage.sqlite_file import uri

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri(path, "rw"), uri=True, timeout=timeouts.lock_s, isolation_level=None)

    engine = engine_of("sqlite", connect)
    try:
        with engine.connect() as connection:
            # The driver begins only before a write: but DDL belongs to the transaction, and one process does it.
            connection.exec_driver_sql("PRAGMA synchronous = FULL")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            context.configure(connection=connection, transactional_ddl=True)
            with context.begin_transaction():
                context.run_migrations()
            connection.exec_driver_sql("COMMIT")
    finally:
        engine.dispose()


def on_postgres(database: PostgresDatabase, timeouts: Timeouts) -> None:
    from doral.live.storage import postgres
    from doral.live.storage.schema import prepare

    def connect() -> Any:
        made = postgres.connect(database, timeouts, is_patient=True)
        made.autocommit = False
        return made

    engine = engine_of("postgresql+psycopg", connect)
    try:
        with engine.connect() as connection:
            prepare(connection, SCHEMA_LOCK)
            context.configure(connection=connection, transactional_ddl=True, version_table_schema=SCHEMA)
            with context.begin_transaction():
                context.run_migrations()
            connection.commit()
    finally:
        engine.dispose()


run()
