"""What is known of somebody who arrives is checked by name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from doral import Arm, Category, InvalidValue, Number, Problem, UnknownName
from doral.person import Levels, checked_features, traits_of

ARMS = [Arm("a"), Arm("b")]


def _problem(**more: object) -> Problem:
    person = ["age", Number("distance_km"), Category("clinic", levels=["north"])]
    return Problem(arms=ARMS, person=person, budget=5, horizon=10, deadline=3, **more)  # type: ignore[arg-type]


def test_a_problem_with_people_needs_no_contexts() -> None:
    problem = _problem()
    assert problem.context_names == ("everyone",)
    assert problem.person_names == ("age", "distance_km", "clinic")
    assert problem.category_columns == (2,)
    assert Problem(arms=ARMS, person={"age": "number", "clinic": "category"}, budget=1, horizon=1).n_traits == 2


@pytest.mark.parametrize("more", [{}, {"missing": "mean"}, {"contexts": ["young", "old"]}])
def test_people_survive_a_round_trip(more: dict[str, object]) -> None:
    problem = _problem(**more)
    assert Problem.from_dict(problem.to_dict()) == problem


def test_problems_without_people_are_written_as_before() -> None:
    assert not {"person", "missing"} & Problem(arms=ARMS, contexts=["all"], budget=1, horizon=1).to_dict().keys()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"age": 3, "distance_km": 1.0}, "clinic"),
        ({"age": 3, "distance_km": math.nan, "clinic": "north"}, "distance_km"),
        ({"age": math.inf, "distance_km": 1.0, "clinic": "north"}, "age"),
        ({"age": "71", "distance_km": 1.0, "clinic": "north"}, "age"),
        ({"age": 71, "distance_km": 1.0, "clinic": 2.5}, "clinic"),
        ({"age": 71, "distance_km": None, "clinic": "north"}, "distance_km"),
        ([71, 2.0], "number of features"),
    ],
)
def test_what_is_wrong_with_a_feature_is_said_by_its_name(given: object, named: str) -> None:
    problem = _problem()
    with pytest.raises(InvalidValue, match=named):
        checked_features(problem.person, problem.missing, given)


def test_an_unknown_feature_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="distance_km"):
        checked_features(_problem().person, "error", {"age": 1, "distance": 1.0, "clinic": "north"})


def test_levels_are_numbered_as_they_come() -> None:
    problem = _problem(missing="mean")
    levels = Levels(problem.person)
    values = checked_features(problem.person, "mean", {"age": True, "clinic": "south"})
    assert values == (1.0, None, "south")
    traits = traits_of(problem.person, levels, values)
    assert traits[0] == 1.0
    assert math.isnan(traits[1])
    assert traits[2] == 1.0  # north was declared
    assert levels.names("clinic") == ("north", "south")
    assert traits_of(problem.person, levels, checked_features(problem.person, "mean", [np.float64(2), 1, 8001]))[2] == 2


@pytest.mark.parametrize("person", [["age", "age"], {"age": "figure"}, [3], "age", [Category("c"), "c"]], ids=str)
def test_features_have_to_be_named(person: object) -> None:
    with pytest.raises(InvalidValue):
        Problem(arms=ARMS, person=person, budget=1, horizon=1)  # type: ignore[arg-type]
