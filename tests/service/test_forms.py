"""Forms as browsers send them, without one: who may, what is kept, what happens once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import httpx2
import pytest
from markupsafe import escape
from starlette.requests import Request

import doral
from doral.cli.simulate import content as initial_text
from doral.live.page.facts import CampaignFacts
from doral.planning.report import folder
from doral.service.access.keys import Caller
from doral.service.pages.acts import act_path
from doral.service.pages.campaign import controls
from doral.service.pages.decision import may_cancel
from doral.service.pages.shell import campaign_path, message, telling
from doral.service.settings import Limits, ServiceSettings
from tests.planning.plans import a_plan
from tests.service.harness import PROBLEM, Serving, serving

HOSTILE = '<script>alert("1")</script> & co'
GOOD: dict[str, list[str]] = {
    "arm_name": ["letter", "", "phone call"],
    "arm_cost": ["1", "", "2.5"],
    "context_name": ["younger", "older"],
    "context_share": ["60%", "0.4"],
    "budget": ["3000"],
    "end": ["arrivals"],
    "horizon": ["4000"],
    "deadline": ["14d"],
    "policy": ["doral-otf"],
}


class Browser:
    """What a browser does without scripts: it keeps the cookie, sends where forms come from, and hidden fields."""

    def __init__(self, client: httpx2.Client, url: str) -> None:
        self.client, self.url = client, url

    def get(self, path: str) -> httpx2.Response:
        return self.client.get(path)

    def send(
        self, path: str, data: Mapping[str, object], *, files: Mapping[str, object] | None = None
    ) -> httpx2.Response:
        headers = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"}
        return self.client.post(path, data=data, files=files, headers=headers)  # type: ignore[arg-type]


def hidden_values(text: str, name: str) -> str:
    found = re.search(rf'<input type="hidden" name="{name}" value="([^"]*)"', text)
    return unescape(found[1]) if found else ""


@contextmanager
def signed_in(service: Serving, key: str | None = None) -> Iterator[Browser]:
    with httpx2.Client(base_url=service.url, headers={"Accept": "text/html"}, timeout=30.0) as client:
        browser = Browser(client, service.url)
        answer = browser.send("/sign-in", {"key": key or service.key})
        assert answer.status_code == 303, answer.text
        yield browser


@pytest.fixture(scope="module")
def admin(service: Serving) -> Iterator[Browser]:
    with signed_in(service) as browser:
        yield browser


@pytest.fixture(scope="module")
def csrf(admin: Browser) -> str:
    return hidden_values(admin.get("/new").text, "csrf")


_made = iter(range(1_000))


def make(service: Serving, name: str | None = None) -> doral.Campaign:
    return service.store.create(name or f"campaign {next(_made)}", PROBLEM, seed=1)


# --- signing in -------------------------------------------------------------------------------------------------------


def test_a_wrong_key_is_told_at_its_field_and_is_not_shown_again(service: Serving) -> None:
    with httpx2.Client(base_url=service.url) as client:
        for wrong in ("", "doral_abc", service.key[:-1] + ("x" if service.key[-1] != "x" else "y")):
            answer = Browser(client, service.url).send("/sign-in", {"key": wrong, "next": "/new"})
            assert answer.status_code in (401, 422)
            assert "set-cookie" not in answer.headers
            assert 'aria-invalid="true"' in answer.text
            assert 'aria-describedby="key-mistake key-help"' in answer.text
            assert 'name="next" value="/new"' in answer.text
            assert not wrong or wrong not in answer.text


def test_whoever_guesses_has_to_wait() -> None:
    limited = ServiceSettings(storage="memory://", limits=Limits(sign_in_failures=2))
    with serving(settings=limited) as service, httpx2.Client(base_url=service.url) as client:
        guesses = [f"doral_{number:012x}_{'x' * 43}" for number in range(4)]
        answers = [Browser(client, service.url).send("/sign-in", {"key": one}) for one in guesses]
        assert [one.status_code for one in answers] == [401, 401, 429, 429]
        assert int(answers[-1].headers["retry-after"]) > 0
        assert "wait" in answers[-1].text
        assert 'aria-invalid="true"' in answers[-1].text


@pytest.mark.parametrize(
    ("wanted", "goes"),
    [
        ("/new", "/new"),
        ("/campaigns/a%2Fb?x=1", "/campaigns/a%2Fb?x=1"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("\\\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("https:evil", "/"),
        ("javascript:alert(1)", "/"),
        ("/\t/evil.example", "/"),
        ("/\n/evil.example", "/"),
        ("evil", "/"),
        ("", "/"),
    ],
)
def test_after_signing_in_one_is_brought_to_a_page_of_ours_only(service: Serving, wanted: str, goes: str) -> None:
    with httpx2.Client(base_url=service.url) as client:
        answer = Browser(client, service.url).send("/sign-in", {"key": service.key, "next": wanted})
        assert (answer.status_code, answer.headers["location"]) == (303, goes)


def test_signing_out_ends_the_session(service: Serving) -> None:
    with signed_in(service) as browser:
        token = hidden_values(browser.get("/new").text, "csrf")
        cookie = dict(browser.client.cookies)
        assert browser.send("/sign-out", {"csrf": token}).headers["location"] == "/sign-in"
        browser.client.cookies.update(cookie)  # somebody has kept a copy of it
        assert browser.get("/new").status_code == 303


def test_a_page_that_needs_signing_in_is_found_again_afterwards(service: Serving) -> None:
    with httpx2.Client(base_url=service.url, headers={"Accept": "text/html"}) as client:
        answer = client.get("/new")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=/new")


# --- creating ---------------------------------------------------------------------------------------------------------


def test_all_mistakes_are_told_at_their_fields_and_what_was_typed_is_kept(admin: Browser, csrf: str) -> None:
    sent = {
        **GOOD,
        "csrf": csrf,
        "name": "",
        "arm_name": [HOSTILE, "b", "b", "c"],
        "arm_cost": ["-1", "x", "1", ""],
        "context_share": ["", "700%"],
        "budget": "1,000",
        "horizon": "2.5",
        "deadline": "14",
        "policy": "dorl",
        "reserve": "often",
    }
    answer = admin.send("/new", sent)
    assert answer.status_code == 422
    wrong = set(re.findall(r'id="([a-z_0-9-]+)-mistake"', answer.text))
    assert wrong == {
        "name", "arm-cost-0", "arm-cost-1", "arm-name-2", "context-share-1", "budget", "horizon", "deadline",
        "policy", "reserve",
    }  # fmt: skip
    for id_ in wrong:
        field = re.search(rf'<(?:input|select)[^>]* id="{id_}"[^>]*>|<(?:input|select) id="{id_}"[^>]*>', answer.text)
        assert field is not None
        assert 'aria-invalid="true"' in field[0]
        assert f"{id_}-mistake" in field[0]
        assert f'href="#{id_}"' in answer.text
    assert answer.text.count("autofocus") == 1
    assert re.search(r'<input id="name"[^>]* autofocus', answer.text)
    assert HOSTILE not in answer.text
    assert f'value="{escape(HOSTILE)}"' in answer.text
    assert 'value="1,000"' in answer.text
    assert "1,000: must be a number" in answer.text
    assert '<details class="panel more" open>' in answer.text  # a mistake in it must be seen


def test_whoever_sends_an_empty_form_hears_of_all_that_is_missing_at_once(admin: Browser, csrf: str) -> None:
    sent = {**GOOD, "csrf": csrf, "name": "", "arm_name": ["", ""], "arm_cost": ["", ""], "budget": "", "horizon": ""}
    answer = admin.send("/new", {**sent, "context_share": ["70%", "50%"]})
    wrong = set(re.findall(r'id="([a-z_0-9-]+)-mistake"', answer.text))
    assert wrong == {"name", "arm-name-0", "contexts", "budget", "horizon"}
    assert answer.text.count("Must not be empty.") >= 3
    assert "Must be a number" not in answer.text


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"context_share": ["0.5", "0.4"]}, "contexts", "must be 1"),
        ({"deadline": ""}, "deadline", "needs one"),
        ({"end": "date", "until": "2020-01-01"}, "until", "in the future"),
        ({"end": "date", "until": ""}, "until", "such as 2027"),
        ({"policy": "oracle"}, "policy", "only a simulation"),
        ({"options": "accept"}, "options", "NAME=VALUE"),
        ({"options": "acept=3"}, "options", "accept"),
        ({"paid": "sometimes"}, "paid", "on_answer"),
        ({"baseline": "nobody"}, "baseline", "name of an arm"),
        ({"reward_low": "3", "reward_high": "1"}, "reward_low", "below the highest"),
        ({"arm_name": [], "arm_cost": []}, "arm-name-0", "at least one"),
    ],
)
def test_what_does_not_fit_together_is_told_where_it_can_be_changed(
    admin: Browser, csrf: str, change: dict[str, object], field: str, words: str
) -> None:
    answer = admin.send("/new", {**GOOD, "csrf": csrf, "name": "x", **change})
    assert answer.status_code == 422
    told = re.search(rf'id="{field}-mistake">([^<]*)<', answer.text)
    assert told is not None
    assert words in unescape(told[1])
    assert re.search(rf'id="{field}"[^>]* autofocus', answer.text)


def test_a_campaign_is_shown_in_words_and_created_once(service: Serving, admin: Browser, csrf: str) -> None:
    name = f"by form {HOSTILE}"
    shown = admin.send("/new", {**GOOD, "csrf": csrf, "name": name})
    assert shown.status_code == 200
    assert name not in shown.text
    for words in ("3,000", "4,000 arrivals", "14 days", "phone call", "60%", escape(name)):
        assert words in shown.text
    assert name not in service.store.list()
    sent = {
        "csrf": csrf,
        "step": "create",
        "key": hidden_values(shown.text, "key"),
        "asked": hidden_values(shown.text, "asked"),
    }
    first, second = admin.send("/new", sent), admin.send("/new", sent)
    assert first.status_code == second.status_code == 303
    assert first.headers["location"].startswith(campaign_path(name))
    problem = service.store.campaign(name).problem
    assert [(one.name, one.cost) for one in problem.arms] == [("letter", 1.0), ("phone call", 2.5)]
    assert (problem.budget, problem.horizon, problem.deadline) == (3000.0, 4000, 14 * 86_400.0)
    other = admin.send("/new", {**sent, "key": "another form"})
    assert other.status_code == 409  # somebody else has taken the name
    assert "Back" in other.text


def test_a_date_as_the_end_and_twice_the_same_form(service: Serving, admin: Browser, csrf: str) -> None:
    given = {**GOOD, "csrf": csrf, "name": "dated", "end": "date", "until": "2031-03-31", "expected_arrivals": "500"}
    shown = admin.send("/new", given)
    assert "2031-04-01 00:00 UTC" in shown.text
    sent = {name: hidden_values(shown.text, name) for name in ("csrf", "key", "asked")} | {"step": "create"}
    assert [admin.send("/new", sent).status_code for _ in range(2)] == [303, 303]
    assert service.store.campaign("dated").facts().ends_at == pytest.approx(1_932_768_000.0)
    changed = json.loads(sent["asked"]) | {"policy": "random"}
    assert admin.send("/new", {**sent, "asked": json.dumps(changed)}).status_code == 409


def test_whoever_goes_back_finds_what_was_typed(admin: Browser, csrf: str) -> None:
    shown = admin.send("/new", {**GOOD, "csrf": csrf, "name": "again"})
    pairs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', shown.text)
    sent: dict[str, object] = {}
    for name, value in pairs:
        sent.setdefault(name, []).append(unescape(value))  # type: ignore[attr-defined]
    again = admin.send("/new", {**sent, "step": "edit"})
    for value in ("again", "letter", "phone call", "60%", "3000", "14d"):
        assert f'value="{value}"' in again.text
    more = admin.send("/new", {**GOOD, "csrf": csrf, "name": "again", "step": "rows"})
    assert more.text.count('name="arm_name"') == 8
    assert 'value="phone call"' in more.text


def _facts(service: Serving, name: str) -> CampaignFacts:
    return service.store.campaign(name).facts()


def _file(admin: Browser, csrf: str, file: str, content: str | bytes, **fields: str) -> httpx2.Response:
    return admin.send("/new/file", {"csrf": csrf, **fields}, files={"file": (file, content, "application/json")})


def test_a_file_of_doral_init_and_one_of_a_plan(service: Serving, admin: Browser, csrf: str) -> None:
    for file in ("problem.toml", "problem.json"):
        shown = _file(admin, csrf, file, initial_text(Path(file)))
        assert shown.status_code == 200
        for words in ("home visit", "56 days", "14 days", "doral-otf"):
            assert words in shown.text
    plan = a_plan()
    text = folder.as_json(folder.to_dict(plan))
    shown = _file(admin, csrf, "plan.json", text, name="planned")
    assert shown.status_code == 200, shown.text
    asked = json.loads(hidden_values(shown.text, "asked"))
    assert asked["policy"] == plan.recommendation.known_as
    assert asked["options"] == dict(plan.recommendation.options)
    assert doral.Problem.from_dict(asked["problem"]) == plan.problem
    only = folder.as_json(folder.policy_dict(plan))
    assert "choose plan.json" in _file(admin, csrf, "policy.json", only).text
    alone = folder.as_json(plan.problem.to_dict())
    assert _file(admin, csrf, "problem.json", alone, name="alone").status_code == 200
    assert not {"planned", "alone", "problem"} & set(service.store.list())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.json", b"", "is not JSON: it is empty"),
        ("bad.json", b'{"arms": [', "is not JSON"),
        ("list.json", b"[1]", "must hold a problem"),
        ("latin.json", b'{"arms": "\xe9"}', "no text in UTF-8"),
        ("deep.json", b"[" * 100_000, "nested too deeply"),
        ("digits.json", b'{"budget": ' + b"1" * 5_000 + b"}", "too many digits"),
        ("twice.json", b'{"arms": ["a"], "arms": ["b"]}', "appears twice"),
        ("key.json", b'{"arms": ["a"], "budgit": 1, "budget": 1}', "did you mean"),
        ("large.json", b" " * (5 * 1024 * 1024), "larger than 4 MiB"),
        ("log.csv", b"when,arm,reward\n", "looks like a log: `doral plan` reads it"),
        ("no-deadline.json", b'{"arms": ["a"], "contexts": ["b"], "budget": 1, "horizon": 1}', "deadline"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(admin: Browser, csrf: str, name: str, content: bytes, words: str) -> None:
    answer = _file(admin, csrf, name, content, name="kept name")
    assert answer.status_code == 422
    told = re.search(r'id="file-mistake">([^<]*)<', answer.text)
    assert told is not None
    assert words in unescape(told[1])
    assert 'value="kept name"' in answer.text


def test_large_problems_find_their_way(service: Serving, admin: Browser, csrf: str) -> None:
    many = {"arms": [f"arm {number}" for number in range(5_000)], "contexts": ["a"], "budget": 9, "horizon": 9}
    shown = _file(admin, csrf, "many.json", json.dumps(many | {"deadline": 60}))
    sent = {name: hidden_values(shown.text, name) for name in ("csrf", "key", "asked")} | {"step": "create"}
    assert len(sent["asked"]) > 200_000
    assert admin.send("/new", sent).status_code == 303
    assert service.store.campaign("many").problem.n_arms == 5_000
    steering = controls(Caller(key_id="a", name="a", roles=frozenset({"admin"}), csrf="t"), _facts(service, "many"))
    assert len(steering) < 20_000
    path = act_path("many", "pause")
    assert f'formaction="{path}"' in steering
    assert "did you mean" in unescape(admin.send(path, {"csrf": csrf, "arm": "arm 77777"}).text)
    assert admin.send(path, {"csrf": csrf, "arm": "arm 77"}).status_code == 303
    rows = {"arm_name": [f"arm {number}" for number in range(400)], "arm_cost": ["2"] * 400}
    assert admin.send("/new", {**GOOD, "csrf": csrf, "name": "rows", **rows}).status_code == 200


def test_no_file_and_a_name_that_is_taken(service: Serving, admin: Browser, csrf: str) -> None:
    assert "choose a file" in admin.send("/new/file", {"csrf": csrf}).text.lower()
    taken = make(service).name
    answer = _file(admin, csrf, "p.json", json.dumps(PROBLEM.to_dict()), name=taken)
    assert "is there already" in unescape(answer.text)
    assert 'id="file-name-mistake"' in answer.text


@pytest.mark.parametrize("asked", ["", "{}", "[]", '{"name": 1}', "[" * 100_000])
def test_what_no_page_of_ours_has_sent_creates_nothing(service: Serving, admin: Browser, csrf: str, asked: str) -> None:
    before = service.store.list()
    assert admin.send("/new", {"csrf": csrf, "step": "create", "key": "k", "asked": asked}).status_code == 422
    assert service.store.list() == before


# --- acting -----------------------------------------------------------------------------------------------------------


def test_a_form_without_its_token_or_from_elsewhere_does_nothing(service: Serving, admin: Browser, csrf: str) -> None:
    campaign = make(service)
    path = act_path(campaign.name, "top-up")
    sent = {"amount": "5", "key": "k", "sure": "yes"}
    assert admin.send(path, sent).status_code == 403
    assert admin.send(path, {**sent, "csrf": csrf[:-1]}).status_code == 403
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert admin.client.post(path, data={**sent, "csrf": csrf}, headers=foreign).status_code == 403
    assert admin.client.post(path, data={**sent, "csrf": csrf}).status_code == 403
    assert admin.send("/new", dict(GOOD)).status_code == 403
    assert float(campaign.ledger().total) == 1_000.0


def test_a_budget_is_raised_once_however_often_the_form_is_sent(service: Serving, admin: Browser, csrf: str) -> None:
    campaign = make(service)
    path = act_path(campaign.name, "top-up")
    sure = admin.send(path, {"csrf": csrf, "amount": "250", "key": "once"})
    assert sure.status_code == 200
    assert "1,250" in sure.text
    assert float(campaign.ledger().total) == 1_000.0
    assert hidden_values(sure.text, "key") == "once"
    sent = {name: hidden_values(sure.text, name) for name in ("csrf", "key", "sure", "amount")}
    for _ in range(3):
        done = admin.send(path, sent)
        assert done.status_code == 303
        assert done.headers["location"].startswith(campaign_path(campaign.name) + "?did=topped-up")
    assert float(campaign.ledger().total) == 1_250.0
    other = admin.send(path, {**sent, "amount": "300"})  # the back button, and another amount
    assert other.status_code == 422
    assert "used before" in unescape(other.text)
    assert hidden_values(other.text.split('action="' + path, 1)[1], "key") not in ("once", "")
    assert float(campaign.ledger().total) == 1_250.0


@pytest.mark.parametrize(
    ("act", "sent", "field"),
    [
        ("top-up", {"amount": "-5"}, "amount"),
        ("top-up", {"amount": "much"}, "amount"),
        ("top-up", {"amount": ""}, "amount"),
        ("top-up", {"amount": "nan"}, "amount"),
        ("top-up", {"amount": "1e400"}, "amount"),
        ("top-up", {"amount": "1e300", "sure": "yes"}, "amount"),
        ("extend", {"rounds": "1.5"}, "rounds"),
        ("extend", {"rounds": "nan"}, "rounds"),
        ("extend", {"rounds": ""}, "rounds"),
        ("extend", {"until": "2031-01-01"}, "until"),
        ("add-arm", {"arm": "", "cost": "1"}, "arm"),
        ("add-arm", {"arm": "letter", "cost": "7"}, "arm"),
        ("add-arm", {"arm": HOSTILE, "cost": "-1"}, "cost"),
        ("add-arm", {"arm": "new", "cost": "1", "features": "1,2"}, "features"),
        ("add-arm", {"arm": "new", "cost": "1", "features": "a"}, "features"),
        ("close", {"confirm": "another"}, "confirm"),
        ("close", {}, "confirm"),
    ],
)
def test_a_mistake_in_an_act_is_told_at_its_field(
    service: Serving, admin: Browser, csrf: str, act: str, sent: dict[str, str], field: str
) -> None:
    campaign = _shared(service)
    before = campaign.session.read(lambda _, fold: fold.sequence)
    answer = admin.send(act_path(campaign.name, act), {"csrf": csrf, "key": f"{act}{sent}", **sent})
    assert answer.status_code == 422, answer.text
    if not (act == "extend" and field == "until"):  # this campaign ends with a number: its form has no date
        assert f'id="{field}-mistake"' in answer.text
    for name, value in sent.items():
        assert name == "sure" or f'value="{escape(value)}"' in answer.text
    assert HOSTILE not in answer.text
    assert campaign.session.read(lambda _, fold: fold.sequence) == before


_SHARED: list[doral.Campaign] = []


def _shared(service: Serving) -> doral.Campaign:
    if not _SHARED or _SHARED[0].name not in service.store.list():
        _SHARED[:] = [make(service)]
    return _SHARED[0]


def test_arms_are_paused_resumed_added_and_retired(service: Serving, admin: Browser, csrf: str) -> None:
    campaign = make(service)

    def send(act: str, **sent: str) -> httpx2.Response:
        return admin.send(act_path(campaign.name, act), {"csrf": csrf, "key": f"k-{act}", **sent})

    def statuses() -> dict[str, str]:
        return {one.name: one.status for one in campaign.facts().arms}

    assert send("pause", arm="call").status_code == 303
    assert send("pause", arm="call").status_code == 303
    assert statuses() == {"letter": "active", "call": "paused"}
    assert send("resume", arm="call").status_code == 303
    assert statuses()["call"] == "active"
    assert "for good" in send("retire", arm="call").text
    assert statuses()["call"] == "active"
    assert send("retire", arm="call", sure="yes").status_code == 303
    assert statuses()["call"] == "retired"
    assert send("resume", arm="call", key="another").status_code == 422
    assert send("pause", arm="nobody").status_code == 422
    for _ in range(2):
        assert send("add-arm", arm=HOSTILE, cost="2").status_code == 303
    assert statuses()[HOSTILE] == "active"
    assert send("launch").status_code == 404
    assert admin.send(act_path("nobody", "pause"), {"csrf": csrf, "arm": "a"}).status_code == 404


def test_an_end_is_moved_what_is_overdue_is_settled_and_a_campaign_is_closed(
    service: Serving, admin: Browser, csrf: str
) -> None:
    campaign = make(service)

    def send(act: str, **sent: str) -> httpx2.Response:
        return admin.send(act_path(campaign.name, act), {"csrf": csrf, "key": f"k-{act}", **sent})

    for _ in range(2):
        assert send("extend", rounds="500").status_code == 303
    assert campaign.facts().horizon == 1_500
    done = send("expire")
    assert done.status_code == 303
    assert "0+decisions" in done.headers["location"]
    assert send("close", confirm=campaign.name).status_code == 303
    assert campaign.facts().state == "closed"
    refused = send("top-up", amount="5", sure="yes")
    assert refused.status_code == 409
    assert "Back" in refused.text


def test_a_decision_is_cancelled_after_a_second_yes(service: Serving, admin: Browser, csrf: str) -> None:
    campaign = make(service)
    decision = next(one for one in (campaign.decide("young") for _ in range(50)) if one.arm is not None)
    path = campaign_path(campaign.name, "decisions", decision.id, "cancel")
    asked = admin.send(path, {"csrf": csrf, "key": "k"})
    assert asked.status_code == 200
    assert campaign.decision(decision.id).state == "pending"
    for _ in range(2):
        assert admin.send(path, {"csrf": csrf, "key": "k", "sure": "yes"}).status_code == 303
    assert campaign.decision(decision.id).state == "cancelled"
    again = admin.send(path, {"csrf": csrf, "key": "another", "sure": "yes"})
    assert again.status_code in (303, 409)
    unknown = admin.send(campaign_path(campaign.name, "decisions", "nothing", "cancel"), {"csrf": csrf, "sure": "yes"})
    assert unknown.status_code in (404, 422)


def test_acts_are_noted_with_who_did_them(service: Serving, admin: Browser, csrf: str) -> None:
    campaign = make(service)
    admin.send(act_path(campaign.name, "pause"), {"csrf": csrf, "arm": "call"})
    newest = service.store.books.acts(limit=1)[0]
    assert (newest.act, newest.campaign) == ("arm paused", campaign.name)
    assert "call" in newest.details


def test_whoever_may_only_read_sees_no_act_and_can_do_none(service: Serving) -> None:
    campaign = make(service)
    facts = campaign.facts()
    decision = next(one for one in (campaign.decide("young") for _ in range(50)) if one.arm is not None)
    with signed_in(service, service.make_key("read")) as reader:
        page = reader.get(campaign_path(campaign.name, "page.html"))
        assert page.status_code == 200
        refused = reader.get("/new")
        assert refused.status_code == 403
        token = hidden_values(refused.text, "csrf")
        assert token
        for path in (
            act_path(campaign.name, "pause"),
            act_path(campaign.name, "close"),
            campaign_path(campaign.name, "decisions", decision.id, "cancel"),
            "/new",
            "/new/file",
        ):
            assert reader.send(path, {"csrf": token, "arm": "call", "sure": "yes"}).status_code == 403
        assert reader.get(act_path(campaign.name, "top-up")).status_code == 403
    assert campaign.facts().arms == facts.arms or campaign.facts().arms[1].status == "active"
    reading = Caller(key_id="r", name="r", roles=frozenset({"read"}), csrf="t")
    elsewhere = Caller(key_id="e", name="e", roles=frozenset({"admin"}), campaigns=frozenset({"other"}), csrf="t")
    deciding = Caller(key_id="d", name="d", roles=frozenset({"decide"}), csrf="t")
    assert "<form" not in controls(reading, facts)
    assert "Parquet" in controls(reading, facts)
    assert controls(elsewhere, facts).strip() == ""
    assert not may_cancel(reading, campaign.name, decision)
    assert not may_cancel(elsewhere, campaign.name, decision)
    assert may_cancel(deciding, campaign.name, decision)


def test_a_key_for_another_campaign_can_do_nothing_here(service: Serving) -> None:
    campaign, other = make(service), make(service)
    with signed_in(service, service.make_key("admin", campaigns=[other.name])) as limited:
        own = limited.get(act_path(other.name, "top-up"))
        assert own.status_code == 200
        token = hidden_values(own.text, "csrf")
        assert limited.send(act_path(campaign.name, "pause"), {"csrf": token, "arm": "call"}).status_code == 403
        assert limited.get(campaign_path(campaign.name, "page.html")).status_code == 403
        assert limited.get("/new").status_code == 403


def test_names_are_escaped_in_what_operators_see(service: Serving) -> None:
    problem = doral.Problem(
        arms=[doral.Arm(HOSTILE), doral.Arm('"><img src=x>')], contexts=["a"], budget=10, horizon=10, deadline=60
    )
    campaign = service.store.create(HOSTILE, problem)
    shown = controls(Caller(key_id="a", name="a", roles=frozenset({"admin"}), csrf="t"), campaign.facts())
    assert "<script" not in shown
    assert "<img" not in shown
    assert escape(HOSTILE) in shown
    assert " style=" not in shown
    assert " on" not in re.sub(r">[^<]*<", "><", shown)


def test_a_message_is_shown_to_whom_it_was_sent_and_no_address_can_make_one_up(service: Serving) -> None:

    from doral.service.access.keys import Caller

    def shown(address: str, csrf: str | None = "t") -> str:
        path, _, query = address.partition("?")
        scope = {
            "type": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [],
            "method": "GET",
            "server": ("h", 80),
            "scheme": "http",
        }
        return message(Request(scope), Caller(key_id="a", name="a", roles=frozenset({"admin"}), csrf=csrf))

    caller = Caller(key_id="a", name="a", roles=frozenset({"admin"}), csrf="t")
    address = telling(caller, campaign_path("a/b"), "paused", HOSTILE)
    assert HOSTILE in shown(address)  # as text, which the template escapes
    assert shown(address, "other") == shown(address, None) == ""
    assert shown(address.replace("paused", "retired")) == ""
    assert shown(address.replace("/campaigns/", "/campaigns/x")) == ""
    assert shown(campaign_path("a/b") + "?did=closed&of=&mark=") == ""
    assert shown(campaign_path("a/b")) == ""


def test_a_page_as_a_file_is_a_file(service: Serving, admin: Browser) -> None:
    campaign = make(service, "café ☕")
    answer = admin.get(campaign_path(campaign.name, "page.html"))
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert "caf%C3%A9" in answer.headers["content-disposition"]
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert "<style>" in answer.text
    assert admin.get(campaign_path("nobody", "page.html")).status_code == 404


def test_every_page_forbids_what_it_does_not_need(admin: Browser) -> None:
    for path in ("/new", "/sign-in"):
        answer = admin.get(path)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "style=" not in answer.text
        assert "<style" not in answer.text
        assert not re.search(r"<script(?![^>]* src=)", answer.text)
