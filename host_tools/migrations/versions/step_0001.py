"""The tables as they were before there were steps: events, and the rounds that follow from them."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "events",
        sa.Column("uid", sa.String(32), primary_key=True),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("boot", sa.Integer, nullable=False),
        sa.Column("ticks", sa.Integer, nullable=False),
        sa.Column("round", sa.Integer),
        sa.Column("utc", sa.String(32), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("link", sa.String(32), nullable=False),
    )
    op.create_index("ix_events_kind", "events", ["kind"])
    op.create_index("ix_events_round", "events", ["round"])
    op.create_table(
        "rounds",
        sa.Column("uid", sa.String(32), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("event", sa.Integer, nullable=False),
        sa.Column("utc", sa.String(32), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("shaker", sa.Integer, nullable=False),
        sa.Column("voids", sa.Integer, nullable=False),
        sa.Column("dice", sa.String(8)),
        sa.Column("eye", sa.Integer),
        sa.Column("total", sa.Integer),
        sa.Column("net", sa.Integer),
        sa.Column("manual", sa.String(80)),
        sa.Column("result", sa.Text),
        sa.Column("tiles", sa.Text),
        sa.ForeignKeyConstraint(["uid", "event"], ["events.uid", "events.id"]),
    )
