"""On a local Ray, one for all tests here: the same numbers to the bit."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

import doral
from doral.simulation.workers import ray_engine as on_ray
from doral.simulation.workers.cluster import ClusterError, joined
from tests.cluster.conftest import deadly


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    """Its workers find the sources that the tests find."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(Path(doral.__file__).parent.parent)
    try:
        with joined("ray://local"):
            yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def test_the_same_bits_and_nothing_is_told_to_anybody() -> None:
    there = doral.simulate(["doral", "random"], "stress/tiny", runs=60, n_jobs=-1)
    assert there == doral.simulate(["doral", "random"], "stress/tiny", runs=60)
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_a_task_that_kills_its_worker_is_played_again(tmp_path: Path) -> None:
    made = deadly(tmp_path / "mark")
    there = doral.simulate(made, "stress/tiny", runs=4, n_jobs=-1)
    assert (tmp_path / "mark").exists()
    assert there == doral.simulate(made, "stress/tiny", runs=4)


def test_errors_of_policies_are_raised_as_they_are() -> None:
    class Broken:
        def __init__(self, problem: doral.Problem, seed: int) -> None:
            raise doral.InvalidValue("mine", seed, "is no good")

    with pytest.raises(doral.InvalidValue, match="is no good"):
        doral.simulate(Broken, "stress/tiny", runs=2, n_jobs=-1)  # type: ignore[arg-type]


def test_work_for_which_no_processor_is_left_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "LOOK_S", 0.1)
    monkeypatch.setattr(on_ray, "STRANDED_S", 0.2)
    monkeypatch.setattr(ray, "cluster_resources", dict)
    asleep = ray.remote(num_cpus=1)(lambda: time.sleep(60.0)).remote()
    try:
        with pytest.raises(ClusterError, match="no processor"):
            on_ray.OnRay().first_done([asleep])
    finally:
        ray.cancel(asleep, force=True)
