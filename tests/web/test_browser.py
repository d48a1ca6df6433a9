"""Display and console in headless Chromium: a whole round, breaks in it, hostile text, the keyboard alone, axe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.web.browser import running, tap_hands
from tests.web.conftest import PINS, Served, serving

expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running() as browser:
        yield browser


class Windows:
    """Windows of a browser: one at the back of another would be drawn once a second only, so each has its own."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.said: list[str] = []

    def new_page(self, **options: Any) -> Page:
        context = self._browser.new_context(**{"locale": "en-US", **options})
        self._contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("console", self._hear)
        page.on("dialog", lambda dialog: self.said.append(f"dialog: {dialog.message}"))
        return page

    def _hear(self, line: ConsoleMessage) -> None:
        if "Content Security Policy" in line.text:
            self.said.append(line.text)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def windows(browser: Browser) -> Iterator[Windows]:
    """Windows of one's own; whatever their pages complain of fails the test."""
    found = Windows(browser)
    yield found
    found.close()
    assert found.said == []


def log_in(windows: Windows, served: Served, role: str = "dealer") -> Page:
    page = windows.new_page()
    page.goto(f"{served.url}/dealer")
    page.get_by_label("Role").select_option(role)
    page.get_by_label("PIN").fill(PINS[role])
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#state .title")).not_to_be_empty()
    return page


def display(windows: Windows, served: Served, **options: Any) -> Page:
    page = windows.new_page(**options)
    page.goto(served.url)
    expect(page.locator("#state .title")).not_to_be_empty()
    return page


def press(page: Page, name: str, exact: bool = True) -> None:
    button = page.get_by_role("button", name=name, exact=exact)
    expect(button).not_to_have_attribute("aria-disabled", "true")
    button.click()


def state(page: Page, words: str) -> None:
    expect(page.locator("#state .title")).to_have_text(words)


def set_wagers(page: Page, position: int, **dollars: str) -> None:
    page.locator(".seats button").nth(position - 1).click()
    for wager, sum_ in dollars.items():
        page.get_by_label(f"{wager} ($)").fill(sum_)
    press(page, "Set wagers")
    expect(page.locator("#message")).to_contain_text(f"wagers of position {position} are set")


def no_complaints(page: Page) -> None:
    """axe finds nothing that stands in anybody's way."""
    found = Axe().run(page).response["violations"]
    told = [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found]
    assert told == []


def play_to_locked(desk: Page, served: Served, dice: list[int]) -> None:
    served.bench.do("next", dice=dice)
    desk.locator(".next select").select_option("2")
    press(desk, "Open a round")
    state(desk, "Bets are open")
    set_wagers(desk, 2, match="5", odd="10")
    set_wagers(desk, 3, bonus="1.50")
    press(desk, "Close bets")
    state(desk, "No more bets")
    press(desk, "Shake")
    state(desk, "Ready: open the lid")


def test_a_whole_round_with_the_display_in_a_second_window(windows: Windows, served: Served) -> None:
    desk, screen = log_in(windows, served), display(windows, served)
    no_complaints(desk)
    no_complaints(screen)
    play_to_locked(desk, served, [2, 5, 2])
    state(screen, "Ready: open the lid")
    expect(screen.locator(".felt .die")).to_have_count(3)
    expect(screen.locator(".felt .die.eye")).to_have_count(0)
    expect(screen.locator(".seat-2")).to_contain_text("1 to 1 for each die")
    expect(screen.locator("#streak")).to_contain_text("$37.50")
    press(desk, "Unlock the lid")
    press(desk, "Open the lid")
    state(screen, "Result")
    expect(screen.locator(".felt .die.eye")).to_have_attribute("aria-label", "dragon's eye die: 2")
    expect(screen.locator(".felt .total strong")).to_have_text("9")
    expect(screen.locator(".felt .deal")).to_have_text("position 1 is dealt first, then counter-clockwise")
    expect(screen.locator(".seat-1")).to_contain_text("FIRST")
    expect(screen.locator(".seat-2")).to_contain_text("✓ pays $10")
    expect(screen.locator(".seat-2")).to_contain_text("✗ loses")
    expect(desk.locator(".result")).to_contain_text("position 1 is dealt first")
    no_complaints(screen)
    # Tile hands, by tapping the tiles.
    tap_hands(desk)
    # A browser that has gone loses nothing of it.
    desk.reload()
    desk.locator("summary", has_text="Tile hands").click()
    desk.get_by_role("button", name="position 2 4/4").click()
    expect(desk.get_by_label("bet in dollars")).to_have_value("50")
    press(desk, "Settle")
    expect(desk.locator("details caption")).to_have_text("How the hands settle")
    no_complaints(desk)
    press(desk, "Keep these hands")
    expect(desk.locator("details caption")).to_have_text("How the hands settle · kept")
    press(desk, "Shut the lid")
    press(desk, "Finish the round")
    state(screen, "Between rounds")
    stored = served.store.round(1)
    assert stored["result"]["dice"] == [2, 5, 2]
    assert stored["tiles"]["players"][0]["result"] == "lose"
    with desk.expect_popup() as opened:
        desk.get_by_role("link", name="Are the dice fair?").click()
    dice = opened.value
    expect(dice.locator("svg")).to_have_count(3)
    no_complaints(dice)


def test_the_pages_come_back_after_the_server_restarted(windows: Windows, served: Served) -> None:
    desk, screen = log_in(windows, served), display(windows, served)
    press(desk, "Open a round")
    state(screen, "Bets are open")
    served.stop()
    expect(screen.locator("#notices")).to_contain_text("lost its connection")
    expect(desk.get_by_role("button", name="Close bets")).to_have_attribute("aria-disabled", "true")
    served.start()
    expect(screen.locator("#notices")).not_to_contain_text("lost its connection")
    # The session goes on as well.
    press(desk, "Close bets")
    state(screen, "No more bets")


def test_a_cable_that_is_pulled_in_mid_round(windows: Windows, served: Served) -> None:
    desk, screen = log_in(windows, served), display(windows, served)
    play_to_locked(desk, served, [6, 6, 6])
    served.bench.do("cable", to="out")
    state(screen, "No connection to the table")
    expect(desk.get_by_role("button", name="Unlock the lid")).to_have_count(0)
    served.bench.do("cable", to="in")
    state(screen, "Ready: open the lid")
    press(desk, "Unlock the lid")
    press(desk, "Open the lid")
    state(screen, "Result")
    expect(screen.locator("#streak")).to_contain_text("1")


def test_a_double_click_is_one_action(windows: Windows, served: Served) -> None:
    desk = log_in(windows, served)
    desk.get_by_role("button", name="Open a round").dblclick()
    state(desk, "Bets are open")
    served.all_stored()
    assert len(served.store.rounds()) == 1
    expect(desk.locator("#message")).to_be_empty()


def test_a_wrong_pin_and_one_too_many(windows: Windows, served: Served) -> None:
    page = windows.new_page()
    page.goto(f"{served.url}/dealer")
    no_complaints(page)
    for _ in range(5):
        page.get_by_label("PIN").fill("0000")
        page.get_by_label("PIN").press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("wrong PIN")
        expect(page.get_by_label("PIN")).to_have_value("")
    page.get_by_label("PIN").fill(PINS["dealer"])
    page.get_by_label("PIN").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("too many wrong PINs")


def test_hostile_text_is_shown_as_text(windows: Windows, served: Served) -> None:
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>{n}&amp;"
    desk, screen = log_in(windows, served, "supervisor"), display(windows, served)
    press(desk, "Open a round")
    press(desk, "Close bets")
    entry = desk.get_by_role("group", name="Enter a result by hand")
    for number, value in enumerate("345", 1):
        entry.get_by_label(f"die {number}").first.fill(value)
    entry.get_by_label("reason").fill(hostile)
    press(desk, "Enter")
    expect(entry).to_contain_text("Entered: 3 4 5, total 12")
    for number, value in enumerate("345", 1):
        entry.get_by_label(f"die {number}").last.fill(value)
    no_complaints(desk)
    press(desk, "Confirm")
    state(desk, "Ready: open the lid")
    press(desk, "Unlock the lid")
    press(desk, "Open the lid")
    expect(screen.locator(".felt .manual")).to_contain_text(hostile)
    assert screen.locator("img, script:not([src]):not([type='application/json'])").count() == 0


def test_a_supervisor_corrects_a_round_that_is_over(windows: Windows, served: Served) -> None:
    served.play([2, 2, 5])
    served.all_stored()
    desk, screen = log_in(windows, served, "supervisor"), display(windows, served)
    form = desk.get_by_role("group", name="Correct a round that is over")
    expect(form.get_by_label("round", exact=True)).to_have_value("1")
    expect(form).to_contain_text("as it stands: 2 2 5, total 9")
    for number, value in enumerate("255", 1):
        form.get_by_label(f"die {number}").fill(value)
    form.get_by_label("reason").fill("die 2 misread")
    no_complaints(desk)
    form.get_by_role("button", name="Correct").click()
    expect(desk.locator("#message")).to_contain_text("round 1 is corrected by a further record")
    expect(form).to_contain_text("as it stands: 2 5 5, total 12")
    expect(screen.locator("#rolls li")).to_contain_text("12✎corrected")
    form.get_by_label("what was wrong").select_option(label="the wagers of a position were these")
    form.get_by_label("position").select_option("2")
    form.get_by_label("match ($)").fill("7.50")
    form.get_by_label("reason").fill("paid at once")
    form.get_by_role("button", name="Correct").click()
    expect(form.get_by_label("reason")).to_have_value("")
    served.all_stored()
    told = served.store.round(1)["corrected"]["told"]
    assert [one["what"] for one in told] == ["dice", "bets"]
    assert (told[1]["position"], told[1]["wagers"]) == (2, {"match": 750})


def test_the_keyboard_alone(windows: Windows, served: Served) -> None:
    served.bench.do("next", dice=[1, 2, 3])
    page = windows.new_page()
    page.goto(f"{served.url}/dealer")
    # The PIN has the focus; the first role is the dealer's.
    page.keyboard.type(PINS["dealer"])
    page.keyboard.press("Enter")
    state(page, "Between rounds")

    def go(words: str) -> None:
        """Tab to what is called so, as a person would, and do nothing yet."""
        script = "document.activeElement.getAttribute('aria-label') || document.activeElement.innerText || ''"
        label = "(document.activeElement.labels && document.activeElement.labels[0] || {}).innerText || ''"
        for _ in range(80):
            page.keyboard.press("Tab")
            if words in (page.evaluate(script).strip(), page.evaluate(label).strip()):
                expect(page.locator(":focus")).not_to_have_attribute("aria-disabled", "true")
                return
        raise AssertionError(f"no way to {words} by the keyboard")

    go("who shakes")
    page.keyboard.press("ArrowDown")
    go("Open a round")
    page.keyboard.press("Enter")
    state(page, "Bets are open")
    go("match ($)")
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_contain_text("wagers of position 1 are set")
    go("Close bets")
    page.keyboard.press("Space")
    state(page, "No more bets")
    # From one step it is one key to the next.
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Shake")
    # And from anywhere Alt+N presses what comes next.
    go("position 1 $5")
    page.keyboard.press("Alt+n")
    state(page, "Ready: open the lid")
    page.keyboard.press("Alt+n")
    expect(page.get_by_role("button", name="Unlock the lid")).to_have_attribute("aria-keyshortcuts", "Alt+N")
    go("Open the lid")
    page.keyboard.press("Enter")
    state(page, "Result")
    assert served.hub.snapshot.state["shaker"] == 1


def test_a_technician_tests_the_table(windows: Windows, served: Served) -> None:
    desk, screen = log_in(windows, served, "technician"), display(windows, served)
    press(desk, "Enter test mode")
    state(screen, "Test mode")
    press(desk, "Run the self-test")
    expect(desk.locator("pre")).to_contain_text('"running": false')
    expect(desk.locator("pre")).to_contain_text('"motor"')
    no_complaints(desk)
    press(desk, "Leave test mode")
    state(screen, "Between rounds")


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A table whose newest result has all wagers there are at one seat."""
    with serving(tmp_path_factory.mktemp("settled")) as served:
        served.lock([4, 4, 5], {1: dict.fromkeys(("match", "even", "odd", "double", "triple", "bonus"), 12_345)})
        served.reveal()
        yield served


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(390, 844), (1920, 1080)])
def test_both_schemes_on_a_phone_and_on_a_wall(windows: Windows, settled: Served, scheme: Any, size: Any) -> None:
    view = {"width": size[0], "height": size[1]}
    page = display(windows, settled, color_scheme=scheme, viewport=view, locale="es-PR", reduced_motion="reduce")
    state(page, "Resultado")
    expect(page.locator(".seat-1 .outcome").first).to_be_visible()
    no_complaints(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if size[0] > size[1]:
        # Everything at once, nothing cut off.
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
        boxes = "[...document.querySelectorAll('.seat, .felt')]"
        cut = f"{boxes}.filter((one) => one.scrollHeight > one.clientHeight + 1).map((one) => one.className)"
        assert page.evaluate(cut) == []
        # To be read from three metres, in hundredths of the screen's height: a seat with all its wagers, state, total.
        for what, least in (("#state .title", 5), (".felt .total strong", 8), (".seat-1 li", 1.6)):
            script = f"parseFloat(getComputedStyle(document.querySelector('{what}')).fontSize) / innerHeight * 100"
            assert page.evaluate(script) >= least
    assert page.evaluate("document.getAnimations().length") == 0
