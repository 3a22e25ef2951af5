"""The schema of a database: made, brought up to date, or refused."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from doral.live.errors import NewerDatabase, StorageBusy, StorageError
from doral.live.storage import sqlite_file
from doral.live.storage.connection import Connection, Timeouts
from doral.live.storage.urls import PostgresDatabase, SqliteFile

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0005"  # the revision of the tables that this version reads and writes; the last in migrations/versions
REVISIONS = ("0001", "0002", "0003", "0004", "0005")
_one_thread = Lock()
_FOLDER = Path(__file__).parent.parent / "migrations"


def revision(place: SqliteFile | PostgresDatabase, connection: Connection) -> str | None:
    """The revision that a database has; None where there is no doral in it yet, or only in its old place."""
    if isinstance(place, SqliteFile):
        return sqlite_file.look_into(place.path, REVISIONS).revision
    from doral.live.storage.postgres_schema import refuse_strangers

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
