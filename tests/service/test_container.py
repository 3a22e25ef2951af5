"""What can be said of the container's files without an engine that builds them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from doral.cli.app import app
from doral.live.store import open as open_store
from doral.service.operations.metrics import Metrics, scrape
from tests.service.harness import PROBLEM

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
LINES = [line for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return found


def _commands() -> list[list[str]]:
    of_image = yaml.safe_load(next(line for line in LINES if line.startswith("CMD")).removeprefix("CMD "))
    of_compose = shlex.split(_compose()["services"]["doral-1"]["command"][0].partition("exec doral ")[2])
    return [of_image, of_compose]


def test_what_is_copied_is_there_and_let_in() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [path for line in LINES if line.startswith("COPY") and "--from" not in line for path in line.split()[1:-1]]
    assert copied
    for path in copied:
        assert (ROOT / path).exists(), path
        assert path.split("/")[0] in let_in, path


@pytest.mark.parametrize("command", _commands())
def test_the_options_of_the_commands_exist(command: list[str]) -> None:
    assert command[0] == "serve"
    shown = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    for option in [one for one in command if one.startswith("--")]:
        assert re.search(rf"{option}\b", shown), option


def test_nobody_runs_it_as_root_and_it_is_asked_how_it_is() -> None:
    assert [line for line in LINES if line.startswith("USER")][-1] == "USER doral"
    assert any(line.startswith("HEALTHCHECK") for line in LINES)
    assert "http://" not in DOCKERFILE.replace("http://127.0.0.1", "")
    assert "https://" not in DOCKERFILE


def test_compose_names_what_it_has_and_holds_no_secret() -> None:
    compose = _compose()
    services = compose["services"]
    assert services["doral-1"]["depends_on"]["db"]["condition"] == "service_healthy"
    assert "healthcheck" in services["db"]
    for service in services.values():
        secrets = {one if isinstance(one, str) else one["source"] for one in service.get("secrets", ())}
        assert secrets <= set(compose["secrets"])
        named = [one.partition(":")[0] for one in service.get("volumes", ())]
        assert set(named) <= set(compose["volumes"])
        assert set(service["networks"]) <= set(compose["networks"])
        for value in service.get("environment", {}).values():
            assert "postgresql://" not in str(value)
    assert "POSTGRES_PASSWORD" not in services["db"]["environment"]
    for one in compose["configs"].values():
        assert (ROOT / one["file"]).is_file()
    assert [name for name, one in services.items() if "ports" in one] == ["nginx"]  # others reach it through this alone
    assert compose["networks"]["inside"]["internal"]
    upstreams = (ROOT / "deploy/nginx/upstream.compose.conf").read_text()
    replicas = re.findall(r"server ([\w-]+):8787", upstreams)
    assert replicas == [name for name in services if name.startswith("doral-")]


def test_what_is_watched_is_counted() -> None:
    """Alert rules and the dashboard ask for metrics that the service has."""
    with open_store("memory://") as store:
        store.create("x", PROBLEM)
        metrics = Metrics()
        metrics.answered_request("/x", "GET", 200, 0.1)
        text = scrape(store, metrics).decode()
    kinds = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text))
    suffixes = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
    known = {name + suffix for name, kind in kinds.items() for suffix in suffixes.get(kind, ())}
    for file in ("prometheus/alerts.yml", "grafana/doral.json"):
        asked = set(re.findall(r"\bdoral_[a-z_]+", (ROOT / "deploy" / file).read_text()))
        assert asked
        assert asked <= known | {"doral_key"}, file
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"][0]["rules"]
    assert all(one["expr"] and one["annotations"]["summary"] for one in rules)
    dashboard = json.loads((ROOT / "deploy/grafana/doral.json").read_text())
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
