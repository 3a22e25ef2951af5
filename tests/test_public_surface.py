"""What `import doral` offers, and what it must not cost."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import doral

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "doral"
HEAVY = (
    "scipy",
    "polars",
    "matplotlib",
    "joblib",
    "typer",
    "rich",
    "httpx2",
    "fastapi",
    "distributed",
    "ray",
)


def test_every_public_name_is_there_and_no_other() -> None:
    assert sorted(doral.__all__) == [
        "Answer",
        "Arm",
        "Arrival",
        "Arrivals",
        "AsyncCampaign",
        "AsyncStore",
        "Bursts",
        "Calendar",
        "Campaign",
        "Category",
        "Context",
        "Decision",
        "DoralError",
        "Evaluation",
        "InvalidValue",
        "Log",
        "Number",
        "Plan",
        "PolicyOptions",
        "Problem",
        "PythonPolicy",
        "RemoteCampaign",
        "RemoteStore",
        "Scenario",
        "SimulationResult",
        "Store",
        "StoredRuns",
        "UnknownName",
        "__version__",
        "connect",
        "connect_async",
        "delays",
        "evaluate",
        "external",
        "load",
        "open",
        "plan",
        "policy",
        "read_log",
        "rival",
        "scenario",
        "simulate",
        "simulate_to",
    ]
    for name in doral.__all__:
        assert getattr(doral, name) is not None
    with pytest.raises(AttributeError, match="simulat"):
        doral.simulat  # noqa: B018


def test_import_is_light() -> None:
    code = f"import doral, sys; doral.Problem; doral.policy; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_in_the_reading_exist() -> None:
    """docs/paper.md names functions as `module.function`; a renamed function must not leave it behind."""
    sources = {f"/{path.relative_to(PACKAGE).with_suffix('')}": path.read_text() for path in PACKAGE.rglob("*.py")}
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*)\.(_?[a-z_]+)`", (ROOT / "docs" / "paper.md").read_text())
    checked = 0
    for module, function in named:
        texts = [text for place, text in sources.items() if place.endswith(f"/{module}")]
        if texts and function not in ("py", "json"):
            assert any(re.search(rf"^def {function}\(", text, flags=re.MULTILINE) for text in texts), (module, function)
            checked += 1
    assert checked > 20
