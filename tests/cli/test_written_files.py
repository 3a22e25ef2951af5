"""Files that people write by hand: comments, names, durations, laws; and what is said of those that are wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import doral
from doral.cli.simulate import content as initial_text
from doral.cli.simulate import read_problem
from doral.errors import InvalidValue
from doral.simulation.scenario import notation
from doral.simulation.scenario.files import read_scenario

DAY = 86_400.0
PROBLEM: dict[str, Any] = {"arms": ["a", "b"], "contexts": ["x", "y"], "budget": 100, "horizon": 500}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None)
@given(VALUES)
def test_json_is_read_as_ever(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        assert notation.parse_json(text) == value
        assert notation._without_comments(text) == text


@settings(max_examples=40, deadline=None)
@given(VALUES)
def test_comments_after_every_line_change_nothing(value: Any) -> None:
    """A line of indented JSON ends outside of any string."""
    lines = json.dumps(value, indent=1).split("\n")
    comments = ("// {,]", "# it's ]", '/* ", */')
    commented = "\n".join(f"{line} {comments[i % 3]}" for i, line in enumerate(lines))
    assert notation.parse_json(commented) == value


def test_commas_after_the_last_entry() -> None:
    assert notation.parse_json('{"a": [1, 2, ], "b": {"c": ",]",},}') == {"a": [1, 2], "b": {"c": ",]"}}
    for wrong in ("[,]", "[1,,]", "{,}", '{"a":,}', ","):
        with pytest.raises(json.JSONDecodeError):
            notation.parse_json(wrong)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ("// first\n{'a': 1}", "line 2, column 2: write names and words in double quotes"),
        ('{"a": True}', "line 1, column 7: write true"),
        ('{"a": 1, "a": 2}', "key = 'a':"),
        ("", "is empty; `doral init`"),
        ("# nothing else", "is empty; `doral init`"),
        ('{"a": "open', "is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"arms": ["a"], /* no end', "is not JSON"),
        ('{"budget": ' + "9" * 5_000 + "}", "a number has too many digits"),
    ],
)
def test_errors_say_where(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(text)
    with pytest.raises(InvalidValue) as caught:
        notation.read_file("problem file", path)
    assert str(path) in str(caught.value.value)
    assert says in str(caught.value)


def test_files_of_0_2_are_read(tmp_path: Path) -> None:
    """With the comments that `doral init` wrote then; the values are those that it writes now."""
    (tmp_path / "my.toml").write_text(initial_text(Path("my.toml")))
    old = Path(__file__).parent / "problem_of_0_2.json"
    assert read_scenario(old) == read_scenario(tmp_path / "my.toml")
    assert read_problem(old).problem == read_problem(tmp_path / "my.toml").problem


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty; `doral init`"),
        ("budget = 1\nbudget = 2\n", "Cannot overwrite a value"),
        ("budget = True", "at line 1"),
        ("deep = " + "[" * 100_000, "is not TOML"),
        ("budget = " + "9" * 5_000, "too many digits"),
    ],
)
def test_errors_of_toml_say_where(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "f.toml"
    path.write_text(text)
    with pytest.raises(InvalidValue) as caught:
        notation.read_file("problem file", path)
    assert str(path) in str(caught.value.value)
    assert says in str(caught.value)


def problem_of(tmp_path: Path, content: Any, **options: Any) -> doral.Problem:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(content))
    return read_problem(path, **options).problem


def test_a_problem_in_all_the_forms_of_python(tmp_path: Path) -> None:
    plain = problem_of(tmp_path, PROBLEM)
    assert plain == doral.Problem(arms=[doral.Arm("a"), doral.Arm("b")], contexts=["x", "y"], budget=100, horizon=500)
    assert problem_of(tmp_path, plain.to_dict()) == plain
    found = problem_of(
        tmp_path,
        PROBLEM
        | {
            "arms": {"a": 2, "b": {"cost": {"x": 1, "y": 3}}},
            "contexts": {"x": 0.25, "y": {"share": 0.75, "deadline": "36h", "tier": 1}},
            "deadline": "2 weeks",
            "reserves": {"1": 0.2},
            "baseline": {"x": 0.1, "y": 0.2},
        },
    )
    assert found.deadline == 14 * DAY
    assert [one.deadline for one in found.contexts] == [None, 1.5 * DAY]
    assert [one.share for one in found.contexts] == [0.25, 0.75]
    assert found.arms[1].cost_in("y") == 3.0
    assert found.reserves == ((1, 0.2),)
    people = problem_of(
        tmp_path, {"arms": ["a"], "budget": 1, "horizon": 5, "person": {"age": "number", "town": "category"}}
    )
    assert people.person_names == ("age", "town")
    assert problem_of(tmp_path, {"name": "s", "problem": PROBLEM, "delays": "whatever"}) == plain


def test_the_end_may_be_a_date(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    ends = {name: value for name, value in PROBLEM.items() if name != "horizon"} | {"until": "2031-03-31"}
    path.write_text(json.dumps(ends))
    assert read_problem(path).until == "2031-03-31"
    assert read_problem(path, until="2032-01-01").until == "2032-01-01"
    dated = tmp_path / "p.toml"
    dated.write_text('arms = ["a", "b"]\ncontexts = ["x", "y"]\nbudget = 100\nuntil = 2031-03-31\n')
    assert read_problem(dated).until == "2031-03-31"
    path.write_text(json.dumps(ends | {"until": "56d"}))
    assert read_problem(path).problem.until == 56 * DAY


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"buget": 3}, "has the unknown key 'buget'; did you mean 'budget'?"),
        ({"arms": [{"name": "a", "price": 3}]}, "has the unknown key 'price'"),
        ({"contexts": [{"name": "x", "weigth": 2}]}, "did you mean 'weight'?"),
        ({"arms": "a"}, "arms = 'a':"),
        ({"arms": [3]}, "arm = 3:"),
        ({"contexts": 3}, "contexts = 3:"),
        ({"deadline": "14 moons"}, "deadline = '14 moons':"),
        ({"deadline": "-3d"}, "deadline = '-3d'"),
        ({"budget": "1_000"}, "budget = '1_000'"),
        ({"until": "2031-03-31"}, "are two ends"),
        ({"reserves": {"one": 0.2}}, "tier of a reserve = 'one'"),
    ],
)
def test_what_is_wrong_names_file_field_value_and_remedy(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue) as caught:
        problem_of(tmp_path, PROBLEM | changes)
    assert "p.json" in str(caught.value)
    assert says in str(caught.value)


def test_durations_are_for_clocks_that_count_seconds(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="the clock counts rounds"):
        problem_of(tmp_path, PROBLEM | {"deadline": "14d"}, clock="rounds")
    path = tmp_path / "s.json"
    path.write_text(
        json.dumps({"problem": PROBLEM | {"deadline": "14d"}, "delays": {"fixed": 1}, "means": [[1, 1]] * 2})
    )
    with pytest.raises(InvalidValue, match="deadline = '14d':"):
        read_scenario(path)


SCENARIO: dict[str, Any] = {
    "problem": PROBLEM | {"contexts": {"x": 0.5, "y": 0.5}},
    "delays": {"geometric": {"mean": 12}},
    "means": {"y": {"b": 0.4, "a": 0.3}, "x": [0.1, 0.2]},
}


def scenario_of(tmp_path: Path, changes: dict[str, Any]) -> doral.Scenario:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(SCENARIO | changes))
    return read_scenario(path)


def test_a_scenario_in_the_forms_of_python(tmp_path: Path) -> None:
    found = scenario_of(tmp_path, {})
    assert found.name == "mine"
    assert found.means == ((0.1, 0.2), (0.3, 0.4))
    assert found.delays == ((doral.delays.Geometric(mean=12),) * 2,)
    assert doral.Scenario.from_dict(found.to_dict()) == found
    law = doral.delays.Never(doral.delays.Fixed(3), 0.5)
    never = {"never": {"law": {"fixed": {"delay": 3}}, "p": 0.5}}
    for delays in (
        {"a": never, "b": {"type": "pareto", "minimum": 3, "shape": 2}},
        [never, {"Pareto": {"minimum": 3, "shape": 2}}],
    ):
        assert scenario_of(tmp_path, {"delays": delays}).delays[0][0] == law
        assert scenario_of(tmp_path, {"delays": delays}).delays[0][1] == doral.delays.Pareto(3, 2)
    by_context = {"x": never, "y": {"b": never, "a": {"empirical": [1, 2, None]}}}
    assert scenario_of(tmp_path, {"delays": by_context}).delays[1][0] == doral.delays.Empirical([1, 2, math.inf])
    ends = {"arms": ["a", "b"], "contexts": {"x": 0.5, "y": 0.5}, "budget": 10, "until": "8w", "deadline": "2d"}
    timed = scenario_of(tmp_path, {"problem": ends, "arrivals": {"number": 50, "weekdays": [1, 1, 1, 1, 1, 0, 0]}})
    assert isinstance(timed.arrivals, doral.Arrivals)
    assert (timed.arrivals.day, timed.problem.until) == (DAY, 56 * DAY)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"delays": {"geometrc": {"mean": 12}}}, "did you mean 'Geometric'?"),
        ({"delays": {"geometric": {"man": 12}}}, "has the unknown key 'man'; did you mean 'mean'?"),
        ({"delays": {"pareto": {"minimum": 12}}}, "shape of Pareto = None:"),
        ({"delays": {"a": {"fixed": 1}, "c": {"fixed": 1}}}, "unknown arm or context in delays 'c'"),
        ({"delays": "late"}, "must be delay laws"),
        ({"means": {"x": [0.1, 0.2], "z": [0.1, 0.2]}}, "unknown context in means 'z'"),
        ({"means": {"x": [0.1, 0.2]}}, "lacks context 'y'"),
        ({"means": {"x": {"a": 1}, "y": {"a": 1}}}, "lacks arm 'b'"),
        ({"nois": "none"}, "'noise'"),
        ({"problem": PROBLEM | {"horizon": None, "until": "2031-01-01"}}, "is a date; a simulation asks how long"),
    ],
)
def test_what_is_wrong_with_a_scenario(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue) as caught:
        scenario_of(tmp_path, changes)
    assert "mine.json" in str(caught.value)
    assert says in str(caught.value)
