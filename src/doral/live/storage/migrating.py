"""The schema of a database: made, brought up to date, or refused."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from doral.live.errors import NewerDatabase, StorageError
from doral.live.storage.dialects import SCHEMA_LOCK, Connection, PostgresConnection, psycopg_url, sqlite_path

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0002"  # the revision of the tables that this version reads and writes; the last in migrations/versions
REVISIONS = ("0001", "0002")
_one_thread = Lock()
_FOLDER = Path(__file__).parent.parent / "migrations"


def revision(connection: Connection) -> str | None:
    """The revision that a database has; None where there is no doral in it yet."""
    if isinstance(connection, PostgresConnection):
        there = connection.execute("SELECT to_regclass('alembic_version')")[0][0] is not None
    else:
        there = bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"))
    rows = connection.execute("SELECT version_num FROM alembic_version") if there else []
    return rows[0][0] if rows else None


def bring_up_to_date(url: str, connection: Connection) -> None:
    """Make or upgrade the tables; a database of a newer version is refused before anything is touched."""
    found = revision(connection)
    if found == HEAD:
        return
    _refuse_newer(found)
    # Others may be doing the same: one at a time, and whoever comes second finds it done. Alembic keeps its context in
    # globals, so threads take turns here; processes on SQLite in `env.py`.
    with _one_thread:
        if isinstance(connection, PostgresConnection):
            connection.begin(SCHEMA_LOCK)
        try:
            if revision(connection) != HEAD:
                upgrade(url)
        finally:
            connection.rollback()


def _refuse_newer(found: str | None) -> None:
    if found is not None and found not in REVISIONS:
        raise NewerDatabase(
            f"the database has schema {found!r}, and this doral knows {REVISIONS[0]} to {HEAD}: "
            "it was written by a newer version; install that one"
        )


def config(url: str) -> Config:
    """Alembic's settings, without a file."""
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    settings.attributes["url"] = url
    return settings


def sqlalchemy_url(url: str) -> str:
    if url.startswith("sqlite:"):
        return f"sqlite:///{sqlite_path(url)}"
    return psycopg_url(url).replace("postgresql://", "postgresql+psycopg://", 1)


def upgrade(url: str, to: str = HEAD) -> None:
    """Run Alembic."""
    from alembic import command
    from sqlalchemy.exc import SQLAlchemyError

    try:
        command.upgrade(config(url), to)
    except SQLAlchemyError as error:
        raise StorageError(f"the tables could not be brought up to date: {error}") from error
