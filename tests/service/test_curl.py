"""What docs/howto/http.md and docs/service.md show runs as it stands, against a service that was started for it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from doral.service.operations.webhook import signature
from tests.service.harness import PROBLEM, serving

ROOT = Path(__file__).parent.parent.parent


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Language and text of all that is fenced."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "docs" / page).read_text(), flags=re.DOTALL | re.MULTILINE)


BLOCKS = blocks_of("howto/http.md")
MARK = "--- next command ---"


def commands() -> list[str]:
    """All but the one in which readers say where their own service is."""
    found = [text for kind, text in BLOCKS if kind == "sh" and not text.startswith("export DORAL_URL")]
    assert len(found) == len([kind for kind, _ in BLOCKS if kind == "sh"]) - 1
    # Each command of curl says where its answer begins.
    return [re.sub(r"(?m)^curl ", f"echo; echo '{MARK}'\ncurl ", text) for text in found]


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/store.db") as served:
        here = {**os.environ, "DORAL_URL": served.url, "DORAL_KEY": served.key, "PYTHONPATH": str(ROOT / "src")}
        script = "\n".join(["set -e", *commands()])
        done = subprocess.run(
            ["sh", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path, env=here, timeout=60
        )
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr
        program = "\n".join(text for kind, text in BLOCKS if kind == "python")
        python = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=here)
        assert python.returncode == 0, python.stderr
        assert "campaign kits: closed" in python.stdout
        answers = done.stdout.split(MARK)[1:]
        assert served.key not in done.stdout + done.stderr
    assert_answers(answers)
    rows = (tmp_path / "kits.csv").read_text().splitlines()
    assert len(rows) == 5
    assert rows[0].startswith("id,round,decided_at")
    assert (tmp_path / "doral.curl").stat().st_mode & 0o077 == 0


def assert_answers(answers: list[str]) -> None:
    """What each command printed is what the page says."""
    events = answers[11]
    assert re.findall(r"(?m)^event: (\w+)", events)[:2] == ["created", "decided"]
    assert re.findall(r"(?m)^id: (\d+)", events)[:2] == ["1", "2"]
    found: list[Any] = [None if text is events or not text.strip() else json.loads(text) for text in answers]
    (made, decision, answered, looked, by_key, decided, results, report, ledger, export, page, _, budget, paused,
     closed, refused) = found  # fmt: skip
    assert made["name"] == "kits"
    assert decision["key"] == "visit-1"
    assert answered["state"] == "returned"
    assert looked == answered == by_key["decisions"][0]
    assert [one["key"] for one in decided["decisions"]] == ["morning/0", "morning/1", "morning/2"]
    assert (results["accepted"], results["refused"]) == (1, 1)
    assert results["results"][1]["problem"]["type"] == "urn:doral:problem:unknown-decision"
    assert report["arrivals"] == 4
    assert ledger["total"] == "1500.0"
    assert export is None
    assert all(one["state"] == "pending" for one in page["decisions"])
    assert "next" in page
    assert budget["summary"]["total"] == 1600.0
    assert {"name": "visit", "status": "paused"} in paused["arms"]
    assert closed["summary"]["state"] == "closed"
    assert (refused["status"], refused["type"]) == (422, "urn:doral:problem:unknown-name")


def test_the_document_of_the_service_runs() -> None:
    first, check_signature = (text for kind, text in blocks_of("service.md") if kind == "python")
    with serving() as served:
        campaign = served.store.create("kits", PROBLEM, seed=1)
        here = {**os.environ, "DORAL_URL": served.url, "DORAL_KEY": served.key, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run([sys.executable, "-c", first], capture_output=True, text=True, check=False, env=here)
        assert done.returncode == 0, done.stderr
        assert "campaign kits: open" in done.stdout
        assert campaign.decision_with_key("visit-1") is not None
    found: dict[str, Any] = {}
    exec(check_signature, found)
    now, body = int(time.time()), b'{"event": "alarm.began"}'
    is_from_doral = found["is_from_doral"]
    assert is_from_doral(signature("secret", now, body), body, "secret")
    assert not is_from_doral(signature("secret", now, body), body + b" ", "secret")
    assert not is_from_doral(signature("another", now, body), body, "secret")
    assert not is_from_doral(signature("secret", now - 1_000, body), body, "secret")
