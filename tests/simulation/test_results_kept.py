"""Results as they are shown, kept in files, read again, and handed to pandas."""

from __future__ import annotations

import dataclasses
import json
import re
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import doral
from doral import delays
from doral.simulation.results.differences import interval
from doral.simulation.results.outcome import Outcome

HORIZON = 300


class Python:
    """Skips every third."""

    def __init__(self, problem: doral.Problem, seed: int) -> None: ...

    def decide(self, arrival: doral.Arrival) -> int | None:
        return arrival.available[0] if arrival.available and arrival.round % 3 else None

    def observe(self, answer: doral.Answer) -> None: ...


def scenario(name: str = "small", **changes: Any) -> doral.Scenario:
    given: dict[str, Any] = {
        "arms": [doral.Arm("kit", features=[1.0, 0.0]), doral.Arm("<b>call & visit</b>", features=[0.0, 1.0])],
        "contexts": {"x": 0.5, "y $z$": 0.5},
        "budget": 120,
        "horizon": HORIZON,
        "deadline": 20,
    }
    problem = doral.Problem(**(given | changes))
    return doral.Scenario(
        name=name,
        problem=problem,
        means=[[0.2, 0.5], [0.6, 0.3]],
        delays=delays.Never(delays.Geometric(10), 0.2),
        noise="bernoulli",
    )


@pytest.fixture(scope="module")
def result() -> doral.SimulationResult:
    return doral.simulate(["random", Python], [scenario(), scenario("<script>")], runs=3, keep_decisions=True)


@pytest.fixture(scope="module")
def of_people() -> doral.SimulationResult:
    rng = np.random.default_rng(0)
    people = {
        "age": rng.uniform(0, 99, 50),
        "where": np.array(["north", "a long way east", "south"])[rng.integers(0, 3, 50)],
    }
    problem = doral.Problem(
        arms=[doral.Arm("a"), doral.Arm("b")],
        contexts={"all": 1.0},
        person={"age": "number", "where": "category"},
        budget=60,
        horizon=120,
        deadline=20,
    )
    place = doral.Scenario(
        name="p", problem=problem, people=people, means=rng.random((50, 2)), delays=delays.Geometric(5)
    )
    return doral.simulate(["beta-ts-lp", Python], place, runs=2, keep_decisions=True)


# --- shown ---------------------------------------------------------------------------------------------------------


def test_nothing_is_longer_than_a_line_or_wider_than_a_terminal(result: doral.SimulationResult) -> None:
    assert repr(result) == "<SimulationResult: random, Python on 2 scenarios, 3 runs, seed 0, decisions kept>"
    assert all(len(line) <= 80 for line in str(result).splitlines())
    assert len(str(result).splitlines()) < 20
    (one, *_) = result.of("small", "random")
    for each in (one, one.log, one.arrivals, interval(np.arange(5.0))):
        assert re.fullmatch(r"<\w+: .{5,180}>", repr(each))
    html = result._repr_html_()
    assert "<script>" not in html
    assert html.count("<table") == 3
    for number in (f"{result.rewards('small', name).mean():,.1f}" for name in result.policies):
        assert number in html
        assert number in str(result)


def test_many_scenarios_and_long_names_stay_short() -> None:
    (base,) = doral.simulate("random", scenario(), runs=1).outcomes
    many = doral.SimulationResult(
        outcomes=tuple(
            dataclasses.replace(base, scenario=f"{'scenario ' * 20}{i}", policy=f"{'policy ' * 20}{k}")
            for i in range(30)
            for k in range(50)
        ),
        seed=7,
    )
    assert len(repr(many)) < 200
    assert all(len(line) <= 80 for line in str(many).splitlines())
    assert "and 18 more scenarios: result.summary() has them" in str(many)
    assert "and 10 more policies" in str(many)
    assert len(many._repr_html_()) < 1_000_000


# --- decisions -----------------------------------------------------------------------------------------------------


def test_every_arrival_is_a_row_with_names(result: doral.SimulationResult) -> None:
    frame = result.decisions()
    assert frame.columns == [
        "scenario", "policy", "run", "round", "time", "context", "arm", "probability", "reward", "delay", "cost",
    ]  # fmt: skip
    assert frame.height == 2 * 2 * 3 * HORIZON
    assert set(frame["arm"].unique()) == {None, "kit", "<b>call & visit</b>"}
    assert set(frame["context"].unique()) == {"x", "y $z$"}
    skipped = frame.filter(pl.col("arm").is_null())
    assert skipped.height > 500
    assert skipped["reward"].is_null().all()
    assert skipped["delay"].is_null().all()
    served = frame.drop_nulls("arm")
    assert served["delay"].is_infinite().sum() > 10
    assert served["delay"].null_count() == served["reward"].null_count() == 0
    for one in result.outcomes:
        mine = served.filter(scenario=one.scenario, policy=one.policy, run=one.run)
        assert mine.height == one.decisions
        in_time = mine.filter(pl.col("delay") <= 20)["reward"].sum()
        assert in_time == pytest.approx(one.rewards[0])
        assert mine["cost"].sum() == pytest.approx(one.spend)
    assert skipped["cost"].sum() == 0.0
    assert frame.filter(policy="Python")["probability"].is_null().all()
    assert frame.filter(policy="random")["probability"].is_between(0.0, 1.0, closed="right").all()
    assert frame.estimated_size() < 70 * frame.height


def test_a_log_of_decisions_knows_what_was_paid() -> None:
    """By context, and where only successes are paid for."""
    dear = {"x": 3.0, "y $z$": 5.0}
    arms = (doral.Arm("kit", cost=dear), doral.Arm("call", cost=2.0))
    problem = dataclasses.replace(scenario().problem, arms=arms, paid="on_answer")
    place = dataclasses.replace(scenario(), problem=problem, paid="on_success")
    done = doral.simulate("random", place, runs=1, keep_decisions=True)
    frame = done.decisions()
    kits = frame.filter(arm="kit")
    assert kits["cost"].to_list() == [dear[name] for name in kits["context"]]
    assert frame["paid"].sum() == pytest.approx(done.outcomes[0].spend)
    assert frame.filter(pl.col("paid") > 0)["reward"].to_list() == [1.0] * frame.filter(pl.col("paid") > 0).height
    log = doral.read_log(frame)
    assert log.paid.sum() == pytest.approx(frame["paid"].sum())
    assert log.cost.sum() == pytest.approx(frame["cost"].sum())


def test_the_clock_is_told_where_there_is_one() -> None:
    problem = dataclasses.replace(scenario().problem, horizon=None, until=100.0)  # type: ignore[arg-type]
    place = dataclasses.replace(scenario(), problem=problem, arrivals=doral.Arrivals(number=200))
    frame = doral.simulate("random", place, runs=1, keep_decisions=True).decisions()
    assert frame["time"].is_sorted()
    assert 50.0 < frame["time"][-1] <= 100.0
    assert (frame["time"] != frame["round"]).any()
    log = doral.read_log(frame)
    assert log.clock.unit == "units"
    assert len(log) == frame.height
    by_round = doral.simulate("random", scenario(), runs=1, keep_decisions=True).decisions()
    assert doral.read_log(by_round).clock.unit == "rounds"
    assert set(doral.read_log(by_round).arms) == {"kit", "<b>call & visit</b>"}


# --- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["result", "of_people"])
def test_what_is_saved_is_read_back_to_the_bit(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    made: doral.SimulationResult = request.getfixturevalue(name)
    made.save(tmp_path / "result.doral")
    again = doral.load(str(tmp_path / "result.doral"))
    assert again == made
    assert again.decisions().equals(made.decisions())
    assert again.summary().equals(made.summary())
    (first, *rest) = again.outcomes
    other = dataclasses.replace(first, spend=np.nextafter(first.spend, np.inf))
    assert doral.SimulationResult(outcomes=(other, *rest), seed=0) != made
    assert first.log is not None
    changed = dataclasses.replace(first.log, reward=first.log.reward + 1e-12)
    assert dataclasses.replace(first, log=changed) != first
    assert first != "something else"


def test_without_decisions_it_is_small_and_equal(tmp_path: Path) -> None:
    made = doral.simulate("random", scenario(), runs=2)
    made.save(tmp_path / "one")
    again = doral.load(tmp_path / "one")
    assert again == made
    with pytest.raises(doral.InvalidValue, match="keep_decisions=True"):
        again.decisions()


def rewritten(path: Path, to: Path, **header: Any) -> Path:
    """The same file with another header."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w") as new:
        for entry in old.namelist():
            if entry != "header.npy":
                new.writestr(entry, old.read(entry))
        with np.load(path) as archive:
            said = json.loads(archive["header"].tobytes()) | header
        with new.open("header.npy", "w") as file:
            np.lib.format.write_array(file, np.frombuffer(json.dumps(said).encode(), dtype=np.uint8))
    return to


def test_files_of_other_versions_are_refused(tmp_path: Path) -> None:
    made = doral.simulate("random", scenario(), runs=2)
    made.save(tmp_path / "new")
    with pytest.raises(doral.InvalidValue, match=r"written by another version of doral \(format 99, not 5\)"):
        doral.load(rewritten(tmp_path / "new", tmp_path / "future", format=99))
    with pytest.raises(doral.InvalidValue, match="it holds a doral pancake"):
        doral.load(rewritten(tmp_path / "new", tmp_path / "else", kind="doral pancake"))


def test_wrong_files_are_told_what_is_wrong(tmp_path: Path) -> None:
    made = doral.simulate("random", scenario(), runs=1)
    made.save(tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    (tmp_path / "half").write_bytes(content[: len(content) // 2])
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("reward,arm\n1,a\n")
    np.savez(tmp_path / "else.npz", numbers=np.arange(3))
    with zipfile.ZipFile(tmp_path / "zip", "w") as file:
        file.writestr("readme.txt", "hello")
    for name in ("half", "empty", "text", "else.npz", "zip"):
        with pytest.raises(doral.InvalidValue, match="saved result = .*cannot be read"):
            doral.load(tmp_path / name)
    with pytest.raises(doral.InvalidValue, match="is a folder: name a file"):
        doral.load(tmp_path)
    with pytest.raises(doral.InvalidValue, match=r"does not exist: name a file that result.save\(path\) wrote"):
        doral.load(tmp_path / "nothing")
    for wrong in (None, 3, ""):
        with pytest.raises(doral.InvalidValue, match="must be the name of a file"):
            doral.load(wrong)  # type: ignore[arg-type]
    with pytest.raises(doral.InvalidValue, match="is a folder: add the name of a file"):
        made.save(tmp_path)
    with pytest.raises(doral.InvalidValue, match="does not exist: make it first"):
        made.save(tmp_path / "no" / "folder")


def test_broken_bits_are_told_as_such_or_do_no_harm(tmp_path: Path) -> None:
    made = doral.simulate("random", scenario(), runs=1)
    made.save(tmp_path / "whole")
    content, rng = (tmp_path / "whole").read_bytes(), np.random.default_rng(0)
    directory = content.index(b"PK\x01\x02")  # where most kinds of errors come from
    for low in [0] * 100 + [directory] * 200:
        broken = bytearray(content)
        broken[rng.integers(low, len(content))] ^= 1 << int(rng.integers(8))
        (tmp_path / "broken").write_bytes(broken)
        with suppress(doral.InvalidValue):
            assert doral.load(tmp_path / "broken") == made


@pytest.mark.parametrize("header", [b"[1]", b"5", b"{}", b"[" * 100_000, b"\xff\xfe\x00", b""])
def test_headers_of_something_else_are_told_as_such(header: bytes, tmp_path: Path) -> None:
    np.savez(tmp_path / "file.npz", header=np.frombuffer(header, dtype=np.uint8))
    with pytest.raises(doral.InvalidValue, match="cannot be read"):
        doral.load(tmp_path / "file.npz")


def test_columns_of_different_lengths_are_refused(tmp_path: Path) -> None:
    made = doral.simulate("random", scenario(), runs=2)
    made.save(tmp_path / "whole")
    with np.load(tmp_path / "whole") as archive:
        columns = dict(archive)
    for changed in ({"curves": columns["curves"][:5]}, {"lengths": -columns["lengths"]}):
        np.savez(tmp_path / "file.npz", **{**columns, **changed})
        with pytest.raises(doral.InvalidValue, match="cannot be read: its columns have different lengths"):
            doral.load(tmp_path / "file.npz")


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = doral.simulate("random", scenario(), runs=1)
    made.save(tmp_path / "result")
    before = (tmp_path / "result").read_bytes()

    def full(file: Any, **arrays: Any) -> None:
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space left"):
        made.save(tmp_path / "result")
    assert (tmp_path / "result").read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["result"]


# --- pandas --------------------------------------------------------------------------------------------------------


def test_frames_become_those_of_pandas(result: doral.SimulationResult, of_people: doral.SimulationResult) -> None:
    """With what the extra `doral[pandas]` installs."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    raced = doral.simulate("doral-otf", scenario(), runs=1)
    for frame in (
        result.summary(),
        result.runs(),
        result.curves(),
        result.courses(),
        result.decisions(),
        of_people.decisions(),
        result.certificates(),
        raced.certificates(),
        result.differences().frame(),
    ):
        made = frame.to_pandas()
        assert isinstance(made, pandas.DataFrame)
        assert made.shape == frame.shape
        assert list(made.columns) == frame.columns
    arms = result.decisions().to_pandas()["arm"]
    assert isinstance(arms.dtype, pandas.CategoricalDtype)
    assert int(arms.isna().sum()) == result.decisions()["arm"].null_count()


def test_outcomes_have_no_hash_and_say_so(result: doral.SimulationResult) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(result.outcomes[0])
    assert isinstance(result.outcomes[0], Outcome)


# --- without a deadline --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["random", "d-linucb", "d-lints"])
def test_without_a_deadline_policies_play_and_learn(policy: str) -> None:
    """Every answer counts, however late; and whoever learns earns more than chance."""
    open_end = doral.simulate([policy, Python], scenario(deadline=None), runs=4)
    for one in open_end.of("small", policy):
        assert one.cutoff == np.inf
        assert one.decisions == 120
        assert one.rewards[0] == one.rewards[2] >= one.rewards[1] > 0.0


def test_without_a_deadline_learning_pays() -> None:
    place = scenario(deadline=None, horizon=4_000, budget=4_000)
    result = doral.simulate(["status-quo", "random", "d-linucb", "d-lints"], place, runs=4)
    for policy in ("random", "d-linucb", "d-lints"):
        found = result.difference(policy, "status-quo")
        assert found.percent_low is not None
        assert found.percent_low > 10.0
