"""A flash that refuses is no reason not to start, and is asked again."""

from __future__ import annotations

from tests.mpy.conftest import Run


def test_the_app_goes_on_over_a_flash_that_refuses(micropython: Run) -> None:
    refused = "fault trial OSError(5,)"
    said = micropython("flash_that_refuses.py").splitlines()
    starts = ["recorded 3", "recorded 3", "done /service"]
    assert said == [*starts, refused, "at 1000", refused, "at 21000", "done", "at 41000"]
