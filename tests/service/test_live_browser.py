"""The live page in a real browser: it moves by itself, and leaves whoever reads it in peace."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from doral.pages.numbers import figure
from doral.service.pages.shell import campaign_path
from tests.browser.checks import SEEN, Check, Opened, keyboard_reachable
from tests.browser.conftest import browser
from tests.live.campaigns import in_rounds, of_people
from tests.service.harness import Serving, serving

__all__ = ["browser"]
NAME = "kits, <b>spring</b>"


@pytest.fixture(scope="module")
def service(browser: Browser) -> Iterator[Serving]:
    with serving() as found:
        in_rounds(found.store, NAME, 60)
        of_people(found.store)
        yield found


def opened(browser: Browser, service: Serving, path: str, *, key: str | None = None, width: int = 1400) -> Opened:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        extra_http_headers={"Authorization": f"Bearer {key or service.key}"},
        reduced_motion="reduce",
    )
    found = Opened.of(context.new_page())
    found.page.goto(f"{service.url}{path}")
    return found


def tile(page: Page, name: str) -> str:
    return page.locator(f'.tile:has(dt:text-is("{name}")) dd').evaluate("one => one.firstChild.data")


def test_the_page_moves_and_leaves_its_reader_in_peace(browser: Browser, service: Serving) -> None:
    campaign = service.store.campaign(NAME)
    page = opened(browser, service, campaign_path(NAME)).page
    status = page.locator("#status")
    expect(status).to_have_text("Live")
    for fold in ("arms", "answers", "money", "latest"):
        page.locator(f"#{fold} > details > summary").click()
    page.locator("#arms-table thead button", has_text="Uses").click()
    page.locator("#money details details summary").first.click()
    page.locator("#pairs-table thead button").first.focus()
    page.evaluate("window.scrollTo(0, 900); window.__same = document.querySelector('#arms-table')")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#answers-title'))")
    for _ in range(3):
        made = campaign.decide_many(["old", "young"] * 4)
        campaign.feedback_many([(one.id, 1.0) for one in made if one.state == "pending"])
        campaign.add_arm(type(campaign.problem.arms[0])(f"new {time.time()}", features=[0.3, 0.3], cost=2.0))
        expect(page.locator('.tile:has(dt:text-is("Arrivals")) dd')).to_contain_text(f"{campaign.report().arrivals:,}")
    expect(page.locator("#arms-table tbody tr")).to_have_count(len(campaign.problem.arms))
    report, ledger = campaign.report(), campaign.ledger()
    assert tile(page, "Spent") == figure(float(ledger.spent), 6)
    assert tile(page, "Reward so far") == figure(report.reward, 6)
    assert page.evaluate("window.__same === document.querySelector('#arms-table')")
    plays = page.locator("#arms-table tbody tr td:nth-child(4)").evaluate_all(
        "all => all.map((one) => +one.dataset.sort)"
    )
    assert plays == sorted(plays)
    assert page.locator("#arms-table th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert page.locator("#money details details").first.evaluate("one => one.open")
    assert page.evaluate("document.activeElement.closest('table').id") == "pairs-table"
    assert page.evaluate("getSelection().toString()") == "Return curves"
    assert page.evaluate("scrollY") >= 850
    latest = page.locator("#latest-table tbody tr").first
    assert latest.get_attribute("data-key") == campaign.facts().latest[0].id
    page.context.close()


def test_the_page_says_when_it_is_signed_out_and_when_the_campaign_is_gone(
    browser: Browser,
    service: Serving,
) -> None:
    in_rounds(service.store, "short", 5)
    key = service.make_key("read")
    page = opened(browser, service, "/campaigns/short", key=key).page
    expect(page.locator("#status")).to_have_text("Live")
    service.store.books.revoke_key(key.split("_")[1], time.time())
    until = time.monotonic() + 20.0
    while "Signed out" not in page.locator("#status").inner_text() and time.monotonic() < until:
        service.store.campaign("short").decide("old")  # what a key may do is asked anew every few seconds
        page.wait_for_timeout(300)
    expect(page.locator("#status")).to_contain_text("Signed out")
    page.context.close()
    page = opened(browser, service, "/campaigns/short").page
    expect(page.locator("#status")).to_have_text("Live")
    service.store.delete("short")
    expect(page.locator("#status")).to_contain_text("deleted", timeout=20_000)
    page.context.close()


def test_the_list_moves_filters_and_remembers_a_theme(browser: Browser, service: Serving) -> None:
    for number in range(9):
        in_rounds(service.store, f"clinic {number}", 1)
    page = opened(browser, service, "/").page
    expect(page.locator("#status")).to_have_text("Live")
    page.locator("#filter").fill("CLINIC 3")
    expect(page.locator("tbody tr:visible")).to_have_count(1)
    service.store.campaign("clinic 3").decide("old")
    expect(page.locator('tr[data-key="clinic 3"] td:nth-child(5)')).to_have_text("2", timeout=10_000)
    expect(page.locator("tbody tr:visible")).to_have_count(1)
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("thead th", has_text="Alarms")).to_be_in_viewport(ratio=1.0)  # without scrolling sideways
    page.set_viewport_size({"width": 1280, "height": 720})
    switch = page.locator("button[data-theme-switch]")
    for theme in ("light", "dark"):
        switch.click()
        assert page.evaluate("document.documentElement.dataset.theme") == theme
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    page.context.close()


def test_pages_can_be_read_and_used_by_everybody(browser: Browser, service: Serving) -> None:
    people = service.store.campaign("people")
    answered = [one.id for one in people.decisions() if one.reward is not None][-1]
    why = campaign_path("people", "decisions", answered)
    used: tuple[Check, ...] = (*SEEN, keyboard_reachable)
    cases: list[tuple[str, int, tuple[Check, ...]]] = [
        (campaign_path(NAME), 1400, SEEN),
        (campaign_path(NAME), 390, SEEN),
        ("/", 390, used),
        (why, 390, SEEN),
    ]
    complaints = []
    for path, width, checks in cases:
        found = opened(browser, service, path, width=width)
        complaints += [f"{path}, {width}: {words}" for check in checks for words in check(found)]
        complaints += [f"{path}: {words}" for words in found.errors]
        complaints += [f"{path}: asked for {url}" for url in found.requests if not url.startswith(service.url)]
        found.page.context.close()
    assert not complaints, "\n".join(complaints)
