"""What a service remembers of each thing that it watches, and whether an alarm was acknowledged."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema = op.get_context().version_table_schema
    op.create_table(
        "service_alarm_subjects",
        sa.Column("campaign_tag", sa.Text, primary_key=True),
        sa.Column("rule", sa.Text, primary_key=True),
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column("tests_used", sa.Integer, nullable=False),
        sa.Column("muted_until", sa.Double),
        schema=schema,
    )
    op.add_column("service_alarms", sa.Column("acknowledged_at", sa.Double), schema=schema)
    op.add_column("service_alarms", sa.Column("acknowledged_by", sa.Text), schema=schema)
