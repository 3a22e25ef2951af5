"""The tutorial runs, and tests that the page names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "campaigns.md"


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 6
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
    assert "campaign kits: open" in capsys.readouterr().out
    assert (tmp_path / "decisions.parquet").exists()


def test_every_guarantee_names_tests_that_exist() -> None:
    text = PAGE.read_text()
    guarantees = text.split("## What is guaranteed")[1].split("## How it works")[0]
    rows = [row for row in guarantees.splitlines() if row.startswith("| **")]
    assert len(rows) >= 9
    assert all("`test_" in row for row in rows)
    named = set(re.findall(r"`(test_\w+)`", guarantees))
    assert named <= {path.stem for path in Path(__file__).parent.glob("test_*.py")}
