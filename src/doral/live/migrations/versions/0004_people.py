"""Decisions for people who have features: what was said of them, and what was worked out, can be erased."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema = op.get_context().version_table_schema
    for name, kind in (
        ("weight", sa.Double),
        ("deadline", sa.Double),
        ("person_hash", sa.LargeBinary),
        ("person", sa.Text),
    ):
        op.add_column("events", sa.Column(name, kind), schema=schema)
