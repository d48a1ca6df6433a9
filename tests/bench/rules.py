"""Tiles, house ways, exact odds and cards.

Others' code is measured in the same run where it is there: a checkout of github.com/rudisherry666/paigow whose path is
in $PAIGOW, and the packages of the `bench` extra (treys, phevaluator, pokerkit).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dragoneye.rules import packs
from host_tools.rules import cards, houseway, tile_arrays, tile_odds, tiles
from host_tools.rules.tiles import Tile
from tests.bench import Row, rate, seconds

FACES_OF_PAIGOW = {
    "teen": "6-6", "day": "1-1", "high eight": "4-4", "harmony four": "1-3", "high ten": "5-5", "long six": "3-3",
    "low four": "2-2", "eleven": "5-6", "low ten": "4-6", "high seven": "1-6", "low six": "1-5", "mixed nine": "3-6",
    "mixed eight": "2-6", "mixed seven": "2-5", "mixed five": "1-4", "gee joon": "2-4",
}  # fmt: skip


def run() -> Iterator[Row]:
    """Tiles first, then cards."""
    random = np.random.default_rng(1)
    yield from _tiles(random)
    yield from _odds()
    yield from _cards(random)


def _tiles(random: np.random.Generator) -> Iterator[Row]:
    deck = tiles.deck()
    dealt = np.argsort(random.random((5_000, 32)), axis=1)[:, :4]
    pairs = [(deck[a], deck[b]) for a, b in dealt[:, :2].tolist()]
    fours = [tuple(deck[place] for place in row) for row in dealt.tolist()]

    def look_ups() -> None:
        for one, two in pairs:
            tiles.strength(one, two)

    def deals() -> None:
        for four in fours:
            tiles.split_strengths(four)

    single = seconds(look_ups) / len(pairs)
    paigow = os.environ.get("PAIGOW")
    if paigow:
        theirs = _paigow(paigow, dealt[:, :2])
        yield Row("two tiles, paigow: `PGHand.create(..).ranking()`", rate(theirs, "hands"))
        yield Row("two tiles, one look-up", rate(single, "hands"), f"{theirs / single:.1f} × paigow", "8 ×")
    else:
        yield Row("two tiles, one look-up", rate(single, "hands"), "$PAIGOW is not set", "8 × paigow")
    deal = seconds(deals) / len(fours)
    yield Row("four tiles, three splits ranked", rate(deal, "deals"), f"{deal / single:.1f} look-ups", "≤ 12")
    faces = np.array(deck, dtype=np.int8)
    many = faces[np.argsort(random.random((20_000, 32)), axis=1)[:, :2]].repeat(50, axis=0)
    batch = seconds(lambda: tile_arrays.strengths(many)) / len(many)
    yield Row(
        "two tiles, numpy batch of 1,000,000", rate(batch, "hands"), f"{single / batch:.0f} × one look-up", "20 ×"
    )
    for name in ("max_low", "foxwoods"):
        way = houseway.load(name)
        setting = seconds(lambda way=way: [way.set(four) for four in fours[:500]], repeat=3) / 500  # type: ignore[misc]
        yield Row(f"four tiles set by {name}", rate(setting, "hands"))


def _odds() -> Iterator[Row]:
    pack = packs.load("nj")
    player, bank = houseway.load("foxwoods"), houseway.load("max_low")

    def edge() -> None:
        for cache in (tile_arrays.set_all, tile_odds.bank_hands):
            cache.cache_clear()
        tile_odds.odds(player, bank, pack)

    edge()
    took = seconds(edge, repeat=3)
    yield Row("exact house edge of two different house ways", f"{took:.2f} s", f"{2 / took:.1f} × the goal", "2 s")


def _paigow(path: str, places: Any) -> float:
    """Seconds that the other evaluator takes for a hand of ready tiles: its own code behind a stand-in for Django."""

    class Model:
        def __init__(self, **fields: Any) -> None:
            self.__dict__.update(fields)

    for name in ("django", "django.db", "django.test"):
        sys.modules[name] = types.ModuleType(name)
    fields = {name: lambda **_options: None for name in ("CharField", "PositiveSmallIntegerField")}
    sys.modules["django.db"].models = types.SimpleNamespace(Model=Model, **fields)  # type: ignore[attr-defined]
    sys.modules["django.test"].TestCase = object  # type: ignore[attr-defined]
    folder = Path(path) / "paigow"
    package = types.ModuleType("models")
    package.__path__ = [str(folder / "models")]
    sys.modules["models"] = package
    sys.path.insert(0, str(folder))
    try:
        tile_class = importlib.import_module("models.pgtile").PGTile
        hand_class = importlib.import_module("pghand").PGHand
    finally:
        sys.path.remove(str(folder))
    rows = json.loads((folder / "fixtures" / "pgtile.json").read_text(encoding="utf-8"))
    theirs: dict[str, list[Any]] = {}
    for row in rows:
        theirs.setdefault(row["fields"]["name"], []).append(tile_class(**row["fields"]))
    ours = tiles.deck()
    # Their 32 tiles in the order of our deck: by face, or by kind where a kind has two faces.
    kind = {face: name for name, face in FACES_OF_PAIGOW.items()}
    other = {"4-5": "mixed nine", "3-5": "mixed eight", "3-4": "mixed seven", "2-3": "mixed five", "1-2": "gee joon"}
    deck = [theirs[{**kind, **other}[tile.face]].pop() for tile in ours]
    hands = [(deck[a], deck[b]) for a, b in places.tolist()]
    for (a, b), (one, two) in zip(places.tolist(), hands, strict=True):
        if tiles.rank(ours[a], ours[b]).pair_rank is not None and ours[a] != Tile.T12 != ours[b]:
            assert hand_class.create(one, two).ranking() >= 86, (ours[a], ours[b])

    def rank_all() -> None:
        for one, two in hands:
            hand_class.create(one, two).ranking()

    return seconds(rank_all) / len(hands)


def _cards(random: np.random.Generator) -> Iterator[Row]:
    dealt = np.argsort(random.random((20_000, 52)), axis=1)[:, :5]
    names = [[f"{cards.RANKS[card // 4]}{'shdc'[card % 4]}" for card in hand] for hand in dealt.tolist()]
    found: dict[str, float] = {}
    for name, make in (("treys", _treys), ("phevaluator", _phevaluator), ("pokerkit", _pokerkit)):
        try:
            call = make(names)
        except ImportError:
            yield Row(f"five cards, {name}", "not installed", "", "")
            continue
        found[name] = seconds(call, repeat=3) / len(names)
        yield Row(f"five cards, {name}", rate(found[name], "hands"))
    made = [cards.parse_hand(hand) for hand in names[:2_000]]
    single = seconds(lambda: [cards.rank(hand) for hand in made], repeat=3) / len(made)
    yield Row("five cards, `cards.rank`", rate(single, "hands"))
    many = dealt.repeat(50, axis=0)
    cards.strengths(many)
    batch = seconds(lambda: cards.strengths(many)) / len(many)
    best = min(found, key=lambda name: found[name]) if found else ""
    against = f"{found[best] / batch:.0f} × {best}" if found else ""
    yield Row("five cards, numpy batch of 1,000,000", rate(batch, "hands"), against, "ahead of the fastest")


def _treys(hands: list[list[str]]) -> Callable[[], object]:
    treys = importlib.import_module("treys")
    made = [[treys.Card.new(card) for card in hand] for hand in hands]
    evaluate = treys.Evaluator().evaluate
    return lambda: [evaluate([], hand) for hand in made]


def _phevaluator(hands: list[list[str]]) -> Callable[[], object]:
    evaluate = importlib.import_module("phevaluator").evaluate_cards
    made = [[cards.number_of(cards.parse(card)) for card in hand] for hand in hands]
    return lambda: [evaluate(*hand) for hand in made]


def _pokerkit(hands: list[list[str]]) -> Callable[[], object]:
    pokerkit = importlib.import_module("pokerkit")
    made = [tuple(pokerkit.Card.parse("".join(hand))) for hand in hands]
    return lambda: [pokerkit.StandardHighHand(hand) for hand in made]
