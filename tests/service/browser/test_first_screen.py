"""An operator's first questions are answered by text in sight: is it on plan? is anything wrong? what is it doing?"""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Locator, expect

import doral
from doral.live.storage.service_tables import AlarmRow
from doral.service.pages.shell import campaign_path
from tests.browser import checks
from tests.browser.conftest import Scheme
from tests.service.browser.conftest import Visit, Visiting, feed
from tests.service.harness import Serving

SIZES = {"desk": (1400, 900), "phone": (390, 844)}


@pytest.fixture(scope="module", autouse=True)
def _campaigns(service: Serving) -> None:
    def problem(budget: float) -> doral.Problem:
        return doral.Problem(
            arms=[doral.Arm("letter", cost=1.0), doral.Arm("call", cost=3.0)],
            contexts={"young": 0.5, "old": 0.5},
            budget=budget,
            horizon=1_000,
            deadline=3_600,
            currency="EUR",
            outcome="booking",
        )

    feed(service.store.create("calm", problem(1_000), seed=1), 80)
    behind = service.store.create("behind", problem(4_000), seed=1)
    for _ in range(120):
        behind.decide("old", available=[])
    row = AlarmRow(campaign="behind", rule="arm-silent", subject="call", since=time.time(), words="call is silent")
    service.store.books.raise_alarm(row)
    service.store.create("unborn", problem(100), seed=1)


def _sized(visit: Visiting, size: str, scheme: Scheme = "light") -> Visit:
    one = visit(SIZES[size][0], scheme)
    one.page.set_viewport_size({"width": SIZES[size][0], "height": SIZES[size][1]})
    return one


def _is_in_sight(where: Locator) -> None:
    expect(where).to_be_in_viewport(ratio=0.98)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["calm", "behind"])
def test_plan_alarms_and_what_it_does_are_in_sight(visit: Visiting, size: str, name: str) -> None:
    one = _sized(visit, size)
    one.go(campaign_path(name))
    expect(one.page.locator("#status")).to_have_text("Live")
    sentence, page = one.page.locator(".lead-line"), one.page
    _is_in_sight(sentence)
    expect(sentence).to_contain_text("plan")
    expect(sentence).to_contain_text("EUR")
    _is_in_sight(page.get_by_role("button", name="Pause campaign"))
    _is_in_sight(page.locator("summary", has_text="Top up the budget"))
    _is_in_sight(page.locator("#do-options > summary"))
    _is_in_sight(page.locator(".tile", has=page.locator("dt", has_text="Pending")))
    if name == "calm":
        expect(sentence).to_contain_text("It now gives")
        _is_in_sight(page.get_by_text("No alarms."))
    else:
        expect(sentence).to_contain_text("Behind plan")
        expect(sentence).to_contain_text("all were skipped")
        _is_in_sight(page.get_by_text("Call is silent"))
    for chart in ("spend", "mix"):
        _is_in_sight(page.locator(f"#figure-{chart} svg.drawing:visible"))


@pytest.mark.parametrize("size", SIZES)
def test_the_list_says_who_needs_attention_and_why(visit: Visiting, size: str) -> None:
    one = _sized(visit, size)
    one.go("/?show=attention")
    row = one.page.locator('tr[data-key="behind"]')
    _is_in_sight(row.get_by_text("behind plan"))
    _is_in_sight(row.locator("svg.spark"))
    _is_in_sight(row.locator(".alarm .mark"))
    if size == "desk":
        expect(row.locator(".alarm")).to_contain_text("call is silent")
    expect(one.page.locator('tr[data-key="calm"]')).to_have_count(0)


def test_the_list_is_used_with_the_keyboard_alone(visit: Visiting, service: Serving) -> None:
    one = _sized(visit, "desk")
    one.go("/")
    one.page.keyboard.press("/")
    expect(one.page.locator("#filter")).to_be_focused()
    one.page.keyboard.type("CAL")
    expect(one.page.locator("tbody tr:visible")).to_have_count(1)
    one.page.keyboard.press("ArrowDown")
    one.enter()
    assert one.page.url == service.url + campaign_path("calm")


def test_a_campaign_is_paused_and_resumed(visit: Visiting, service: Serving) -> None:
    campaign = service.store.campaign("calm")
    one = _sized(visit, "phone")
    one.go(campaign_path("calm"))
    one.press("Pause campaign")
    expect(one.page.locator(".lead-line")).to_contain_text("Paused: every arrival is skipped")
    assert campaign.decide("old").reason_code == "paused"
    one.press("Resume campaign")
    expect(one.page.get_by_role("button", name="Pause campaign")).to_be_visible()
    assert campaign.facts().state == "open"


def test_an_alarm_is_acknowledged_and_muted_and_both_are_noted(visit: Visiting, service: Serving) -> None:
    store, tag = service.store, service.store.campaign("behind").session.row.tag
    row = AlarmRow(campaign="behind", rule="odd", subject="<b>x</b>", since=time.time(), words="something is odd")
    store.books.raise_alarm(row)
    one = _sized(visit, "desk")
    one.go(campaign_path("behind"))
    alarm = one.page.locator(".alarms li", has_text="Something is odd")
    alarm.locator("summary").click()
    with one.page.expect_navigation():
        alarm.get_by_role("button", name="Acknowledge").click()
    expect(alarm).to_contain_text("acknowledged by")
    expect(alarm.get_by_role("button", name="Acknowledge")).to_have_count(0)
    alarm.locator("summary").click()
    with one.page.expect_navigation():
        alarm.get_by_role("button", name="Mute for a day").click()
    expect(alarm).to_have_count(0)
    assert ("odd", "<b>x</b>") in store.books.muted_alarms(tag, time.time())
    muted = one.page.locator(".muted li", has_text="odd")
    expect(muted).to_contain_text("<b>x</b>")
    with one.page.expect_navigation():
        muted.get_by_role("button", name="Unmute").click()
    assert ("odd", "<b>x</b>") not in store.books.muted_alarms(tag, time.time())
    acts = [act.act for act in store.books.acts(limit=10) if act.campaign == "behind"]
    assert acts[:3] == ["alarm unmuted", "alarm muted", "alarm acknowledged"]


def test_a_new_campaign_shows_its_first_request_which_works(visit: Visiting, service: Serving) -> None:
    one = _sized(visit, "desk")
    one.go(campaign_path("unborn"))
    curl, python = one.page.locator("#beginning code").nth(0), one.page.locator("#beginning code").nth(1)
    expect(curl).to_contain_text(f"{service.url}/v1/campaigns/unborn/decisions")
    expect(curl).to_contain_text('"context": "young"')
    expect(curl).to_contain_text("letter, call")
    names: dict[str, object] = {}
    code = python.inner_text().replace("YOUR_KEY", service.key).replace("print(", "(")
    exec(code, names)  # what is shown is a program
    made = names["decision"]
    assert isinstance(made, doral.Decision)
    assert service.store.campaign("unborn").decision(made.id).reward in (1.0, None)
    expect(one.page.locator("#beginning")).to_have_count(0)


def test_why_and_a_preview_have_a_sentence_and_a_picture(visit: Visiting, service: Serving) -> None:
    campaign = service.store.campaign("calm")
    made = next(each for each in campaign.decisions("returned") if each.arm)
    one = _sized(visit, "phone")
    one.go(campaign_path("calm", "decisions", made.id))
    expect(one.page.locator(".lead-line")).to_contain_text(made.reason)
    picture = one.page.locator("figure.why-picture svg:visible")
    _is_in_sight(picture)
    expect(picture).to_contain_text("letter")
    expect(picture).to_contain_text("call")
    before = campaign.report().events
    one.go(campaign_path("calm", "preview"))
    one.page.locator("#group").select_option("old")
    one.press("Show")
    expect(one.page.locator(".lead-line")).to_contain_text(campaign.preview("old").reason)
    expect(one.page.locator("figure.why-picture svg:visible")).to_contain_text("letter")
    assert campaign.report().events == before


@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (390, "light")])
def test_first_screens_can_be_read_by_everybody(visit: Visiting, width: int, scheme: Scheme) -> None:
    one = visit(width, scheme)
    complaints = []
    for path in ("/", campaign_path("calm"), campaign_path("behind"), campaign_path("unborn")):
        one.go(path)
        complaints += [f"{path}: {words}" for check in checks.SEEN for words in check(one.opened)]
    assert not complaints, "\n".join(complaints)
