"""Keys of code follow what code does: an edit that changes no decision changes no key."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

import doral
from doral.compiled import Entry, Kernel, Program
from doral.compiled.key import modules_digest, reached
from tests.compiled.tiny import count, extent_of, new_program, walk, width

ROOT = Path(doral.__file__).parent
KEYS = """
import sys, time
from doral.engine.engine import PROGRAM
from doral.live.state.definition import decisions_digest
print(PROGRAM.key, decisions_digest(), "llvmlite" in sys.modules)
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(ROOT, folder / "doral", ignore=shutil.ignore_patterns("__pycache__", "prepared"))
    return folder


def keys_in(folder: Path) -> tuple[str, str]:
    """The key of the engine's program and the digest for snapshots, in a new process that imports no compiler."""
    command = [sys.executable, "-c", KEYS]
    done = subprocess.run(command, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=True)
    program, decisions, *imported = done.stdout.split()
    assert imported == ["False"]
    return program, decisions


EDITS = {  # file, what is replaced, and by what; whether the program's key and the digest for snapshots change
    "a comment": ("estimators/ridge.py", "\nimport math", "\n# edited\n\n\nimport math", (False, False)),
    "a docstring of a kernel": ("numerics/kernels.py", '"""The standard normal\'s', '"""Edited, the', (False, False)),
    "a docstring of a module": ("engine/decide.py", '"""', '"""Edited: ', (False, False)),
    "a hint": (
        "numerics/kernels.py",
        "normal_quantile(u: float) -> float",
        "normal_quantile(u: 'float')",
        (False, False),
    ),
    "another module": ("cli/app.py", '"""', '"""Edited: ', (False, False)),
    "a constant of kernels": ("numerics/kernels.py", "_CENTRE = 0.425", "_CENTRE = 0.4", (True, True)),
    "a coefficient": ("numerics/kernels.py", "2.5090809287301226727e3", "2.5e3", (True, True)),
    "a kernel": ("numerics/kernels.py", "u - 0.5", "u - 0.25", (True, True)),
    "the translation": ("compiled/translate.py", '"fneg double', '"fneg nsz double', (True, True)),
}


@pytest.mark.parametrize("what", EDITS)
def test_keys_change_with_what_code_does(copied: Path, what: str) -> None:
    name, before, after, expected = EDITS[what]
    path = copied / "doral" / name
    original, keys = path.read_text(), keys_in(copied)
    assert before in original
    try:
        path.write_text(original.replace(before, after, 1))
        changed = tuple(one != other for one, other in zip(keys_in(copied), keys, strict=True))
    finally:
        path.write_text(original)
    assert changed == expected


def test_the_python_that_sets_a_state_up_is_in_the_digest_for_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    from doral.engine import options, setup

    before = modules_digest("doral.engine.engine")
    assert modules_digest("doral.engine.engine") == before
    monkeypatch.setattr(setup, "longest", lambda deadlines: 1.0)  # now of another module
    assert modules_digest("doral.engine.engine") != before
    monkeypatch.undo()
    monkeypatch.setattr(options, "NEW", 1.0, raising=False)
    assert modules_digest("doral.engine.engine") != before


def test_a_key_covers_all_kernels_that_are_reached() -> None:
    assert set(reached(cast(Kernel, walk))) >= {walk, extent_of, width, count}


def test_a_key_covers_closures_types_and_kinds_of_kernels() -> None:
    def program(factor: float, kind: str = "inlined", arguments: tuple[object, ...] = (float,)) -> Program:
        def scaled(x: float) -> float:
            return factor * x

        return Program(name="scaled", entries={"scaled": Entry(Kernel(scaled, kind), arguments, float)})

    keys = {program(2.0).key, program(3.0).key, program(2.0, "rare").key, program(2.0, arguments=(int,)).key}
    assert len(keys) == 4
    assert program(2.0).key == program(2.0).key
    assert new_program().key == new_program().key


def test_a_source_that_was_edited_since_its_import_is_not_compiled(tmp_path: Path) -> None:
    from doral.compiled.translate import Unsupported, definition_of

    path = tmp_path / "edited.py"
    path.write_text("def one(x):\n    return x + 1\n")
    scope: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    assert definition_of(scope["one"]).name == "one"
    path.write_text("def one(x):\n    return x * 2\n")
    path.touch()
    definition_of.__globals__["_functions_in"].cache_clear()
    with pytest.raises(Unsupported, match="not what was imported"):
        definition_of(scope["one"])
