from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from doral.compiled.sources import DECIDING, ROOT, files_of

KINDS = {"kernel", "shared", "rare"}
A_PROGRAM = """
from doral import Arm, Problem
from doral.engine.blueprint import Blueprint
from doral.engine.compose import first_state
from doral.engine.presets import policy
from doral.simulation.world.loop import simulation_program
problem = Problem(arms=[Arm("arm", features=[1.0])], contexts=["context"], budget=1, horizon=4, deadline=1)
program = simulation_program(first_state(Blueprint(options=policy("doral-otf"), problem=problem, seed=0)))
"""


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def defines_kernels(path: Path) -> bool:
    functions = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef))
    return any(isinstance(one, ast.Name) and one.id in KINDS for node in functions for one in node.decorator_list)


def file_of(module: str) -> Path | None:
    at = ROOT.parent / Path(*module.split("."))
    return next((path for path in (at.with_suffix(".py"), at / "__init__.py") if path.exists()), None)


def imported(path: Path) -> Iterator[Path]:
    """Modules of ours that this one names when it is imported."""
    for node in tree_of(path).body:
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("doral"):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("doral")]
        for name in names:
            found = file_of(name)
            if found is not None and found != ROOT / "__init__.py":
                yield found


def test_every_source_that_decides_is_in_the_list() -> None:
    known = set(files_of(*DECIDING))
    open_ = [path for path in sorted(ROOT.rglob("*.py")) if defines_kernels(path)]
    assert len(open_) > 10
    needed: set[Path] = set()
    while open_:
        path = open_.pop()
        if path not in needed:
            needed.add(path)
            open_.extend(imported(path))
    assert sorted(str(path.relative_to(ROOT)) for path in needed - known) == []


def test_every_pattern_of_the_list_fits_something() -> None:
    assert [pattern for pattern in DECIDING if not files_of(pattern)] == []


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(ROOT, folder / "doral", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def key_in(folder: Path) -> str:
    command = f"{A_PROGRAM}\nprint(program.key)"
    done = subprocess.run(
        [sys.executable, "-c", command], env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_only_an_edit_of_what_decides_compiles_again(copied: Path) -> None:
    before = key_in(copied)
    for name in ("cli/app.py", "live/store.py", "simulation/results/plots.py", "experiments/kit/cell.py"):
        path = copied / "doral" / name
        path.write_text(path.read_text() + "\n# edited\n")
    assert key_in(copied) == before
    path = copied / "doral" / "_kernel" / "normal.py"
    path.write_text(path.read_text() + "\n# edited\n")
    assert key_in(copied) != before


def test_the_engine_is_described_without_the_compiler() -> None:
    command = (
        """
import sys
import doral
import doral.live.store, doral.simulation.api, doral.simulation.world.truth
"""
        + A_PROGRAM
        + """
assert program.key
print("numba" in sys.modules, "llvmlite" in sys.modules)
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", command],
        env={"PYTHONPATH": str(ROOT.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "False"]
