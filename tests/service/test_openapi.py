"""The description of the API, and the API against it: whatever it allows to be sent, answers are as it says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import hypothesis
import jsonschema_rs
import pytest
import requests
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from doral.service.app import make_app
from doral.service.settings import ServiceSettings
from tests.programs import loaded
from tests.service.harness import PROBLEM, Serving, serving

ROOT = Path(__file__).resolve().parents[2]
# So many requests for each operation; DORAL_FUZZ=300 for more.
EXAMPLES = int(os.environ.get("DORAL_FUZZ", "6"))
DESCRIPTION: dict[str, Any] = make_app(ServiceSettings(storage="memory://")).openapi()
STREAMS = "/v1/campaigns/{name}/events"  # never ends: `test_events` follows it
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in DESCRIPTION["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def test_it_is_openapi_31_and_whole() -> None:
    assert DESCRIPTION["openapi"].startswith("3.1")
    tags = {one["name"] for one in DESCRIPTION["tags"]}
    seen: set[str] = set()
    for path, method, operation in operations():
        where = f"{method} {path}"
        assert operation["summary"], where
        assert operation.get("tags"), where
        assert set(operation["tags"]) <= tags, where
        assert operation["operationId"] not in seen, where
        seen.add(operation["operationId"])
        is_open = path in ("/healthz", "/readyz")
        assert ("security" in operation) is not is_open, where
        assert is_open or set(operation["security"][0]["key"]) <= {"admin", "decide", "feedback", "read"}, where
        for status, response in operation["responses"].items():
            assert response["description"], (where, status)
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], (where, status)
    for name, schema in DESCRIPTION["components"]["schemas"].items():
        jsonschema_rs.meta.validate({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})
        assert name
    for reference in references(DESCRIPTION):
        assert reference.removeprefix("#/components/schemas/") in DESCRIPTION["components"]["schemas"], reference


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


def test_it_is_written_for_the_site(tmp_path: Path) -> None:
    """As the service sends it."""
    program = loaded(ROOT / "scripts" / "openapi.py", name="openapi_program")
    program.write(tmp_path / "deep" / "openapi.json")
    assert json.loads((tmp_path / "deep" / "openapi.json").read_text(encoding="utf-8")) == DESCRIPTION
    with serving() as service, httpx2.Client(base_url=service.url) as nobody:
        assert nobody.get("/v1/openapi.json").json() == DESCRIPTION


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as found:
        yield found


@pytest.mark.parametrize(("path", "method"), [(path, method) for path, method, _ in operations() if path != STREAMS])
def test_answers_are_as_it_says(service: Serving, session: requests.Session, path: str, method: str) -> None:
    """What it allows, what it does not, and what nobody knows: no failure of ours, and no answer that it lacks."""
    if "autumn" not in service.store.list():
        service.store.create("autumn", replace(PROBLEM, budget=1e6, horizon=100_000), seed=1)
    decision = service.store.campaign("autumn").decide("young")
    known = {"name": "autumn", "arm": "letter", "decision_id": decision.id}
    places = {name: known[name] for name in known if f"{{{name}}}" in path}
    operation = schemathesis.openapi.from_dict(DESCRIPTION)[path][method.upper()]
    found = operation.as_strategy(GenerationMode.POSITIVE, path_parameters=places or None)
    strategies = [found]
    if places:
        strategies.append(operation.as_strategy(GenerationMode.POSITIVE))
    if "parameters" in operation.definition.raw or "requestBody" in operation.definition.raw:
        strategies.append(operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=places or None))

    @hypothesis.settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=hypothesis.strategies.one_of(strategies))
    def ask(case: schemathesis.Case[Any]) -> None:
        response = case.call(base_url=service.url, session=session, headers=service.headers)
        case.validate_response(response, checks=CHECKS)

    ask()
    if method == "post" and path.endswith("/close"):
        service.store.delete("autumn")  # others need one that is open
