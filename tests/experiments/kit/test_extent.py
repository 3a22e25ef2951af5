"""How much is run."""

from __future__ import annotations

from doral.experiments.kit.batches import Extent


def test_sides_take_no_more_runs_than_the_main_table() -> None:
    extent = Extent(runs=50, side_runs=20)
    assert extent.asked_for(runs=None, main_only=False) == extent
    assert extent.asked_for(runs=7, main_only=False) == Extent(runs=7, side_runs=7)
    assert extent.asked_for(runs=100, main_only=True) == Extent(runs=100, side_runs=20, main_only=True)


def test_a_shrunk_experiment_is_a_try_out() -> None:
    assert Extent(runs=1, side_runs=1, shrink=5).is_quick
    assert not Extent(runs=1, side_runs=1).is_quick
