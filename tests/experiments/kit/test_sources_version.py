"""The hash under which finished batches are kept changes with every module that decides numbers."""

from __future__ import annotations

import importlib
import sys

import pytest

from doral.experiments.kit.batches import simulated_modules, sources_version


def test_every_module_that_a_simulation_imports_is_hashed() -> None:
    names = simulated_modules()
    for needed in ("world.oracle", "world.loop", "world.truth", "rivals.trials", "scenario.rows"):
        assert f"doral.simulation.{needed}" in names
    for needed in ("engine.decide", "engine.learn", "estimators.cells", "pacing"):
        assert f"doral.{needed}" in names


@pytest.mark.parametrize("module", ["doral.simulation.world.oracle", "doral.engine.decide", "doral.estimators.cells"])
def test_a_changed_constant_of_a_module_changes_the_hash(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sources_version()
    importlib.import_module(module)
    monkeypatch.setattr(sys.modules[module], "ADDED_CONSTANT", 1, raising=False)
    assert sources_version() != before
