"""A real service and a real browser for a module of tests; whoever has a session need not sign in again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Response

import doral
from tests.browser.checks import Opened
from tests.browser.conftest import HEIGHT, Scheme
from tests.browser.conftest import browser as browser
from tests.service.harness import PROBLEM, Serving, serving

_LISTEN = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`content policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""


@dataclass(frozen=True, kw_only=True)
class Visit:
    """Somebody at a screen. What went wrong meanwhile is in `opened`."""

    service: Serving
    context: BrowserContext
    opened: Opened
    statuses: list[tuple[int, str]] = field(default_factory=list)

    @property
    def page(self) -> Page:
        return self.opened.page

    def go(self, path: str) -> Response | None:
        return self.page.goto(self.service.url + path)

    def press(self, words: str) -> None:
        """A button, by what is written on it; and wait for the page that comes."""
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=words, exact=True).first.click()

    def enter(self) -> None:
        """The key, and the page that comes of it."""
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def tab_to(self, id_: str) -> None:
        """With the keyboard alone."""
        for _ in range(120):
            if self.page.evaluate("document.activeElement.id") == id_:
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not lead to {id_}")

    def complaints(self) -> list[str]:
        """Errors on the console but for answers that were meant, what the content policy kept out, foreign requests."""
        told = [words for words in self.opened.errors if "Failed to load resource" not in words]
        told += [f"{status} {url}" for status, url in self.statuses if status >= 500]
        return told + [
            f"asked for {url}" for url in self.opened.requests if not url.startswith((self.service.url, "data:"))
        ]


Visiting = Callable[..., Visit]


@pytest.fixture(scope="module")
def service(browser: Browser) -> Iterator[Serving]:
    """With a campaign in which something has happened."""
    del browser  # without one, no service is started
    with serving() as found:
        campaign = found.store.create("clinic kits", PROBLEM, seed=1)
        feed(campaign, 60)
        yield found


def feed(campaign: doral.Campaign, many: int) -> list[doral.Decision]:
    """People arrive, and every third one answers at once."""
    made = [campaign.decide(("young", "old")[number % 2]) for number in range(many)]
    for number, one in enumerate(made):
        if one.arm is not None and number % 3 == 0:
            campaign.feedback(one.id, float(number % 2))
    return made


@pytest.fixture(scope="module")
def session(browser: Browser, service: Serving) -> dict[str, Any]:
    """The cookies of an administrator who has signed in."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(service.url + "/sign-in")
        page.get_by_label("Key").fill(service.key)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        return dict(context.storage_state())


@pytest.fixture
def visit(browser: Browser, service: Serving, session: dict[str, Any]) -> Iterator[Visiting]:
    """Open the service at a width of the screen and in a colour scheme; at the end, nothing may have gone wrong."""
    made: list[Visit] = []

    def open_(
        width: int = 1400, scheme: Scheme = "light", *, is_signed_in: bool = True, has_scripts: bool = True
    ) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": HEIGHT},
            color_scheme=scheme,
            reduced_motion="reduce",
            java_script_enabled=has_scripts,
            accept_downloads=True,
            storage_state=session if is_signed_in else None,  # type: ignore[arg-type]
        )
        context.add_init_script(_LISTEN)
        found = Visit(service=service, context=context, opened=Opened.of(context.new_page()))
        found.page.on("response", lambda answer: found.statuses.append((answer.status, answer.url)))
        found.page.set_default_timeout(60_000)  # on a machine with much else to do
        made.append(found)
        return found

    yield open_
    complaints = [words for one in made for words in one.complaints()]
    for one in made:
        one.context.close()
    assert not complaints, "\n".join(complaints)
