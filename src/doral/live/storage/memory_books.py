"""Keys, acts and alarms of a store in memory: the same tables, in a SQLite database that ends with the process."""

from __future__ import annotations

import importlib
import io
from pathlib import Path

from doral.live.storage.sql_books import SqlBooks
from doral.live.storage.sqlite_copy import PlainSqlite

_TABLES = "doral.live.migrations.versions.0005_service"


class _InMemory(PlainSqlite):
    def close(self) -> None:
        """What is in it would be gone."""


def memory_books() -> SqlBooks:
    """Empty."""
    connection = _InMemory(Path(":memory:"), "file::memory:")
    connection.run_script(_tables())
    return SqlBooks(lambda: connection, has_one_connection=True)


def _tables() -> str:
    """The statements of the migration that makes them."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    written = io.StringIO()
    context = MigrationContext.configure(dialect_name="sqlite", opts={"as_sql": True, "output_buffer": written})
    with Operations.context(context):
        importlib.import_module(_TABLES).upgrade()
    return written.getvalue()
