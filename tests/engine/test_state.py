"""The state is one table of fields: allocation, memory, growth, copies, and checks of stored arrays follow from it."""

from __future__ import annotations

import dataclasses
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import doral
from doral._arrays import Misfit, leaves, replace_leaves, shape_of, table_of
from doral.delays import Geometric
from doral.engine import setup
from doral.engine.engine import Engine
from doral.engine.options import policy_of
from doral.engine.setup import (
    GROWING,
    Blueprint,
    check_state,
    first_sizes,
    first_state,
    grown,
    grown_sizes,
    machine_bytes,
    state_bytes,
)
from doral.engine.state import State
from doral.errors import InvalidValue
from doral.estimators import levels
from doral.person import Category, Number
from doral.problem import Arm, Problem
from doral.simulation.scenario.scenario import Scenario
from tests.engine.interpreted import Player, as_arrays, as_python
from tests.engine.problem_kinds import CASES, KINDS, Case, Game, blueprint_of, new_player, policies

pytestmark = pytest.mark.usefixtures("interpreted")
RARELY = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])

case_of = st.sampled_from(CASES)
seed_of = st.integers(0, 2**20)


def arrays_of(state: State) -> dict[str, Any]:
    return dict(leaves(as_arrays(state)))


def copied(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: array.copy() for name, array in arrays.items()}


def played(case: Case, *, n: int = 40, seed: int = 1) -> Player:
    player = new_player(case.blueprint)
    Game(player, case.blueprint.problem, seed).play(n)
    return player


def same_bits(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Return the names of arrays that differ."""
    assert list(ours) == list(theirs)
    return [name for name in ours if not is_same(ours[name], theirs[name])]


def is_same(ours: Any, theirs: Any) -> bool:
    """Return whether arrays are equal to the bit, but for what lies between the fields of records."""
    parts = ours.dtype.names or ()
    return ours.shape == theirs.shape and all(
        one.tobytes() == other.tobytes()
        for one, other in ([(ours[name], theirs[name]) for name in parts] or [(ours, theirs)])
    )


def test_every_policy_and_kind_of_problem_is_among_the_cases() -> None:
    assert {case.policy for case in CASES} == set(policies())
    assert {case.kind for case in CASES} == set(KINDS)
    assert len(CASES) > 200
    parts = {name for case in CASES for name, array in leaves(first_state(case.blueprint)) if array.size}
    assert parts == set(table_of(State))


# --- allocation and memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_arrays_have_the_shapes_and_dtypes_of_the_table(case: Case) -> None:
    state, sizes = first_state(case.blueprint), first_sizes(case.blueprint)
    arrays = dict(leaves(state))
    assert list(arrays) == list(table_of(State))
    for name, (array, dtype) in table_of(State).items():
        assert (arrays[name].shape, arrays[name].dtype) == (shape_of(array, sizes), dtype), name
        assert arrays[name].flags.c_contiguous
    assert state_bytes(case.blueprint) == sum(array.nbytes for array in arrays.values())


def sized(n_contexts: int, n_arms: int, n_features: int, *, costs: int = 1, **changes: Any) -> Problem:
    row = [0.5] * n_features
    return Problem(
        arms=[Arm(f"a{i}", features=row, cost=1.0 + i % costs) for i in range(n_arms)],
        contexts=[f"c{j}" for j in range(n_contexts)],
        **{"budget": 100.0, "horizon": 1000, "deadline": 50.0, **changes},
    )


@pytest.mark.parametrize("name", policies())
@pytest.mark.parametrize(
    ("n_contexts", "n_arms", "n_features", "costs"), [(100, 70, 20, 1), (40, 90, 5, 30), (90, 8, 60, 8)]
)
def test_memory_is_known_without_allocating(
    name: str, n_contexts: int, n_arms: int, n_features: int, costs: int
) -> None:
    blueprint = blueprint_of(policies()[name], sized(n_contexts, n_arms, n_features, costs=costs))
    assert state_bytes(blueprint) == sum(array.nbytes for _, array in leaves(first_state(blueprint)))


@pytest.mark.parametrize("name", ["doral-otf", "doral", "d-lints", "eva"])
@pytest.mark.parametrize(("n_contexts", "n_arms", "n_numbers", "n_categories"), [(1, 60, 20, 0), (3, 30, 30, 2)])
def test_memory_of_arrivals_with_features(
    name: str, n_contexts: int, n_arms: int, n_numbers: int, n_categories: int
) -> None:
    person = [*(Number(f"n{i}") for i in range(n_numbers)), *(Category(f"c{i}") for i in range(n_categories))]
    blueprint = blueprint_of(policies()[name], sized(n_contexts, n_arms, 2, costs=7, person=person))
    assert state_bytes(blueprint) == sum(array.nbytes for _, array in leaves(first_state(blueprint)))


@pytest.mark.parametrize("name", ["doral-otf", "doral"])
def test_a_problem_too_large_for_the_machine_is_refused_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = sized(5_000, 5_000, 200)
    monkeypatch.setattr(setup, "machine_bytes", lambda: 4 * 2**30)
    tracemalloc.start()
    started = time.process_time()
    with doral.open("memory://") as store, pytest.raises(InvalidValue) as refused:
        store.create("huge", problem, policy=name, clock="rounds")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6
    assert time.process_time() - started < 5.0
    for part in ("contexts x arms x features", "5,000 x 5,000 x 200", "GiB of memory", "4.0 GiB", "fewer features"):
        assert part in str(refused.value)
    assert store.list() == []


def test_too_many_columns_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = dataclasses.replace(sized(1, 200, 0), person=tuple(Number(f"number {i}") for i in range(60)))
    monkeypatch.setattr(setup, "machine_bytes", lambda: 2**30)
    with pytest.raises(InvalidValue, match="arms x columns of a person.*200 x 1,831.*splines or products"):
        first_state(Blueprint(options=policy_of("doral-otf", {"products": "all"}), problem=problem, seed=0))


def test_a_simulation_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = dataclasses.replace(sized(100, 100, 20), horizon=10)
    scenario = Scenario(name="big", problem=problem, delays=Geometric(3), shares=[0.01] * 100)
    monkeypatch.setattr(setup, "machine_bytes", lambda: 10**6)
    with pytest.raises(InvalidValue, match="100 x 100 x 20"):
        doral.simulate("doral-otf", scenario, runs=1)


def test_the_memory_of_this_machine_is_known() -> None:
    there = machine_bytes()
    assert there is not None
    assert there > 10**8


def test_the_limit_of_a_container_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(setup, "_CGROUP_LIMITS", (str(limit), str(tmp_path / "none")))
    whole = machine_bytes()
    limit.write_text("max\n")
    assert machine_bytes() == whole
    limit.write_text("123456789\n")
    assert machine_bytes() == 123456789


# --- growth and copies -----------------------------------------------------------------------------------------------


@RARELY
@given(case=case_of, seed=seed_of)
def test_growth_changes_no_decision(case: Case, seed: int) -> None:
    """A state that starts with little room and grows decides as one that has it from the beginning."""
    roomy = Game(new_player(case.blueprint), case.blueprint.problem, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setup, "FIRST_CAPACITY", 4)
        patch.setattr(levels, "FIRST_LEVELS", 4)
        tight = Game(new_player(case.blueprint), case.blueprint.problem, seed)
        assert tight.play(50) == roomy.play(50)
        check_state(case.blueprint, arrays_of(tight.player.state))
    small, large = as_arrays(tight.player.state), as_arrays(roomy.player.state)
    assert small.ring.size < large.ring.size
    assert (small.now == large.now).all()
    numbers = np.arange(small.now["first"][0], small.now["next"][0])
    ring, larger = small.ring[numbers & (small.ring.size - 1)], large.ring[numbers & (large.ring.size - 1)]
    for part in set(ring.dtype.names or ()) - {"reading", "position"}:  # these are written only where they are read
        assert is_same(ring[part], larger[part]), part


@RARELY
@given(case=case_of, seed=seed_of)
def test_a_full_ring_keeps_every_decision(case: Case, seed: int) -> None:
    state = as_arrays(played(case, seed=seed, n=20).state)
    now = state.now[0]
    now["next"] = now["first"] + state.ring.size  # as full as it can be
    state.ring["reward"] = np.random.default_rng(seed).random(state.ring.size)
    larger = grown(state)
    assert larger.ring.size == 2 * state.ring.size
    numbers = np.arange(now["first"], now["next"])
    old, new = numbers & (state.ring.size - 1), numbers & (larger.ring.size - 1)
    for (name, before), (_, after) in zip(leaves(state), leaves(larger), strict=True):
        if after.shape != before.shape and not name.startswith(("race.", "people.levels.")):
            assert is_same(after[new], before[old]), name
    sizes = grown_sizes(case.blueprint, {name: array.shape for name, array in leaves(larger)})
    assert sizes["ring"] == larger.ring.size


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_a_stored_state_decides_alike_and_shares_nothing(case: Case) -> None:
    problem, seed = case.blueprint.problem, 5
    game = Game(new_player(case.blueprint), problem, seed)
    game.play(16)
    arrays = arrays_of(game.player.state)
    stored = {name: (array.tobytes(), array.dtype, array.shape) for name, array in arrays.items()}
    read = {name: np.frombuffer(data, dtype).reshape(shape).copy() for name, (data, dtype, shape) in stored.items()}
    check_state(case.blueprint, read)
    assert same_bits(read, arrays) == []
    other = Game(Player(as_python(replace_leaves(first_state(case.blueprint), read))), problem, seed)
    other.rng.bit_generator.state = game.rng.bit_generator.state
    other.clock, other.pending = game.clock, list(game.pending)
    before = copied(arrays)
    decided = other.play(8)
    assert same_bits(arrays_of(game.player.state), before) == []  # the first one has not moved
    assert game.play(8) == decided
    assert same_bits(arrays_of(game.player.state), arrays_of(other.player.state)) == []


# --- stored arrays ---------------------------------------------------------------------------------------------------

# Cases that have every part of the state between them.
STORED = [
    case
    for case in CASES
    if (case.policy, case.kind)
    in {
        ("doral-otf", "silent people"),
        ("min_age race", "until a date"),
        ("d-lints", "observed baseline"),
        ("curves of outcomes", "people paid on answer"),
    }
]
NUMBERS = {  # integers that are counts, clocks, keys or flags: no kernel takes one for an index unchecked
    "ridge.updates",
    "ridge.is_touched",
    "curves.cursor",
    "hulls.edges.room",
    "hulls.edges.changes",
    "allowed",
    "doubt",
    "draw",
    "costs.lapsed",
    "truth.phase",
    "predictions.counts",
    "people.line.group",
    "people.design.group",
    "people.design.is_known",
    "people.who",
    "people.counts",
    "people.levels.keys",
    "people.levels.pair_keys",
}


def test_every_integer_is_an_index_or_known_not_to_be_one() -> None:
    integers = {name for name, (_, dtype) in table_of(State).items() if dtype == np.int64}
    bounded = {name for name, (array, _) in table_of(State).items() if array.index}
    assert integers - bounded == NUMBERS


def damages(arrays: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Iterate over damaged copies: one array missing, unknown, or of another shape or dtype."""
    for name, array in arrays.items():
        yield f"without {name}", {other: value for other, value in arrays.items() if other != name}
        yield f"{name} renamed", {(other + "x" if other == name else other): value for other, value in arrays.items()}
        yield f"{name} with one axis more", {**arrays, name: array[None]}
        for axis in range(array.ndim):
            shape = list(array.shape)
            for change in (1, -1):
                if shape[axis] + change >= 0:
                    longer = [*shape[:axis], shape[axis] + change, *shape[axis + 1 :]]
                    yield f"{name} of shape {longer}", {**arrays, name: np.zeros(longer, array.dtype)}
        for dtype in (np.float32, np.int64, np.float64):
            if array.dtype != dtype:
                yield f"{name} of {dtype}", {**arrays, name: np.zeros(array.shape, dtype)}
    yield "one array more", {**arrays, "more": np.zeros(3)}
    yield "nothing", {}
    yield "in another order", dict(reversed(arrays.items()))


def is_refused(blueprint: Blueprint, arrays: dict[str, Any]) -> bool:
    try:
        check_state(blueprint, arrays)
    except Misfit:
        return True
    return False


@pytest.mark.parametrize("case", STORED, ids=repr)
def test_arrays_that_are_missing_unknown_or_misshapen_are_refused(case: Case) -> None:
    arrays = arrays_of(played(case).state)
    refused = {what: is_refused(case.blueprint, damaged) for what, damaged in damages(arrays)}
    assert [what for what in refused if not refused[what]] == []
    assert len(refused) > 1_000


@pytest.mark.parametrize("case", STORED, ids=repr)
def test_indices_out_of_range_are_refused(case: Case) -> None:
    arrays = arrays_of(played(case).state)
    rng = np.random.default_rng(1)
    names = set()
    for name, (array, _) in table_of(State).items():
        for term in array.index.split():
            part = term.rpartition(":")[0]
            for wrong in (-2, 10**6, -(10**12), 2**40):
                damaged = copied(arrays)
                values = damaged[name][part] if part else damaged[name]
                if values.size == 0 or (wrong == 10**6 and values.dtype.itemsize < 4):
                    continue
                values.reshape(-1)[rng.integers(values.size)] = np.int64(wrong).astype(values.dtype)
                if (values == (arrays[name][part] if part else arrays[name])).all():
                    continue
                with pytest.raises(Misfit, match=name.replace(".", r"\.")):
                    check_state(case.blueprint, damaged)
                names.add(f"{name}:{part}")
    assert len(names) > 12


RELATIONS: list[tuple[str, str, Any]] = [
    ("now", "next", 10**12),
    ("now", "next", -1),
    ("now", "first", 10**12),
    ("now", "first", -(10**12)),
    ("now", "settled", 10**12),
    ("now", "settled", -1),
    ("now", "n_stale", 0),
    ("contexts", "is_stale", 0),
    ("curves.cursor", "", -(10**12)),
    ("curves.cursor", "", 10**12),
    ("hulls.edges.size", "", 10**3),
    ("forecast.pace", "span", 0.0),
    ("forecast.pace", "span", np.nan),
    ("people.counts", "", -1),
    ("people.levels.keys", "", 7),
    ("people.levels.pair_keys", "", 7),
]


@pytest.mark.parametrize(("name", "part", "value"), RELATIONS)
def test_numbers_that_would_lead_kernels_astray_are_refused(name: str, part: str, value: Any) -> None:
    (case,) = [one for one in STORED if (one.policy, one.kind) == ("curves of outcomes", "people paid on answer")]
    arrays = copied(arrays_of(played(case).state))
    if part == "is_stale":
        arrays["now"]["n_stale"] = 1
    elif part == "n_stale":
        arrays["contexts"]["is_stale"] = 1
    if part:
        arrays[name][part] = value
    else:
        arrays[name][:] = value
    with pytest.raises(Misfit):
        check_state(case.blueprint, arrays)


@pytest.mark.parametrize("axis", GROWING)
def test_axes_double_and_nothing_else(axis: str) -> None:
    kind = "until a date" if axis == "delays" else "people paid on answer"
    (case,) = [one for one in STORED if one.kind == kind]
    first = first_sizes(case.blueprint)

    def shapes(**sizes: int) -> dict[str, tuple[int, ...]]:
        return {name: shape_of(array, {**first, **sizes}) for name, (array, _) in table_of(State).items()}

    for times in (1, 2, 8):
        assert grown_sizes(case.blueprint, shapes(**{axis: times * first[axis]}))[axis] == times * first[axis]
    for size in (first[axis] + 1, 3 * first[axis], 0):
        with pytest.raises(Misfit):
            grown_sizes(case.blueprint, shapes(**{axis: size}))
    for other in ("J", "A", "rows", "G", "H"):
        with pytest.raises(Misfit):
            grown_sizes(case.blueprint, shapes(**{other: first[other] + 1}))


def test_an_engine_restores_what_fits_and_nothing_else() -> None:
    blueprint = Blueprint(options=policy_of("doral-otf", {}), problem=KINDS["plain"], seed=1)
    offered = np.zeros((1, 0), dtype=np.uint8)
    engine, other = Engine(blueprint), Engine(blueprint)
    for clock in range(1, 60):
        engine.decide(clock % 2, offered, float(clock))
    stored = copied(dict(engine.arrays()))
    before = copied(dict(other.arrays()))
    for damaged in ({**stored, "ring": stored["ring"][:-1]}, {**stored, "more": np.zeros(1)}, {}):
        with pytest.raises(Misfit):
            other.restore(damaged)
        assert same_bits(dict(other.arrays()), before) == []
    other.restore(stored)
    for clock in range(60, 90):
        assert other.decide(clock % 2, offered, float(clock)) == engine.decide(clock % 2, offered, float(clock))
    assert same_bits(dict(engine.arrays()), dict(other.arrays())) == []
