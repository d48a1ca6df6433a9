"""Room for a table that runs for months, and for a round's net at the highest stakes: 64 bits (PostgreSQL)."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """SQLite's integers have that room already."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.alter_column("events", "ticks", type_=sa.BigInteger)
    op.alter_column("rounds", "net", type_=sa.BigInteger)
