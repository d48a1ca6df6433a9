"""The pictures in the documents, made of a virtual table that is served: `python -m tests.web.screenshots [FOLDER]`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, expect

from host_tools.i18n import speaking
from tests.synthetic import fill, history
from tests.virtual import until
from tests.web.browser import running, tap_hands
from tests.web.conftest import PINS, Served, serving

DOCS = Path(__file__).parents[2] / "docs" / "pictures"
WALL = {"width": 1280, "height": 720}
DESK: ViewportSize = {"width": 1024, "height": 1000}
PHONE = {"width": 390, "height": 844}
BETS: dict[int, dict[str, int]] = {
    1: {"match": 500, "odd": 1000, "bonus": 100},
    2: {"even": 2500, "double": 1000},
    4: {"match": 500, "odd": 500, "bonus": 500},
    6: {"odd": 12550, "triple": 100},
}
# What the table had played before, so that there is something to say of its dice.
BEFORE = 1500
UID = "E6605481DB000001"
EARLIER = ([5, 2, 6], [1, 1, 4], [3, 6, 2], [6, 5, 5], [2, 2, 3], [4, 1, 6], [4, 4, 4])


class Camera:
    """Takes pictures of a served table into a folder."""

    def __init__(self, browser: Browser, served: Served, folder: Path) -> None:
        self._browser = browser
        self._served = served
        self._folder = folder

    def open(self, path: str = "/", **options: Any) -> Page:
        page = self._browser.new_context(**{"locale": "en-US", "viewport": WALL, **options}).new_page()
        page.goto(self._served.url + path)
        return page

    def console(self, role: str, **options: Any) -> Page:
        page = self.open("/dealer", viewport=DESK, **options)
        page.locator("select").select_option(role)
        page.locator("#pin").fill(PINS[role])
        page.locator("#pin").press("Enter")
        expect(page.locator("#state .title")).not_to_be_empty()
        return page

    def take(self, page: Page, name: str) -> None:
        """A picture in few colours: small enough for a repository."""
        page.evaluate("document.fonts.ready")
        path = self._folder / f"{name}.png"
        page.screenshot(path=str(path), animations="disabled")
        with Image.open(path) as picture:
            picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
        print(f"{path}  {path.stat().st_size // 1024} kB")


def take_all(camera: Camera, served: Served) -> None:
    """A shift's first rounds, with a picture of each page."""
    # The streak that the table comes with is over before the bonus wagers begin.
    served.play([1, 2, 3], {})
    for dice in EARLIER:
        served.play(dice, {1: {"bonus": 100}, 4: {"bonus": 500}})
    served.all_stored()
    screen, desk = camera.open(), camera.console("dealer")
    served.bench.do("next", dice=[3, 5, 3])
    served.ask("open", shaker=2)
    for position, wagers in BETS.items():
        served.ask("bets", position=position, wagers=wagers)
    expect(screen.locator("#state")).to_contain_text("Bets are open")
    camera.take(screen, "display-bets")
    desk.locator(".seats button").nth(3).click()
    expect(desk.get_by_label("match ($)")).to_have_value("5")
    camera.take(desk, "console-bets")
    served.ask("close")
    served.ask("shake")
    served.wait("LOCKED")
    served.reveal()
    expect(screen.locator(".seat-6")).to_contain_text("pays $125.50")
    camera.take(screen, "display-result")
    dark = camera.open(viewport=PHONE, color_scheme="dark", locale="es-PR")
    expect(dark.locator("#state")).to_contain_text("Resultado")
    camera.take(dark, "display-phone")
    tiles(desk)
    camera.take(desk, "console-tiles")
    served.finish()
    served.ask("open", shaker=0)
    served.ask("close")
    floor = camera.console("supervisor")
    entry = floor.get_by_role("group", name="Enter a result by hand")
    for number, value in enumerate("345", 1):
        entry.get_by_label(f"die {number}").first.fill(value)
    entry.get_by_label("reason").fill("reader 2 is down")
    floor.get_by_role("button", name="Enter", exact=True).click()
    expect(entry).to_contain_text("total 12")
    entry.scroll_into_view_if_needed()
    floor.mouse.wheel(0, 2000)
    camera.take(floor, "console-manual")
    with floor.expect_popup() as opened:
        floor.get_by_role("link", name="Are the dice fair?").click()
    expect(opened.value.locator("svg")).to_have_count(3)
    opened.value.set_viewport_size(DESK)
    opened.value.locator("figure").first.evaluate("(one) => one.scrollIntoView()")
    camera.take(opened.value, "console-fairness")


def tiles(desk: Page) -> None:
    """The bank's hand and one player's, settled."""
    desk.locator("summary", has_text="Wagers").click()
    tap_hands(desk)
    button = desk.get_by_role("button", name="Settle", exact=True)
    until(lambda: button.get_attribute("aria-disabled") == "false", "the round's record")
    button.click()
    expect(desk.locator("details caption")).to_be_visible()
    desk.mouse.wheel(0, 2000)


def main() -> None:
    """Take them all into FOLDER, or where the documents have them."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    folder.mkdir(parents=True, exist_ok=True)
    with (
        speaking("en"),
        tempfile.TemporaryDirectory() as place,
        running() as browser,
    ):
        fill(Path(place) / "rounds.db", UID, history(BEFORE, eye=0))
        with serving(Path(place), uid=UID, signals=True) as served:
            take_all(Camera(browser, served, folder), served)


if __name__ == "__main__":
    main()
