"""The first schema that was ever released, as SQL that never changes: databases of that time look exactly like this."""

from __future__ import annotations

from doral.live.events.row import COLUMNS as ALL_COLUMNS
from doral.live.storage.sql import _connect, _read_url

COLUMNS = ALL_COLUMNS[: ALL_COLUMNS.index("data") + 1]  # that there were

SQLITE = """
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES ('0001');
CREATE TABLE campaigns (
    id INTEGER NOT NULL, name TEXT NOT NULL, tag TEXT NOT NULL, created_at DOUBLE NOT NULL,
    PRIMARY KEY (id), UNIQUE (name), UNIQUE (tag)
);
CREATE TABLE events (
    campaign_id INTEGER NOT NULL, sequence BIGINT NOT NULL, kind SMALLINT NOT NULL, clock DOUBLE NOT NULL,
    at DOUBLE NOT NULL, writer BIGINT NOT NULL, key TEXT, decision BIGINT, number BIGINT, context INTEGER, arm INTEGER,
    cost DOUBLE, round BIGINT, reason SMALLINT, value DOUBLE, price DOUBLE, probability DOUBLE, available BLOB,
    reward DOUBLE, previous DOUBLE, actual_cost DOUBLE, previous_cost DOUBLE, was SMALLINT, state SMALLINT,
    outcome SMALLINT, data TEXT,
    PRIMARY KEY (campaign_id, sequence)
) WITHOUT ROWID;
CREATE UNIQUE INDEX events_by_key ON events (campaign_id, key) WHERE key IS NOT NULL;
CREATE INDEX events_by_decision ON events (campaign_id, decision) WHERE decision IS NOT NULL;
"""
POSTGRES = (
    SQLITE.replace("DOUBLE", "DOUBLE PRECISION")
    .replace("BLOB", "BYTEA")
    .replace(") WITHOUT ROWID", ")")
    .replace("id INTEGER NOT NULL, name", "id SERIAL NOT NULL, name")
)


def downgrade_to_first(url: str) -> None:
    """Put a database's campaigns into tables as they first were."""
    connection = _connect(_read_url(url))
    schema = connection.schema
    is_sqlite = url.startswith("sqlite")
    mark = connection.placeholder
    campaigns = connection.execute(f"SELECT id, name, tag, created_at FROM {schema}campaigns")
    columns = ", ".join(("campaign_id", *COLUMNS))
    events = connection.execute(f"SELECT {columns} FROM {schema}events")
    for table in (
        "service_alarm_subjects",
        "service_alarms",
        "service_acts",
        "service_keys",
        "archived_keys",
        "archives",
        "snapshots",
        "events",
        "campaigns",
        "alembic_version",
    ):
        connection.execute(f"DROP TABLE {schema}{table}")
    if not is_sqlite:
        connection.execute("DROP SCHEMA doral")
        connection.execute("SET search_path = public")  # where the tables of version 0.1 are
    for statement in (SQLITE if is_sqlite else POSTGRES).split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute_many(f"INSERT INTO campaigns VALUES ({', '.join([mark] * 4)})", campaigns)
    connection.execute_many(f"INSERT INTO events ({columns}) VALUES ({', '.join([mark] * (len(COLUMNS) + 1))})", events)
    if not is_sqlite:
        connection.execute("SELECT setval('campaigns_id_seq', (SELECT max(id) FROM campaigns))")
    connection.close()
