"""Tables of every kind become the same log; what is guessed is said; what is in doubt is asked."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import doral
from doral.errors import InvalidValue
from doral.logs.log import SKIPPED
from doral.logs.read import as_log
from tests.logs import file_of, log_of
from tests.logs.tables import START, frame, said, same, table, written
from tests.small_worlds import make_scenario


def test_every_kind_of_table_is_the_same_log(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = pl.DataFrame(table())
    whole = doral.read_log(rows)
    rows.write_parquet(tmp_path / "log.parquet")
    rows.write_csv(tmp_path / "log.csv")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    rows.write_csv(tmp_path / "log.tsv", separator="\t")
    rows.write_csv(tmp_path / "log.txt", separator=";", include_bom=True)
    old = (tmp_path / "log.csv").read_bytes().replace(b"\n", b"\r")
    written(tmp_path, old, "old.csv")
    for name in ("log.parquet", "log.csv", "log.csv.gz", "log.tsv", "log.txt", "old.csv"):
        read = doral.read_log(tmp_path / name)
        same(whole, read)
        assert read.name == name
    same(whole, doral.read_log(str(tmp_path / "log.csv")))
    same(whole, doral.read_log(rows.lazy()))
    same(whole, doral.read_log(table()))
    same(whole, doral.read_log(pandas.DataFrame(table())))
    odd = pandas.DataFrame(table()).astype({"context": "category", "arm": "string", "reward": "Float64"})
    same(whole, doral.read_log(odd))
    assert len(whole) == 200
    assert whole.arms == ("kit", "visit")
    assert whole.contexts == ("north", "south")
    assert whole.start == START
    assert whole.clock == doral.read_log(rows).clock
    assert repr(whole).startswith("<Log 'frame': 200 arrivals, ")


def test_what_a_run_wrote_is_read_as_it_was() -> None:
    log = log_of(make_scenario(), watched_after=50.0)
    read = doral.read_log(file_of(log), observed_until=START.timestamp() + float(log.end), feedback=log.feedback)
    arm = np.array([read.arms.index(one) for one in log.arms if one in read.arms])
    known = np.array([one in read.arms for one in log.arms])
    assert known[log.arm[log.is_served]].all()
    np.testing.assert_array_equal(np.where(log.arm < 0, SKIPPED, arm[np.cumsum(known)[log.arm] - 1]), read.arm)
    np.testing.assert_allclose(read.time, log.time - log.time[0], atol=1e-6)
    for name in ("reward", "delay", "watched", "cost", "probability"):
        np.testing.assert_allclose(getattr(read, name), getattr(log, name), atol=2e-6, err_msg=name)


@pytest.mark.parametrize("kind", ["world", "rounds", "units", "days", "silent", "at once", "paid", "nothing"])
def test_a_log_goes_out_and_comes_back(kind: str) -> None:
    rows = table()
    n = len(rows["arm"])
    options: dict[str, object] = {}
    hours = np.arange(n, dtype=float)
    delay = [3.0 if one is not None else None for one in rows["reward"]]
    if kind in ("rounds", "units", "days"):
        del rows["answered_at"]
        rows["delay"] = delay
        rows["time"] = hours.tolist()
        options = {"time_unit": {"rounds": "rounds", "units": None, "days": "days"}[kind]}
    if kind == "silent":
        rows["reward"] = [1.0 if one is not None else 0.0 for one in rows["reward"]]
    if kind == "at once":
        del rows["answered_at"]
    if kind == "paid":
        rows["paid"] = [2.0 * one if one is not None else None for one in rows["reward"]]
    if kind == "nothing":
        rows["arm"] = [None if one % 3 == 0 else arm for one, arm in enumerate(rows["arm"])]
        rows["id"] = [f"d-{one}" for one in range(n)]
        rows["probability"] = [0.5] * n
    log = doral.read_log(rows, **options)  # type: ignore[arg-type]
    assert log.feedback == ("silent" if kind == "silent" else "explicit")
    assert log.paid_when == ("on_answer" if kind == "paid" else "always")
    assert log.has_delays == (kind != "at once")
    again = doral.read_log(log.to_frame())
    same(log, again)
    assert again.key == log.key


def test_names_are_guessed_in_many_spellings_and_said() -> None:
    rows = frame(
        Treatment=["a", "b"] * 20,
        createdAt=["2026-03-01T10:00:00Z"] * 40,
        Outcome=[0, 1] * 20,
        propensityScore=[0.5] * 40,
        unitCost=[3] * 40,
        colour=["red"] * 40,
    )
    log = doral.read_log(rows)
    assert dict(log.reading.columns) == {
        "arm": "Treatment",
        "time": "createdAt",
        "reward": "Outcome",
        "probability": "propensityScore",
        "cost": "unitCost",
    }
    assert set(log.reading.guessed) == {"arm", "time", "reward", "probability", "cost"}
    assert log.reading.unused == ("colour",)
    assert {"arm", "time", "reward", "probability", "cost"} <= {one.what for one in log.reading.assumptions}
    assert log.reading.proposed == ()  # a constant tells nobody apart
    named = doral.read_log(rows, arm="Treatment", context="colour")
    assert named.contexts == ("red",)
    assert "arm" not in named.reading.guessed


def test_a_frame_can_be_given_a_name() -> None:
    rows = {"arm": ["a"] * 2, "reward": [1, 0]}
    log = doral.read_log(rows, name="Spring letters")
    assert log.name == log.reading.source == "Spring letters"
    for wrong in ("", 7, "x" * 10_000):
        with pytest.raises(InvalidValue, match="name"):
            doral.read_log(rows, name=wrong)  # type: ignore[arg-type]


def test_money_and_outcome_have_names() -> None:
    rows = {"arm": ["a"] * 2, "reward": [1, 0]}
    log = doral.read_log(rows, currency="EUR", outcome="booking")
    assert (log.currency, log.outcome) == ("EUR", "booking")
    later = as_log(doral.read_log(rows), {"currency": "EUR"})
    assert (later.currency, later.outcome) == ("EUR", None)
    for wrong in ("", 7):
        with pytest.raises(InvalidValue, match="currency"):
            doral.read_log(rows, currency=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="read already"):
        as_log(later, {"arm": "a"})


def test_what_numbers_rows_is_not_proposed_as_context() -> None:
    rows = {"rownames": range(100), "who": ["old", "new"] * 50, "arm": ["a"] * 100, "reward": [1] * 100}
    assert doral.read_log(rows).reading.proposed == ("who",)
    assert doral.read_log({**rows, "who": range(100)}).reading.proposed == ()


def test_doubts_are_asked() -> None:
    with pytest.raises(InvalidValue, match=r"'treatment', 'action'.*arm="):
        doral.read_log({"treatment": ["a"], "action": ["b"], "reward": [1]})
    with pytest.raises(InvalidValue, match="(?s)arm: say with arm= which column .*'colour'"):
        doral.read_log({"colour": ["a"], "reward": [1]})
    with pytest.raises(InvalidValue, match="reward: say with reward="):
        doral.read_log({"arm": ["a"], "colour": [1]})
    with pytest.raises(InvalidValue, match="did you mean 'treatment'"):
        doral.read_log({"treatment": ["a"], "reward": [1]}, arm="treatmnt")
    with pytest.raises(InvalidValue, match="two things at once"):
        doral.read_log({"arm": ["a"], "reward": [1]}, arm="arm", reward="arm")
    assert doral.read_log({"arm": ["a"], "reward": [1], "p": [7.0]}, probability=False).told == "none"


def test_group_is_the_arm_or_the_context() -> None:
    assert doral.read_log({"group": ["a", "b"], "y": [1, 0]}).arms == ("a", "b")
    log = doral.read_log({"group": ["x", "x"], "arm": ["a", "b"], "y": [1, 0]})
    assert (log.arms, log.contexts) == (("a", "b"), ("x",))


def test_rewards_are_numbers_or_words() -> None:
    arm = ["a"] * 4
    for words, expected in (
        ([True, False, True, None], [1, 0, 1]),
        (["Yes", "no", "YES", ""], [1, 0, 1]),
        (["positive", "negative", "NA", "positive"], [1, 0, 1]),
        (["1", "0", "2.5", None], [1, 0, 2.5]),
        (["1,5", "0", "2,25", ""], [1.5, 0, 2.25]),
        (["1,234.5", "0", "2", ""], [1234.5, 0, 2]),
    ):
        log = doral.read_log({"arm": arm, "reward": words})
        assert log.reward[log.is_answered].tolist() == expected, words
    log = doral.read_log({"arm": arm, "reward": ["positive", "invalid", "negative", "positive"]})
    assert log.reward.tolist() == [1, 0, 1]
    assert log.reading.dropped[0].examples == ("row 2: invalid",)
    log = doral.read_log({"arm": arm, "reward": ["gold", "silver", "iron", "gold"]}, positive="gold")
    assert log.reward.tolist() == [1, 0, 0, 1]
    assert "'gold' counts as 1" in said(log)
    with pytest.raises(InvalidValue, match="thousands or decimals"):
        doral.read_log({"arm": arm, "reward": ["1,234", "0", "2", ""]})
    with pytest.raises(InvalidValue, match="positive = \\['tin'\\]: is not in column 'reward'"):
        doral.read_log({"arm": arm, "reward": ["gold", "silver", "iron", "gold"]}, positive="tin")


def test_silence_is_noticed() -> None:
    rows = table(300)
    rows["reward"] = [1.0 if one is not None else None for one in rows["reward"]]
    log = doral.read_log(rows)
    assert log.feedback == "silent"
    assert ("feedback", "silent") in {(one.what, one.value) for one in log.reading.assumptions}
    assert doral.read_log(rows, feedback="explicit").feedback == "explicit"
    del rows["reward"]
    log = doral.read_log(rows)
    assert log.feedback == "silent"
    assert np.nanmin(log.reward) == 1.0
    explicit = table(300)
    heard = doral.read_log(explicit, feedback="silent")
    assert not (heard.reward == 0.0).any()
    assert "taken as not heard" in said(heard)


def test_nothing_done_is_no_arm() -> None:
    rows = {"arm": ["mail", None, "control", "none", "mail"], "reward": [1, 1, 0, 0, 1]}
    log = doral.read_log(rows)
    assert log.arms == ("mail", "control")
    assert log.arm.tolist() == [0, SKIPPED, 1, SKIPPED, 0]
    assert log.skips_are_answered
    assert "In 2 rows nothing was done (no arm); 2 answers of theirs" in said(log)
    assert log.cost.tolist() == [1, 0, 1, 0, 1]
    log = doral.read_log(rows, nothing=["control", "none"])
    assert log.arms == ("mail",)
    assert log.arm.tolist() == [0, SKIPPED, SKIPPED, SKIPPED, 0]
    assert doral.read_log(rows, nothing=[]).arms == ("mail", "control", "none")
    only = doral.read_log(rows, arms=["mail"])
    assert [one.rows for one in only.reading.dropped] == [1]
    with pytest.raises(InvalidValue, match="did you mean 'mail'"):
        doral.read_log(rows, arms=["mial"])


def test_costs_and_what_was_paid() -> None:
    arms, reward = ["a", "a", "b", "b"], [1, 0, 1, None]
    log = doral.read_log({"arm": arms, "reward": reward, "cost": [3, None, 5, 5]})
    assert log.cost.tolist() == [3, 3, 5, 5]
    assert "Row 2 " in said(log)
    assert log.paid_when == "always"
    log = doral.read_log({"arm": arms, "reward": reward, "paid": [3, 0, 5, None]})
    assert log.cost.tolist() == [3, 3, 5, 5]
    assert log.paid_when == "on_answer"
    assert np.isnan(log.paid).tolist() == [False, False, False, True]
    log = doral.read_log({"arm": arms, "reward": reward, "cost": [3, 3, 5, 5], "paid": [4, 3, 5, 5]})
    assert log.cost.tolist() == [4, 3, 5, 5]
    assert "raised" in said(log)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_exported_campaign_is_read(tmp_path: Path, suffix: str) -> None:
    """Against what the campaign itself says of its decisions."""
    problem = doral.Problem(
        arms=[doral.Arm("=kit", cost=2), doral.Arm("visit", cost=1)],
        contexts=["-north", "south"],
        budget=90,
        horizon=120,
        deadline=60,
    )
    campaign = doral.open("memory://").create("kits", problem, seed=3)
    for number in range(60):
        decided = campaign.decide("-north" if number % 3 else "south")
        if decided.arm is None:
            continue
        if number % 10 == 0:
            campaign.cancel(decided.id)
        elif number % 4:
            campaign.feedback(decided.id, reward=number % 2)
    path = tmp_path / f"log.{suffix}"
    campaign.export(path)
    log = doral.read_log(path)
    rows = [one for one in campaign.decisions() if one.state != "cancelled"]
    assert sorted(log.key) == sorted(one.id for one in rows)
    by_id = {one.id: one for one in rows}
    for place, key in enumerate(log.key):
        one = by_id[key]
        assert one.arm == (None if log.arm[place] == SKIPPED else log.arms[log.arm[place]])
        assert one.context == log.contexts[log.context[place]]
        assert one.cost == log.cost[place]
        assert (one.reward is not None) == bool(log.is_answered[place])
        if one.reward is not None and one.delay is not None:
            assert one.reward == log.reward[place]
            assert log.delay[place] == pytest.approx(one.delay, abs=2e-6)
        assert one.probability is not None
        assert log.probability[place] == pytest.approx(one.probability)
    assert log.paid_when == "always"
    assert [one.why for one in log.reading.dropped] == ["were cancelled: no decisions"]


def test_arrivals_of_a_simulation_are_read() -> None:
    frame_ = doral.simulate(["random"], make_scenario(), runs=1, keep_decisions=True).decisions()
    log = doral.read_log(frame_)
    assert log.clock.unit == "rounds"
    assert len(log) == frame_.height
    assert int(log.is_served.sum()) == frame_["arm"].count()
    two = doral.simulate(["random"], make_scenario(), runs=2, keep_decisions=True).decisions()
    with pytest.raises(InvalidValue, match="runs in the frame = 2: filter"):
        doral.read_log(two)


def test_many_rows_are_read_quickly(tmp_path: Path) -> None:
    rows = pl.DataFrame(table(1000))
    pl.concat([rows] * 100).with_columns(pl.int_range(pl.len()).alias("id")).write_csv(tmp_path / "log.csv")
    begin = time.process_time()
    assert len(doral.read_log(tmp_path / "log.csv")) == 100_000
    assert time.process_time() - begin < 5.0


def test_what_is_paid_without_an_answer_is_not_taken_for_free() -> None:
    """A list price of 10, of which 8 are paid whatever comes: half never answer."""
    rows = 200
    frame = pl.DataFrame(
        {
            "arm": ["A", "B"] * (rows // 2),
            "time": list(range(rows)),
            "reward": [1.0 if i % 4 < 2 else None for i in range(rows)],
            "answered": [i + 1 if i % 4 < 2 else None for i in range(rows)],
            "cost": [10.0] * rows,
            "paid": [8.0] * rows,
        }
    )
    log = doral.read_log(frame, time_unit="hours", observed_until=float(rows))
    assert log.paid_when == "always"
    assert log.cost.tolist() == log.paid.tolist() == [8.0] * rows
    assert any("not answered is paid for" in note for note in log.reading.notes)


def test_columns_of_the_same_name_are_said(tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    path.write_text("arm,reward,arm,,\nA,1,x,,\nB,0,y,,\n")
    log = doral.read_log(path)
    assert set(log.arms) == {"A", "B"}
    assert "Several columns are named 'arm': the first is taken for it." in log.reading.notes
    assert not any("''" in note for note in log.reading.notes)


def test_a_log_of_successes_alone_says_that_rows_are_missing() -> None:
    """Rows that were removed because nothing came of them cannot be made up for."""
    wins = {"arm": ["a", "b"] * 20, "reward": ["yes"] * 40}
    found = {one.what: one.why for one in doral.read_log(wins).reading.assumptions}
    assert "missing" in found["feedback"]
    mixed = doral.read_log({**wins, "reward": ["yes", "no"] * 20}).reading.assumptions
    assert "feedback" not in {one.what for one in mixed}
