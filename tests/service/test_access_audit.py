"""Every administrative act is noted: who, what, to which campaign; nothing secret, nobody's key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.harness import PROBLEM, Serving, serving

KITS = "/v1/campaigns/kits"
ACTS: list[tuple[str, dict[str, object], str, dict[str, object]]] = [
    (
        KITS + "/arms",
        {"name": "visit", "cost": 2.0, "key": "a1"},
        "arm added",
        {"arm": "visit", "cost": 2.0, "key": "a1"},
    ),
    (KITS + "/arms/letter/pause", {}, "arm paused", {"arm": "letter"}),
    (KITS + "/arms/letter/resume", {}, "arm resumed", {"arm": "letter"}),
    (KITS + "/arms/visit/retire", {}, "arm retired", {"arm": "visit"}),
    (KITS + "/budget", {"amount": 5.0, "key": "b1"}, "budget topped up", {"amount": 5.0, "key": "b1"}),
    (KITS + "/horizon", {"rounds": 9, "key": "h1"}, "campaign extended", {"rounds": 9, "until": None, "key": "h1"}),
    (KITS + "/expire", {"key": "e1"}, "decisions expired", {"now": None, "key": "e1", "expired": 0}),
    (KITS + "/forget", {"keys": ["person-1"]}, "keys forgotten", {"forgotten": 1}),
    (KITS + "/close", {}, "campaign closed", {}),
]


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    with serving() as one:
        yield one


def test_every_act_is_noted(service: Serving) -> None:
    key = service.make_key("admin")
    with service.client(key) as client:
        created = {"name": "kits", "problem": PROBLEM.to_dict(), "policy": "d-linucb", "seed": 1}
        assert client.post("/v1/campaigns", json=created).status_code == 201
        assert client.post(KITS + "/decisions", json={"context": "young", "key": "person-1"}).status_code == 200
        for path, body, _, _ in ACTS:
            answer = client.post(path, json=body, headers={"X-Request-Id": f"asked-{path[-6:].strip('/')}"})
            assert answer.status_code == 200, answer.text
        refused = client.post(KITS + "/budget", json={"amount": -5.0})
        assert refused.is_client_error
        found = client.get("/v1/acts", params={"limit": 1_000}).json()
    made = [one for one in found["acts"] if one["key_id"] == key[6:18]][::-1]
    assert [one["act"] for one in made] == ["campaign created", *(act for _, _, act, _ in ACTS)]
    for one, (path, _, _, details) in zip(made[1:], ACTS, strict=True):
        assert {name: one["details"].get(name) for name in details} == details
        assert (one["campaign"], one["key_name"], one["address"]) == ("kits", "admin", "127.0.0.1")
        assert one["request_id"] == f"asked-{path[-6:].strip('/')}"
    assert "person-1" not in str(found)
    assert found["next"] is None


def test_acts_come_in_pages(service: Serving) -> None:
    with service.client() as client:
        everything = client.get("/v1/acts", params={"limit": 1_000}).json()["acts"]
        seen = []
        before: int | None = None
        while True:
            page = client.get("/v1/acts", params={"limit": 4, **({} if before is None else {"before": before})}).json()
            seen += page["acts"]
            before = page["next"]
            if before is None:
                break
        assert seen == everything
        for wrong in ({"limit": 0}, {"limit": 1_001}, {"before": 0}, {"before": 2**63}, {"before": "x"}):
            assert client.get("/v1/acts", params=wrong).status_code == 422
