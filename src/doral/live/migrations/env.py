"""Run by Alembic: connect, and make all changes in one transaction."""

from __future__ import annotations

import sqlalchemy
from alembic import context

from doral.live.storage.dialects import BUSY_TIMEOUT_S
from doral.live.storage.migrating import sqlalchemy_url


def run() -> None:
    url = context.config.attributes["url"]
    is_sqlite = url.startswith("sqlite:")
    arguments = {"timeout": BUSY_TIMEOUT_S, "isolation_level": None} if is_sqlite else {}
    engine = sqlalchemy.create_engine(sqlalchemy_url(url), poolclass=sqlalchemy.pool.NullPool, connect_args=arguments)
    try:
        with engine.connect() as connection:
            if is_sqlite:
                # The driver begins only before a write: but DDL belongs to the transaction, and one process does it.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            context.configure(connection=connection, transactional_ddl=True)
            with context.begin_transaction():
                context.run_migrations()
            if is_sqlite:
                connection.exec_driver_sql("COMMIT")
            else:
                connection.commit()
    finally:
        engine.dispose()


run()
