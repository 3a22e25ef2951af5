from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from doral.service.settings import Limits, ServiceSettings
from doral.wire.values import decision_from_dict
from tests.service.harness import PROBLEM, Serving, serving


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    with serving(settings=ServiceSettings(storage="memory://", limits=Limits(batch=1_000))) as one:
        one.store.create("spring", replace(PROBLEM, budget=10_000.0, horizon=10_000), seed=7)
        yield one


@pytest.fixture
def client(service: Serving) -> Iterator[httpx2.Client]:
    with service.client() as one:
        yield one


CAMPAIGN = "/v1/campaigns/spring"
DECISIONS = CAMPAIGN + "/decisions"


def ok(response: httpx2.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()


def refused(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert (problem["type"], problem["status"]) == (f"urn:doral:problem:{code}", status)
    return problem


def decided(client: httpx2.Client, state: str = "pending", **fields: Any) -> dict[str, Any]:
    for _ in range(60):
        made: dict[str, Any] = ok(client.post(DECISIONS, json={"context": "young", **fields}))
        if made["state"] == state:
            return made
    raise AssertionError(f"nobody is {state}")


def test_a_decision_is_asked_for_answered_corrected_and_looked_up(client: httpx2.Client, service: Serving) -> None:
    decision = decided(client)
    answered = ok(client.post(CAMPAIGN + "/feedback", json={"decision_id": decision["id"], "reward": 1}))
    assert (answered["state"], answered["reward"]) == ("returned", 1.0)
    assert answered["delay"] == answered["answered_at"] - answered["decided_at"]
    assert ok(client.get(f"{DECISIONS}/{decision['id']}")) == answered
    corrected = ok(client.post(CAMPAIGN + "/feedback/correct", json={"decision_id": decision["id"], "reward": 0.5}))
    assert corrected["reward"] == 0.5
    assert decision_from_dict(corrected) == service.store.campaign("spring").decision(decision["id"])


def test_a_decision_is_cancelled_with_or_without_a_body(client: httpx2.Client) -> None:
    bodies: list[dict[str, Any]] = [{"json": {"key": "taken back"}}, {"content": b""}, {"json": {}}]
    for body in bodies:
        made = decided(client)
        assert ok(client.post(f"{DECISIONS}/{made['id']}/cancel", **body))["state"] == "cancelled"
    refused(client.post(f"{DECISIONS}/{made['id']}/cancel", json={"why": "?"}), 422, "invalid-value")
    refused(client.post(f"{DECISIONS}/nonsense/cancel", json={}), 404, "unknown-decision")


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_key_in_the_body_or_in_the_header_counts_once(client: httpx2.Client) -> None:
    first = ok(client.post(DECISIONS, json={"context": "young", "key": "först"}))
    header = {b"Idempotency-Key": "först".encode()}
    assert ok(client.post(DECISIONS, json={"context": "young"}, headers=header)) == first
    assert ok(client.post(DECISIONS, json={"context": "young", "key": "först"}, headers=header)) == first
    problem = refused(
        client.post(DECISIONS, json={"context": "young", "key": "x"}, headers=header), 422, "invalid-value"
    )
    assert problem["field"] == "key"
    refused(client.post(DECISIONS, json={"context": "old", "key": "först"}), 409, "key-reused")
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    refused(client.post(DECISIONS, json={"context": "old"}, headers=twice), 422, "invalid-value")
    refused(
        client.post(DECISIONS, json={"context": "old"}, headers={b"Idempotency-Key": b"\xff"}), 422, "invalid-value"
    )
    refused(
        client.post(DECISIONS, json={"context": "old"}, headers={"Idempotency-Key": "x" * 201}), 422, "invalid-value"
    )
    assert ok(client.get(DECISIONS, params={"key": "först"})) == {"decisions": [first], "next": None}
    assert ok(client.get(DECISIONS, params={"key": "never"})) == {"decisions": [], "next": None}
    refused(client.get(DECISIONS, params={"key": "first", "state": "pending"}), 422, "invalid-value")


def test_a_batch_takes_its_keys_from_the_header(client: httpx2.Client) -> None:
    arrivals = [{"context": "young"}, {"context": "old", "key": "own"}]
    header = {"Idempotency-Key": "batch"}
    made = ok(client.post(DECISIONS + "/batch", json={"arrivals": arrivals}, headers=header))
    assert [one["key"] for one in made["decisions"]] == ["batch/0", "own"]
    assert ok(client.post(DECISIONS + "/batch", json={"arrivals": arrivals}, headers=header)) == made


# --- batches --------------------------------------------------------------------------------------------------------


def test_a_batch_of_decisions_is_stored_whole_or_not_at_all(client: httpx2.Client, service: Serving) -> None:
    campaign = service.store.campaign("spring")
    before = campaign.report().arrivals
    wrong = refused(client.post(DECISIONS + "/batch", json={"arrivals": [{"context": "old"}, {"context": "x"}]}),
                    422, "unknown-name")  # fmt: skip
    assert wrong["known"] == ["young", "old"]
    assert campaign.report().arrivals == before
    made = ok(client.post(DECISIONS + "/batch", json={"arrivals": [{"context": "old"}] * 700}))
    assert [one["round"] for one in made["decisions"]] == list(range(before + 1, before + 701))
    assert ok(client.post(DECISIONS + "/batch", json={"arrivals": []})) == {"decisions": []}
    many = client.post(DECISIONS + "/batch", json={"arrivals": [{}] * 1_001})
    assert "1,000" in refused(many, 422, "invalid-value")["remedy"]


def test_a_batch_of_answers_has_a_result_for_each(client: httpx2.Client) -> None:
    one, other, third = decided(client), decided(client), decided(client)
    answers = [
        {"decision_id": one["id"], "reward": 1.0},
        {"decision_id": "nonsense", "reward": 1.0},
        {"decision_id": other["id"], "reward": 0.0, "at": "yesterday"},
    ]
    problem = refused(client.post(CAMPAIGN + "/feedback/batch", json={"answers": answers}), 422, "invalid-value")
    assert problem["field"] == "at"
    answers[2] = {"decision_id": other["id"], "reward": 0.0, "actual_cost": 99.0}
    found = ok(client.post(CAMPAIGN + "/feedback/batch", json={"answers": [*answers, answers[0]]}))
    assert (found["accepted"], found["refused"]) == (2, 2)
    assert found["results"][0]["decision"]["reward"] == 1.0
    assert found["results"][1]["problem"]["status"] == 404
    assert found["results"][2]["problem"]["type"] == "urn:doral:problem:wrong-state"
    assert found["results"][3] == found["results"][0]
    both = [{"decision_id": third["id"], "reward": 1.0}, {"decision_id": "nonsense", "reward": 1.0}]
    body = {"answers": both, "all_or_none": True}
    refused(client.post(CAMPAIGN + "/feedback/batch", json=body), 404, "unknown-decision")
    assert ok(client.get(f"{DECISIONS}/{third['id']}"))["state"] == "pending"


def test_decisions_that_were_made_elsewhere(client: httpx2.Client) -> None:
    now = datetime.now(UTC)
    record = {"context": "old", "arm": "call", "at": now.isoformat(), "key": "elsewhere"}
    made = ok(client.post(CAMPAIGN + "/records", json=record))
    assert (made["is_recorded"], made["arm"]) == (True, "call")
    assert ok(client.post(CAMPAIGN + "/records", json=record)) == made
    several = [{"context": "old", "arm": None, "at": now.timestamp()}, {**record, "key": "other", "arm": "letter"}]
    found = ok(client.post(CAMPAIGN + "/records/batch", json={"records": several}))
    assert [one["arm"] for one in found["decisions"]] == [None, "letter"]
    assert refused(client.post(CAMPAIGN + "/records", json={"context": "old"}), 422, "invalid-value")["field"] == "arm"
    naive = {**record, "key": "naive", "at": "2026-01-01T00:00:00"}
    assert "zone" in refused(client.post(CAMPAIGN + "/records", json=naive), 422, "invalid-value")["remedy"]


# --- pages ----------------------------------------------------------------------------------------------------------


def test_decisions_are_listed_page_by_page(client: httpx2.Client, service: Serving) -> None:
    for state in ({}, {"state": "pending"}, {"state": "cancelled"}):
        found: list[Any] = []
        after: dict[str, str] = {}
        while True:
            page = ok(client.get(DECISIONS, params={"limit": 400, **state, **after}))
            found += page["decisions"]
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        expected = service.store.campaign("spring").decisions(state.get("state"))
        assert [one["id"] for one in found] == [one.id for one in expected]
    refused(client.get(DECISIONS, params={"state": "lost"}), 422, "unknown-name")
    refused(client.get(DECISIONS, params={"after": "nonsense"}), 422, "invalid-value")
    refused(client.get(DECISIONS, params={"limit": "many"}), 422, "invalid-value")
    refused(client.get(f"{DECISIONS}/nonsense"), 404, "unknown-decision")


# --- bodies that are none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff", b'{"context": "\xff"}', b'{"context": "\\ud800"}', b"[" * 5_000, b"{} {}", b"\xef\xbb\xbf{}",
     b'{"weight": ' + b"9" * 5_000 + b"}", b"context=young"],
)  # fmt: skip
def test_what_is_no_json_is_a_broken_request(body: bytes, client: httpx2.Client) -> None:
    sent = client.post(DECISIONS, content=body, headers={"Content-Type": "application/json"})
    assert "JSON" in refused(sent, 400, "broken-json")["detail"]


def test_a_body_that_is_not_there_is_missing(client: httpx2.Client) -> None:
    sent = client.post(DECISIONS, content=b"", headers={"Content-Type": "application/json"})
    assert refused(sent, 422, "invalid-value")["field"] == "body"


@pytest.mark.parametrize(
    ("body", "field", "remedy"),
    [
        (b"null", "body", "an object"),
        (b"[]", "body", "an object"),
        (b'"young"', "body", "an object"),
        (b'{"context": 5}', "context", "a text"),
        (b'{"context": "young", "contxt": "old"}', "contxt", "no field"),
        (b'{"context": "young", "weight": NaN}', "weight", "finite"),
        (b'{"context": "young", "weight": 1e999}', "weight", "finite"),
        (b'{"context": "young", "weight": "1"}', "weight", "a number"),
        (b'{"context": "young", "weight": true}', "weight", "a number"),
        (b'{"context": "young", "at": Infinity}', "at", "finite number or a text"),
        (b'{"context": "young", "at": "soon"}', "at", "zone"),
        (b'{"context": "young", "at": 1e300}', "at", "ahead"),
        (b'{"context": "young", "available": "call"}', "available", "a list"),
        (b'{"context": "young", "available": ["call", 3]}', "available[1]", "a text"),
        (b'{"context": "young", "features": {"age": [1]}}', "features.age", "a number or a text"),
        (b'{"context": "young", "features": [1, -Infinity]}', "features[1]", "finite"),
        (b'{"context": "young", "features": {"age": 3}}', "features", "knows nothing of people"),
        (b'{"context": "young", "key": ""}', "key", "empty"),
        (b'{"context": "young", "key": "a\\u0000b"}', "key", "control"),
        (b'{"context": null}', "context", "say which"),
    ],
)
def test_what_cannot_be_used_is_told_with_field_and_remedy(
    body: bytes, field: str, remedy: str, client: httpx2.Client
) -> None:
    sent = client.post(DECISIONS, content=body, headers={"Content-Type": "application/json"})
    problem = refused(sent, 422, "invalid-value")
    assert problem["field"] == field
    assert remedy in problem["remedy"]
    assert "value" in problem


def test_what_is_wrong_in_a_batch_is_told_with_its_place(client: httpx2.Client) -> None:
    sent = client.post(DECISIONS + "/batch", json={"arrivals": [{"context": "old"}, {"context": 5}]})
    assert refused(sent, 422, "invalid-value")["field"] == "arrivals[1].context"
    missing = client.post(CAMPAIGN + "/feedback", json={"decision_id": "x"})
    assert refused(missing, 422, "invalid-value")["field"] == "reward"


def test_a_campaign_that_is_not_there(client: httpx2.Client) -> None:
    for path, body in (("decisions", {}), ("feedback", {"decision_id": "x", "reward": 1}), ("decisions/batch",
                       {"arrivals": [{}]})):  # fmt: skip
        refused(client.post(f"/v1/campaigns/nowhere/{path}", json=body), 404, "unknown-name")
    refused(client.put(DECISIONS, json={}), 405, "method-not-allowed")


def test_many_clients_at_once_lose_nothing_and_repeat_nothing(service: Serving) -> None:
    """Each asks with its own keys, and some of everybody's."""
    campaign = service.store.campaign("spring")
    before = campaign.report().arrivals

    def ask(number: int) -> list[str]:
        with service.client() as client:
            shared = [
                ok(client.post(DECISIONS, json={"context": "young", "key": f"shared-{i}"}))["id"] for i in range(5)
            ]
            for i in range(5):
                made = ok(client.post(DECISIONS, json={"context": "old", "key": f"own-{number}-{i}"}))
                if made["state"] == "pending":
                    ok(client.post(CAMPAIGN + "/feedback", json={"decision_id": made["id"], "reward": 1.0}))
            return shared

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(ask, range(8)))
    assert all(one == found[0] for one in found)
    assert campaign.report().arrivals == before + 5 + 8 * 5


def test_the_description_has_what_routes_take_and_give(client: httpx2.Client) -> None:
    paths = ok(client.get("/v1/openapi.json"))["paths"]
    asked = paths["/v1/campaigns/{name}/decisions"]["post"]
    reference = asked["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    schema = ok(client.get("/v1/openapi.json"))["components"]["schemas"][reference.rpartition("/")[2]]
    assert set(schema["properties"]) == {"context", "available", "key", "at", "features", "weight", "deadline"}
    assert asked["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/DecisionModel")


def test_a_key_that_another_item_gets_from_the_header_is_refused(client: httpx2.Client) -> None:
    """Two arrivals would share one decision, and nobody would be told."""
    items = [{"context": "young"}, {"context": "old", "key": "z/0"}]
    answer = client.post(DECISIONS + "/batch", json={"arrivals": items}, headers={"Idempotency-Key": "z"})
    assert refused(answer, 422, "invalid-value")["value"] == "z/0"
