"""`tablectl rounds` and `show`: what the record holds."""

from __future__ import annotations

from pathlib import Path

import click

from dragoneye.protocol import SEQ_MAX
from host_tools.cli import call
from host_tools.cli.common import db_option, open_store, void_reasons
from host_tools.cli.output import console, json_option, print_json, table
from host_tools.i18n import _

_table_option = click.option("--table", "uid", help="The table's unique id, when the record has several.")


@click.command()
@click.option("--last", default=20, show_default=True, type=click.IntRange(1, 1_000_000), help="How many, the newest.")
@_table_option
@db_option
@json_option
def rounds(last: int, uid: str | None, db: Path | None, as_json: bool) -> None:
    """The newest rounds in the record."""
    store = open_store(db, must_exist=True)
    found = store.rounds(uid, last)
    if as_json:
        for stored in found:
            print_json(call.as_json(stored, void_reasons(store, stored["table"], stored["round"])))
        return
    rows = table(_("round"), _("UTC"), _("table"), _("dice"), _("total"), _("shaker"), _("voids"), _("table's net"))
    for stored in found:
        result = stored.get("result")
        rows.add_row(
            str(stored["round"]),
            stored["utc"][:19].replace("T", " "),
            stored["table"],
            call.dice_text(result["dice"], result["eye"]) if result else stored["status"],
            str(result["total"]) if result else "",
            call.who(stored["shaker"]),
            str(stored["voids"] or ""),
            call.signed(call.house_net(result, stored.get("tiles"))) if result else "",
        )
    console().print(rows)


@click.command()
@click.argument("number", type=click.IntRange(1, SEQ_MAX))
@_table_option
@click.option("--events", is_flag=True, help="Print the records that the table sent for it instead, one JSON a line.")
@db_option
@json_option
def show(number: int, uid: str | None, events: bool, db: Path | None, as_json: bool) -> None:
    """Round NUMBER as the dealer called it."""
    store = open_store(db, must_exist=True)
    stored = store.round(number, uid)
    if events:
        for record in store.events(stored["table"], number):
            print_json(record)
        return
    voids = void_reasons(store, stored["table"], number)
    if as_json:
        print_json(call.as_json(stored, voids))
    else:
        call.print_round(console(), stored, voids)
