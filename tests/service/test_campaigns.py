"""Campaigns over HTTP: created, listed, shown, changed, looked at, closed."""

from __future__ import annotations

import asyncio
import gzip
import html
import logging
import threading
import time
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.runtime import replay
from doral.service import service as service_module
from doral.service.app import make_app
from doral.service.models.campaigns import Campaigns
from doral.service.operations import lifespan as operating
from doral.service.service import Service
from doral.service.settings import ServiceSettings
from tests.service.harness import PROBLEM, Serving, serving

WRITTEN = {
    "arms": {"letter": 1, "call": 3},
    "contexts": {"young": 0.5, "old": 0.5},
    "budget": 1_000,
    "horizon": 1_000,
    "deadline": "14d",
}


@pytest.fixture
def campaign(service: Serving, request: pytest.FixtureRequest) -> Campaign:
    return service.store.create(request.node.name, PROBLEM, seed=1)


def path(campaign: Campaign, rest: str = "") -> str:
    return f"/v1/campaigns/{campaign.name}{rest}"


def events(campaign: Campaign) -> int:
    return campaign.session.read(lambda _, fold: fold.sequence)


def test_a_campaign_is_created_as_people_write_problems(service: Serving, client: httpx2.Client) -> None:
    body = {"name": "written", "problem": WRITTEN, "policy": "doral", "options": {"accept": 1}, "seed": 3}
    answer = client.post("/v1/campaigns", json=body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == "/v1/campaigns/written"
    shown = answer.json()
    assert shown["problem"]["deadline"] == 14 * 86_400
    assert shown["policy"]["accept"] == 1
    assert shown["seed"] == 3
    assert shown["summary"]["total"] == 1_000
    assert client.get(answer.headers["location"]).json() == shown
    assert service.store.campaign("written").problem.arm_names == ("letter", "call")


def test_what_to_dict_writes_is_taken(client: httpx2.Client) -> None:
    answer = client.post("/v1/campaigns", json={"name": "stored", "problem": PROBLEM.to_dict()})
    assert answer.status_code == 201
    assert answer.json()["problem"] == PROBLEM.to_dict()


def test_a_name_that_is_taken_is_refused_unless_it_is_the_same_request_again(client: httpx2.Client) -> None:
    body: dict[str, Any] = {"name": "twice", "problem": WRITTEN}
    key = {"Idempotency-Key": "one"}
    first = client.post("/v1/campaigns", json=body, headers=key)
    assert first.status_code == 201
    assert client.post("/v1/campaigns", json=body).status_code == 409
    again = client.post("/v1/campaigns", json=body, headers=key)
    assert (again.status_code, again.json()) == (200, first.json())
    for other in ({"problem": {**WRITTEN, "budget": 1_001}}, {"policy": "random"}, {"seed": 5}, {"at": 0}):
        refused = client.post("/v1/campaigns", json={**body, **other}, headers=key)
        assert refused.status_code == 409, other
        assert refused.json()["type"] == "urn:doral:problem:campaign-exists"


def test_a_date_for_its_end(client: httpx2.Client) -> None:
    problem = {name: value for name, value in WRITTEN.items() if name != "horizon"}
    body = {"name": "dated", "problem": problem, "until": "2097-03-31", "at": "2026-01-01T00:00Z"}
    first = client.post("/v1/campaigns", json=body, headers={"Idempotency-Key": "d"})
    assert first.status_code == 201, first.text
    assert first.json()["summary"]["ends_at"] == 4_015_612_800
    assert first.json()["created_at"] == 1_767_225_600
    assert client.post("/v1/campaigns", json=body, headers={"Idempotency-Key": "d"}).status_code == 200
    later = client.post("/v1/campaigns/dated/horizon", json={"until": "2098-03-31"})
    assert later.json()["summary"]["ends_at"] == 4_015_612_800 + 365 * 86_400


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": 7}, "name"),
        ({"problem": []}, "problem"),
        ({"problem": {**WRITTEN, "budget": -1}}, "budget"),
        ({"problem": {**WRITTEN, "arms": [{"name": "a", "costs": 1}]}}, "arm"),
        ({"problem": {**WRITTEN, "deadline": "soon"}}, "deadline"),
        ({"policy": "doral-on-the-moon"}, "policy"),
        ({"options": {"accepts": 1}}, "policy option"),
        ({"options": {"accept": "many"}}, "accept"),
        ({"clock": "weeks"}, "clock"),
        ({"seed": -1}, "seed"),
        ({"at": "yesterday"}, "at"),
        ({"at": "2026-01-01T00:00"}, "at"),
        ({"until": "1999-01-01"}, "until"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_used_is_named(client: httpx2.Client, changed: dict[str, Any], field: str) -> None:
    before = client.get("/v1/campaigns").json()["campaigns"]
    answer = client.post("/v1/campaigns", json={"name": "refused", "problem": WRITTEN, **changed})
    found = answer.json()
    assert answer.status_code == 422, found
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in found["field"]
    assert found["remedy"]
    assert client.get("/v1/campaigns").json()["campaigns"] == before


def test_campaigns_come_in_pages(client: httpx2.Client, service: Serving) -> None:
    for name in ("page-1", "page-2", "page-3"):
        service.store.create(name, PROBLEM)
    names: list[str] = []
    after: str | None = None
    while True:
        params: dict[str, str | int] = {"limit": 2, **({} if after is None else {"after": after})}
        page = client.get("/v1/campaigns", params=params).json()
        assert len(page["campaigns"]) <= 2
        Campaigns.model_validate(page)
        names += [one["name"] for one in page["campaigns"]]
        after = page["next"]
        if after is None:
            break
    assert names == sorted(service.store.list())
    Campaigns.model_validate({"campaigns": [{"name": "not read"}], "next": None})
    assert client.get("/v1/campaigns", params={"limit": 0}).status_code == 422


def test_arms_come_rest_and_go(client: httpx2.Client, campaign: Campaign) -> None:
    body = {"name": "visit", "cost": 5, "key": "add"}
    for _ in range(2):
        answer = client.post(path(campaign, "/arms"), json=body)
        assert answer.status_code == 200, answer.text
    assert [one["name"] for one in answer.json()["arms"]] == ["letter", "call", "visit"]
    for act, status in (("pause", "paused"), ("resume", "active"), ("retire", "retired")):
        shown = client.post(path(campaign, f"/arms/visit/{act}")).json()
        assert shown["arms"][2] == {"name": "visit", "status": status}
    assert client.post(path(campaign, "/arms/visit/resume")).status_code == 422
    unknown = client.post(path(campaign, "/arms/vist/pause"))
    assert unknown.status_code == 404
    assert unknown.json()["known"] == ["letter", "call", "visit"]
    assert client.post(path(campaign, "/arms"), json={**body, "cost": 6}).status_code == 409


def test_a_budget_is_topped_up_once_per_key(client: httpx2.Client, campaign: Campaign) -> None:
    for sent in ({"json": {"amount": 0.1, "key": "k"}}, {"json": {"amount": 0.1}, "headers": {"Idempotency-Key": "k"}}):
        assert client.post(path(campaign, "/budget"), **sent).json()["summary"]["total"] == 1_000.1
    both = client.post(path(campaign, "/budget"), json={"amount": 0.1, "key": "k"}, headers={"Idempotency-Key": "l"})
    assert both.status_code == 422
    assert client.post(path(campaign, "/budget"), json={"amount": 7, "key": "k"}).status_code == 409
    client.post(path(campaign, "/budget"), json={"amount": 0.2})
    ledger = client.get(path(campaign, "/ledger")).json()
    assert Decimal(ledger["total"]) == Decimal("1000.3")
    assert set(ledger) == {"total", "spent", "reserved", "released", "left"}


def test_more_arrivals_are_expected(client: httpx2.Client, campaign: Campaign) -> None:
    assert client.post(path(campaign, "/horizon"), json={"rounds": 5}).json()["summary"]["horizon"] == 1_005
    assert client.post(path(campaign, "/horizon"), json={}).status_code == 422
    assert client.post(path(campaign, "/horizon"), json={"until": "2097-01-01"}).status_code == 422


def test_decisions_expire_and_keys_are_forgotten(client: httpx2.Client, service: Serving) -> None:
    campaign = service.store.create("expiring", PROBLEM, at=1_700_000_000.0)
    campaign.decide("young", key="a-person", at=1_700_000_001.0)
    assert client.post(path(campaign, "/expire"), json={"key": "nightly"}).json() == {"expired": 1}
    assert client.post(path(campaign, "/expire")).json() == {"expired": 0}
    assert client.post(path(campaign, "/expire"), json={"key": "nightly"}).json() == {"expired": 1}
    for _ in range(2):
        sent = {"keys": ["a-person"], "key": "their wish"}
        assert client.post(path(campaign, "/forget"), json=sent).json() == {"forgotten": 1}
    assert client.post(path(campaign, "/forget"), json={"keys": ["nobody"]}).status_code == 422
    assert next(campaign.decisions()).key is None


def test_a_clock_that_is_right_needs_no_repair(client: httpx2.Client, campaign: Campaign) -> None:
    answer = client.post(path(campaign, "/clock"), json={"to": "2026-01-01T00:00:00Z"})
    assert answer.status_code == 422
    assert answer.json()["field"] == "to"


def test_looks_are_those_of_the_library(client: httpx2.Client, campaign: Campaign) -> None:
    for _ in range(20):
        decision = campaign.decide("young")
        if decision.state == "pending":
            campaign.feedback(decision.id, 1.0)
    report = client.get(path(campaign, "/report")).json()
    assert report["arrivals"] == 20
    assert report["decisions"] == campaign.report().decisions
    facts = client.get(path(campaign, "/facts")).json()
    assert facts["arrivals"] == 20
    assert len(facts["latest"]) == len(campaign.facts().latest)
    health = client.get(path(campaign, "/health")).json()
    assert health["is_well"] is True
    assert health["events"] == events(campaign)
    verified = client.get(path(campaign, "/verify")).json()
    assert verified["events"] == events(campaign)
    assert verified["n_differences"] == 0


def test_a_closed_campaign_stays_closed(client: httpx2.Client, campaign: Campaign) -> None:
    for _ in range(2):
        assert client.post(path(campaign, "/close")).json()["summary"]["state"] == "closed"
    assert client.post(path(campaign, "/budget"), json={"amount": 1}).status_code == 409


def test_a_campaign_that_was_deleted_is_unknown_and_one_of_its_name_is_another(
    client: httpx2.Client, service: Serving
) -> None:
    service.store.create("gone", PROBLEM, seed=1)
    assert client.get("/v1/campaigns/gone").json()["seed"] == 1
    service.store.delete("gone")
    assert client.get("/v1/campaigns/gone/ledger").status_code in (404, 410)
    assert client.get("/v1/campaigns/gone").status_code == 404
    service.store.create("gone", PROBLEM, seed=2)
    assert client.get("/v1/campaigns/gone").json()["seed"] == 2


def test_me(client: httpx2.Client) -> None:
    found = client.get("/v1/me").json()
    assert found["roles"] == ["admin"]
    assert found["campaigns"] is None


def test_ready(client: httpx2.Client) -> None:
    deadline = time.monotonic() + 30.0
    while (answer := client.get("/readyz")).status_code == 503 and time.monotonic() < deadline:
        assert answer.json()["type"] == "urn:doral:problem:starting"  # code is being prepared
        assert int(answer.headers["retry-after"]) == 1
        time.sleep(0.02)
    assert answer.json() == {"status": "ready"}


def test_however_many_ask_whether_it_is_ready_the_store_is_asked_once() -> None:
    """Strangers may ask: it must cost them more than it costs the store."""
    looks: list[float] = []
    go_on = threading.Event()

    def look() -> None:
        looks.append(time.monotonic())
        go_on.wait(5)

    async def go() -> None:
        service = Service(doral.open("memory://"), ServiceSettings(storage="memory://"))
        cast(Any, service)._try_store = look
        asked = [asyncio.ensure_future(service.try_store()) for _ in range(50)]
        await asyncio.sleep(0.05)
        asked[0].cancel()  # whoever goes away takes nothing from the others
        go_on.set()
        await asyncio.gather(*asked[1:])
        assert len(looks) == 1
        await service.try_store()
        assert len(looks) == 2
        service.close()

    asyncio.run(go())


def test_a_store_that_cannot_be_used_is_not_ready(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with serving(f"sqlite:///{file}") as broken, broken.client() as client:
        broken.store.create("a", PROBLEM)
        while client.get("/readyz").status_code == 503:
            time.sleep(0.02)
        file.write_bytes(b"something else" * 1_000)
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_key_for_some_campaigns_hears_of_no_other(service: Serving) -> None:
    service.store.create("secret-plan", PROBLEM)
    key = service.make_key("admin", campaigns=["secret-plane"])
    with service.client(key) as client:
        answer = client.get("/v1/campaigns/secret-plane")
        assert answer.status_code == 404
        assert "secret-plan'" not in answer.text
        assert answer.json()["known"] == []
        assert client.get("/v1/campaigns").json() == {"campaigns": [], "next": None}
        for page in ("", "/fragments", "/find?q=x", "/decisions/x", "/acts/close", "/page.html", "/changes"):
            told = client.get(f"/campaigns/secret-plane{page}", headers={"Accept": "text/html"})
            assert told.status_code in (404, 410), page
            assert "secret-plan'" not in html.unescape(told.text), page


@pytest.mark.parametrize("n_campaigns", [3, 5])
def test_a_long_list_closes_nothing_that_was_open_and_keeps_nothing_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_campaigns: int
) -> None:
    monkeypatch.setattr(service_module, "_MOST_LISTED", 3)
    with doral.open(f"sqlite:///{tmp_path / 'campaigns.db'}") as store:
        here = Service(store, ServiceSettings(storage="sqlite:///x.db"))
        store._keep_open(3)
        names = [f"c{number}" for number in range(n_campaigns)]
        for name in names:
            store.create(name, PROBLEM).session.close()
        store.campaign(names[0]).decide("old")
        found = here._summaries(names, time.monotonic() + 100.0)
        assert [one["arrivals"] for one in found] == [1, *[0] * (n_campaigns - 1)]
        assert [store.campaign(name).session.is_open for name in names] == (
            [True] * 3 if n_campaigns == 3 else [True, False, False, False, False]
        )
        store.delete("c1")
        assert here._summaries(["c1"], time.monotonic() + 100.0) == [{"name": "c1"}]
        here.close()


def test_at_the_end_snapshots_are_saved_of_what_was_used_here_while_there_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operating, "_WORTH_SAVING", 3)
    url = f"sqlite:///{tmp_path / 'campaigns.db'}"
    with doral.open(url) as store:
        for name in ("long", "short", "late", "elsewhere"):
            store.create(name, PROBLEM)
    with doral.open(url) as other, doral.open(url) as store:
        other.campaign("elsewhere").decide_many(["old"] * 20)

        async def use(here: Service) -> None:
            for name, count in (("long", 20), ("short", 1), ("late", 20)):
                await (await here.queue(name)).decide_many([{"context": "old"}] * count)
            await here.queue("elsewhere")  # found, and never looked at

        here = Service(store, ServiceSettings(storage=url))
        asyncio.run(use(here))
        found = list(here.campaigns)
        now = iter([0.0, 1.0, 2.0, 5.1])
        monkeypatch.setattr(operating, "time", SimpleNamespace(monotonic=lambda: next(now)))
        operating._save_snapshots(found)  # it would fail here, if it looked at the time once more
        saved = {one.name: one.session.read(lambda log, _: list(log.snapshots())) for one in found[:3]}
        assert {name: bool(some) for name, some in saved.items()} == {"long": True, "short": False, "late": False}
        assert found[3].session.last_seen is None
        here.close()


def test_a_failure_of_ours_says_nothing_of_the_inside() -> None:
    app = make_app(ServiceSettings(storage="memory://"))

    async def fail() -> None:
        raise RuntimeError("the password is swordfish")

    app.add_api_route("/v1/failing", fail)

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=transport) as client:
            return await client.get("http://localhost/v1/failing")

    answer = asyncio.run(ask())
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "swordfish" not in answer.text
    assert answer.json()["request_id"] in answer.json()["detail"]


def test_what_administrators_do_is_noted(client: httpx2.Client, campaign: Campaign) -> None:
    for rest, body in (
        ("/arms", {"name": "visit"}),
        ("/arms/visit/pause", {}),
        ("/budget", {"amount": 5}),
        ("/horizon", {"rounds": 5}),
        ("/expire", {"key": "nightly"}),
        ("/close", {}),
    ):
        assert client.post(path(campaign, rest), json=body).status_code == 200
    acts = [one for one in client.get("/v1/acts").json()["acts"] if one["campaign"] == campaign.name]
    told = ["arm added", "arm paused", "budget topped up", "campaign extended", "decisions expired", "campaign closed"]
    assert [one["act"] for one in reversed(acts)] == told


def test_options_that_are_gone_are_said_once_whatever_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    packed = Path(__file__).parents[1] / "live" / "gone_options" / "campaigns.db.gz"
    (tmp_path / "campaigns.db").write_bytes(gzip.decompress(packed.read_bytes()))
    monkeypatch.setattr(replay, "_warned", {})
    caplog.set_level(logging.WARNING, "doral")
    with serving(f"sqlite:///{tmp_path / 'campaigns.db'}") as running, running.client() as client:
        for _ in range(3):
            assert client.get("/v1/campaigns").status_code == 200
            assert client.get("/v1/campaigns/ids/ledger").status_code == 200
            assert client.post("/v1/campaigns/ids/decisions", json={"context": "x"}).status_code in (200, 201)
    said = [one.partition(" was created with options that are gone ")[::2] for one in caplog.messages]
    gone = [(campaign, words.partition(":")[0]) for campaign, words in said if words]
    assert ("campaign 'ids'", "(sampling=directed)") in gone
    assert len(gone) == len(set(gone)) == 7
