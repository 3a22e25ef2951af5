"""Takes the pictures of docs/img/service: a service with the demonstration's campaigns, looked at in a browser.

`python scripts/service_pictures.py` writes all of them, `python scripts/service_pictures.py why` those that are named.
It needs a Chromium, as tests/browser does. The demonstration is drawn by chance and by the clock: pictures differ.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # it is run from a checkout, and uses what tests use

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402
from tests.browser import chromium  # noqa: E402
from tests.service.harness import Serving, serving  # noqa: E402

from doral.service.pages.shell import campaign_path  # noqa: E402
from doral.service.settings import ServiceSettings  # noqa: E402

PICTURES = ROOT / "docs" / "img" / "service"
DESK, LOW = (1280, 1000), (1280, 420)
_PATIENCE_S = 60
_SETTLED = "document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => done())))"


def _overview(page: Page, service: Serving) -> None:
    """Once the alarm is raised that the demonstration is made to have."""
    for _ in range(_PATIENCE_S):
        if service.store.books.alarms():
            break
        page.wait_for_timeout(1_000)
    page.goto(service.url + "/")


def _campaign(page: Page, service: Serving) -> None:
    """The one in which most has happened."""
    name = max(service.store.list(), key=lambda one: service.store.campaign(one).facts().arrivals)
    page.goto(service.url + campaign_path(name))


def _why(page: Page, service: Serving) -> None:
    name = service.store.list()[0]
    answered = [one for one in service.store.campaign(name).decisions("returned") if one.arm is not None]
    page.goto(service.url + campaign_path(name, "decisions", answered[-1].id))


Show = Callable[[Page, Serving], object]
# Name: what to show, and how large the screen is.
WANTED: dict[str, tuple[Show, tuple[int, int]]] = {
    "overview": (_overview, LOW),
    "campaign": (_campaign, DESK),
    "why": (_why, DESK),
}


def take(browser: Browser, service: Serving, name: str) -> Path:
    """One picture."""
    show, (width, height) = WANTED[name]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="light", reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(service.url + "/sign-in")
    page.get_by_label("Key").fill(service.key)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    show(page, service)
    page.evaluate(_SETTLED)
    page.wait_for_timeout(1_500)  # numbers that have just changed shine for a moment
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path)
    context.close()
    return path


def main(names: list[str]) -> None:
    """Those that are named; all if none is."""
    unknown = [name for name in names if name not in WANTED]
    found = chromium.find()
    if unknown:
        sys.exit(f"there is no picture {unknown[0]!r}; there are {', '.join(WANTED)}")
    if found is None:
        sys.exit(chromium.REMEDY)
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        storage = f"sqlite:///{folder}/demo.db"
        with serving(
            storage, ServiceSettings(storage=storage, is_demo=True, expire_every_s=2.0, watch_every_s=5.0)
        ) as service:
            browser = playwright.chromium.launch(executable_path=found, args=[*chromium.FLAGS])
            for name in names or WANTED:
                print(take(browser, service, name).relative_to(ROOT))
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
