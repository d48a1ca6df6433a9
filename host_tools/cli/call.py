"""How a round is told: what a dealer would call, on a terminal or in a pipe, and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from host_tools import corrections, tile_round
from host_tools.cli.numbers import money, number
from host_tools.codes import VOIDS
from host_tools.i18n import _, controller
from host_tools.rules.seating import who, whose

Message = dict[str, Any]


def _seat(deal_position: int) -> str:
    """Whose tiles a deal position's are: a player position's number, or the bank (see docs/rules.md)."""
    return str(deal_position - 1) if deal_position > 1 else _("bank")


def signed(cents: int) -> str:
    """Money with its sign: what somebody is up or down."""
    return ("+" if cents > 0 else "") + money(cents)


def dice_text(dice: list[int], eye: int) -> Text:
    """The three dice in their order; the dragon's eye die stands in double angle brackets, not by colour alone."""
    text = Text()
    for index, die in enumerate(dice):
        text.append(" " if index else "")
        text.append(f"«{die}»" if index == eye else f" {die} ", style="bold red" if index == eye else "bold")
    return text


def house_net(result: Message, tiles: Message | None) -> int:
    """What the table is up or down in a round: dice wagers and tile bets, in cents."""
    players = tiles["players"] if tiles else []
    return -int(result["net"]) - sum(int(player["net"]) for player in players)


def as_json(stored: Message, voids: list[str]) -> Message:
    """A stored round as one JSON object (see docs/using.md)."""
    result, tiles = stored.get("result"), stored.get("tiles")
    data: Message = {key: stored[key] for key in ("round", "table", "utc", "status", "shaker")}
    data["voids"] = voids
    if result:
        data.update({key: result[key] for key in ("dice", "eye", "total", "manual", "level", "streak")})
        data["wagers"] = _wagers_as_json(result["rows"])
        if tiles:
            data.update({key: tiles[key] for key in ("start", "deal", "action")})
            data["tiles"] = {
                "total": corrections.dealt_by(stored),
                "bank": tiles["bank"],
                "players": tiles["players"],
            }
        data["net"] = house_net(corrections.standing(stored) or result, tiles)
        if stored.get("rests_on"):
            data["rests_on"] = stored["rests_on"]
        if stored.get("corrected"):
            data["corrected"] = _corrected_as_json(stored["corrected"])
    return data


def _wagers_as_json(rows: list[list[Any]]) -> list[Message]:
    return [
        {"position": position, "wager": wager, "stake": stake, "odds": odds, "profit": stake * odds if odds else -stake}
        for position, wager, stake, odds in rows
    ]


def _corrected_as_json(corrected: Message) -> Message:
    """What counts in the place of what was recorded; `by` lists the corrections, the last one last."""
    data: Message = {"void": corrected["void"], "corrections": corrected["told"]}
    result = corrected["result"]
    if result is not None:
        data.update({key: result[key] for key in ("dice", "eye", "total")})
        data["wagers"] = _wagers_as_json(result["rows"])
    return data


def print_round(console: Console, stored: Message, voids: list[str]) -> None:
    """Tell a stored round (host_tools.store) line by line."""
    result, tiles = stored.get("result"), stored.get("tiles")
    console.print(
        Text.assemble(
            (_("Round {number}").format(number=stored["round"]), "bold"),
            _(" · {who} shakes").format(who=who(stored["shaker"])),
        )
    )
    for reason in voids:
        _line(console, _("void"), f"{reason}: {controller(VOIDS.get(reason, reason))}")
    if not result:
        _line(console, _("result"), _("none: the round is void") if stored["status"] == "void" else _("none yet"))
        return
    text = dice_text(result["dice"], result["eye"])
    text.append(
        _("   total {total}   (the dragon's eye die shows {eye})").format(
            total=result["total"], eye=result["dice"][result["eye"]]
        )
    )
    _line(console, _("dice"), text)
    if result["manual"] is not None:
        _line(console, _("manual"), _("entered by hand: {reason}").format(reason=result["manual"]))
    if result["level"]:
        _line(console, _("triple"), _("bonus level {level}").format(level=result["level"]))
    if stored.get("rests_on"):
        words = _(
            "it counts triples before it that were corrected away (round {rounds}); the streak stays as it was played"
        )
        _line(console, _("streak"), words.format(rounds=", ".join(map(str, stored["rests_on"]))))
    if tiles:
        _line(
            console,
            _("deal"),
            _("{first} first (deal position {start}), by player position: {deal}; action: {action}").format(
                first=whose(tiles["start"]),
                start=tiles["start"],
                deal=" ".join(map(_seat, tiles["deal"])),
                action=" ".join(map(_seat, tiles["action"])),
            ),
        )
        if before := tile_round.dealt_before(stored):
            _line(console, "", before)
    _print_wagers(console, result)
    if stored.get("corrected"):
        _print_corrected(console, stored["corrected"])
    if tiles:
        _print_tiles(console, tiles)
    net = signed(house_net(corrections.standing(stored) or result, tiles))
    _line(console, _("net"), Text(_("table {net}").format(net=net), style="bold"))


def correction_text(told: Message) -> str:
    """One correction in a line."""
    if told["what"] == "void":
        words = _("the round should have been void")
    elif told["what"] == "dice":
        words = _("the dice were {dice}").format(dice=" ".join(map(str, told["dice"])))
    else:
        wagers = ", ".join(f"{_(wager)} {money(stake)}" for wager, stake in told["wagers"].items())
        words = _("{who} had {wagers}").format(who=who(told["position"]), wagers=wagers or _("no wagers"))
    by = _(told["by"]) if "by" in told else _("nobody's signature: no keys")
    return _("event {event} ({by}): {words}; {why}").format(event=told["event"], by=by, words=words, why=told["why"])


def _print_corrected(console: Console, corrected: Message) -> None:
    for told in corrected["told"]:
        _line(console, _("correct"), correction_text(told))
    result = corrected["result"]
    if corrected["void"]:
        _line(console, _("counts"), _("nothing: all dice wagers go back"))
    elif result is None:
        _line(console, _("counts"), _("not settled anew: its rule pack was not known here"))
    else:
        _line(console, _("counts"), dice_text(result["dice"], result["eye"]))
        _print_wagers(console, result)


def _print_wagers(console: Console, result: Message) -> None:
    by_position: dict[int, list[list[Any]]] = {}
    for row in result["rows"]:
        by_position.setdefault(row[0], []).append(row)
    if not by_position:
        _line(console, _("wagers"), _("no dice wagers"))
    label = _("wagers")
    for position, rows in by_position.items():
        told = []
        net = 0
        for _position, wager, stake, odds in rows:
            net += stake * odds if odds else -stake
            told.append(
                _("{wager} {stake} pays {odds} to 1").format(wager=_(wager), stake=money(stake), odds=number(odds))
                if odds
                else _("{wager} {stake} loses").format(wager=_(wager), stake=money(stake))
            )
        _line(console, label, f"{who(position)}: {', '.join(told)}  {signed(net)}")
        label = ""


def _print_tiles(console: Console, tiles: Message) -> None:
    words = {"win": _("wins"), "lose": _("loses"), "push": _("pushes")}
    bank = tiles["bank"]
    _line(console, _("tiles"), _("bank: {hands}").format(hands=_hands(bank)))
    for player in tiles["players"]:
        commission = (
            _(" (commission {commission})").format(commission=money(player["commission"]))
            if player["commission"]
            else ""
        )
        _line(
            console,
            "",
            f"{who(player['position'])}: {_hands(player)}  {money(player['stake'])} {words[player['result']]}"
            f"  {signed(player['net'])}{commission}",
        )


def _hands(hands: Message) -> str:
    return _("high {high}, low {low}").format(high="/".join(hands["high"]), low="/".join(hands["low"]))


def _line(console: Console, label: str, text: str | Text) -> None:
    console.print(Text.assemble((f"  {label:<7} ", "dim"), text))
