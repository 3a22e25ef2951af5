"""Options of a policy: what can be combined, what presets are, and which branches and parts of a state follow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import doral
from doral._arrays import fields_of, leaves
from doral.engine import state as s
from doral.engine.options import POLICY_NAMES, PRESETS, PolicyOptions, policy_of, read_stored
from doral.engine.setup import Blueprint, check_fit, first_state, rules_of, sizes_of
from doral.errors import InvalidValue, UnknownName
from tests.engine.cases import OFFERS
from tests.engine.interpreted import small_problem

EXPLICIT, SILENT = small_problem(), small_problem(feedback="silent")
ORACLE = np.full((1, EXPLICIT.n_arms, 1), 0.5)
TRUTH = np.full((1, EXPLICIT.n_contexts, EXPLICIT.n_arms), 0.5)

# --- what cannot go together -----------------------------------------------------------------------------------------

REFUSED: list[tuple[str, dict[str, Any], str, Any, str]] = [
    ("doral", {"accept": 0}, "accept", 0, "from 1 to 100,000"),
    ("doral", {"reservoir": 1}, "reservoir", 1, "from 2 to 100,000"),
    ("doral", {"products": [("age",)]}, "products", ("age",), "pairs of names"),
    ("doral", {"min_answers": 0}, "min_answers", 0, "from 1 to 1,000,000,000"),
    ("doral", {"race_budget_share": 1.5}, "race_budget_share", 1.5, "at most 1"),
    ("doral", {"penalty": 0.0}, "penalty", 0.0, "at least 1e-09"),
    ("doral", {"delta": 2.0}, "delta", 2.0, "at most 1"),
    ("doral", {"exploration": -1.0}, "exploration", -1.0, "at least 0"),
    ("doral", {"half_life": 0.0}, "half_life", 0.0, "at least 0.001"),
    ("doral", {"outcome_split": float("nan")}, "outcome_split", None, "finite"),
    ("doral", {"periods": 0}, "periods", 0, "from 1 to 1,000,000,000"),
    ("doral", {"cutoff": 0.5}, "cutoff", 0.5, "at least 1"),
    ("doral", {"cutoff": "soon"}, "cutoff", "soon", "adaptive, none or None"),
    ("d-linucb", {"cutoff": "adaptive"}, "cutoff", "adaptive", "needs return_probability='estimated'"),
    ("doral", {"sampling": "thompson"}, "sampling", "thompson", "needs prior='noise' or 'shared'"),
    ("doral", {"explore": 1.5}, "explore", 1.5, "at most 1"),
    ("doral", {"bonus": "calibrated"}, "bonus", "calibrated", "needs prior='noise' or 'shared'"),
    ("doral", {"features": "none"}, "features", "none", "bonus='calibrated'"),
    ("doral", {"bonus": "to_come"}, "bonus", "to_come", "needs prior='noise' or 'shared'"),
    ("d-linucb", {"start_share": 0.1}, "start_share", 0.1, "needs prior='noise', 'shared' or 'cells'"),
    ("d-alp", {"learner": "early"}, "learner", "early", "needs return_probability='estimated'"),
    ("doral", {"outcome_split": 0.5, "learner": "early"}, "outcome_split", 0.5, "needs learner='returned' or 'auto'"),
    ("doral", {"learner": "thinned", "prior": "noise"}, "prior", "noise", "thinned learner"),
    ("doral", {"learner": "thinned", "pending": "expected"}, "pending", "expected", "thinned learner"),
    ("doral", {"outcome_split": 0.5, "learner": "scaled"}, "outcome_split", 0.5, "needs learner='returned' or 'auto'"),
    ("d-alp", {"outcome_split": 0.5}, "outcome_split", 0.5, "needs return_probability='estimated'"),
    ("doral", {"outcome_split": 0.5, "half_life": 9.0}, "outcome_split", 0.5, "cannot be combined with half_life"),
    ("oracle", {"printed": ["choice"]}, "printed", "choice", "sampling='oracle' has not"),
    ("eva", {"printed": ["rate"]}, "printed", "rate", "contradicts rate='period'"),
    ("eva", {"printed": ["bonus"]}, "features", "none", "bonus='calibrated'"),
    ("doral", {"printed": ["bonuses"]}, "printed", "bonuses", "must be among acceptance, baskets"),
    ("doral", {"printed": 3}, "printed", 3, "must be a list of some of acceptance, baskets"),
    ("doral", {"until_end": 1}, "until_end", 1, "True or False"),
    ("doral", {"start_tries": -1}, "start_tries", -1, "from 0 to 1,000,000,000"),
    ("doral", {"pacing": "fast"}, "pacing", "fast", "must be one of coin, greedy, lp"),
]  # fmt: skip


@pytest.mark.parametrize(("base", "options", "field", "value", "remedy"), REFUSED)
def test_what_cannot_be_combined_is_refused(
    base: str, options: dict[str, Any], field: str, value: Any, remedy: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        policy_of(base, options)
    message = str(caught.value)
    assert message.startswith(f"{field} = {value!r}: " if value is not None else f"{field} = ")
    assert remedy in message


def test_what_the_problem_lacks_is_said() -> None:
    with pytest.raises(InvalidValue, match="takes silence for a no, .* or take doral-otf"):
        check_fit(policy=policy_of("d-linucb", {"learner": "scaled"}), problem=small_problem(deadline=None), seed=0)
    with pytest.raises(InvalidValue, match="return_probability = 'oracle': needs the true delays"):
        check_fit(policy=policy_of("doral/literal", {}), problem=EXPLICIT, seed=0)
    with pytest.raises(InvalidValue, match="sampling = 'oracle': needs the true values, which only a simulation has"):
        check_fit(policy=policy_of("oracle", {}), problem=EXPLICIT, seed=0)
    with pytest.raises(InvalidValue, match="accept = 4: must be at most the number of arms, 3"):
        check_fit(policy=policy_of("doral", {"accept": 4}), problem=EXPLICIT, seed=0)
    check_fit(policy=policy_of("doral", {"accept": 3}), problem=EXPLICIT, seed=0)


def test_a_misspelt_option_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="exploration"):
        policy_of("doral", {"exploratoin": 1.0})


# --- presets, and options that are gone ------------------------------------------------------------------------------


def test_printed_readings_are_words_in_any_order() -> None:
    assert policy_of("doral", {"printed": "window+bonus"}).printed == ("bonus", "window")
    assert policy_of("doral", {"printed": {"window", "bonus"}}).printed == ("bonus", "window")


def test_no_two_presets_are_alike() -> None:
    kinds = {dataclasses.replace(policy_of(name, {}), name="any") for name in POLICY_NAMES}
    assert len(kinds) == len(POLICY_NAMES)
    assert set(PRESETS) <= set(POLICY_NAMES)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_options_are_read_as_they_were_stored(name: str) -> None:
    options = policy_of(name, {})
    assert read_stored(options.to_dict()) == (options, ())


def test_options_of_the_version_before_are_read() -> None:
    """What it wrote about doral/literal, doral-otf and doral-ids."""
    literal = {
        **_without_printed("doral/literal"),
        "acceptance": "printed",
        "baskets": "printed",
        "bonus": "printed",
        "choice": "unweighted",
        "cutoff_over": "all",
        "rate": "printed",
        "return_by": "cutoff",
        "window_bias": True,
        "race_delta": 0.05,
        "tail_exponent": 0.5,
        "race_trains": True,
    }
    assert read_stored(literal) == (policy_of("doral/literal", {}), ())
    on_the_fly = {
        **_without_printed("doral-otf"),
        "acceptance": "fastest",
        "choice": "weighted",
        "cutoff_share": 1.0,
        "dropping": "certified",
        "draws": 8,
        "window_bias": None,
    }
    assert read_stored(on_the_fly) == (policy_of("doral-otf", {}), ())
    directed = {**on_the_fly, "sampling": "directed", "race_trains": False, "draws": 3}
    options, lost = read_stored(directed)
    assert options == policy_of("doral-otf", {})
    assert sorted(lost) == ["draws=3", "race_trains=False", "sampling=directed"]


def _without_printed(name: str) -> dict[str, Any]:
    return {option: value for option, value in policy_of(name, {}).to_dict().items() if option != "printed"}


# --- branches and parts ----------------------------------------------------------------------------------------------


def blueprint(options: PolicyOptions, problem: doral.Problem = EXPLICIT) -> Blueprint:
    return Blueprint(options=options, problem=problem, seed=0, oracle=ORACLE, true_values=TRUTH)


@pytest.mark.parametrize(
    ("options", "problem", "rule", "value"),
    [
        ({}, EXPLICIT, "learner", s.RETURNED),
        ({}, EXPLICIT, "has_race", True),
        ({"screening": "none"}, EXPLICIT, "has_race", False),
        ({"learner": "auto"}, EXPLICIT, "learner", s.RETURNED),
        ({"learner": "auto"}, SILENT, "learner", s.EARLY),
        ({"learner": "auto"}, SILENT, "returns", s.BY_DEADLINE),
        ({"learner": "auto", "return_probability": "one"}, SILENT, "learner", s.SCALED),
        ({}, SILENT, "returns", s.FACTORS),
        ({}, EXPLICIT, "has_window", False),
        ({"learner": "thinned"}, EXPLICIT, "has_window", True),
        ({"printed": ["window"]}, EXPLICIT, "has_window", True),
        ({}, EXPLICIT, "has_curves", True),
        ({"return_probability": "one"}, EXPLICIT, "has_curves", False),
        ({"return_probability": "one", "censoring": "kaplan_meier"}, EXPLICIT, "has_curves", True),
        ({"printed": ["rate"]}, EXPLICIT, "rate", s.PRINTED_RATE),
        ({"printed": ["rate"], "pacing": "coin"}, EXPLICIT, "rate", s.PRINTED_COIN),
        ({"printed": ["bonus"]}, EXPLICIT, "bonus", s.PRINTED),
        ({"printed": ["choice"]}, EXPLICIT, "is_unweighted", True),
        ({"cost": "learned"}, EXPLICIT, "has_learned_costs", False),
        ({"cost": "learned"}, OFFERS.problem, "has_learned_costs", True),
        ({"sampling": "thompson", "prior": "noise"}, EXPLICIT, "has_odds", True),
        ({"explore": 0.02}, EXPLICIT, "has_odds", True),
        ({"prior": "noise", "outcome_split": 0.5}, EXPLICIT, "has_outcomes", True),
        ({"learner": "auto", "outcome_split": 0.5}, SILENT, "has_outcomes", False),
        ({"prior": "noise", "bonus": "calibrated"}, EXPLICIT, "has_doubt", True),
        ({"prior": "noise", "start_share": 0.1}, EXPLICIT, "has_start", False),
        ({"prior": "noise", "start_share": 0.1, "screening": "none"}, EXPLICIT, "has_start", True),
    ],
)
def test_branches_follow_from_options_and_problem(
    options: dict[str, Any], problem: doral.Problem, rule: str, value: Any
) -> None:
    assert getattr(rules_of(blueprint(policy_of("doral", options), problem)), rule) == value


def _optional_arrays(tree: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield the arrays that some policies have, with the flag by which they are present."""
    kind: Any = type(tree)
    for field, value in zip(fields_of(kind), tree, strict=True):
        if field.array is not None and field.array.when:
            yield path + field.name, field.array.when, value
        elif hasattr(value, "_fields"):
            yield from _optional_arrays(value, f"{path}{field.name}.")


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_part_that_a_policy_does_not_have_takes_no_room(name: str) -> None:
    plan = blueprint(policy_of(name, {}))
    sizes = sizes_of(plan, rules_of(plan))
    found = list(_optional_arrays(first_state(plan)))
    assert len(found) > 20
    for path, flag, array in found:
        assert sizes[flag] or array.shape[0] == 0, path


def test_records_of_a_state_have_no_padding() -> None:
    """NumPy leaves it as it is when it copies: bytes of equal states would differ."""
    for name, array in leaves(first_state(blueprint(policy_of("doral-otf", {})))):
        if array.dtype.names:
            assert array.dtype.itemsize == sum(array.dtype[field].itemsize for field in array.dtype.names), name
