from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doral.errors import DoralError, InvalidValue, UnknownName
from doral.problem import Arm, Context, Problem

NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12).filter(
    lambda text: text.strip()
)
FEATURES = st.floats(-1e6, 1e6)
POSITIVE = st.floats(1e-9, 1e9)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    n_features = draw(st.integers(1, 4))
    arms = [
        Arm(name, features=draw(st.lists(FEATURES, min_size=n_features, max_size=n_features)), cost=draw(POSITIVE))
        for name in draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    ]
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    weights = np.array([draw(st.floats(0.01, 1)) for _ in names])
    given_shares = draw(st.booleans())
    return Problem(
        arms=arms,
        contexts=dict(zip(names, weights / weights.sum(), strict=True)) if given_shares else names,
        budget=draw(POSITIVE),
        horizon=draw(st.integers(1, 10**10)),
        deadline=draw(st.none() | POSITIVE),
    )


def make(**changes: Any) -> Problem:
    """The example of the documentation, with changes."""
    arguments: dict[str, Any] = {
        "arms": [Arm("clinic-a", features=[0.2, 0.7]), Arm("clinic-b", features=[0.9, 0.1], cost=2.5)],
        "contexts": {"elderly": 0.3, "adult": 0.7},
        "budget": 85_000,
        "horizon": 170_000,
        "deadline": 500,
    }
    return Problem(**(arguments | changes))


def test_what_a_problem_says_of_itself() -> None:
    problem = make()
    assert (problem.n_arms, problem.n_contexts, problem.n_features) == (2, 2, 2)
    assert problem.arm_names == ("clinic-a", "clinic-b")
    assert problem.context_names == ("elderly", "adult")
    np.testing.assert_array_equal(problem.features, [[0.2, 0.7], [0.9, 0.1]])
    np.testing.assert_array_equal(problem.costs, [1.0, 2.5])
    assert problem.shares is not None
    np.testing.assert_array_equal(problem.shares, [0.3, 0.7])
    assert problem.rate == 0.5
    assert (problem.budget, problem.horizon, problem.deadline) == (85_000.0, 170_000, 500.0)


def test_contexts_in_every_form() -> None:
    as_mapping = make()
    as_objects = make(contexts=[Context("elderly", 0.3), Context("adult", 0.7)])
    assert as_mapping == as_objects
    assert hash(as_mapping) == hash(as_objects)
    by_name = make(contexts=["elderly", "adult"])
    assert by_name.contexts == (Context("elderly"), Context("adult"))
    assert by_name.shares is None
    assert make(contexts=np.array(["elderly", "adult"])) == by_name
    assert type(make(contexts=np.array(["elderly"])).context_names[0]) is str


def test_numpy_values_become_plain_ones() -> None:
    plain = make()
    from_numpy = make(
        arms=[
            Arm("clinic-a", features=np.array([0.2, 0.7]), cost=np.int64(1)),  # type: ignore[arg-type]
            Arm("clinic-b", features=(np.float64(0.9), np.float64(0.1)), cost=np.array(2.5)),  # type: ignore[arg-type]
        ],
        budget=np.float64(85_000),
        horizon=np.int32(170_000),
        deadline=np.uint16(500),
    )
    assert from_numpy == plain
    assert json.dumps(from_numpy.to_dict()) == json.dumps(plain.to_dict())
    assert type(from_numpy.horizon) is int


def test_integer_features_and_all_zero_ones_are_fine() -> None:
    arm = Arm("a", features=np.zeros(3, dtype=np.int8))
    assert arm.features == (0.0, 0.0, 0.0)
    assert all(type(value) is float for value in arm.features)


@pytest.mark.parametrize("horizon", [1e5, 100_000, np.float32(100_000), Fraction(100_000)])
def test_a_whole_horizon_of_any_type(horizon: Any) -> None:
    problem = make(horizon=horizon)
    assert problem.horizon == 100_000
    assert type(problem.horizon) is int


def test_nothing_can_be_changed() -> None:
    problem = make()
    for array in (problem.features, problem.costs, problem.shares):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.budget = 1.0  # type: ignore[misc]
    features = [0.2, 0.7]
    arm = Arm("a", features=features)
    features[0] = 9.0
    assert arm.features == (0.2, 0.7)


@pytest.mark.parametrize("copied", [lambda p: pickle.loads(pickle.dumps(p)), copy.deepcopy, copy.copy])
def test_copies_are_as_frozen_as_the_original(copied: Any) -> None:
    problem = make()
    _ = problem.features, problem.costs, problem.shares, problem.arm_index("clinic-a")  # fill what is cached
    twin = copied(problem)
    assert twin == problem
    assert not twin.features.flags.writeable
    assert twin.arm_index("clinic-b") == 1


def test_replace_checks_again_and_forgets_what_was_cached() -> None:
    problem = make()
    assert problem.rate == 0.5
    assert problem.costs.tolist() == [1.0, 2.5]
    longer = dataclasses.replace(problem, horizon=340_000, arms=problem.arms[:1])
    assert (longer.rate, longer.costs.tolist()) == (0.25, [1.0])
    assert longer.contexts == problem.contexts
    assert dataclasses.replace(problem.arms[0], cost=3.0) == Arm("clinic-a", features=[0.2, 0.7], cost=3.0)
    with pytest.raises(InvalidValue, match="^horizon = 0: "):
        dataclasses.replace(problem, horizon=0)


def test_indices() -> None:
    problem = make()
    assert [problem.arm_index(name) for name in problem.arm_names] == [0, 1]
    assert [problem.context_index(name) for name in problem.context_names] == [0, 1]
    with pytest.raises(UnknownName, match="^unknown arm 'clinc-b'; did you mean 'clinic-b'"):
        problem.arm_index("clinc-b")
    with pytest.raises(UnknownName, match="^unknown context 'clinic-a'; known: 'elderly', 'adult'"):
        problem.context_index("clinic-a")
    with pytest.raises(UnknownName, match=r"^unknown arm \['clinic-a'\]"):
        problem.arm_index(["clinic-a"])  # type: ignore[arg-type]


@given(problems())
def test_dictionaries_round_trip_through_json_exactly(problem: Problem) -> None:
    text = json.dumps(problem.to_dict(), allow_nan=False)
    assert Problem.from_dict(json.loads(text)) == problem


@given(problems())
def test_arrays_agree_with_the_objects(problem: Problem) -> None:
    assert problem.features.shape == (problem.n_arms, problem.n_features)
    for index, arm in enumerate(problem.arms):
        assert problem.arm_index(arm.name) == index
        assert tuple(problem.features[index]) == arm.features
        assert problem.costs[index] == arm.cost
    if problem.shares is not None:
        assert tuple(problem.shares) == tuple(context.share for context in problem.contexts)


BAD_NUMBERS = [math.nan, math.inf, -math.inf, True, np.True_, "7", None, 1j, [7], 10**400, np.array([7.0])]


@pytest.mark.parametrize("value", [*BAD_NUMBERS, 0, -3])
def test_bad_budget(value: Any) -> None:
    with pytest.raises(
        InvalidValue, match="^budget = .*: must be a finite number of at least 1e-12 and at most 1e\\+15"
    ):
        make(budget=value)


@pytest.mark.parametrize("value", [*(bad for bad in BAD_NUMBERS if bad is not None), 0, -3, 1.5, 10**10 + 1])
def test_bad_horizon(value: Any) -> None:
    with pytest.raises(InvalidValue, match="^horizon = .*: must be a whole number from 1 to 10,000,000,000$"):
        make(horizon=value)


@pytest.mark.parametrize("value", [bad for bad in [*BAD_NUMBERS, 0, -3] if bad is not None])
def test_bad_deadline(value: Any) -> None:
    expected = "^deadline = .*: must be a finite number of at least 1e-09 and at most 1e.12, in units of .*, or None$"
    with pytest.raises(InvalidValue, match=expected):
        make(deadline=value)


def test_a_remedy_fits_what_is_wrong() -> None:
    """Another unit helps against amounts of the wrong size only; a date is told where it belongs."""
    for wrong_size in (1e16, 1e-13):
        with pytest.raises(InvalidValue, match="; count in another unit$"):
            make(budget=wrong_size)
        with pytest.raises(InvalidValue, match="; count in another unit$"):
            Arm("a", cost=wrong_size)
    for wrong in (-1, "4 euro", None, True):
        with pytest.raises(InvalidValue, match="at most 1e\\+15$"):
            Arm("a", cost=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="a date belongs into store.create"):
        make(horizon=None, until="2027-03-31")


@pytest.mark.parametrize("value", [*BAD_NUMBERS, -3])
def test_bad_cost(value: Any) -> None:
    expected = "^cost of arm 'a' = .*: must be a (finite number of at least 0 and|number, or map)"
    with pytest.raises(InvalidValue, match=expected):
        Arm("a", features=[1.0], cost=value)


@pytest.mark.parametrize("value", [*BAD_NUMBERS, 1.1e6, -1.1e6])
def test_bad_feature(value: Any) -> None:
    expected = "^features of arm 'a' = .*: must be a finite number of at least -1e.06 and at most 1e.06$"
    with pytest.raises(InvalidValue, match=expected):
        Arm("a", features=[0.5, value])


@pytest.mark.parametrize("value", [0.5, "0.5", None, {0.5}, np.array(0.5), np.ones((1, 2)), (x for x in [0.5])])
def test_features_have_to_be_a_list(value: Any) -> None:
    with pytest.raises(InvalidValue, match="^features of arm 'a' = .*: must be a list of numbers$"):
        Arm("a", features=value)


def test_too_many_features() -> None:
    with pytest.raises(InvalidValue, match=r"^number of features of arm 'a' = \d+: must be from 0 to 1,000$"):
        Arm("a", features=np.zeros(1_001))


@pytest.mark.parametrize("value", [[], np.zeros(0)])
def test_features_may_be_absent(value: Any) -> None:
    assert Arm("a", features=value) == Arm("a")


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("", "must not be empty"),
        (" \u3000", "must not be empty"),
        (7, "must be a string"),
        (None, "must be a string"),
        (b"a", "must be a string"),
        ("a\nb", "must not contain control characters"),
        ("a\x00", "must not contain control characters"),
        ("\ud800", "or lone surrogates"),
        ("x" * 201, "must have at most 200 characters"),
    ],
)
def test_bad_names(value: Any, remedy: str) -> None:
    with pytest.raises(InvalidValue, match=f"^name of an arm = .*: .*{remedy}"):
        Arm(value, features=[1.0])
    with pytest.raises(InvalidValue, match=f"^name of a context = .*: .*{remedy}"):
        make(contexts=[value])


@pytest.mark.parametrize("value", [bad for bad in [*BAD_NUMBERS, 0.0, -0.1, 1.1] if bad is not None])
def test_bad_share(value: Any) -> None:
    expected = (
        "^share of context 'a' = .*: must be a finite number of at least 1e-12 and at most 1; leave the context out"
    )
    with pytest.raises(InvalidValue, match=expected):
        make(contexts={"a": value})


def test_arms_with_different_numbers_of_features() -> None:
    expected = "^number of features of arm 'b' = 3: must be 2, as for arm 'a'"
    with pytest.raises(InvalidValue, match=expected):
        make(arms=[Arm("a", features=[1, 2]), Arm("b", features=[1, 2, 3])])


def test_duplicate_names() -> None:
    arm = Arm("a", features=[1.0])
    with pytest.raises(InvalidValue, match="^name of an arm = 'a': appears twice"):
        make(arms=[arm, arm])
    with pytest.raises(InvalidValue, match="^name of a context = 'x': appears twice"):
        make(contexts=["x", "y", "x"])


def test_shares_have_to_sum_to_one() -> None:
    with pytest.raises(InvalidValue, match="^sum of the context shares = 0.9: must be 1"):
        make(contexts={"a": 0.3, "b": 0.6})
    within_tolerance = {"a": 0.3, "b": 0.7 - 5e-7}
    shares = make(contexts=within_tolerance).shares
    assert shares is not None
    assert shares.tolist() == list(within_tolerance.values())  # as given, not rescaled
    with pytest.raises(InvalidValue, match="^sum of the context shares"):
        make(contexts={"a": 0.3, "b": 0.7 - 2e-6})


def test_shares_for_all_contexts_or_for_none() -> None:
    with pytest.raises(InvalidValue, match="^share of context 'b' = None: give every context a share, or none"):
        make(contexts=[Context("a", 1.0), Context("b")])


@pytest.mark.parametrize("value", ["ab", b"ab", 7, {"a"}, (name for name in "ab"), np.array([["a"]])])
def test_contexts_have_to_be_listed(value: Any) -> None:
    with pytest.raises(InvalidValue, match="^contexts = .*: must be a list of names or of Context objects, or a mapp"):
        make(contexts=value)


@pytest.mark.parametrize("value", ["ab", None, Arm("a", features=[1.0]), {"a"}])
def test_arms_have_to_be_listed(value: Any) -> None:
    with pytest.raises(InvalidValue, match="^arms = .*: must be a list of arms: Arm objects, or names$"):
        make(arms=value)


@pytest.mark.parametrize("value", [[7], [None], [Arm("a"), ["b"]]])
def test_arms_have_to_be_arms(value: Any) -> None:
    with pytest.raises(InvalidValue, match="^arms = .*: each must be an Arm, or a name"):
        make(arms=value)


def test_arms_may_be_names_or_costs_by_name() -> None:
    assert make(arms=["a", "b"]).arms == (Arm("a"), Arm("b"))
    assert make(arms={"a": 1, "b": {"x": 2, "y": 3}}, contexts=["x", "y"]).arms == (
        Arm("a"),
        Arm("b", cost={"x": 2, "y": 3}),
    )
    assert make(arms=["a"], baseline="observed").arm_names == ("a", "nothing")
    with pytest.raises(InvalidValue, match="^cost of arm 'a' = 'dear'"):
        make(arms={"a": "dear"})
    with pytest.raises(InvalidValue, match="^number of arms = 0"):
        make(arms={})


@pytest.mark.parametrize("field", ["arms", "contexts"])
def test_empty_sets(field: str) -> None:
    with pytest.raises(InvalidValue, match=f"^number of {field} = 0: must be from 1 to "):
        make(**{field: []})


def test_absurd_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = Arm("a", features=[1.0])
    with pytest.raises(InvalidValue, match="^number of arms = 100001: must be from 1 to 100,000$"):
        make(arms=[arm] * 100_001)
    with pytest.raises(InvalidValue, match="^number of contexts = 10001: must be from 1 to 10,000$"):
        make(contexts=["a"] * 10_001)
    monkeypatch.setattr("doral.problem.problem.MAX_PAIRS", 3)  # the real limit would take a second to reach
    with pytest.raises(InvalidValue, match="^contexts x arms = 4: must be at most 3; group contexts or arms$"):
        make()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"budget": -1}, "^budget = -1"),
        ({"bugdet": 1}, "^problem = .*: has the unknown key 'bugdet'; known: arms, baseline, budget, "),
        ({"arms": [{"features": [1.0]}]}, "^arm = {'features': \\[1.0\\]}: lacks the key 'name'$"),
        ({"arms": ["a"]}, "^arm = 'a': must be a mapping$"),
        ({"contexts": [{"name": "a", "colour": 1}]}, "^context = .*: has the unknown key 'colour'"),
        ({"contexts": {"a": 1.0}}, "^contexts = .*: must be a list of mappings"),
    ],
)
def test_bad_dictionaries(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValue, match=expected):
        Problem.from_dict(make().to_dict() | change)


def test_a_dictionary_that_lacks_a_key() -> None:
    data = make().to_dict()
    del data["budget"]
    with pytest.raises(InvalidValue, match="lacks the key 'budget'$"):
        Problem.from_dict(data)
    with pytest.raises(InvalidValue, match="^problem = 7: must be a mapping$"):
        Problem.from_dict(7)  # type: ignore[arg-type]


def test_describing_a_problem_does_not_start_the_compiler() -> None:
    code = "import sys, doral.problem, doral.delays; print([m for m in ('llvmlite', 'scipy') if m in sys.modules])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # the package as found here
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "[]"


def test_a_reward_range_is_kept_and_checked() -> None:
    problem = make(reward_range=[-1, 2])
    assert problem.reward_range == (-1.0, 2.0)
    assert Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem
    assert [problem.check_reward(value) for value in (-1, np.float32(0.5), 2.0)] == [-1.0, 0.5, 2.0]
    for value in (-1.0000001, 2.1, math.nan, math.inf, None, "1", True):
        with pytest.raises(InvalidValue, match="^reward = .* of at least -1 and at most 2 .*reward_range"):
            problem.check_reward(value)


def test_a_problem_without_a_reward_range_takes_what_the_arithmetic_can_hold() -> None:
    stored = make().to_dict()
    del stored["reward_range"]  # as older versions wrote it
    problem = Problem.from_dict(stored)
    assert problem == make()
    assert problem.check_reward(-1e9) == -1e9
    with pytest.raises(InvalidValue, match=r"^reward = 1e\+160"):
        problem.check_reward(1e160)


@pytest.mark.parametrize(
    "value", [(1, 1), (2, 1), (0, 1e10), (-math.inf, 1), (0,), (0, 1, 2), 5, None, "ab", (0, math.nan), {0: 1}]
)
def test_bad_reward_ranges(value: Any) -> None:
    with pytest.raises(InvalidValue, match="reward_range"):
        make(reward_range=value)


ARMS = [Arm("a", features=[0.2, 0.7]), Arm("b", features=[0.9, 0.1], cost=2.0), Arm("usual", features=[1, 0], cost=0)]


@pytest.mark.parametrize(
    ("baseline", "stored", "control"),
    [
        (0.25, (0.25, 0.25), None),
        ({"adult": -1, "elderly": 0.5}, (0.5, -1.0), None),
        (np.array([0.5, 2]), (0.5, 2.0), None),
        ("usual", "usual", 2),
    ],
)
def test_a_baseline_is_known_or_an_arm_of_cost_0(baseline: Any, stored: Any, control: int | None) -> None:
    problem = make(arms=ARMS if control else ARMS[:2], baseline=baseline)
    assert (problem.baseline, problem.control) == (stored, control)
    assert problem.arms == tuple(ARMS if control else ARMS[:2])
    assert Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem
    assert dataclasses.replace(problem, horizon=7).baseline == stored


def test_a_control_arm_is_free_in_every_context() -> None:
    arms = [ARMS[0], Arm("usual", features=ARMS[0].features, cost={"elderly": 0, "adult": 0})]
    assert make(arms=arms, baseline="usual").control == 1


def test_an_observed_baseline_is_an_arm_that_shares_nothing_with_the_others() -> None:
    problem = make(arms=ARMS[:2], baseline="observed")
    assert problem.arm_names == ("a", "b", "nothing")
    assert problem.control == 2
    assert problem.features.tolist() == [[0.2, 0.7, 0.0], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]]
    assert problem.costs.tolist() == [1.0, 2.0, 0.0]
    assert Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem
    wider = dataclasses.replace(problem, arms=(*problem.arms, Arm("c", features=[0.3, 0.4])))  # as a campaign grows
    assert wider.arm_names == ("a", "b", "nothing", "c")
    assert wider.arms[3].features == (0.3, 0.4, 0.0)
    assert wider.control == 2


def test_a_problem_without_a_baseline_is_written_as_before() -> None:
    assert make().baseline is None
    assert make().control is None
    assert "baseline" not in make().to_dict()


@pytest.mark.parametrize(
    ("arms", "baseline", "expected"),
    [
        (ARMS[:2], "usual", "^baseline = 'usual': must be a number, one for each context, 'observed', or the name"),
        (ARMS[:2], "b", "^baseline = 'b': .*its cost must be 0, not 2$"),
        (ARMS[2:], "usual", "^baseline = 'usual': is the only arm"),
        (ARMS[:2], {"adult": 1}, "^baseline = {'adult': 1}: lacks context 'elderly'; give one to every context$"),
        (ARMS[:2], {"adult": 1, "elderly": 1, "adlut": 2}, "adlut"),
        (ARMS[:2], [1.0], "^number of baselines = 1: must be one per context, 2$"),
        (
            [Arm("a", features=[1.0, 2.0]), Arm("b", features=[1.0, 2.0, 5.0])],
            "observed",
            "^number of features of arm 'b' = 3: must be 2, as for arm 'a'",
        ),
        (
            [Arm("a", features=[1.0, 2.0]), Arm("nothing", features=[0.0, 1.0], cost=0)],
            "observed",
            "^last feature of arm 'a' = 2.0: is the feature of doing nothing: it must be 0 for all arms$",
        ),
        (ARMS[:2], math.nan, "^baseline of context 'elderly' = nan: must be a finite number"),
        (ARMS[:2], True, "^baseline of context 'elderly' = True: must be a finite number"),
        ([Arm("nothing", features=[1])], "observed", "^name of an arm = 'nothing': means doing nothing"),
        ([Arm("observed", features=[1])], "observed", "^baseline = 'observed': is the name of an arm, too"),
    ],
)
def test_bad_baselines(arms: Any, baseline: Any, expected: str) -> None:
    with pytest.raises(DoralError, match=expected):
        make(arms=arms, baseline=baseline)


# --- an end that is a date -------------------------------------------------------------------------------------------


def test_an_end_is_a_number_of_arrivals_or_a_length_of_time() -> None:
    with pytest.raises(InvalidValue, match="give horizon, a number of arrivals, or until, a length of time"):
        make(horizon=None)
    with pytest.raises(InvalidValue, match="until = 5.0: and horizon = 7 are two ends"):
        make(horizon=7, until=5.0)
    with pytest.raises(InvalidValue, match="horizon already says how many"):
        make(horizon=7, expected_arrivals=7)
    for bad in (0, -1, math.inf, "soon"):
        with pytest.raises(InvalidValue, match="^until = "):
            make(horizon=None, until=bad)
    with pytest.raises(InvalidValue, match="^expected_arrivals = "):
        make(horizon=None, until=5.0, expected_arrivals=0.5)


def test_a_problem_that_ends_with_a_date_can_be_stored_and_copied() -> None:
    for expected in (None, 400):
        problem = make(horizon=None, until=5.5, expected_arrivals=expected)
        stored = problem.to_dict()
        assert "horizon" not in stored
        assert Problem.from_dict(json.loads(json.dumps(stored))) == problem
        assert dataclasses.replace(problem, budget=3.0).until == 5.5
    assert problem.rate == problem.budget / 400
    assert not {"until", "expected_arrivals"} & set(make().to_dict())  # logs and hashes of old stay what they are


@pytest.mark.parametrize("baseline", [None, "observed"])
def test_features_that_are_the_same_for_all_arms_tell_nothing(baseline: Any) -> None:
    arms = [Arm("a", features=[1.0, 0.2, 3.0]), Arm("b", features=[1.0, 0.3, 3.0])]
    assert make(arms=arms, baseline=baseline).idle_features == (0, 2)
    assert make(arms=arms[:1], baseline=baseline).idle_features == ()
    assert make(arms=[Arm("a"), Arm("b")], baseline=baseline).idle_features == ()
