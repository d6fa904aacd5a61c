"""Fixtures that give a page in a real browser, one browser for all the tests in this folder.

A browser is driven from an event loop that runs as long as it does, so it must be gone before a
test elsewhere runs a loop of its own: hence the scope, and hence the place, as a package's fixture
ends with the package only if it stands there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.opened import Opened, OpenPage
from tests.browser.software import OPTIONS, program

WAIT_MS_MAX = 60_000


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program(), args=list(OPTIONS))
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens a file or an address in a profile of its own; nothing may be complained of."""
    opened: list[Opened] = []

    def open_one(place: Path | str, *, width: int = 1280, scheme: str = "light") -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        context.set_default_timeout(WAIT_MS_MAX)
        one = Opened(context.new_page())
        one.listen()
        opened.append(one)
        one.page.goto(place.as_uri() if isinstance(place, Path) else place)
        return one

    yield open_one
    for one in opened:
        one.page.context.close()
    assert [one.complaints for one in opened if one.complaints] == []
