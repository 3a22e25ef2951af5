"""The notebooks run from top to bottom, show what they are committed with, and hold nothing of the machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from doral.compiled.store import cache_folder
from tests.once import Once

ROOT = Path(__file__).parent.parent
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "examples").glob("*.ipynb"))}
NAMES = ["practitioner_first_hour", "researcher_first_hour"]
MOST_BYTES = 300_000


@pytest.fixture(scope="module")
def made(once: Once) -> Path:
    """All of them made anew, by the kernel of this Python and with an empty home."""
    return once("notebooks", _make)[0] / "notebooks"


def _make(root: Path) -> None:
    folder, home = root / "notebooks", root / "home"
    folder.mkdir()
    home.mkdir()
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    cache = cache_folder()  # of these tests: nothing is compiled a second time
    assert cache is not None
    here = {**os.environ, "PYTHONPATH": path, "HOME": str(home), "DORAL_CACHE_DIR": str(cache.parent)}
    command = [sys.executable, str(ROOT / "scripts" / "make_notebooks.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=here)
    assert done.returncode == 0, done.stderr[-3_000:]  # a cell that fails says which, and why


def cells(notebook: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(notebook.read_text())["cells"]
    return found


def printed(cell: dict[str, Any]) -> str:
    """What a cell prints; how long something took is not compared, nor how objects show themselves."""
    texts = [line for output in cell.get("outputs", ()) for line in output.get("text", [])]
    return re.sub(r"\d+(\.\d+)? ?(s|ms|seconds)\b", "", "".join(texts))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_prints_what_it_is_committed_with(name: str, made: Path) -> None:
    committed, anew = cells(NOTEBOOKS[name]), cells(made / f"{name}.ipynb")
    assert [cell["source"] for cell in committed] == [cell["source"] for cell in anew], "run make notebooks"
    for old, new in zip(committed, anew, strict=True):
        assert printed(old) == printed(new), "".join(old["source"])


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_can_be_read_where_nothing_runs(name: str) -> None:
    text = NOTEBOOKS[name].read_text()
    assert len(text) < MOST_BYTES
    assert "image/png" in text
    code = [cell for cell in cells(NOTEBOOKS[name]) if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code)
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_tells_nothing_of_the_machine(name: str) -> None:
    text = re.sub(r'"image/png": ".*?"', "", NOTEBOOKS[name].read_text())
    assert not re.findall(r"/(?:home|root|tmp|work|Users|usr)/\S*", text)
    assert '"stderr"' not in text


def test_all_notebooks_are_tested() -> None:
    assert list(NOTEBOOKS) == NAMES
