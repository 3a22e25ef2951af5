"""Something in Python by its loaded code: another digest for whatever plays otherwise, the same in every process."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pytest
from tests.cli.processes import environment

import doral
from doral.simulation.loaded_code import NotKnown, digest_of
from doral.simulation.scenario.description import of_policy

SOURCE = """
import abc, dataclasses, enum, functools
import numpy as np
import doral
from doral.simulation.world.python_policy import PythonPolicy
import the_helper
from the_helper import helped

FACTOR = 1

class Base(abc.ABC):
    def by_base(self):
        return 1

    @abc.abstractmethod
    def decide(self, arrival): ...

class Plain(Base):
    rule = None
    def __init__(self, problem=None, seed=0, arm=0):
        self.arm = arm
    def decide(self, arrival):
        return self._chosen(arrival) * FACTOR + the_helper.deep.number
    def _chosen(self, arrival):
        return helped() + cached(1)
    def observe(self, answer):
        import the_late
        return the_late.said()

@functools.cache
def cached(x):
    return x + 1

class Model:
    def fit(self, X, y):
        return self
    def predict(self, X):
        return X[:, 0]

class Color(enum.Enum):
    RED = 1
    BLUE = 2

@dataclasses.dataclass(frozen=True)
class Settings:
    words: tuple = ("a", "b")

class Ours(PythonPolicy):
    skip = {"alpha", "beta", "gamma", "delta", Color.RED}
    settings = Settings()
    table = np.arange(4.0)
    def decide(self, arrival):
        return None if "x" in {"x", "y", "z"} else 0
    def observe(self, answer):
        pass

def made(problem, seed):
    return Plain(problem, seed)
"""
HELPER = """
from types import SimpleNamespace
deep = SimpleNamespace(number=3)
def helped():
    return inner()
def inner():
    return 5
"""
LATE = """
def said():
    return 1
"""
Load: TypeAlias = Callable[..., Any]
FORMS: dict[str, Callable[[Any], Any]] = {
    "class": lambda module: module.Plain,
    "factory": lambda module: module.made,
    "object": lambda module: module.Plain(),
    "partial": lambda module: module.functools.partial(module.Plain, arm=1),
    "lambda": lambda module: lambda problem, seed: module.Plain(problem, seed),
}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Modules of these sources, each time anew, in no file."""

    def loaded(source: str = SOURCE, helper: str = HELPER, late: str = LATE) -> ModuleType:
        for name, text in (("the_helper", helper), ("the_late", late), ("the_policy", source)):
            module = ModuleType(name)
            monkeypatch.setitem(sys.modules, name, module)
            exec(compile(text, name, "exec"), vars(module))
        return sys.modules["the_policy"]

    return loaded


def test_the_same_code_is_the_same(load: Load) -> None:
    for form in FORMS.values():
        assert digest_of(form(load())) == digest_of(form(load()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("where", "before", "after"),
    [
        (0, "self._chosen(arrival) *", "self._chosen(arrival) +"),
        (0, "FACTOR = 1", "FACTOR = 2"),
        (0, "        return 1\n", "        return 2\n"),
        (0, "return x + 1", "return x + 2"),
        (0, "    rule = None", "    rule = 3"),
        (0, "seed=0, arm=0", "seed=1, arm=0"),
        (1, "number=3", "number=4"),
        (1, "return 5", "return 6"),
        (2, "return 1", "return 2"),
    ],
)
def test_whatever_is_changed_within_reach_is_another(
    load: Load, form: str, where: int, before: str, after: str
) -> None:
    sources = [SOURCE, HELPER, LATE]
    first = digest_of(FORMS[form](load(*sources)))
    assert before in sources[where]
    sources[where] = sources[where].replace(before, after)
    assert digest_of(FORMS[form](load(*sources))) != first


def test_a_model_is_known_by_its_own_code(load: Load) -> None:
    one, other = (
        of_policy(doral.external(load(text).Model())) for text in (SOURCE, SOURCE.replace("X[:, 0]", "X[:, 1]"))
    )
    assert one != other
    assert one == of_policy(doral.external(load().Model()))


def greedy(arrival: doral.Arrival) -> int | None:
    return arrival.available[0] if arrival.available else None


def never(arrival: doral.Arrival) -> int | None:
    return None


def test_rules_that_are_set_on_a_class_or_a_function(load: Load) -> None:
    module = load()
    found = set()
    for rule in (greedy, never, lambda arrival: 1):
        module.Plain.rule = staticmethod(rule)
        found.add(digest_of(module.Plain))
    module.Plain.rule = None
    for rule in (greedy, never):
        module.made.rule = rule
        found.add(digest_of(module.made))
    assert len(found) == 5


def test_a_file_that_is_edited_after_its_import_plays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "the_edited.py"
    file.write_text("def made(problem, seed):\n    return 1\n")
    module = importlib.import_module("the_edited")
    monkeypatch.setitem(sys.modules, "the_edited", module)
    first = digest_of(module.made)
    file.write_text("def made(problem, seed):\n    return 10\n")
    assert digest_of(module.made) == first
    os.utime(file, (1, 1))  # or the compiled form would be taken for that of the file
    assert digest_of(importlib.reload(module).made) != first


def test_another_process_with_another_order_of_sets_says_the_same(tmp_path: Path) -> None:
    for name, text in (("the_helper", HELPER), ("the_late", LATE), ("the_policy", SOURCE)):
        (tmp_path / f"{name}.py").write_text(text)
    program = (
        "import functools, the_policy, doral; from doral.simulation.loaded_code import digest_of; "
        "print([digest_of(one) for one in (the_policy.Plain, the_policy.Ours, the_policy.Ours.skip, the_policy.made, "
        "functools.partial(the_policy.Plain, arm=1), doral.external(the_policy.Model()))])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=environment() | {"PYTHONHASHSEED": seed, "PYTHONPATH": f"{environment()['PYTHONPATH']}:{tmp_path}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")  # the first one compiles, the others read what it compiled
    }
    assert len(said) == 1


def test_what_nobody_can_know_again_is_said(load: Load) -> None:
    module = load()
    for held in (threading.Lock(), memoryview(b""), (one for one in "ab"), module):
        one = module.Plain()
        one.held = held
        with pytest.raises(NotKnown):
            digest_of(one)
