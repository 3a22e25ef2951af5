from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from tests.service.harness import PROBLEM, Serving, serving


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    with serving() as one:
        one.store.create("spring", PROBLEM, seed=7)
        yield one


@pytest.fixture
def client(service: Serving) -> Iterator[httpx2.Client]:
    with service.client() as one:
        yield one


_DECISIONS = "/v1/campaigns/spring/decisions"


def test_a_decision_is_asked_for_answered_and_looked_up(client: httpx2.Client) -> None:
    made = client.post(_DECISIONS, json={"context": "young", "key": "first"})
    assert made.status_code == 200, made.text
    decision = made.json()
    again = client.post(_DECISIONS, json={"context": "young"}, headers={"Idempotency-Key": "first"})
    assert again.json() == decision
    answered = client.post("/v1/campaigns/spring/feedback", json={"decision_id": decision["id"], "reward": 1.0})
    assert answered.status_code == 200, answered.text
    assert client.get(f"{_DECISIONS}/{decision['id']}").json() == answered.json()
