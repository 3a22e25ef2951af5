"""What a service keeps beside campaigns: keys, administrative acts, alarms."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema = op.get_context().version_table_schema
    op.create_table(
        "service_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("roles", sa.Text, nullable=False),
        sa.Column("campaigns", sa.Text),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
        sa.Column("parent", sa.Text),
        schema=schema,
    )
    op.create_table(
        "service_acts",
        # (SQLite numbers rows by itself only where the type is this one.)
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("key_name", sa.Text, nullable=False),
        sa.Column("act", sa.Text, nullable=False),
        sa.Column("campaign", sa.Text),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        schema=schema,
    )
    op.create_table(
        "service_alarms",
        sa.Column("campaign", sa.Text, primary_key=True),
        sa.Column("rule", sa.Text, primary_key=True),
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column("since", sa.Double, primary_key=True, autoincrement=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("cleared_at", sa.Double),
        sa.Column("told", sa.SmallInteger, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("next_try_at", sa.Double, nullable=False),
        schema=schema,
    )
