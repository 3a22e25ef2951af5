"""Campaigns and their events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "campaigns",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("tag", sa.Text, nullable=False, unique=True),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("campaign_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("clock", sa.Double, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("writer", sa.BigInteger, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("decision", sa.BigInteger),
        sa.Column("number", sa.BigInteger),
        sa.Column("context", sa.Integer),
        sa.Column("arm", sa.Integer),
        sa.Column("cost", sa.Double),
        sa.Column("round", sa.BigInteger),
        sa.Column("reason", sa.SmallInteger),
        sa.Column("value", sa.Double),
        sa.Column("price", sa.Double),
        sa.Column("probability", sa.Double),
        sa.Column("available", sa.LargeBinary),
        sa.Column("reward", sa.Double),
        sa.Column("previous", sa.Double),
        sa.Column("actual_cost", sa.Double),
        sa.Column("previous_cost", sa.Double),
        sa.Column("was", sa.SmallInteger),
        sa.Column("state", sa.SmallInteger),
        sa.Column("outcome", sa.SmallInteger),
        sa.Column("data", sa.Text),
        sqlite_with_rowid=False,
    )
    for name, column, unique in (("events_by_key", "key", True), ("events_by_decision", "decision", False)):
        only = sa.text(f"{column} IS NOT NULL")
        columns = ["campaign_id", column]
        op.create_index(name, "events", columns, unique=unique, sqlite_where=only, postgresql_where=only)
