"""Headless Chromium, where the machine has one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import Error as BrowserError

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str | None:
    """The Chromium that $CHROMIUM names or the machine has."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def running() -> Iterator[Browser]:
    """A browser; the test skips where there is none that runs."""
    found = chromium()
    if found is None:
        pytest.skip("browser: there is no Chromium; install it, or name it in $CHROMIUM")
    with sync_playwright() as playwright:
        try:
            # No sandbox: its helper does not run as root, as which CI runs.
            browser = playwright.chromium.launch(
                executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
        except BrowserError as error:
            pytest.skip(f"browser: {found} does not start: {str(error).splitlines()[0]}")
        try:
            yield browser
        finally:
            browser.close()


def tap_hands(desk: Page) -> None:
    """Enter the bank's tile hand and one of position 2, with a bet of $50, at the console."""
    desk.locator("summary", has_text="Tile hands").click()
    hands = {"Dealer": ("6-6", "4-5", "1-1", "3-3"), "position 2": ("5-5", "3-6", "2-2", "1-5")}
    for name, faces in hands.items():
        desk.get_by_role("button", name=f"{name} 0/4").click()
        for face in faces:
            desk.locator(".rack .tile", has_text=f"({face})").click()
    desk.get_by_label("bet in dollars").fill("50")
