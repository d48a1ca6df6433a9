"""Spanish: every text has a translation that fits, the catalogue is compiled, and the commands speak it."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Message

from host_tools import i18n
from host_tools.cli import numbers
from host_tools.locale.__main__ import compiled, forms, path_of, read, template
from host_tools.rules import tile_names, tiles
from tests.rules.conftest import Run

OURS = (
    "rules/",
    "foxwoods.json",
    "max_high.json",
    "max_low.json",
    "pennsylvania.json",
    "ranking_texts.json",
    "system",
    "nj.json",
    "pr.json",
    "ca.json",
    "click",
    "wagers",
    "tablectl.tiles",
    "tablectl.cards",
    "tablectl.odds",
    "tablectl.seats",
    "tablectl.bank",
    "tablectl.packs",
    "tablectl.wagers",
    *(f"cli/{name}.py" for name in ("tiles", "bank", "cards", "odds", "seats", "wagers", "packs", "answer", "output")),
)
PLACEHOLDER = re.compile(r"\{[^{}]*\}|%[sd]")


@pytest.fixture
def spanish() -> Iterator[None]:
    i18n.set_language("es")
    yield
    i18n.set_language("en")


def messages() -> list[Message]:
    return [message for message in read("es") if message.id]


def test_every_text_that_a_person_reads_is_in_the_catalogue() -> None:
    wanted = {forms(message.id) for message in template() if message.id and ours(message)}
    there = {forms(message.id) for message in messages()}
    assert wanted <= there, "run: python -m host_tools.locale, then translate what is empty"


def ours(message: Message) -> bool:
    """True for a text of the rules and of their commands."""
    return any(place.startswith(OURS) for place, _line in message.locations)


def test_every_text_is_translated() -> None:
    missing = {forms(message.id) for message in messages() if "" in forms(message.string) or message.fuzzy}
    assert [message.id for message in template() if forms(message.id) in missing and ours(message)] == []


@pytest.mark.usefixtures("spanish")
@pytest.mark.parametrize(
    ("english", "said"),
    [
        ("the lid is open", "la tapa está abierta"),
        (
            "rule pack: positions is 9; allowed: a whole number from 6 to 8",
            "paquete de reglas: positions es 9; se permite: un número entero de 6 a 8",
        ),
        ("wager: 'x'; allowed: match, even", "wager: 'x'; se permite: match, even"),
        ("nothing that the controller says", "nothing that the controller says"),
        (
            'bets: wagers is {"match": -5}; allowed: whole cents from 0 to 9 by wager',
            'bets: wagers es {"match": -5}; se permite: centavos enteros de 0 a 9 por apuesta',
        ),
        ("the tamper contact is open", "el contacto de manipulación está abierto"),
        ("shaker changed, streak kept", "agitador cambiado, la racha continúa"),
    ],
)
def test_what_the_controller_says_in_english_is_translated(english: str, said: str) -> None:
    assert i18n.controller(english) == said
    i18n.set_language("en")
    assert i18n.controller(english) == english


@pytest.mark.usefixtures("spanish")
def test_an_empty_text_stays_empty() -> None:
    assert i18n._("") == ""


@pytest.mark.usefixtures("spanish")
def test_one_english_text_has_a_translation_for_each_context_and_number() -> None:
    assert i18n.pgettext("tamper contact", "open") == "abierto"
    assert i18n.pgettext("round", "open") == i18n._("open") == "abierta"
    assert i18n.pgettext("no such context", "open") == "open"
    words = [i18n.ngettext("{count} table", "{count} tables", count).format(count=count) for count in (0, 1, 2)]
    assert words == ["0 mesas", "1 mesa", "2 mesas"]


# What else these things could be called; the Croupier is spelt as in the Puerto Rico text.
OTHER_WORDS = re.compile(
    r"\b(ordenador|equipo|crupier|averías?|fallas|la falla|sucesos?|resumen|papel|directorio|[Ss]ólo|[Dd]éle|délo"
    r"|por defecto|costumbre|ojo de dragón|llave de servicio y pulse|indicador)\b"
)


def test_one_thing_has_one_name() -> None:
    found = [(text, word[0]) for one in messages() for text in forms(one.string) for word in OTHER_WORDS.finditer(text)]
    assert found == []


def test_a_key_is_turned_off_or_on_as_the_english_says() -> None:
    for message in messages():
        (english, *_more), (spanish, *_others) = forms(message.id), forms(message.string)
        for words, said in (("key off", "apagado"), ("key on", "encendido")):
            assert (words not in english) or (said in spanish), english


def test_translations_have_the_placeholders_of_the_text() -> None:
    for message in messages():
        wanted = set(PLACEHOLDER.findall(" ".join(forms(message.id))))
        if '{"' in "".join(forms(message.id)) or "" in forms(message.string):
            continue  # an example in JSON, not a placeholder; or not translated yet
        # click's "integer" and "float" are English words, which the Spanish does without.
        wanted.discard("{number_type}")
        assert set(PLACEHOLDER.findall(" ".join(forms(message.string)))) == wanted, message.id


def test_the_compiled_catalogue_is_up_to_date() -> None:
    assert path_of("es", "mo").read_bytes() == compiled(read("es")), "run: python -m host_tools.locale"


@pytest.mark.usefixtures("spanish")
def test_names_are_those_of_the_puerto_rico_text() -> None:
    assert tile_names.pair_name(1) == "Par Supremo (2-4, 1-2)"
    assert tile_names.pair_name(2) == "Par combinado de doces (6-6)"
    assert tile_names.pair_name(13) == "Nueves Mezclados (3-6, 4-5)"
    assert [tile_names.tile_name(face) for face in ("6-6", "5-6", "1-4")] == ["doce (6-6)", "once (5-6)", "cinco (1-4)"]
    assert tiles.rank(tiles.parse("doce"), tiles.parse("1-5")).name == "Valor 8, mejor tile doce (6-6)"


@pytest.mark.usefixtures("spanish")
def test_a_spanish_name_types_the_tile_that_it_names() -> None:
    unique = {"doce": "6-6", "dos": "1-1", "once": "5-6", "tres": "1-2"}
    assert {name: tiles.parse(name).face for name in unique} == unique


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("tiles", "rank", "24", "12"), "Par Supremo (2-4, 1-2)"),
        (("tiles", "compare", "24", "14", "12", "23"), "mano de copia"),
        (("tiles", "compare", "66", "11", "12", "23"), "la segunda mano es de mayor rango"),
        (("odds", "wagers"), "ventaja de la casa"),
        (("odds", "wagers"), "la ganancia esperada del jugador por tirada, como parte de la apuesta"),
        (("seats", "--help"), "--total ENTERO"),
        (("packs", "show", "--help"), "[OPCIONES] NOMBRE"),
        (("seats", "--total", "9"), "el Croupier o el banco"),
        (("bank", "decides", "--front", "100000", "--action", "250001"), "decide el segundo banco"),
        (("bank", "decides", "--front", "-1", "--action", "5"), "error: front es -1; se permite"),
        (("bank", "decides", "--front", "1", "--action", "0"), "error: action es 0; se permite"),
        (("bank", "next", "--last", "9"), "error: last es 9; se permite"),
        (("bank", "covers", "--bank", "5", "--bet", "1:50"), "error: la posición de reparto es 1; se permite"),
        (("packs", "show", "nj"), "opción valor procedencia"),
        (("odds", "tiles"), "empata"),
        (("odds", "wagers"), "gana, de 216 tiradas"),
        (("cards", "rank", "AS", "AS", "AS", "AS", "AS"), "Color con cinco iguales"),
        (("tiles", "rank", "7-7", "12"), "no hay un tile '7-7'; se permite"),
        (("tiles", "rank", "66"), "hay 1; se necesita: una lista de 2 tiles"),
        (("seats", "--total", "x"), "'x' no es un número válido"),
        (("odds", "wagers"), "75 (1 a 1), 15 (2 a 1), 1 (3 a 1)"),
        (("wagers", "settle", "--dice", "3", "3", "4", "--position", "3"), "coincidencia gana 2 a 1"),
        (("wagers", "settle"), "falta --dice"),
        (("packs", "show", "ca"), "hoja de la sala, regla 12"),
        (("packs", "list"), "Nueva Jersey"),
        (("demo", "--rounds", "0"), "0 no está en el intervalo 1<=x<=100000"),
        (("tiles", "rank", "--batch", "/no/such"), "No existe el archivo o la carpeta"),
        (("odds", "wagers", "--plot", "/no/such.svg"), "no se puede escribir /no/such.svg: No existe el archivo"),
        (("tiles", "ways"), "las manos del Croupier"),
        (("tiles", "explain", "55", "46", "--pack", "ca"), "la hoja de la sala no tiene rangos"),
        (("tiles", "advise", "66", "66", "45", "44"), "contra un banco que arma los tiles no vistos según max_low"),
        (("tiles", "table", "{"), "CASE no es JSON: vea la columna 2"),
        (("tiles", "rank", "--helpp"), "No hay una opción '--helpp'"),
        (("seats", "--help"), "Posición de reparto de la mano muerta"),
        (("--help",), "La mesa del ojo del dragón"),
    ],
)
def test_commands_in_spanish_and_again_in_english(tablectl: Run, args: tuple[str, ...], said: str) -> None:
    code, out, err = tablectl("--lang", "es", *args)
    assert said in " ".join((out + err).split())
    english_code, out, err = tablectl("--lang", "en", *args)
    assert english_code == code
    assert said not in " ".join((out + err).split())


@pytest.mark.parametrize(
    ("value", "said"), [("es_PR.UTF-8", "Par Supremo"), ("fr_FR", "Supreme pair"), ("C", "Supreme")]
)
def test_the_language_of_the_environment(tablectl: Run, monkeypatch: pytest.MonkeyPatch, value: str, said: str) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", value)
    assert said in tablectl("tiles", "rank", "24", "12")[1]


def test_a_pack_without_a_title_has_none(tablectl: Run, tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    own.write_text('{"name": "", "base": "nj", "values": {}}', encoding="utf-8")
    english, spanish = (tablectl("packs", "show", str(own), "--lang", lang) for lang in ("en", "es"))
    assert "Project-Id-Version" not in spanish[1]
    assert english[0] == spanish[0]


@pytest.mark.parametrize("language", ["en", "es"])
def test_eighty_columns_hold_the_wagers_without_a_broken_word(tablectl: Run, language: str) -> None:
    words = set(re.findall("[a-zá-ú]+", tablectl("odds", "wagers", "--lang", language)[1]))
    leader, follower = pty.openpty()
    # Rich takes 80 columns for a terminal that can do nothing.
    run = [sys.executable, "-m", "host_tools", "odds", "wagers", "--lang", language]
    with subprocess.Popen(run, stdout=follower, env={**os.environ, "TERM": "dumb"}) as process:
        os.close(follower)
        told = b""
        # A terminal whose other side is closed gives EIO.
        with contextlib.suppress(OSError):
            while chunk := os.read(leader, 4096):
                told += chunk
    os.close(leader)
    assert process.returncode == 0
    out = told.decode()
    assert max(map(len, out.splitlines())) <= 80
    assert set(re.findall("[a-zá-ú]+", out)) == words
    assert {"en": "105 at 1 to 1 ", "es": "105 (1 a 1) "}[language] in out
    assert "-27,680.556%" in out
    assert "2,701,157.434" in out


def test_json_keys_and_words_for_machines_stay_english(tablectl: Run) -> None:
    _code, out, _err = tablectl("--lang", "es", "tiles", "compare", "24", "14", "12", "23", "--json")
    assert '"result": "copy"' in out


def test_money_and_numbers_as_each_language_writes_them() -> None:
    try:
        written = {}
        for language in i18n.LANGUAGES:
            i18n.set_language(language)
            written[language] = numbers.money(-123_456), numbers.number(736_281_000), numbers.percent(0.02425, 2)
        assert written["en"] == ("-$1,234.56", "736,281,000", "2.42%")
        assert written["es"][1] == "736,281,000"
        assert "1,234.56" in written["es"][0]
    finally:
        i18n.set_language("en")


@pytest.mark.parametrize(
    ("environment", "language", "written"),
    [
        ({"LANG": "es_ES.UTF-8"}, "es", ("-1.234,56 US$", "269.052.404", "36,542 %", "0,24 %", "6.778,576")),
        ({"LANG": "es_PR.UTF-8"}, "es", ("-$1,234.56", "269,052,404", "36.542%", "0.24%", "6,778.576")),
        ({"LANG": "de_CH.UTF-8"}, "es", ("-$1,234.56", "269,052,404", "36.542%", "0.24%", "6,778.576")),
        ({"LANG": "es_ES.UTF-8"}, "en", ("-$1,234.56", "269,052,404", "36.542%", "0.24%", "6,778.576")),
        ({"LANG": "en_GB.UTF-8@euro"}, "en", ("-US$1,234.56", "269,052,404", "36.542%", "0.24%", "6,778.576")),
        (
            {"LANG": "en_US", "LC_NUMERIC": "en_ZA"},
            "en",
            ("-$1,234.56", "269 052 404", "36,542%", "0,24%", "6 778,576"),
        ),
        (
            {"LANG": "es_PR", "LC_ALL": "es_ES"},
            "es",
            ("-1.234,56 US$", "269.052.404", "36,542 %", "0,24 %", "6.778,576"),
        ),
        *(
            ({"LANG": nonsense}, "es", ("-$1,234.56", "269,052,404", "36.542%", "0.24%", "6,778.576"))
            for nonsense in ("", "C", "POSIX", "es", "es_XX", "..", "@", "es_ES_" * 20)
        ),
    ],
)
def test_numbers_are_written_as_in_the_territory(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], language: str, written: tuple[str, ...]
) -> None:
    monkeypatch.delenv("LC_ALL")
    for name in ("LC_NUMERIC", "LC_MONETARY", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    i18n.set_language(language)
    try:
        found = (
            numbers.money(-123_456), numbers.number(269_052_404), numbers.percent(0.36542), numbers.percent(0.00242, 2),
            numbers.decimal(6778.5763),
        )  # fmt: skip
    finally:
        i18n.set_language("en")
    assert found == written


def test_the_commands_write_numbers_as_in_the_territory(tablectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "es_ES.UTF-8")
    out = tablectl("odds", "tiles")[1]
    assert "269.052.404" in out
    assert "36,542 %" in out
    assert "6.778,576" in tablectl("odds", "wagers")[1]
    assert "40 % de 2.500,01 US$" in tablectl("bank", "decides", "--front", "100000", "--action", "250001")[1]


def test_help_that_click_writes_itself_is_in_the_language_that_is_named_late(tablectl: Run) -> None:
    for args in (("tiles", "--lang", "es"), ("tiles", "rank", "--lang", "es"), ("seats", "--lang", "es")):
        out = " ".join(tablectl(*args, "--help")[1].split())
        assert "Muestra esta ayuda y termina." in out
        assert "Show this message" not in out
        assert "Show this message" in " ".join(tablectl(args[0], "--help")[1].split())


@pytest.mark.parametrize(
    "args", [("--lang", "es", "tiles", "rank"), ("tiles", "--lang", "es", "rank"), ("tiles", "rank", "--lang", "es")]
)
def test_the_language_may_stand_anywhere_on_the_line(tablectl: Run, args: tuple[str, ...]) -> None:
    assert "Par Supremo" in tablectl(*args, "24", "12")[1]
    assert "Supreme pair" in tablectl("--lang", "en", "tiles", "rank", "24", "12")[1]


def test_help_is_in_the_language_that_is_named_after_the_command(tablectl: Run) -> None:
    assert "Posición de reparto" in tablectl("seats", "--lang", "es", "--help")[1]


@pytest.mark.parametrize(
    "args", [("--help",), ("--foo",), ("nothing",), ("tiles", "foo"), ("tiles", "rank", "--helpp")]
)
def test_the_whole_line_speaks_the_language_of_the_environment_or_of_lang_wherever_it_stands(
    tablectl: Run, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    english = tablectl(*args)
    spanish = tablectl("--lang", "es", *args)
    assert spanish != english
    monkeypatch.setenv("LC_ALL", "es_PR.UTF-8")
    assert tablectl(*args) == spanish
    assert tablectl("--lang", "en", *args) == english
    monkeypatch.setenv("LC_ALL", "C")
    assert tablectl(*args, "--lang", "es") == spanish
    assert tablectl(*args, "--lang=es") == spanish


def test_the_tool_alone_helps_in_the_language_of_the_environment(
    tablectl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tablectl()[2].startswith("Usage: tablectl [OPTIONS] COMMAND")
    monkeypatch.setenv("LC_ALL", "es_PR.UTF-8")
    assert tablectl()[2].startswith("Uso: tablectl [OPCIONES] ORDEN")
