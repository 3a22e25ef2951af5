"""What a policy needs is told from sizes alone, and what no machine holds is refused before it is tried."""

from __future__ import annotations

import dataclasses
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from doral.engine.blueprint import Blueprint
from doral.engine.compose import chosen_pieces, first_state
from doral.engine.leaves import leaves
from doral.engine.presets import POLICY_NAMES, policy
from doral.engine.room import machine_bytes, state_bytes

import doral
from doral.delays import Geometric
from doral.engine import room
from doral.engine.options import PolicyOptions
from doral.errors import InvalidValue
from doral.person import Category, Number
from doral.problem import Arm, Paid, Problem
from doral.simulation.scenario.scenario import Scenario
from tests.engine.cases import completed


def sized(n_contexts: int, n_arms: int, n_features: int, *, feedback: str = "explicit", costs: int = 1) -> Problem:
    row = [0.5] * n_features
    return Problem(
        arms=[Arm(f"a{i}", features=row, cost=1.0 + i % costs) for i in range(n_arms)],
        contexts=[f"c{j}" for j in range(n_contexts)],
        budget=100.0,
        horizon=1000,
        deadline=50.0,
        feedback=feedback,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("name", POLICY_NAMES)
@pytest.mark.parametrize(
    ("n_contexts", "n_arms", "n_features", "costs"), [(100, 70, 20, 1), (40, 90, 5, 30), (90, 8, 60, 8)]
)
def test_the_estimate_is_what_a_state_takes(
    name: str, n_contexts: int, n_arms: int, n_features: int, costs: int
) -> None:
    for feedback in ("explicit", "silent"):
        problem = sized(n_contexts, n_arms, n_features, feedback=feedback, costs=costs)
        truth = np.zeros((1, 1, 1)), np.zeros((2, n_contexts, n_arms))
        blueprint = Blueprint(options=policy(name), problem=problem, seed=0, oracle=truth[0], true_values=truth[1])
        real = sum(array.nbytes for _, array in leaves(first_state(blueprint)))
        assert state_bytes(blueprint, chosen_pieces(blueprint.options, problem)) == pytest.approx(
            real, rel=0.05, abs=50_000
        )


@pytest.mark.parametrize("name", ["doral-otf", "doral-ids", "doral", "d-lints", "eva"])
@pytest.mark.parametrize(
    ("n_contexts", "n_arms", "n_features", "n_numbers", "n_categories", "costs"),
    [(1, 10, 0, 20, 0, 1), (3, 70, 2, 30, 2, 7), (1, 200, 0, 5, 0, 1), (2, 8, 3, 60, 1, 8)],
)
@pytest.mark.parametrize("paid", ["always", "on_answer"])
def test_the_estimate_knows_people(
    name: str,
    n_contexts: int,
    n_arms: int,
    n_features: int,
    n_numbers: int,
    n_categories: int,
    costs: int,
    paid: Paid,
) -> None:
    numbers, categories = range(n_numbers), range(n_categories)
    for feedback in ("explicit", "silent"):
        problem = dataclasses.replace(
            sized(n_contexts, n_arms, n_features, feedback=feedback, costs=costs),
            person=(*(Number(f"number {i}") for i in numbers), *(Category(f"category {i}") for i in categories)),
            paid=paid,
        )
        if name == "doral" and feedback == "silent":
            continue  # a fixed prior counts no trials
        options = policy(name, **({"learner": "auto"} if name == "doral" else {}))
        blueprint = Blueprint(options=options, problem=problem, seed=0)
        real = sum(array.nbytes for _, array in leaves(first_state(blueprint)))
        assert state_bytes(blueprint, chosen_pieces(options, problem)) == pytest.approx(real, rel=0.05, abs=50_000)


def test_people_that_no_machine_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = dataclasses.replace(sized(1, 200, 0), person=tuple(Number(f"number {i}") for i in range(60)))
    monkeypatch.setattr(room, "machine_bytes", lambda: 2**30)
    with pytest.raises(InvalidValue, match="arms x columns of a person.*200 x 1,831.*splines or products"):
        first_state(Blueprint(options=policy("doral-otf", products="all"), problem=problem, seed=0))


@pytest.mark.parametrize("changes", [{"censoring": "min_age"}, {"outcome_split": 0.5, "learner": "auto"}])
def test_the_estimate_knows_options(changes: dict[str, object]) -> None:
    problem = sized(50, 60, 10)
    options = PolicyOptions(**completed({**policy("doral").to_dict(), **changes}, problem))
    blueprint = Blueprint(options=options, problem=problem, seed=0)
    real = sum(array.nbytes for _, array in leaves(first_state(blueprint)))
    assert state_bytes(blueprint, chosen_pieces(options, problem)) == pytest.approx(real, rel=0.05, abs=50_000)


@pytest.mark.parametrize("name", ["doral-otf", "doral-ids", "doral"])
def test_what_no_machine_holds_is_refused_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = sized(5_000, 5_000, 200)
    monkeypatch.setattr(room, "machine_bytes", lambda: 4 * 2**30)  # whatever the machine that runs this has
    tracemalloc.start()
    started = time.perf_counter()
    with doral.open("memory://") as store, pytest.raises(InvalidValue) as refused:
        store.create("huge", problem, policy=name, clock="rounds")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6
    assert time.perf_counter() - started < 5.0
    for part in ("contexts x arms x features", "5,000 x 5,000 x 200", "GiB of memory", "4.0 GiB", "fewer features"):
        assert part in str(refused.value)
    assert store.list() == []


def test_simulations_refuse_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = dataclasses.replace(sized(100, 100, 20), horizon=10)
    scenario = Scenario(name="big", problem=problem, delays=Geometric(3), shares=[0.01] * 100)
    monkeypatch.setattr(room, "machine_bytes", lambda: 10**6)
    with pytest.raises(InvalidValue, match="100 x 100 x 20"):
        doral.simulate("doral-otf", scenario, runs=1)


def test_the_memory_of_this_machine_is_known() -> None:
    there = machine_bytes()
    assert there is not None
    assert there > 10**8


def test_a_container_counts_with_its_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(room, "_CGROUP_LIMITS", (str(limit), str(tmp_path / "none")))
    whole = machine_bytes()
    limit.write_text("max\n")
    assert machine_bytes() == whole
    limit.write_text("123456789\n")
    assert machine_bytes() == 123456789
