"""Tags of the events, the newest event of each table as it was acknowledged, and what corrections make of a round."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add them; of what is there the newest event of each table is taken for acknowledged, without a tag."""
    op.add_column("events", sa.Column("tag", sa.String(16)))
    op.add_column("events", sa.Column("key_id", sa.String(8)))
    op.add_column("rounds", sa.Column("corrected", sa.Text))
    op.create_table(
        "heads",
        sa.Column("uid", sa.String(32), primary_key=True),
        sa.Column("event", sa.Integer, nullable=False),
        sa.Column("link", sa.String(32), nullable=False),
        sa.Column("tag", sa.String(16)),
        sa.Column("utc", sa.String(32), nullable=False),
    )
    op.execute(
        "INSERT INTO heads (uid, event, link, utc) SELECT uid, id, link, utc FROM events"
        " WHERE (uid, id) IN (SELECT uid, max(id) FROM events GROUP BY uid)"
    )
