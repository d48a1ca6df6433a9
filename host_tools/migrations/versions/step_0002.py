"""Dice sets, a note of what is removed, and indexes for a million rounds."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_INDEXES = (
    ("ix_events_kind", "events", ["kind", "uid", "id"]),
    ("ix_events_round", "events", ["uid", "round", "id"]),
    ("ix_rounds_utc", "rounds", ["utc", "number"]),
    ("ix_rounds_table", "rounds", ["uid", "utc", "number"]),
    ("ix_rounds_status", "rounds", ["status", "utc", "number"]),
    ("ix_rounds_dice_set", "rounds", ["uid", "dice_set", "utc", "number"]),
)


def upgrade() -> None:
    """Add them; rounds that are there get the number of the dice set that they were rolled with."""
    op.create_table(
        "dice_sets",
        sa.Column("uid", sa.String(32), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("event", sa.Integer, nullable=False),
        sa.Column("utc", sa.String(32), nullable=False),
        sa.Column("serial", sa.String(40)),
        sa.Column("issued", sa.String(32)),
        sa.Column("tags", sa.String(64)),
    )
    op.create_table(
        "prunings",
        sa.Column("uid", sa.String(32), primary_key=True),
        sa.Column("last", sa.Integer, primary_key=True),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("rounds", sa.Integer, nullable=False),
        sa.Column("older_than", sa.String(32), nullable=False),
        sa.Column("utc", sa.String(32), nullable=False),
        sa.Column("by", sa.String(80), nullable=False),
        sa.Column("link", sa.String(32), nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.add_column("rounds", sa.Column("dice_set", sa.Integer, nullable=False, server_default="1"))
    op.drop_index("ix_events_kind", "events")
    op.drop_index("ix_events_round", "events")
    for name, table, columns in _INDEXES:
        op.create_index(name, table, columns)
    _number_dice_sets(op.get_bind())


def _number_dice_sets(connection: sa.Connection) -> None:
    changes = connection.execute(
        sa.text("SELECT uid, id, utc, body FROM events WHERE kind = 'streak' ORDER BY uid, id")
    ).all()
    number: dict[str, int] = {}
    for uid, event, utc, body in changes:
        try:
            why = str(json.loads(body)["d"]["why"])
        except (ValueError, KeyError, TypeError):
            # Damaged; an audit names it.
            continue
        if not why.startswith("dice changed"):
            continue
        # What is settled after the change was rolled with the new set, however early its round was opened.
        later = (
            "uid = :uid AND number IN"
            " (SELECT round FROM events WHERE uid = :uid AND id > :event AND kind IN ('opened', 'settled'))"
        )
        rolled = sa.text(
            f"SELECT 1 FROM rounds WHERE uid = :uid AND dice_set = :set AND dice IS NOT NULL AND NOT ({later})"
        )
        place = {"uid": uid, "event": event, "set": number.get(uid, 1)}
        if connection.execute(rolled, place).first() is None:
            continue
        number[uid] = place["set"] + 1
        connection.execute(
            sa.text("INSERT INTO dice_sets (uid, number, event, utc) VALUES (:uid, :set, :event, :utc)"),
            dict(place, set=number[uid], utc=utc),
        )
        connection.execute(sa.text(f"UPDATE rounds SET dice_set = :set WHERE {later}"), dict(place, set=number[uid]))
