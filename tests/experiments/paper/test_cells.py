"""What the reproduction runs."""

from __future__ import annotations

import dataclasses

from doral.experiments.paper import cells as paper
from doral.experiments.paper.cells import SCENARIO_NAMES


def test_every_study_is_run_unless_the_comparison_alone_is_asked_for() -> None:
    found = paper.cells(paper.FULL)
    sizes = {paper.COMPARISON: 4, paper.HORIZON_SWEEP: 12, paper.ACCEPT_SWEEP: 4, paper.ABLATION_STUDY: 4}
    assert [cell.study for cell in found] == [name for name, size in sizes.items() for _ in range(size)]
    assert {cell.scenario.name for cell in paper.comparison(paper.FULL)} == set(SCENARIO_NAMES)
    assert not paper.FULL.is_quick
    assert paper.QUICK.is_quick
    only = dataclasses.replace(paper.FULL, main_only=True)
    assert {cell.study for cell in paper.cells(only)} == {paper.COMPARISON}
