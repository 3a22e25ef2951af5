"""The wheel and the source archive, built once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.once import Once

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def dist(once: Once) -> Path:
    """As `make dist` builds them, of this checkout."""
    return once("dist", _build)[0]


def _build(folder: Path) -> None:
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
