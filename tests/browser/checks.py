"""What holds for every page that this project writes, as functions of an opened page; each returns its complaints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

_SCRIPT = Path(__file__).with_name("checks.js").read_text(encoding="utf-8")
_LOCAL = ("file:", "data:", "blob:", "about:")


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A page in the browser, with everything that it complained about or asked for since."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, page: Page) -> Opened:
        """Listen before anything is loaded."""
        opened = cls(page=page)
        page.on("console", lambda message: opened.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: opened.errors.append(str(error)))
        page.on("request", lambda asked: opened.requests.append(asked.url))
        return opened

    def measure(self, name: str) -> Any:
        """Call one of the functions of the script."""
        return self.page.evaluate(f"{_SCRIPT}.{name}()")


def no_console_errors(opened: Opened) -> list[str]:
    """Nothing went wrong, and nothing was asked of any other machine."""
    far = [url for url in opened.requests if not url.startswith(_LOCAL)]
    return [*opened.errors, *(f"asked for {url}" for url in far)]


def no_overlapping_text(opened: Opened) -> list[str]:
    """No word lies on another."""
    return [f"overlap: {one}" for one in opened.measure("overlaps")]


def no_broken_words(opened: Opened) -> list[str]:
    """No short word is torn apart because its place is too narrow."""
    return [f"torn apart: {one}" for one in opened.measure("broken")]


def nothing_wider_than_screen(opened: Opened) -> list[str]:
    """The page itself never scrolls sideways; wide tables do so in frames of their own."""
    return list(opened.measure("tooWide"))


def keyboard_reachable(opened: Opened) -> list[str]:
    """Tab reaches every link, button and frame that scrolls, and one sees where it is."""
    many = opened.measure("expectFocus")
    for _ in range(many + 2):
        opened.page.keyboard.press("Tab")
    return list(opened.measure("missedFocus"))


def axe_clean(opened: Opened) -> list[str]:
    """axe-core finds nothing serious or critical."""
    found = Axe().run(opened.page).response["violations"]
    return [
        f"axe: {one['id']} ({one['impact']}): {one['help']}: {node['target']} {node.get('failureSummary', '')}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:5]
    ]


def unfold(opened: Opened) -> int:
    """Open all that is folded; how many there were."""
    folded = opened.page.locator("details:not([open])")
    return int(folded.evaluate_all("all => all.map((one) => { one.open = true; }).length"))


Check = Callable[[Opened], list[str]]
SEEN: tuple[Check, ...] = (no_overlapping_text, no_broken_words, nothing_wider_than_screen, axe_clean)
ALL: tuple[Check, ...] = (
    *SEEN,
    keyboard_reachable,
    no_console_errors,  # last: also what the others set off
)
