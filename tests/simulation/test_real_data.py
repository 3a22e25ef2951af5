"""The script that makes problems from real data: without them it says so; with them the problems are sound."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.programs import loaded

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "real_data.py"


def script() -> ModuleType:
    return loaded(SCRIPT)


def test_absent_data_are_named(tmp_path: Path) -> None:
    words = [str(SCRIPT), str(tmp_path), "--case", "puerto-rico", "--case", "greece"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "left out: puerto_rico" in done.stderr
    assert str(tmp_path / "eva_greece") in done.stderr


def test_small_cells_follow_the_main_effects() -> None:
    """Without tests of its own a cell has the rate of its context times that of its arm; with many, its own."""
    tests = np.array([[10_000.0, 10_000.0], [10_000.0, 0.0]])
    rates = script().shrunk(tests * np.array([[0.01, 0.02], [0.03, 0.0]]), tests)
    assert rates[0] == pytest.approx([0.01, 0.02], rel=0.02)
    assert rates[1, 1] == pytest.approx(0.03, rel=0.05)  # 0.03 * 0.02 / 0.02


def test_problems_of_the_data() -> None:
    folder = os.environ.get("DORAL_REAL_DATA")
    if folder is None:
        pytest.skip("DORAL_REAL_DATA does not name the folder of the real data")
    real_data = script()
    for scenario in real_data.scenarios(Path(folder), ["as-is", "500"], ["puerto-rico", "greece"]):
        means = np.array(scenario.means)
        assert 0.0 < means.min() < means.max() < 0.5
        assert scenario.problem.budget < scenario.problem.horizon
