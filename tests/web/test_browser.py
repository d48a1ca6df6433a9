"""Display and console in headless Chromium: a whole round, breaks in it, hostile text, the keyboard alone, axe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.virtual import until
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
    expect(screen.locator(".felt .deal")).to_have_text("player position 1 is dealt first, then counter-clockwise")
    expect(screen.locator(".seat-1")).to_contain_text("FIRST")
    expect(screen.locator(".seat-2")).to_contain_text("✓ pays $10")
    expect(screen.locator(".seat-2")).to_contain_text("✗ loses")
    expect(desk.locator(".result")).to_contain_text("player position 1 is dealt first")
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
    served.play([2, 2, 5], {2: {"match": 500, "odd": 1000}})
    served.all_stored()
    desk, screen = log_in(windows, served, "supervisor"), display(windows, served)
    form = desk.get_by_role("group", name="Correct a round that is over")
    expect(form.get_by_label("round", exact=True)).to_have_value("1")
    expect(form).to_contain_text("as it stands: 2 2 5, total 9")
    for number, value in enumerate("255", 1):
        form.get_by_label(f"die {number}").fill(value)
    form.get_by_label("reason").fill("die 2 misread")
    no_complaints(desk)
    press(desk, "Show what changes")
    # The dragon's eye die stays a 2, so the odd wager lost all the same; a match each time, once in place of twice.
    expect(form.get_by_role("row", name="table's net on dice wagers")).to_contain_text("$0+$5")
    expect(form).to_contain_text("The table's net changes by +$5.")
    no_complaints(desk)
    press(desk, "Correct")
    expect(desk.locator("#message")).to_contain_text("round 1 is corrected by a further record")
    expect(form).to_contain_text("as it stands: 2 5 5, total 12")
    expect(screen.locator("#rolls li")).to_contain_text("12✎corrected")
    form.get_by_label("what was wrong").select_option(label="the wagers of a position were these")
    form.get_by_label("position").select_option("2")
    # It begins with what stands, so that what is not touched is not taken off.
    expect(form.get_by_label("odd ($)")).to_have_value("10")
    expect(form).to_contain_text("These will be ALL the wagers of position 2")
    form.get_by_label("match ($)").fill("7.50")
    form.get_by_label("reason").fill("paid at once")
    press(desk, "Show what changes")
    expect(form.get_by_role("row", name="all wagers of position 2")).to_contain_text(
        "match $5, odd $10match $7.50, odd $10"
    )
    expect(form.get_by_role("row", name="net of position 2")).to_contain_text("−$5−$2.50")
    # Whoever changes his mind has to look again.
    form.get_by_label("match ($)").fill("8")
    expect(form.get_by_role("button", name="Correct", exact=True)).to_be_hidden()
    press(desk, "Show what changes")
    press(desk, "Correct")
    expect(form.get_by_label("reason")).to_have_value("")
    served.all_stored()
    told = served.store.round(1)["corrected"]["told"]
    assert [one["what"] for one in told] == ["dice", "bets"]
    assert (told[1]["position"], told[1]["wagers"]) == (2, {"match": 800, "odd": 1000})
    expect(form.get_by_label("match ($)")).to_have_value("8")


def test_a_round_to_be_corrected_is_a_whole_number(windows: Windows, served: Served) -> None:
    served.play([2, 2, 5], {2: {"match": 500}})
    served.all_stored()
    desk = log_in(windows, served, "supervisor")
    form = desk.get_by_role("group", name="Correct a round that is over")
    for text in ("abc", "1e1", "0", "1.0", "-1", ""):
        form.get_by_label("round", exact=True).fill(text)
        press(desk, "Show what changes")
        expect(desk.locator("#message")).to_have_text(f"round: {text}: allowed are whole numbers from 1")
    form.get_by_label("round", exact=True).fill("7")
    expect(form).to_contain_text("round 7 has no result that could be corrected")


def test_typed_wagers_count_when_they_are_set(windows: Windows, served: Served) -> None:
    desk = log_in(windows, served)
    press(desk, "Open a round")
    state(desk, "Bets are open")
    seats, match = desk.locator(".seats button"), desk.get_by_label("match ($)")
    seats.nth(5).click()
    match.fill("77")
    expect(desk.locator("p.unset")).to_have_text("not set yet: position 6: match 77. The table has no wagers.")
    # Neither another position nor another load of the page loses it, and what is set elsewhere does not overwrite it.
    seats.nth(0).click()
    expect(match).to_have_value("")
    desk.reload()
    expect(seats.nth(5)).to_have_text("6 ✎")
    seats.nth(5).click()
    expect(match).to_have_value("77")
    match.press("End")
    served.ask("bets", position=6, wagers={"match": 2500, "odd": 100})
    expect(desk.get_by_label("odd ($)")).to_have_value("1")
    expect(match).to_have_value("77")
    expect(desk.locator("p.unset")).to_contain_text("The table has match $25, odd $1.")
    no_complaints(desk)
    # More than the table takes is named in dollars.
    for text in ("9999999", "99999999"):
        match.fill(text)
        press(desk, "Set wagers")
        expect(desk.locator("#message")).to_have_text(f"match {text}: allowed are $1,000,000 at most")
    match.fill("77")
    press(desk, "Close bets")
    expect(desk.get_by_role("dialog")).to_contain_text("typed and never set: position 6: match 77")
    no_complaints(desk)
    desk.keyboard.press("Escape")
    state(desk, "Bets are open")
    desk.keyboard.press("Alt+n")
    expect(desk.get_by_role("button", name="Cancel")).to_be_focused()
    desk.keyboard.press("Alt+n")
    expect(desk.get_by_role("dialog")).to_be_visible()
    press(desk, "Yes")
    state(desk, "No more bets")
    expect(match).to_have_value("25")
    expect(seats.nth(5)).to_have_text("6 · $26")
    served.bench.do("next", dice=[1, 2, 4])
    served.ask("shake")
    served.wait("LOCKED")
    served.reveal()
    served.finish()
    press(desk, "Open a round")
    state(desk, "Bets are open")
    expect(match).to_have_value("")
    match.fill("5")
    # By another console, or by the lid under other rules.
    served.ask("close")
    expect(desk.locator("#message")).to_contain_text("it does not count: position 6: match 5")
    expect(match).to_have_value("")


def test_what_cannot_be_taken_back_is_asked_for_twice(windows: Windows, served: Served) -> None:
    served.play([4, 4, 4], {2: {"bonus": 500}})
    desk = log_in(windows, served, "supervisor")
    desk.locator(".seats button").nth(1).click()
    for name, words in (
        ("The player at position 2 leaves", "its part in the streak is forfeited for good"),
        ("Dice were changed", "The streak of 1 ends for good, and the bonus of: position 2 $5"),
        ("Shaker was changed", "The streak of 1 ends for good"),
        ("Close the table (the streak ends)", "The streak of 1 ends for good"),
    ):
        press(desk, name)
        expect(desk.get_by_role("dialog")).to_contain_text(words)
        # The key that is still held down from the press does nothing.
        desk.keyboard.press("Enter")
        expect(desk.get_by_role("dialog")).to_be_hidden()
        expect(desk.get_by_role("button", name=name)).to_be_focused()
    assert served.hub.snapshot.state["streak"] == {"count": 1, "parts": [[2, 500]], "gone": []}
    press(desk, "The player at position 2 leaves")
    desk.get_by_role("dialog").get_by_role("button", name="Yes").click()
    press(desk, "Close the table (the streak ends)")
    expect(desk.get_by_role("dialog")).to_contain_text("no bonus wager")
    press(desk, "Yes")
    # Nothing is at stake now: one press.
    press(desk, "Dice were changed")
    expect(desk.locator("#message")).to_be_empty()
    served.all_stored()
    whys = [one["d"]["why"] for one in served.store.events(served.hub.snapshot.table["uid"]) if one["k"] == "streak"]
    assert whys[:2] == ["player left", "table closed"]


def cut_power(served: Served) -> None:
    served.bench.do("power", to="off")
    served.wait_linked(False)
    served.bench.do("power", to="on")
    served.wait_linked(True)


def test_a_power_cut_does_not_hide_what_is_owed(windows: Windows, served: Served) -> None:
    desk = log_in(windows, served)
    served.lock([2, 5, 2], {2: {"match": 500, "odd": 1000}})
    served.reveal()
    served.all_stored()
    served.lid("shut")
    cut_power(served)
    state(desk, "Between rounds")
    newest = desk.locator(".over > li").first
    expect(newest).to_contain_text("Round 1 · «2» 5 2 · Total 9 · table $0")
    expect(newest).to_contain_text("position 2: match $5 ✓ pays $10, odd $10 ✗ loses")
    no_complaints(desk)
    # And while there is no table at all.
    served.bench.do("cable", to="out")
    state(desk, "No connection to the table")
    expect(newest).to_contain_text("match $5 ✓ pays $10")


def test_a_power_cut_that_voids_a_round_tells_what_goes_back(windows: Windows, served: Served) -> None:
    desk, screen = log_in(windows, served), display(windows, served)
    for close in (False, True):
        served.ask("open", shaker=2)
        served.ask("bets", position=3, wagers={"match": 500, "even": 2500})
        until(lambda: served.hub.snapshot.state["bets"], "the wagers")
        if close:
            served.ask("close")
        cut_power(served)
        number = int(close) + 1
        words = f"round {number} is void: wagers go back"
        for page in (desk, screen):
            expect(page.locator("#notices")).to_contain_text(words)
        expect(screen.locator(".seat-3")).to_contain_text("match $5↩ goes back")
        expect(desk.locator(".over > li").first).to_contain_text(f"Round {number} · void: wagers go back")
        expect(desk.locator(".over > li").first).to_contain_text(
            "position 3: match $5 ↩ goes back, even $25 ↩ goes back"
        )
    # What was closed is in the record, for a server that has not seen it; what was open is not.
    served.stop()
    served.start()
    expect(desk.locator(".over > li").first).to_contain_text("match $5 ↩ goes back")
    expect(desk.locator(".over > li").last).to_contain_text("what was down was not recorded before its bets closed")
    press(desk, "Open a round")
    expect(screen.locator("#notices")).not_to_contain_text("is void")


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
    """A table whose newest result has all wagers there are: at a side, in the middle, and where it is dealt first."""
    with serving(tmp_path_factory.mktemp("settled")) as served:
        all_six = dict.fromkeys(("match", "even", "odd", "double", "triple", "bonus"), 12_345)
        served.lock([4, 4, 5], dict.fromkeys((1, 4, 5), all_six))
        served.reveal()
        yield served


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(390, 844), (1920, 1080), (1280, 720), (1024, 768)])
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
