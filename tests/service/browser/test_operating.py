"""What operators do all day, in a real browser against a real service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

import doral
from doral.cli.simulate import content
from doral.service.pages.shell import campaign_path
from tests.browser import checks
from tests.browser.conftest import Scheme
from tests.service.browser.conftest import Visit, Visiting, feed
from tests.service.harness import PROBLEM, Serving

KITS = campaign_path("clinic kits")


def test_a_wrong_key_is_told_and_the_right_one_leads_on_until_one_signs_out(visit: Visiting, service: Serving) -> None:
    one = visit(is_signed_in=False)
    one.go("/new")
    assert one.page.url == service.url + "/sign-in?next=/new"
    expect(one.page.locator("#key")).to_be_focused()
    one.page.keyboard.type("doral_0123_wrong")
    one.enter()
    expect(one.page.locator("#key-mistake")).to_contain_text("not known here")
    expect(one.page.locator("#key")).to_be_focused()
    one.page.keyboard.type(service.key)
    one.enter()
    assert one.page.url == service.url + "/new"
    expect(one.page.get_by_role("heading", level=1)).to_have_text("New campaign")
    one.press("Sign out")
    assert one.page.url == service.url + "/sign-in"
    one.page.go_back()
    one.go("/new")
    assert "/sign-in" in one.page.url


def test_a_campaign_is_created_with_the_keyboard_alone_after_some_mistakes(visit: Visiting, service: Serving) -> None:
    one = visit()
    one.go("/new")
    one.tab_to("name")
    one.page.keyboard.type("by keyboard")
    one.tab_to("arm-name-0")
    for word in ("letter", "1", "phone call", "two"):
        one.page.keyboard.type(word)
        one.page.keyboard.press("Enter")  # goes on to the next cell
    one.tab_to("budget")
    one.page.keyboard.type("3000")
    one.tab_to("deadline")
    one.page.keyboard.type("14")
    one.tab_to("horizon")
    one.page.keyboard.type("4000")
    one.enter()
    expect(one.page.locator("#arm-cost-1")).to_be_focused()
    expect(one.page.locator("#arm-cost-1-mistake")).to_contain_text("two: must be a number")
    expect(one.page.locator("#deadline-mistake")).to_contain_text("14: must say its unit")
    expect(one.page.locator("#arm-name-1")).to_have_value("phone call")
    one.page.keyboard.press("Control+A")
    one.page.keyboard.type("2")
    one.tab_to("deadline")
    one.page.keyboard.press("Control+A")
    one.page.keyboard.type("14d")
    one.enter()
    expect(one.page.locator("main")).to_contain_text("an answer counts if it comes within 14 days")
    assert "by keyboard" not in service.store.list()
    one.page.get_by_role("button", name="Create the campaign").focus()
    one.enter()
    expect(one.page.get_by_role("status").filter(has_text="The campaign is created")).to_be_visible()
    problem = service.store.campaign("by keyboard").problem
    assert [(arm.name, arm.cost) for arm in problem.arms] == [("letter", 1.0), ("phone call", 2.0)]
    assert (problem.budget, problem.horizon, problem.deadline) == (3000.0, 4000, 14 * 86_400.0)


def test_rows_are_added_and_removed(visit: Visiting) -> None:
    one = visit()
    one.go("/new")
    arms = one.page.locator('table[data-rows="arm"] tbody tr')
    expect(arms).to_have_count(4)
    one.page.get_by_role("button", name="Add an option").click()
    expect(arms).to_have_count(5)
    expect(one.page.locator("#arm-name-4")).to_be_focused()
    one.page.keyboard.type("fifth")
    one.page.get_by_role("button", name="Remove option 1").click()
    expect(arms).to_have_count(4)
    expect(one.page.locator("#arm-name-3")).to_have_value("fifth")
    assert one.page.locator("#arm-name-3").get_attribute("aria-label") == "Option 4: name"


def test_a_campaign_from_a_file(visit: Visiting, service: Serving, tmp_path: Path) -> None:
    file = tmp_path / "border tests.json"
    file.write_text("{ nothing", encoding="utf-8")
    one = visit()
    one.go("/new")
    one.page.locator("#file").set_input_files(file)
    one.press("Read the file")
    expect(one.page.locator("#file-mistake")).to_contain_text("is not JSON")
    file.write_text(content(file), encoding="utf-8")
    one.page.locator("#file").set_input_files(file)
    one.press("Read the file")
    expect(one.page.locator("main")).to_contain_text("56 days after it is created")
    one.press("Create the campaign")
    assert service.store.campaign("border tests").problem.arm_names == ("letter", "phone call", "home visit")


def test_without_scripts_everything_can_be_done(visit: Visiting, service: Serving) -> None:
    one = visit(has_scripts=False)
    one.go("/new")
    one.press("More options")
    expect(one.page.locator('input[name="arm_name"]')).to_have_count(9)
    one.page.locator("#name").fill("without scripts")
    one.page.locator("#arm-name-8").fill("letter")
    one.page.locator("#budget").fill("10")
    one.page.locator("#deadline").fill("1d")
    one.page.locator("#end-date").check()
    one.page.locator("#until").fill("2031-03-31")
    one.enter()
    one.press("Change something")
    expect(one.page.locator("#until")).to_have_value("2031-03-31")
    one.press("Check")
    one.press("Create the campaign")
    one.page.get_by_text("Top up the budget").click()
    one.page.get_by_label("How much more").fill("5")
    one.press("Go on")
    expect(one.page.locator("dl.facts")).to_contain_text("15\u00a0units")
    one.press("Raise the budget")
    expect(one.page.get_by_role("status").filter(has_text="raised by 5")).to_be_visible()
    assert float(service.store.campaign("without scripts").ledger().total) == 15.0


def test_numbers_change_while_the_page_is_open(visit: Visiting, service: Serving) -> None:
    campaign = service.store.create("moving", PROBLEM, seed=1)
    one = visit()
    one.go(campaign_path("moving"))
    tile = one.page.locator(".tile", has=one.page.get_by_text("Arrivals", exact=True)).locator("dd")
    expect(tile).to_contain_text(re.compile(r"^0"))
    one.page.evaluate("window.stillTheSame = true")
    feed(campaign, 21)
    expect(tile).to_contain_text(re.compile(r"^21"), timeout=10_000)
    with one.service.client() as client:
        answer = client.post("/v1" + campaign_path("moving", "decisions"), json={"context": "old"})
        assert answer.status_code == 200
    expect(tile).to_contain_text(re.compile(r"^22"), timeout=10_000)
    assert one.page.evaluate("window.stillTheSame")


def test_an_operator_steers_a_campaign(visit: Visiting, service: Serving) -> None:
    campaign = service.store.create("steered", PROBLEM, seed=1)
    made = feed(campaign, 30)
    one = visit()
    one.go(campaign_path("steered"))
    row = one.page.locator("table.steer tr", has_text="call")
    one.page.locator("#do-options > summary").click()
    with one.page.expect_navigation():
        row.get_by_role("button", name="Pause call").click()
    said = one.page.locator(".told")
    expect(said).to_have_text("The option call is paused: it is not offered until it is resumed.")
    one.page.locator("#do-options > summary").click()
    expect(row).to_contain_text("paused")
    assert "did=" not in one.page.url  # loading it again does not say it again
    one.page.get_by_text("Top up the budget").click()
    one.page.get_by_label("How much more").fill("a lot")
    one.enter()
    expect(one.page.locator("#amount-mistake")).to_contain_text("a lot: must be a number")
    expect(one.page.get_by_label("How much more")).to_have_value("a lot")
    one.page.get_by_label("How much more").fill("250")
    one.enter()
    expect(one.page.locator("dl.facts")).to_contain_text("1,250\u00a0units")
    with one.page.expect_navigation():
        one.page.get_by_role("button", name="Raise the budget").dblclick(no_wait_after=True)
    expect(one.page.locator(".told")).to_contain_text("raised by 250")
    assert float(campaign.ledger().total) == 1_250.0
    decision = next(each for each in made if campaign.decision(each.id).state == "pending")
    one.go(campaign_path("steered", "decisions", decision.id))
    one.press("Cancel this decision")
    one.press("Cancel it")
    expect(one.page.locator(".told")).to_contain_text("The decision is cancelled")
    assert campaign.decision(decision.id).state == "cancelled"
    one.go(campaign_path("steered"))
    one.page.locator("#do-more > summary").click()
    one.page.get_by_label("Type the name of the campaign").fill("steered")
    one.enter()
    expect(one.page.locator(".acting")).to_contain_text("The campaign is closed")
    expect(one.page.get_by_role("button", name="Pause letter")).to_have_count(0)


def test_downloads_are_files(visit: Visiting) -> None:
    one = visit()
    one.go(KITS)
    one.page.locator("#downloads > summary").click()
    for words, begins in (
        ("Decisions as Parquet", b"PAR1"),
        ("Decisions as CSV", b"id,round"),
        ("Report as JSON", b"{"),
        ("This page as a file", b"<!DOCTYPE html>"),
    ):
        with one.page.expect_download() as download:
            one.page.get_by_role("link", name=words).click()
        assert Path(download.value.path()).read_bytes().startswith(begins), words


def test_somebody_who_may_only_read_sees_no_buttons(visit: Visiting, service: Serving) -> None:
    one = visit(390, is_signed_in=False)
    one.go("/sign-in?next=" + KITS)
    one.page.get_by_label("Key").fill(service.make_key("read", campaigns=["clinic kits"]))
    one.enter()
    expect(one.page.get_by_role("heading", level=1)).to_have_text("clinic kits")
    expect(one.page.locator("table.steer, .acts")).to_have_count(0)
    expect(one.page.get_by_role("button", name="Pause campaign")).to_have_count(0)
    expect(one.page.get_by_role("link", name="New campaign")).to_have_count(0)
    one.go("/new")
    expect(one.page.locator("main")).to_contain_text("may not do this")


def test_a_chosen_theme_stays(visit: Visiting) -> None:
    one = visit(scheme="light")
    one.go("/new")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = one.page.evaluate(paper)
    button = one.page.get_by_role("button", name="Theme:")
    while "dark" not in (button.text_content() or ""):
        button.click()
    dark = one.page.evaluate(paper)
    assert dark != light
    one.go(KITS)
    assert one.page.evaluate(paper) == dark


def _sign_in(one: Visit) -> None:
    one.context.clear_cookies()
    one.go("/sign-in")


def _wrong_key(one: Visit) -> None:
    _sign_in(one)
    expect(one.page.locator("#key")).to_be_focused()
    one.page.keyboard.type("wrong")
    one.enter()


def _mistakes(one: Visit) -> None:
    one.go("/new")
    one.page.locator("#arm-cost-0").fill("much")
    one.page.locator("#name").fill("a name that goes on and on, and on, until nobody reads it any more")
    one.press("Check")


def _review(one: Visit) -> None:
    one.go("/new")
    for id_, value in {"name": "x", "arm-name-0": "letter", "budget": "9", "deadline": "2h", "horizon": "5"}.items():
        one.page.locator(f"#{id_}").fill(value)
    one.press("Check")


def _why(one: Visit) -> None:
    campaign = one.service.store.campaign("clinic kits")
    one.go(campaign_path("clinic kits", "decisions", next(iter(campaign.decisions("pending"))).id))


def _top_up(one: Visit, amount: str) -> None:
    one.go(campaign_path("clinic kits", "acts", "top-up"))
    one.page.get_by_label("How much more").fill(amount)
    one.enter()


PAGES = {
    "overview": lambda one: one.go("/"),
    "campaign": lambda one: one.go(KITS),
    "why": _why,
    "preview": lambda one: one.go(campaign_path("clinic kits", "preview") + "?group=old"),
    "mistakes": _mistakes,  # which is the empty form, and more
    "review": _review,
    "top-up": lambda one: _top_up(one, "5"),
    "top-up-mistake": lambda one: _top_up(one, "much"),
    "not-there": lambda one: one.go(campaign_path("nobody")),
    "wrong-key": _wrong_key,
    "sign-in": _sign_in,
}


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_every_page_can_be_read_and_used_by_everybody(width: int, scheme: Scheme, visit: Visiting) -> None:
    one = visit(width, scheme)
    looks = checks.SEEN if width < 1000 else (*checks.SEEN, checks.keyboard_reachable)  # Tab is the same at any width
    complaints = []
    for name, open_page in PAGES.items():
        open_page(one)
        checks.unfold(one.opened)
        complaints += [f"{name}: {words}" for check in looks for words in check(one.opened)]
    assert not complaints, "\n".join(complaints)


def test_hostile_names_are_words_and_nothing_else(visit: Visiting, service: Serving) -> None:
    name = '"><script>document.title = "taken"</script>/../☕'
    arms = [doral.Arm("<img src=x onerror=alert(1)>"), doral.Arm("'; drop")]
    service.store.create(name, doral.Problem(arms=arms, contexts=["<b>"], budget=9, horizon=9, deadline=60))
    one = visit(390)
    one.go("/")
    one.go(campaign_path(name))
    one.page.locator("#do-options > summary").click()
    with one.page.expect_navigation():
        one.page.get_by_role("button", name=re.compile("^Pause <img")).click()
    expect(one.page.locator(".told")).to_contain_text("<img src=x onerror=alert(1)> is paused")
    assert "taken" not in one.page.title() or "script" in one.page.title()
    assert one.page.locator("main img, main b").count() == 0
