"""Events are facts: who wrote them, when they happened, and a checksum chain over all of them. Old ones go to files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from doral.live.events.row import COLUMNS, Row, beginning, hash_key, link

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_PAGE = 5_000
_COLUMNS = COLUMNS[: COLUMNS.index("chain") + 1]  # as they were then


def upgrade() -> None:
    schema = op.get_context().version_table_schema
    op.add_column("campaigns", sa.Column("last_sequence", sa.BigInteger), schema=schema)
    op.add_column("campaigns", sa.Column("head", sa.LargeBinary), schema=schema)
    for name, kind in (
        ("engine", sa.BigInteger),
        ("happened", sa.Double),
        ("delay", sa.Double),
        ("key_hash", sa.LargeBinary),
        ("chain", sa.LargeBinary),
    ):
        op.add_column("events", sa.Column(name, kind), schema=schema)
    connection = op.get_bind()
    campaigns = sa.table("campaigns", *map(sa.column, ("id", "tag", "last_sequence", "head")), schema=schema)
    for campaign_id, tag in connection.execute(sa.select(campaigns.c.id, campaigns.c.tag)).fetchall():
        last, head = _seal(connection, schema, campaign_id, tag)
        noted = campaigns.update().where(campaigns.c.id == campaign_id).values(last_sequence=last, head=head)
        connection.execute(noted)
    _refuse_unsealed(schema)
    op.drop_index("events_by_key", "events", schema=schema)
    only = sa.text("key_hash IS NOT NULL")
    op.create_index(
        "events_by_key_hash",
        "events",
        ["campaign_id", "key_hash"],
        unique=True,
        schema=schema,
        sqlite_where=only,
        postgresql_where=only,
    )
    _create_archives(schema)
    # Made by other code, and quick to make again.
    connection.execute(sa.table("snapshots", schema=schema).delete())


def _refuse_unsealed(schema: str | None) -> None:
    """A process of version 0.1 that still has the database open knows of no chain: its events would end the log."""
    if op.get_bind().dialect.name == "sqlite":  # which cannot change a column
        op.execute(
            "CREATE TRIGGER events_are_sealed BEFORE INSERT ON events WHEN NEW.chain IS NULL "
            "BEGIN SELECT RAISE(ABORT, 'this database was upgraded: install the newer doral'); END"
        )
    else:
        op.alter_column("events", "chain", nullable=False, schema=schema)


def _create_archives(schema: str | None) -> None:
    op.add_column("campaigns", sa.Column("archived", sa.BigInteger), schema=schema)
    op.create_table(
        "archives",
        sa.Column("campaign_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("first", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("chain_before", sa.LargeBinary, nullable=False),
        sa.Column("chain_after", sa.LargeBinary, nullable=False),
        sa.Column("keys", sa.BigInteger, nullable=False),
        schema=schema,
    )
    op.create_table(
        "archived_keys",
        sa.Column("campaign_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key_hash", sa.LargeBinary, primary_key=True),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        schema=schema,
        sqlite_with_rowid=False,
    )


def _seal(connection: sa.Connection, schema: str | None, campaign_id: int, tag: str) -> tuple[int, bytes]:
    """Give the events of a campaign their place in the chain; its last event, and the checksum of that."""
    events = sa.table("events", *map(sa.column, ("campaign_id", *_COLUMNS)), schema=schema)
    of_campaign = events.c.campaign_id == campaign_id
    change = (
        events.update()
        .where(of_campaign, events.c.sequence == sa.bindparam("_sequence"))
        .values(key_hash=sa.bindparam("_key_hash"), chain=sa.bindparam("_chain"))
    )
    last, head, salt = 0, beginning(tag), b""
    while True:
        columns = [events.c[name] for name in _COLUMNS]
        page = sa.select(*columns).where(of_campaign, events.c.sequence > last).order_by(events.c.sequence).limit(_PAGE)
        rows = connection.execute(page).fetchall()
        if not rows:
            return last, head
        changes = []
        for row in rows:
            event = Row(*row)
            if event.key is not None:
                event = event._replace(key_hash=hash_key(salt, event.key))
            head = link(head, event)
            salt = salt or head
            changes.append({"_sequence": event.sequence, "_key_hash": event.key_hash, "_chain": head})
        connection.execute(change, changes)
        last = rows[-1].sequence
