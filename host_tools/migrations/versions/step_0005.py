"""The first event of each table that was stored: where its record must not begin after, but for prunings."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add them; of what is there the oldest event, or what was removed before it, is taken for the first."""
    op.create_table(
        "firsts",
        sa.Column("uid", sa.String(32), primary_key=True),
        sa.Column("event", sa.Integer, nullable=False),
        sa.Column("utc", sa.String(32), nullable=False),
    )
    op.execute(
        "INSERT INTO firsts (uid, event, utc)"
        " SELECT uid, min(first), min(utc) FROM (SELECT uid, min(id) AS first, min(utc) AS utc FROM events GROUP BY uid"
        " UNION ALL SELECT uid, min(first), min(utc) FROM prunings GROUP BY uid) AS told GROUP BY uid"
    )
