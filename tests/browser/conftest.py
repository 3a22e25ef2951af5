"""One browser for a module of tests. Not for longer: its event loop would be in the way of those of other tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser import chromium
from tests.browser.checks import Opened

Scheme = Literal["light", "dark"]
Open = Callable[[Path, int, Scheme], Opened]
HEIGHT = 1000
_SETTLED = "document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => done())))"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Skips where there is none, and says what to do about it."""
    found = chromium.find()
    if found is None:
        pytest.skip(chromium.REMEDY)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=[*chromium.FLAGS])
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open a file at a width of the screen and in a colour scheme, without a network."""
    contexts = []

    def open_(path: Path, width: int, scheme: Scheme) -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, offline=True, reduced_motion="reduce"
        )
        contexts.append(context)
        opened = Opened.of(context.new_page())
        opened.page.goto(path.as_uri())
        opened.page.evaluate(_SETTLED)
        return opened

    yield open_
    for context in contexts:
        context.close()
