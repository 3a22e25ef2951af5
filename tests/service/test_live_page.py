"""The pages that operators keep open: the numbers are the campaign's, whatever names say, and only news travels."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.page.facts import CampaignFacts
from doral.live.page.page import SECTIONS, page
from doral.live.storage.service_tables import AlarmRow
from doral.pages.numbers import figure, money
from doral.service.pages import overview, overview_rows
from doral.service.pages.campaign import OF_EACH_CALLER, SHARED, shared_fragments
from doral.service.pages.shell import assets, campaign_path, url_of
from tests.experiments.pages import Page
from tests.live.campaigns import KINDS, in_days, in_rounds, of_people
from tests.live.damage import rewrite
from tests.service.harness import PROBLEM, Serving, serving

HOSTILE = ("</title><script>alert(1)</script>", '"><img src=x onerror=alert(1)>/..', "検査\u202e[b]&amp;")


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    with serving() as found:
        of_people(found.store)
        in_days(found.store, n=60)
        yield found


@pytest.fixture
def client(service: Serving) -> Iterator[httpx2.Client]:
    with service.client() as found:
        yield found


def is_strict(answer: httpx2.Response) -> Page:
    """Nothing inline, nothing from elsewhere, and a policy that says so."""
    found = Page(answer.text)
    assert "style" not in answer.text.split("<body", 1)[0].replace('rel="stylesheet"', "")
    for tag, attributes in found.tags:
        assert "style" not in attributes
        assert tag != "style"
        assert not any(name.startswith("on") for name in attributes)
        if tag == "script":
            assert (attributes["src"] or "").startswith("/assets/")
        for name in ("href", "src", "action"):
            assert re.match(r"[/#]", attributes.get(name) or "/")
    assert not re.search(r"<script[^>]*>[^<]", answer.text)
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    ids = found.attributes("id")
    assert len(ids) == len(set(ids))
    return found


def tiles(html: str) -> dict[str, str]:
    found = re.findall(r'<div class="tile"><dt>(.*?)</dt><dd>(.*?)<small>', html)
    return {unescape(name): unescape(value) for name, value in found}


def unlinked(html: str) -> str:
    return re.sub(r"</?a\b[^>]*>", "", html)


@pytest.mark.parametrize("kind", KINDS)
def test_fragments_are_the_parts_of_the_page_that_is_a_file(kind: str) -> None:
    with doral.open("memory://") as store:
        facts = KINDS[kind](store).facts()
    static = page(facts).replace('<details class="fold" open>', '<details class="fold">')
    found = shared_fragments(facts)
    assert tuple(found) == SHARED
    for name in ("status", "glance", "charts", *SECTIONS):
        assert unlinked(found[name]) in unlinked(static)
        assert 'style="' not in found[name]
    made = set(re.findall(r'<section id="(\w+)"', static)) & set(SECTIONS)
    assert made == {name for name in SECTIONS if found[name].strip()}
    links = re.findall(r'<a href="(/[^"]*)"', found["latest"])
    assert links == [campaign_path(facts.name, "decisions", one.id) for one in facts.latest]


def test_the_numbers_are_those_of_the_report_and_the_ledger(service: Serving, client: httpx2.Client) -> None:
    campaign = in_rounds(service.store, "numbers", 0)
    rng = random.Random(5)
    for step in range(3):
        made = campaign.decide_many(rng.choices(["old", "young"], k=rng.randrange(1, 12)))
        campaign.feedback_many([(one.id, rng.random()) for one in made if one.state == "pending"][::2])
        if step == 1:
            campaign.expire()
        answer = client.get("/campaigns/numbers")
        while client.get("/campaigns/numbers/fragments").json()["sequence"] < campaign.report().events:
            time.sleep(0.05)
        html, report, ledger = client.get("/campaigns/numbers").text, campaign.report(), campaign.ledger()
        shown = tiles(html)
        assert answer.status_code == 200
        assert shown["Budget used"] == figure(float(ledger.spent + ledger.reserved), 6)
        assert f"of {money(float(ledger.total))};" in unescape(html)
        assert shown["Spent"] == figure(float(ledger.spent), 6)
        assert shown["Reserved"] == figure(float(ledger.reserved), 6)
        assert shown["Left"] == figure(float(ledger.left), 6)
        assert shown["Reward so far"] == figure(report.reward, 6)
        assert shown["Arrivals"] == f"{report.arrivals:,}"
        assert shown["Pending"] == f"{report.decisions['pending']:,}"


def test_every_page_is_strict_whatever_names_say(service: Serving, client: httpx2.Client) -> None:
    arms = [doral.Arm(name, features=[i, 1.0], cost=1.0) for i, name in enumerate(HOSTILE)]
    for name in HOSTILE:
        campaign = in_rounds(service.store, name, 12, arms=arms, contexts=list(HOSTILE))
        made = campaign.decide(HOSTILE[1], key="<b onclick=x>key</b>")
        asked = (
            (campaign_path(name), 200),
            (campaign_path(name, "decisions", made.id), 200),
            (campaign_path(name, "decisions", HOSTILE[0]), 404),
            (f"{campaign_path(name)}/find?q=%3Cscript%3Ealert(2)", 404),
        )
        for path, status in asked:
            answer = client.get(path)
            assert answer.status_code == status, path
            is_strict(answer)
            read = re.sub(r'type="hidden" [^>]*>', "", answer.text)  # what forms send back, nobody reads
            assert not re.search(r"<script>alert|<img src=x|<b onclick|\u202e", read)
        found = client.get(f"{campaign_path(name)}/find", params={"q": "<b onclick=x>key</b>"})
        assert found.status_code == 303
        assert found.headers["location"] == campaign_path(name, "decisions", made.id)
    for path in ("/", "/?q=%3Cscript%3E", "/campaigns/people", "/campaigns/days", "/campaigns/nowhere"):
        is_strict(client.get(path))
    rows = client.get("/overview").json()
    assert "<script>alert" not in rows["table"]
    for one in HOSTILE:
        service.store.delete(one)


def test_only_what_changed_travels(service: Serving, client: httpx2.Client) -> None:
    campaign = in_rounds(service.store, "news", 30)
    first = client.get("/campaigns/news/fragments").json()
    assert set(first["fragments"]) == {*SHARED, *OF_EACH_CALLER}
    answer = client.get("/campaigns/news/fragments", params={"since": first["version"]})
    assert answer.json()["fragments"] == {}
    etag = {"If-None-Match": answer.headers["etag"]}
    assert client.get("/campaigns/news/fragments", headers=etag).status_code == 304
    campaign.pause_arm("letter")
    last = campaign.report().events
    while (found := client.get("/campaigns/news/fragments", params={"since": first["version"]}).json())[
        "sequence"
    ] < last:
        time.sleep(found["wait_s"])
    assert "arms" in found["fragments"]
    assert "answers" in found["fragments"]
    assert "Resume<" in found["fragments"]["controls"]
    assert not {"certain", "latest", "served"} & set(found["fragments"])
    for odd in ("x", "-", f"{first['version']}0", f"{first['version'].partition('-')[0]}-{'9' * 30}"):
        assert client.get("/campaigns/news/fragments", params={"since": odd}).status_code == 200


def test_facts_are_gathered_once_for_all_who_look(service: Serving) -> None:
    campaign = in_rounds(service.store, "shared", 30)
    watched: list[float] = []
    original = campaign.facts

    def counted() -> CampaignFacts:
        watched.append(time.time())
        return original()

    campaign.facts = counted  # type: ignore[method-assign]

    def look(_: int) -> int:
        with service.client() as client:
            return client.get("/campaigns/shared/fragments").status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(look, range(12))) == {200}
    assert len(watched) == 1
    campaign.decide("old")
    time.sleep(1.0)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(look, range(12))) == {200}
    assert len(watched) == 2


def test_a_stream_tells_that_there_is_more(service: Serving, client: httpx2.Client) -> None:
    campaign = in_rounds(service.store, "stream", 3)
    with client.stream("GET", "/campaigns/stream/changes") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        told = (json.loads(line[5:])["sequence"] for line in stream.iter_lines() if line.startswith("data:"))
        first = next(told)
        assert first == campaign.report().events
        campaign.decide("old")
        assert next(told) == first + 1


def test_a_stream_ends_with_the_key(service: Serving) -> None:
    key = service.make_key("read")
    campaign = service.store.create("revoked", PROBLEM, seed=1)
    with service.client(key) as mine, mine.stream("GET", "/campaigns/revoked/changes") as answer:
        lines = answer.iter_lines()
        while not next(lines).startswith("data:"):
            pass
        service.store.books.revoke_key(key.split("_")[1], time.time())
        time.sleep(2.1)  # as long as a process may believe in it
        campaign.decide(context="young")
        assert not any(line.startswith("data:") for line in lines)


def test_a_decision_is_told_in_sentences(service: Serving, client: httpx2.Client) -> None:
    people = service.store.campaign("people")
    for made in list(people.decisions())[-12:]:
        html = client.get(campaign_path("people", "decisions", made.id)).text
        words = unescape(re.sub(r"<[^>]+>", " ", html))
        assert made.reason in words
        assert made.id in words
        assert ("No lot was drawn" in words) == (made.probability == 1.0)
        assert ("What each feature spoke for it" in words) == bool(made.effects)
        if made.reward is not None:
            assert f"with a reward of {figure(made.reward)}" in words
    campaign = service.store.create("told", in_rounds(service.store, "as", 0, deadline=3_600.0).problem, seed=1)
    made = next(one for one in iter(lambda: campaign.decide("old", available=["letter", "home kit"]), None) if one.arm)
    path = campaign_path("told", "decisions", made.id)
    assert "No answer yet" in client.get(path).text
    campaign.feedback(made.id, 0.25)
    campaign.correct(made.id, 0.75)
    html = client.get(path).text
    assert "Could be had: home kit, letter." in html
    assert "Corrected from 0.25 to 0.75" in html
    made = next(one for one in iter(lambda: campaign.decide("old"), None) if one.state == "pending")
    campaign.cancel(made.id)
    assert "Cancelled: it was not carried out" in client.get(campaign_path("told", "decisions", made.id)).text


def test_a_decision_is_found_by_id_or_key_or_not_at_all(service: Serving, client: httpx2.Client) -> None:
    campaign = in_rounds(service.store, "found", 2)
    made, other = campaign.decide("old", key="visit 7/8"), in_rounds(service.store, "other", 2).decide("old")
    for asked in (made.id, f"  {made.id} ", "visit 7/8"):
        answer = client.get("/campaigns/found/find", params={"q": asked})
        assert (answer.status_code, answer.headers["location"]) == (303, campaign_path("found", "decisions", made.id))
    for asked in ("", "visit 7", other.id, "x" * 5_000, "\x00", f"{made.id}0"):
        answer = client.get("/campaigns/found/find", params={"q": asked})
        assert answer.status_code == 404
        assert "Nothing found" in answer.text
    campaign.forget("visit 7/8")
    assert client.get("/campaigns/found/find", params={"q": "visit 7/8"}).status_code == 404


def test_alarms_are_shown_and_go_away(service: Serving, client: httpx2.Client) -> None:
    in_rounds(service.store, "alarming", 5)
    books = service.store.books
    row = AlarmRow(campaign="alarming", rule="ahead", subject="", since=time.time(), words="<i>too fast</i>")
    books.raise_alarm(row)
    html = client.get("/campaigns/alarming").text
    assert "&lt;i&gt;too fast&lt;/i&gt;" in html
    assert "1 alarm</h2>" in html
    while '<span class="mark bad">1</span>' not in str(client.get("/overview").json()):
        time.sleep(0.1)
    books.clear_alarm("alarming", "ahead", "", time.time())
    while (found := client.get("/campaigns/alarming/fragments").json())["version"] and client.get(
        "/campaigns/alarming"
    ).text.count("too fast"):
        time.sleep(found["wait_s"])


def test_whoever_may_not_see_a_campaign_is_told_nothing_of_it(service: Serving) -> None:
    in_rounds(service.store, "mine", 5)
    key = service.make_key("read", campaigns=["mine"])
    with service.client(key) as client:
        html = client.get("/").text
        assert "/campaigns/mine" in html
        assert "people" not in html
        assert "people" not in str(client.get("/overview").json())
        assert client.get("/campaigns/mine").status_code == 200
        assert "New campaign" not in html
        for path in ("", "/fragments", "/changes", "/find?q=x", "/decisions/x"):
            assert client.get(f"/campaigns/people{path}").status_code == 403
    with service.client(service.make_key("decide")) as client:
        assert client.get("/campaigns/mine").status_code == 403
    with httpx2.Client(base_url=service.url) as nobody:
        assert nobody.get("/campaigns/mine").status_code == 303
        script = {"Sec-Fetch-Mode": "cors"}
        assert nobody.get("/campaigns/mine/fragments", headers=script).status_code == 401
        assert nobody.get("/overview", headers=script).status_code == 401
        assert nobody.get(url_of("service.css")).status_code == 200


@pytest.mark.parametrize("accept", ["text/html", "*/*"])
def test_what_somebody_might_have_meant_is_none_of_the_campaigns_of_others(service: Serving, accept: str) -> None:
    """A key may be for a campaign that was deleted, or is not there yet."""
    key = service.make_key("admin", campaigns=["peoples"])
    with service.client(key) as client:
        for path in ("", "/fragments", "/changes", "/find?q=x", "/decisions/x", "/page.html", "/acts/close"):
            answer = client.get(f"/campaigns/peoples{path}", headers={"Accept": accept})
            assert answer.status_code in (404, 410), path
            assert "people" not in answer.text.replace("peoples", ""), path


def test_what_is_gone_or_damaged_is_said(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'a.db'}") as service, service.client() as client:
        assert "No campaign yet" in client.get("/").text
        campaign = in_rounds(service.store, "kits", 20)
        closed = in_rounds(service.store, "done", 5)
        closed.close()
        assert '<span class="mark ">closed</span>' in client.get("/campaigns/done").text
        assert client.get("/campaigns/kits").status_code == 200
        rewrite(campaign, "UPDATE events SET reward = 7.0 WHERE sequence = 5")
        rewrite(closed, "DELETE FROM events WHERE sequence = 3")
        for name in ("kits", "done"):
            while (answer := client.get(f"/campaigns/{name}")).status_code == 200:  # as it was a moment ago
                time.sleep(0.05)
            assert answer.status_code == 503
            assert "The log is damaged" in answer.text
            is_strict(answer)
        assert client.get("/").status_code == 200
        store = service.store
        whole = in_rounds(store, "whole", 5)
        assert client.get("/campaigns/whole").status_code == 200
        store.delete("whole")
        assert whole is not None
        while (answer := client.get("/campaigns/whole")).status_code == 200:
            time.sleep(0.05)
        assert answer.status_code in (404, 410)
        assert client.get("/campaigns/whole/fragments").status_code == 410


def test_many_campaigns_are_listed_and_only_news_travels(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'a.db'}") as service, service.client() as client:
        store = service.store
        problem = in_rounds(store, "as", 0).problem
        for number in range(51):
            store.create(f"clinic {number:02d}", problem, seed=1, clock="rounds")
        while (found := client.get("/overview").json())["is_reading"]:
            time.sleep(0.05)
        whole = client.get("/overview").json()
        assert whole["table"].count("<tr data-key") == 52
        assert "being read" not in whole["table"]
        again = client.get("/overview", params={"since": whole["version"]}).json()
        assert (again["table"], again["rows"]) == (None, {})
        store.campaign("clinic 07").decide("old")
        while not (found := client.get("/overview", params={"since": whole["version"]}).json())["rows"]:
            time.sleep(0.1)
        assert list(found["rows"]) == ["clinic 07"]
        assert found["table"] is None
        store.delete("clinic 08")
        while (found := client.get("/overview", params={"since": found["version"]}).json())["table"] is None:
            time.sleep(0.1)
        assert "clinic 08" not in found["table"]
        assert client.get("/", params={"q": "CLINIC 1"}).text.count("<tr data-key") == 10
        assert "No campaign has that" in client.get("/", params={"q": "zzz"}).text


def test_a_wrong_address_and_the_words_of_a_page_are_explained_to_people(client: httpx2.Client) -> None:
    answer = client.get("/kampaigns", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "There is no page at this address" in answer.text
    assert "openapi" not in answer.text
    assert "All campaigns" in answer.text
    html = client.get(campaign_path("people")).text
    assert 'id="words"' in html
    assert "<dt>on plan</dt>" in html


def test_assets_are_cached_for_ever_and_know_a_chosen_theme(client: httpx2.Client) -> None:
    for one in assets().values():
        answer = client.get(one.url)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert not re.search(r"https?://(?!www\.w3\.org)|@import|\beval\(", answer.text)
    css = client.get(url_of("service.css")).text
    assert css.count(':root[data-theme="dark"] {') == 1 + css.count("@media (prefers-color-scheme: dark) { :root:not(")
    assert client.get("/assets/service-0.css").status_code == 404
    assert client.get("/assets/..%2F..%2Fapp.py").status_code == 404


def test_glimpses_tell_of_campaigns_without_opening_them(tmp_path: Path) -> None:
    with doral.open(f"sqlite:///{tmp_path / 'a.db'}") as store:
        campaign: Campaign = in_rounds(store, "one", 3)
        campaign.session.close()
        with store.glimpses() as found:
            seen = {one.name: (one.last_event, one.read(lambda _, fold: fold.ledger.copy())) for one in found}
        assert campaign.session.last_seen is None
        assert seen == {"one": (campaign.report().events, campaign.ledger())}


def test_campaigns_with_long_logs_are_kept_open_and_told_as_they_are(service: Serving, client: httpx2.Client) -> None:
    campaign = in_rounds(service.store, "long", 0, horizon=3_000)
    for _ in range(2):
        campaign.decide_many(["old"] * 700)
        while f">{campaign.report().arrivals:,}</td>" not in client.get("/?q=long").text:
            time.sleep(0.1)


def test_whoever_has_changed_something_sees_it_changed(service: Serving) -> None:
    campaign = in_rounds(service.store, "changed", 5)
    with service.client() as client:
        for number in range(20):
            campaign.top_up(1.0)
            total = float(campaign.ledger().total)
            assert f"of {money(total)};" in unescape(client.get("/campaigns/changed").text), number


def test_a_list_of_very_many_shows_a_part_and_finds_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "_MOST_SHOWN", 3)
    with serving() as service, service.client() as client:
        for number in range(5):
            service.store.create(f"many-{number}", PROBLEM)
        shown = client.get("/").text
        assert re.findall(r'data-key="([^"]+)"', shown) == ["many-0", "many-1", "many-2"]
        assert "the first 3 of 5 by name" in shown
        found = client.get("/", params={"q": "-4"}).text
        assert re.findall(r'data-key="([^"]+)"', found) == ["many-4"]
        part = re.search(r'data-version="([^"]+)" data-part="-4"', found)
        assert part is not None
        service.store.campaign("many-0").decide("old")
        service.store.campaign("many-4").decide("old")
        time.sleep(overview_rows._EVERY_S + 0.2)
        moved = client.get("/overview", params={"since": part[1], "q": "-4"}).json()
        assert list(moved["rows"]) == ["many-4"]
        assert moved["table"] is None


class Glimpsed:
    """A store whose campaigns all move, each of which takes a tenth of a second to be read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n_campaigns: int) -> None:
        self.now, self.heads = 100.0, {f"c{number:03d}": 1 for number in range(n_campaigns)}
        self.looks = 0
        self.books = SimpleNamespace(alarms=list)
        monkeypatch.setattr(overview_rows, "time", SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now))
        monkeypatch.setattr(overview_rows, "_READING_S", 0.95)

    @contextmanager
    def glimpses(self) -> Iterator[list[Any]]:
        self.looks += 1
        yield [
            SimpleNamespace(name=name, last_event=last, read=partial(self._read, name))
            for name, last in self.heads.items()
        ]

    def campaign(self, name: str) -> Any:
        return SimpleNamespace(session=SimpleNamespace(is_open=True, read=partial(self._read, name)))

    def _read(self, name: str, ask: object) -> overview_rows.Line:
        self.now += 0.1
        return overview_rows.Line(name=name, state="open", events=self.heads[name])

    def move(self, by: int = 1) -> None:
        self.heads = {name: last + by for name, last in self.heads.items()}


def unread(seen: overview_rows.Seen) -> list[str]:
    return [name for name, line in seen.lines.items() if line.state == "reading"]


@pytest.mark.parametrize("n_events", [1, 5_000])
def test_a_list_that_moves_faster_than_it_is_read_is_read_in_turns(
    monkeypatch: pytest.MonkeyPatch, n_events: int
) -> None:
    store: Any = Glimpsed(monkeypatch, 50)
    found = overview_rows.Overview(store)
    counts = []
    for _ in range(5):
        store.move(by=n_events)
        store.now += 60.0
        counts.append(len(unread(found.look())))
    assert counts == [40, 30, 20, 10, 0]


def test_short_logs_do_not_keep_long_ones_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = Glimpsed(monkeypatch, 50)
    store.heads["c049"] = 5_000
    assert "c049" not in unread(overview_rows.Overview(store).look())


def test_while_a_list_is_read_polls_are_answered_with_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = Glimpsed(monkeypatch, 50)
    found = overview_rows.Overview(store)
    first = found.look()
    assert unread(first)
    for _ in range(4):
        store.now += 1.0
        assert found.look() is first  # a look took a second: there are five without
    store.now += 1.1
    assert len(unread(found.look())) < len(unread(first))
    assert store.looks == 2
    found.look(at_once=True)
    assert store.looks == 3


def test_what_somebody_is_shown_is_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = Glimpsed(monkeypatch, 50)
    found = overview_rows.Overview(store)
    found.look()
    found.look(lambda seen: ["c041", "c042"])  # one who is answered with what was seen before, and another who looks
    store.now += 60.0
    store.move()
    seen = found.look(lambda seen: [name for name in seen.lines if name.endswith("9")])
    assert not {"c041", "c042", "c019", "c029", "c039", "c049"} & set(unread(seen))
    store.now += 60.0
    assert len(unread(found.look())) < len(unread(seen))  # and then all others
