"""`tablectl tiles`: rank, compare, set and settle pai gow tile hands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from typing import Any, BinaryIO, TypeVar

import click

from dragoneye.errors import BadInput
from host_tools.cli.answer import CaseCommand, answer
from host_tools.cli.numbers import money, percent
from host_tools.cli.output import batch_option, console, json_option, parse_json, print_json, table
from host_tools.cli.packs import Options, pack_with, rules_options
from host_tools.i18n import _
from host_tools.rules import clauses, houseway, tile_table, tiles_text
from host_tools.rules import tiles as rules
from host_tools.rules.check import fields, filled, shown
from host_tools.rules.tile_names import faces as faces_of
from host_tools.rules.tile_names import tile_name

Function = TypeVar("Function", bound=Callable[..., Any])
SIDES = ("high", "low")


def house_way_option(flag: str = "--house-way", default: str = "max_low") -> Callable[[Function], Function]:
    """Add `--house-way`: a name or the path of an operator's own file."""
    return click.option(
        flag, default=default, show_default=True, help="House way: a name of `tiles ways`, or your own .json file."
    )


@click.group()
def tiles() -> None:
    """Pai gow tiles: rank, compare, set and settle hands.

    Tiles are written 6-6, 66, 1-3 or 3-1, or by name (teen, goose, doce).
    """


def _strength(name: str, strength: int, zero_rule: str) -> str:
    return _("{name}: strength {strength} of {strongest}").format(
        name=name, strength=strength, strongest=rules.strongest(zero_rule)
    )


def _read_as(hands: list[tuple[Any, rules.Pair]]) -> list[list[str]]:
    """The faces that stand for the hands' texts, where a text is a name that several faces share; else nothing."""
    shared = any(len(faces_of(text)) > 1 for texts, _pair in hands for text in texts)
    return [[tile.face for tile in pair] for _texts, pair in hands] if shared else []


def _print_reading(result: dict[str, Any]) -> None:
    if "read_as" in result:
        console().print(
            _("read as {tiles}; every reading of the names has the same rank").format(
                tiles=" / ".join(" + ".join(pair) for pair in result["read_as"])
            )
        )


def _names(faces: list[str]) -> str:
    return " + ".join(tile_name(face) for face in faces)


@tiles.command("rank")
@click.argument("hand", nargs=-1, metavar="TILE TILE")
@rules_options()
@batch_option
@json_option
def rank_hand(hand: tuple[str, ...], pack: str, options: Options, batch: BinaryIO | None, as_json: bool) -> None:
    """What two tiles are; a batch line is ["6-6","4-5"]. A greater strength is the better hand, an equal one a copy."""
    zero_rule = pack_with(pack, options)["zero_rule"]

    def handle(case: Any) -> dict[str, Any]:
        (pair,) = rules.parse_pairs([(case, _("hand"))], zero_rule)
        found = rules.rank(*pair, zero_rule)
        read_as = _read_as([(case, pair)])
        return {
            "strength": found.strength,
            "kind": found.kind,
            "pair_rank": found.pair_rank,
            "value": found.value,
            "name": found.name,
            **({"read_as": read_as} if read_as else {}),
        }

    def show(result: dict[str, Any]) -> None:
        _print_reading(result)
        console().print(_strength(result["name"], result["strength"], zero_rule))

    answer(hand, batch, handle, show, as_json)


@tiles.command()
@click.argument("hands", nargs=-1, metavar="TILE TILE TILE TILE")
@rules_options()
@batch_option
@json_option
def compare(hands: tuple[str, ...], pack: str, options: Options, batch: BinaryIO | None, as_json: bool) -> None:
    """Which hand is better, the first two tiles or the last two; a batch line is {"first":[..],"second":[..]}."""
    zero_rule, text = pack_with(pack, options)["zero_rule"], clauses.of_pack(pack)

    def handle(case: Any) -> dict[str, Any]:
        if case is hands:
            if len(hands) != 4:
                raise BadInput(
                    _("there are {count} tiles; needed: 4, two of the first hand and two of the second").format(
                        count=len(hands)
                    )
                )
            case = {"first": list(hands[:2]), "second": list(hands[2:])}
        parts = fields(case, ("first", "second"))
        first, second = rules.parse_pairs([(parts[which], which) for which in ("first", "second")], zero_rule)
        read_as = _read_as([(parts["first"], first), (parts["second"], second)])
        return {
            "result": rules.compare(first, second, zero_rule),
            "first": rules.rank(*first, zero_rule).name,
            "second": rules.rank(*second, zero_rule).name,
            "clause": rules.deciding_clause(first, second, zero_rule, text),
            **({"read_as": read_as} if read_as else {}),
        }

    def show(result: dict[str, Any]) -> None:
        _print_reading(result)
        words = {"first": _("the first hand is higher"), "second": _("the second hand is higher"), "copy": _("a copy")}
        clause = f"zero_rule {zero_rule}" if result["clause"] == "zero_rule" else result["clause"]
        console().print(f"{result['first']} / {result['second']}: {words[result['result']]}, {clause}")

    answer(hands, batch, handle, show, as_json)


@tiles.command("set")
@click.argument("four", nargs=-1, metavar="TILE TILE TILE TILE")
@house_way_option()
@rules_options()
@batch_option
@json_option
def set_hand(
    four: tuple[str, ...], house_way: str, pack: str, options: Options, batch: BinaryIO | None, as_json: bool
) -> None:
    """Set four tiles by a house way; a batch line is ["6-6","4-5","1-2","3-3"]."""
    way = houseway.load(house_way)
    zero_rule = pack_with(pack, options)["zero_rule"]

    def handle(case: Any) -> dict[str, Any]:
        hands = way.set(rules.parse_tiles(case, 4, _("hand")), zero_rule)
        return {**hands.as_dict(), "rule": hands.rule, "house_way": way.name, "version": way.version}

    def show(result: dict[str, Any]) -> None:
        for which, label in (("high", _("high hand")), ("low", _("low hand"))):
            found = rules.rank(*rules.parse_pair(result[which]), zero_rule)
            console().print(f"{label}: {_names(result[which])}: {found.name}")
        console().print(_("by rule {rule} of {house_way}, version {version}").format(**result))

    answer(four, batch, handle, show, as_json)


@tiles.command(cls=CaseCommand)
@click.option("--player", nargs=4, metavar="HIGH HIGH LOW LOW", help="The player's tiles, high hand first.")
@click.option("--bank", nargs=4, metavar="HIGH HIGH LOW LOW", help="The bank's tiles, high hand first.")
@click.option("--stake", type=int, help="The player's stake in cents.")
@rules_options()
@batch_option
@json_option
def settle(
    player: tuple[str, ...] | None,
    bank: tuple[str, ...] | None,
    stake: int | None,
    pack: str,
    options: Options,
    batch: BinaryIO | None,
    as_json: bool,
) -> None:
    """Settle a player's two hands against the bank's.

    A batch line is {"player":{"high":[..],"low":[..]},"bank":{..},"stake":10000}.
    """
    chosen = pack_with(pack, options)

    def name(hand: rules.Pair) -> str:
        return rules.rank(*hand, chosen["zero_rule"]).name

    def handle(case: Any) -> dict[str, Any]:
        parts = fields(case, ("player", "bank", "stake"))
        mine, theirs = (rules.parse_hands(parts[who], who, chosen["zero_rule"]) for who in ("player", "bank"))
        done = rules.settle(mine, theirs, parts["stake"], chosen)
        return {
            "result": done.result,
            "net": done.net,
            "commission": done.commission,
            "high": done.high,
            "low": done.low,
            "names": {
                who: {"high": name(hands.high), "low": name(hands.low)}
                for who, hands in (("player", mine), ("bank", theirs))
            },
        }

    def show(result: dict[str, Any]) -> None:
        words = {"win": _("the player wins"), "lose": _("the player loses"), "push": _("a push")}
        compared = {"higher": _("higher"), "lower": _("lower"), "copy": _("a copy")}
        rows = table("", _("player"), _("bank"), _("the player's hand is"))
        for side, label in (("high", _("high hand")), ("low", _("low hand"))):
            rows.add_row(label, *(result["names"][who][side] for who in ("player", "bank")), compared[result[side]])
        console().print(rows)
        console().print(
            _("{result}: net {net}, commission {commission}").format(
                result=words[result["result"]], net=money(result["net"]), commission=money(result["commission"])
            )
        )

    case: dict[str, Any] = {}
    if player or bank or stake is not None:
        if not (player and bank and stake is not None):
            raise click.UsageError(_("settle needs --player, --bank and --stake, or --batch"))
        case = {"player": _hands_of(player), "bank": _hands_of(bank), "stake": stake}
    answer(case or None, batch, handle, show, as_json)


def _hands_of(four: tuple[str, ...]) -> dict[str, list[str]]:
    return {"high": list(four[:2]), "low": list(four[2:])}


@tiles.command("table")
@click.argument("case", required=False, metavar="[CASE]")
@house_way_option()
@rules_options()
@batch_option
@json_option
def settle_table(
    case: str | None, house_way: str, pack: str, options: Options, batch: BinaryIO | None, as_json: bool
) -> None:
    """Settle a whole table against the bank, with coverage, copies, commission and the dealer's signals.

    CASE is JSON: {"bank":HANDS,"players":[{"position":2,"hands":HANDS,"stake":5000},..]} with the players by deal
    position, in the order of action; HANDS is {"high":[..],"low":[..]}, or four tiles left in one stack, which are set
    by the house way.
    "banks":[60000,30000] are the cents of the front bank and those behind it; "player_banks":true makes them pay
    commission on what they win.

    A net is after the commission that its owner pays. The house's is the commission, and the bank's net where neither
    "banks" nor "player_banks" says that others bank.
    """
    way = houseway.load(house_way)
    chosen, text = pack_with(pack, options), clauses.of_pack(pack)

    def hands_of(value: Any, what: str) -> rules.Hands:
        if isinstance(value, list):
            return way.set(rules.parse_tiles(value, 4, what), chosen["zero_rule"])
        return rules.parse_hands(value, what, chosen["zero_rule"])

    def handle(one: Any) -> dict[str, Any]:
        parts = fields(one, ("bank", "players"), ("banks", "player_banks"))
        for name in ("players", "banks"):
            if name in parts:
                filled(parts[name], name)
        if not isinstance(parts.get("player_banks", False), bool):
            raise BadInput(
                _("player_banks is {value}; allowed: true or false").format(value=shown(parts["player_banks"]))
            )
        players = []
        for number, row in enumerate(parts["players"], 1):
            what = _("player {number}").format(number=number)
            player = fields(row, ("position", "hands", "stake"), (), what)
            players.append(tile_table.Player(player["position"], hands_of(player["hands"], what), player["stake"]))
        bank = hands_of(parts["bank"], "bank")
        done = tile_table.settle(players, bank, chosen, parts.get("banks"), parts.get("player_banks", False))
        return {
            "players": [
                {
                    **asdict(result),
                    "signal": result.signal if text.signals else None,
                    "high_tiles": player.hands.as_dict()["high"],
                    "low_tiles": player.hands.as_dict()["low"],
                    "rule": player.hands.rule,
                }
                for player, result in zip(players, done.players, strict=True)
            ],
            "bank": {**bank.as_dict(), "rule": bank.rule},
            "bank_nets": list(done.bank_nets),
            "bank_commissions": list(done.bank_commissions),
            "commission": done.commission,
            "house_net": done.house_net,
            "house_banks": "banks" not in parts and not parts.get("player_banks", False),
        }

    def show(result: dict[str, Any]) -> None:
        words = {"win": _("wins"), "lose": _("loses"), "push": _("pushes"), "no_action": _("no action")}
        console().print(f"{_('bank')}: {_names(result['bank']['high'])} / {_names(result['bank']['low'])}")
        rows = table(
            _("deal position"), _("high hand"), _("low hand"), _("result"), _("net"), _("commission"), _("returned"),
            *([_("dealer")] if text.signals else []),
        )  # fmt: skip
        for one in result["players"]:
            rows.add_row(
                str(one["position"]),
                _names(one["high_tiles"]),
                _names(one["low_tiles"]),
                words[one["result"]],
                money(one["net"]),
                money(one["commission"]),
                money(one["returned"]),
                *([tile_table.signal_words(one["signal"])] if one["signal"] else []),
            )
        console().print(rows)
        nets, paid = (" / ".join(map(money, result[key])) for key in ("bank_nets", "bank_commissions"))
        if result["house_banks"]:
            console().print(_("bank net: {nets}; the bank is the house and pays no commission").format(nets=nets))
            house = _("house net: {net}, the bank's and the commission of {commission}")
        else:
            console().print(_("bank net: {nets}, after its commission of {paid}").format(nets=nets, paid=paid))
            house = _("house net: {net}, the commission of everybody")
        console().print(house.format(net=money(result["house_net"]), commission=money(result["commission"])))

    answer(parse_json(case, "CASE") if case is not None else None, batch, handle, show, as_json)


@tiles.command()
@click.argument("four", nargs=-1, metavar="TILE TILE [TILE TILE]")
@house_way_option()
@rules_options()
@batch_option
@json_option
def explain(
    four: tuple[str, ...], house_way: str, pack: str, options: Options, batch: BinaryIO | None, as_json: bool
) -> None:
    """Why two tiles rank as they do, or which rule of a house way decides how four tiles are set."""
    way = houseway.load(house_way)
    zero_rule, text = pack_with(pack, options)["zero_rule"], clauses.of_pack(pack)

    def handle(case: Any) -> dict[str, Any]:
        if isinstance(case, (list, tuple)) and len(case) not in (2, 4):
            raise BadInput(_("the case has {count} tiles; needed: 2 or 4").format(count=len(case)))
        if isinstance(case, (list, tuple)) and len(case) == 2:
            (pair,) = rules.parse_pairs([(case, _("hand"))], zero_rule)
            found = rules.rank(*pair, zero_rule)
            read_as = _read_as([(case, pair)])
            return {
                "name": found.name,
                "strength": found.strength,
                "because": tiles_text.reasons(pair, zero_rule, text),
                "source": _(text.title),
                **({"read_as": read_as} if read_as else {}),
            }
        hand = rules.parse_tiles(case, 4, _("hand"))
        hands = way.set(hand, zero_rule)
        return {
            **hands.as_dict(),
            "rule": hands.rule,
            "text": _(way.rule_text(hands.rule)),
            "splits": [_described(split, zero_rule) for split in rules.splits(hand)],
            "house_way": way.name,
            "version": way.version,
            "source": way.source,
            "ends": _(way.ends) if way.ends else "",
        }

    def show(result: dict[str, Any]) -> None:
        if "because" in result:
            _print_reading(result)
            first = _strength(result["name"], result["strength"], zero_rule)
            console().print("\n".join([first, *result["because"], _("source: {source}").format(**result)]))
            return
        rows = table(_("played"), _("high hand"), _("low hand"))
        for split in result["splits"]:
            played = (split["high"], split["low"]) == (result["high"], result["low"])
            rows.add_row("*" if played else "", *(f"{_names(split[one])}: {split[one + '_name']}" for one in SIDES))
        console().print(rows)
        console().print(_("rule {rule} of {house_way}, version {version}: {text}").format(**result))
        console().print(_("source: {source}").format(source=_(result["source"])))
        if result["ends"]:
            console().print(result["ends"])

    answer(four, batch, handle, show, as_json)


def _described(hands: rules.Hands, zero_rule: str) -> dict[str, Any]:
    """A split with the names of its hands."""
    return {
        **hands.as_dict(),
        "high_name": rules.rank(*hands.high, zero_rule).name,
        "low_name": rules.rank(*hands.low, zero_rule).name,
    }


@tiles.command()
@click.argument("four", nargs=-1, metavar="TILE TILE TILE TILE")
@house_way_option("--opponent-way")
@rules_options()
@batch_option
@json_option
def advise(
    four: tuple[str, ...], opponent_way: str, pack: str, options: Options, batch: BinaryIO | None, as_json: bool
) -> None:
    """The best way to set four tiles: each split against every hand of unseen tiles set by the bank's house way."""
    from host_tools.rules import tile_odds

    way = houseway.load(opponent_way)
    chosen = pack_with(pack, options)

    def handle(case: Any) -> dict[str, Any]:
        found = tile_odds.advise(rules.parse_tiles(case, 4, _("hand")), way, chosen)
        return {
            "splits": [
                {
                    **_described(advice.hands, chosen["zero_rule"]),
                    "win": advice.odds.win,
                    "push": advice.odds.push,
                    "lose": advice.odds.lose,
                    "total": advice.odds.total,
                    "expected_percent": float(-advice.odds.house_edge * 100),
                }
                for advice in found
            ],
            "commission_bp": chosen["commission_bp"],
            "opponent_way": way.name,
            "version": way.version,
        }

    def show(result: dict[str, Any]) -> None:
        rows = table(_("high hand"), _("low hand"), _("win"), _("push"), _("lose"), _("expected"))
        for split in result["splits"]:
            rows.add_row(
                *(f"{_names(split[one])}: {split[one + '_name']}" for one in SIDES),
                *(percent(split[one] / split["total"]) for one in ("win", "push", "lose")),
                percent(split["expected_percent"] / 100),
            )
        console().print(rows)
        console().print(
            _("against a bank that sets the unseen tiles by {way}, version {version}").format(
                way=result["opponent_way"], version=result["version"]
            )
        )
        console().print(
            _(
                "expected: the player's profit as a share of the stake, after a commission of {commission} on wins"
            ).format(commission=percent(Fraction(result["commission_bp"], 10_000), 2))
        )

    answer(four, batch, handle, show, as_json)


tiles.add_command(advise, "advisor")


@tiles.command()
@json_option
def ways(as_json: bool) -> None:
    """The house ways that come with the program, and where each comes from."""
    loaded = [houseway.load(name) for name in houseway.names()]
    if as_json:
        keys = ("name", "version", "title", "source", "complete", "ends")
        for way in loaded:
            print_json({key: getattr(way, key) for key in keys})
        return
    rows = table(_("name"), _("version"), _("title"), _("source"))
    for way in loaded:
        rows.add_row(way.name, way.version, _(way.title), _(way.source))
    console().print(rows)
    for way in loaded:
        if way.ends:
            console().print(f"{way.name}: {_(way.ends)}")
