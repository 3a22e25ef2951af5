"""Which requests are served again when nobody knows whether they were served: a table, and every route there is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from doral.service.app import ROUTERS
from doral.service.bodies import Taken
from doral.service.spreading.repeating import may_be_repeated

ROUTES = [route for router in ROUTERS for route in router.routes]
CAMPAIGN = "/v1/campaigns/{name}"
KEYED, EACH_KEYED, SAME_AGAIN, NEVER = "with a key", "where each has one", "always", "never"
# What a request must have, so that it may be served twice. A route that is not in the table fails.
TABLE = {
    "/arms": KEYED,
    "/arms/{arm}/pause": SAME_AGAIN,
    "/arms/{arm}/resume": SAME_AGAIN,
    "/arms/{arm}/retire": SAME_AGAIN,
    "/budget": KEYED,
    "/horizon": KEYED,
    "/expire": NEVER,
    "/clock": NEVER,
    "/forget": NEVER,
    "/close": SAME_AGAIN,
    "/decisions": KEYED,
    "/decisions/batch": EACH_KEYED,
    "/decisions/{decision_id}/cancel": SAME_AGAIN,
    "/records": KEYED,
    "/records/batch": EACH_KEYED,
    "/feedback": KEYED,
    "/feedback/batch": EACH_KEYED,
    "/feedback/correct": KEYED,
}
HEADER = (b"idempotency-key", b"k")


def taken_by(end: str) -> Taken:
    found = [route for route in ROUTES if getattr(route, "path", "") == CAMPAIGN + end and "POST" in _methods(route)]
    assert len(found) == 1
    taken = getattr(found[0], "openapi_extra", None)
    assert isinstance(taken, Taken), "a route that changes a campaign has to say what it takes"
    return taken


def _methods(route: Any) -> set[str]:
    return set(getattr(route, "methods", None) or ())


def again(end: str, body: bytes, *headers: tuple[bytes, bytes], method: str = "POST") -> bool:
    path = (CAMPAIGN + end).format(name="kits", arm="call", decision_id="a-1")
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": list(headers)}
    return may_be_repeated(ROUTES, scope, body)


def test_every_route_that_changes_a_campaign_is_in_the_table() -> None:
    there = {route.path for route in ROUTES if "POST" in _methods(route)}  # type: ignore[attr-defined]
    assert {path.removeprefix(CAMPAIGN) for path in there if path.startswith(CAMPAIGN + "/")} == TABLE.keys()


@pytest.mark.parametrize(("end", "rule"), TABLE.items())
def test_what_is_keyed_and_what_is_not(end: str, rule: str) -> None:
    """By examples that each route takes: made of the description of what it takes."""
    taken = taken_by(end)
    plain = _example(taken["requestBody"]["content"]["application/json"]["schema"])
    keyed = _example(taken["requestBody"]["content"]["application/json"]["schema"], key="k")
    for body in (plain, keyed):
        taken.model.model_validate_json(body)  # or the test tells nothing
    assert again(end, plain) == (rule == SAME_AGAIN)
    assert again(end, keyed) == (rule != NEVER)
    assert again(end, plain, HEADER) == (rule != NEVER)
    if taken.may_be_empty:
        assert again(end, b"") == again(end, b"{}") == (rule == SAME_AGAIN)
        assert again(end, b"", HEADER) == again(end, b"{}", HEADER) == (rule != NEVER)


@pytest.mark.parametrize(
    ("end", "body", "expected"),
    [
        ("/decisions", b'{"context": "old", "available": []}', False),
        ("/decisions", b'{"context": "old", "features": []}', False),
        ("/decisions", b'{"context": "old", "features": [1.0], "available": ["call"]}', False),
        ("/decisions", b'{"context": "old", "available": [], "key": null}', False),
        ("/decisions", b'{"context": "old", "available": [], "key": "k"}', True),
        ("/decisions", b"{}", False),
        ("/decisions", b"", True),  # refused
        ("/decisions", b'{"context": ', True),
        ("/decisions", b"[]", True),
        ("/arms", b'{"name": "visit", "features": []}', False),
        ("/budget", b'{"amount": 5}', False),
        ("/budget", b'{"amount": 5, "x": []}', True),  # there is no such field
        ("/budget", b'{"amount": ' + 5_000 * b"1" + b"}", True),  # more than a double holds
        ("/budget", b'{"amount": 1' + 300 * b"0" + b".0}", True),  # more than a budget may be
        ("/decisions/batch", b'{"arrivals": []}', False),
        ("/decisions/batch", b'{"arrivals": [{"key": "a"}, {"context": "old"}]}', False),
        ("/decisions/batch", b'{"arrivals": [{"key": "a", "available": []}, {"key": "b"}]}', True),
        ("/forget", b'{"keys": ["a"]}', False),
        ("/nonsense", b"{}", True),  # there is no such path
    ],
)
def test_bodies_that_look_like_others(end: str, body: bytes, expected: bool) -> None:
    assert again(end, body) == expected


def test_what_only_looks_may_always_be_asked_again() -> None:
    assert again("/report", b"", method="GET")


def _example(schema: dict[str, Any], key: str | None = None) -> bytes:
    return json.dumps(_value(schema, key)).encode()


def _value(schema: dict[str, Any], key: str | None) -> Any:
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], key)
    if schema.get("type") == "object":
        names = [*schema.get("required", ()), *(["key"] if key and "key" in schema.get("properties", {}) else [])]
        return {name: key if name == "key" else _value(schema["properties"][name], key) for name in names}
    if schema.get("type") == "array":
        return [_value(schema["items"], key)] * 2
    return {"string": "x", "boolean": True}.get(schema.get("type", ""), max(1, schema.get("minimum", 1)))
