"""Scenarios as files: what comes back is equal, draws the same to the bit, and complains about what is wrong."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import doral
from doral.cli.app import app
from doral.compiled import Block
from doral.errors import InvalidValue
from doral.simulation.catalogue.lookup import CLASS_SCENARIOS, SCENARIOS
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth


def through_a_file(scenario: Scenario) -> Scenario:
    """Standard JSON: no NaN, no Infinity."""
    return Scenario.from_dict(json.loads(json.dumps(scenario.to_dict(), allow_nan=False)))


def leaves(tree: Any) -> list[Any]:
    return [leaf for one in tree for leaf in leaves(one)] if isinstance(tree, tuple) else [tree]


def same_draws(one: Scenario, other: Scenario) -> None:
    """The truths and the tapes of a run."""
    truths = [make_truth(place, seed=3, run=1) for place in (one, other)]
    assert truths[0].oracle == truths[1].oracle
    assert truths[0].times.tolist() == truths[1].times.tolist()
    tapes = []
    for truth in truths:
        tape = new_tape(truth.world, min(300, truth.rounds))
        WORLD["record"](Block(tape), truth.block, 3, 1, 1)
        tapes.append(tape)
    for pair in zip(leaves(tuple(truths[0].world)), leaves(tuple(truths[1].world)), strict=True):
        np.testing.assert_array_equal(*pair)
    for pair in zip(*tapes, strict=True):
        np.testing.assert_array_equal(*pair)


@pytest.mark.parametrize("name", list(CLASS_SCENARIOS))
def test_scenarios_of_the_catalogue_come_back(name: str) -> None:
    again = through_a_file(SCENARIOS[name])
    assert again == SCENARIOS[name]
    assert hash(again) == hash(SCENARIOS[name])
    if SCENARIOS[name].problem.n_contexts * SCENARIOS[name].problem.n_arms < 20_000:
        same_draws(SCENARIOS[name], again)


def test_policies_decide_the_same() -> None:
    place = SCENARIOS["paper/similar-geometric"]
    place = dataclasses.replace(place, problem=dataclasses.replace(place.problem, horizon=1500, budget=700))
    one, other = (
        doral.simulate(["doral-otf", "random"], each, runs=1, keep_decisions=True)
        for each in (place, through_a_file(place))
    )
    assert one.decisions().equals(other.decisions())


def problem(**changes: Any) -> doral.Problem:
    given: dict[str, Any] = {
        "arms": [doral.Arm("a", cost=4), doral.Arm("b", cost={"x": 3, "type": 2})],
        "contexts": {"x": 0.5, "type": 0.5},
        "budget": 150,
        "horizon": 200,
        "deadline": 10,
        "paid": "on_answer",
    }
    return doral.Problem(**given | changes)


ROWS: dict[str, dict[str, Any]] = {
    "x": {"a": [(1.0, 3.2, 2.0), (0.0, 8.0, 0.0), (1 / 3, math.inf, 4.0)], "b": [(2.0, 4.0, 1.5)]},
    "type": {"a": [(0.3, 1.0, 4.0), (0.4, 2.0, 1.0)], "b": [(0.0, 2.0, 0.5), (1.0, 2.0, 0.0)]},
}
WEIGHTS: Any = {
    "x": {"a": [1, 2, 1 / 7], "b": [1]},
    "type": {"a": [3, 1], "b": [0.1, 1 / 3]},
}
LAW = doral.delays.ByOutcome(above=doral.delays.Never(doral.delays.Pareto(3, 2), 0.1), below=doral.delays.Fixed(2))
MANY = doral.delays.Empirical([*np.random.default_rng(0).exponential(9.0, 2000).tolist(), math.inf])
MEANS = [[0.5, 1 / 3], [0.25, 0.125]]
RNG = np.random.default_rng(5)
TIMES = np.sort(RNG.random(900) * 150)
DATED = {"horizon": None, "until": 150.0, "expected_arrivals": 500}


def people(n: int, **changes: Any) -> Scenario:
    rng = np.random.default_rng(8)
    named = doral.Problem(
        arms=[doral.Arm("a", cost=1), doral.Arm("b", cost=2)],
        contexts=["x", "y"],
        person=["age", doral.Category("town")],
        missing="mean",
        budget=50,
        horizon=100,
        deadline=9,
        baseline=changes.pop("baseline", None),
    )
    columns = {
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.random(n)),
        "town": np.where(rng.random(n) < 0.3, None, rng.choice(["Ålesund", "=1+1", "b"], n)),  # type: ignore[call-overload]
    }
    given: dict[str, Any] = {
        "people": columns,
        "classes": rng.choice(["x", "y"], n).tolist(),
        "means": rng.random((n, 2)),
        "delays": {"x": LAW, "y": doral.delays.Geometric(3)},
        "speed": 0.5 + rng.random(n),
        "frequencies": rng.random(n),
        "noise": "bernoulli",
    }
    return Scenario(name="people", problem=named, **given | changes)


CASES: dict[str, Scenario] = {
    "rows": Scenario(name="r", problem=problem(), rows=ROWS),
    "weights": Scenario(name="r", problem=problem(), rows=ROWS, row_weights=WEIGHTS),
    "by context": Scenario(
        name="c",
        problem=problem(),
        delays={"x": [LAW, MANY], "type": doral.delays.Lognormal(5, 1.0)},
        means=MEANS,
        paid=[[0.1, 1.0], [1 / 3, 0.0]],
        availability=[0.5, 1 / 3],
        noise="poisson",
        shares=[0.3, 0.7],
    ),
    "arrivals": Scenario(
        name="ü=1+1",
        problem=problem(**DATED),
        delays=LAW,
        means=MEANS,
        noise="bernoulli",
        paid="on_success",
        arrivals=doral.Arrivals(
            number=300, day=24, hours=range(1, 25), bursts=doral.Bursts(share=0.2, arrivals=5, length=2)
        ),
    ),
    "calendar": Scenario(
        name="cal",
        problem=problem(**DATED),
        rows=ROWS,
        arrivals=doral.Calendar(TIMES, RNG.integers(0, 2, 900), day=24),
    ),
    "short calendar": Scenario(
        name="cal", problem=problem(**DATED), rows=ROWS, arrivals=doral.Calendar(TIMES[::9], resampled=False)
    ),
    "people": people(50),
    "many people": people(700),
    "people beside nothing": people(60, baseline="observed", baseline_means=0.125),
    "strata": people(700).stratified(at_most=9),
    "people in phases": people(30, means=np.random.default_rng(2).random((3, 30, 2)), phases=3),
}


@pytest.mark.parametrize("name", CASES)
def test_whatever_is_data_comes_back(name: str) -> None:
    again = through_a_file(CASES[name])
    assert again == CASES[name]
    same_draws(CASES[name], again)
    assert again.to_dict() == CASES[name].to_dict()


HAND_WRITTEN: dict[str, Any] = {
    "name": "mine",
    "problem": {
        "arms": [{"name": "a"}, {"name": "b"}],
        "contexts": [{"name": "everyone", "share": 1}],
        "budget": 20,
        "horizon": 100,
        "deadline": 5,
    },
    "delays": {"a": {"type": "Geometric", "mean": 3}, "b": {"type": "Fixed", "delay": 2}},
    "means": [[0.2, 0.6]],
    "noise": "bernoulli",
}


def test_a_file_that_somebody_writes_by_hand() -> None:
    place = Scenario.from_dict(HAND_WRITTEN)
    assert place.delays == ((doral.delays.Geometric(3), doral.delays.Fixed(2)),)
    observed = {key: HAND_WRITTEN[key] for key in ("name", "problem")} | {
        "rows": {"everyone": {"a": [[1, 2], [0.5, None]], "b": [[0, 1]]}},
        "row_weights": {"everyone": {"a": [1, 3], "b": [1]}},
    }
    rows = Scenario.from_dict(observed).rows
    assert rows is not None
    assert rows.delay.tolist() == [2.0, math.inf, 1.0]
    assert rows.weight is not None
    assert rows.weight.tolist() == [0.25, 0.75, 1.0]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": 5}, "name of a scenario = 5"),
        ({"problem": 5}, "problem = 5: must be a mapping"),
        ({"problem": {"arms": []}}, "lacks the key 'budget'"),
        ({"colour": "red"}, "has the unknown key 'colour'"),
        ({"scenario_format": 9}, "scenario_format = 9: must be 1"),
        ({"means": "high"}, "means = 'high'"),
        ({"means": [[0.2]]}, "shape of means"),
        ({"means": [[0.2, "x"]]}, "means = .*: must be numbers"),
        ({"means": [[0.2], [0.1, 0.3]]}, "means = .*: must be numbers"),
        ({"means": [[0.2, None]]}, "means = .*: must hold finite numbers"),
        ({"delays": {"type": "Slow"}}, "unknown delay law 'Slow'"),
        ({"delays": {"a": {"type": "Fixed", "delay": 1}}}, "lacks arm 'b'"),
        ({"delays": 3}, "must be delay laws"),
        ({"noise": ["loud"]}, "noise = .*: must be gaussian"),
        ({"phases": "two"}, "phases = 'two'"),
        ({"phases": 0}, "phases = 0"),
        ({"shares": 1}, "shares"),
        ({"availability": [1, "x"]}, "availability = 'x'"),
        ({"arrivals": "many"}, "arrivals = .*`number`"),
        ({"arrivals": {"type": "Calendar", "times": [1, "x"]}}, "times of Calendar = .*must be a list of numbers"),
        ({"arrivals": {"type": "Arrivals", "number": 3, "bursts": 5}}, "bursts = 5: must be a mapping"),
        ({"rows": [1, 2], "delays": None, "means": None, "noise": "none"}, "rows = .*: must be a mapping"),
        ({"rows": {"reward": [1], "delay": [1], "starts": "x"}, "delays": None, "means": None}, "starts of rows"),
        ({"people": 5}, "people = 5"),
        ({"strata": {"cuts": 5}}, "strata = .*lacks the key"),
    ],
)
def test_files_that_hold_no_scenario_say_so(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(doral.DoralError, match=says):
        Scenario.from_dict(HAND_WRITTEN | changes)
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(HAND_WRITTEN | changes))
    done = CliRunner().invoke(app, ["simulate", str(file), "-p", "random"])
    assert done.exit_code == 2
    assert "wrong.json" in done.output
    assert "Traceback" not in done.output


def test_functions_cannot_be_written() -> None:
    for name in set(SCENARIOS) - set(CLASS_SCENARIOS):
        with pytest.raises(InvalidValue, match="is a function, and a file holds data alone"):
            SCENARIOS[name].to_dict()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[1, 2]", "must hold a scenario"),
        (b"{}", "lacks the key 'problem'"),
        (None, "cannot be read"),
    ],
)
def test_files_that_are_none(content: bytes | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    if content is not None:
        file.write_bytes(content)
    done = CliRunner().invoke(app, ["simulate", str(file), "-p", "random"])
    assert done.exit_code == 2
    assert says in done.output
    assert "Traceback" not in done.output


def test_the_command_line_plays_a_file(tmp_path: Path) -> None:
    file, plain, out = tmp_path / "mine.json", tmp_path / "mine", tmp_path / "out.csv"
    file.write_text(json.dumps(HAND_WRITTEN), encoding="utf-8")
    plain.write_text(json.dumps({**HAND_WRITTEN, "name": "other"}), encoding="utf-8")
    words = ["simulate", str(file), str(plain), "-p", "random", "-n", "1", "-j", "1", "-o", str(out)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "mine," in out.read_text()
    assert "other," in out.read_text()
