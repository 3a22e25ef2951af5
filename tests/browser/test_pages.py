"""Every page, in a real browser: on a desk and on a phone, in the light and in the dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser import checks
from tests.browser.conftest import Open, Scheme
from tests.browser.pages import PAGES
from tests.once import Once

WIDTHS = (1400, 390)
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
# Names lie where they lie in any colour.
CASES = [
    (name, width, scheme)
    for name in PAGES
    for width in WIDTHS
    for scheme in (SCHEMES[:1] if "hostile" in name else SCHEMES)
]
Written = Callable[[str], Path]


@pytest.fixture(scope="module")
def written(once: Once, browser: object) -> Written:
    """Writes a page when it is first asked for; without a browser, none."""
    return lambda name: PAGES[name](once)


@pytest.mark.parametrize(("name", "width", "scheme"), CASES)
def test_a_page_can_be_read_and_used_by_everybody(
    name: str, width: int, scheme: Scheme, written: Written, open_page: Open
) -> None:
    opened = open_page(written(name), width, scheme)
    complaints = [words for check in checks.ALL for words in check(opened)]
    if checks.unfold(opened):
        complaints += [f"unfolded: {words}" for check in checks.SEEN for words in check(opened)]
    assert not complaints, "\n".join(complaints)


def test_the_keyboard_hides_policies_and_sorts_tables(written: Written, open_page: Open) -> None:
    page = open_page(written("reproduce"), 1400, "light").page
    lines = page.locator('#fig2b .variant:not([hidden]) [id*="-line-"]')
    assert [one.is_visible() for one in lines.all()] == [True] * 4
    page.get_by_role("checkbox", name="D-LinUCB").focus()
    page.keyboard.press("Space")
    assert [one.is_visible() for one in lines.all()] == [True, True, False, True]
    sweep = page.locator('#horizon-1 [id*="-line-"]')
    assert [one.is_visible() for one in sweep.all()] == [True, True, False, True]
    page.get_by_role("radio", name="difference to DORAL").focus()
    page.keyboard.press("Space")
    shown = page.locator("#fig2b .variant:not([hidden])")
    assert shown.count() == 1
    assert shown.get_attribute("data-view") == "difference"
    shares = page.locator("#ablation-table tbody tr td:nth-child(2)")
    page.locator("#ablation-table thead button").nth(1).focus()
    page.keyboard.press("Enter")
    values = [float(one or "nan") for one in shares.evaluate_all("all => all.map((one) => one.dataset.sort)")]
    assert values == sorted(values)
    assert len(values) > 10
