"""What one policy earns more than another: the sentence, the intervals, all pairs."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import stats

import doral
from doral._arrays import Floats
from doral.cli.simulate import rows_of
from doral.pages.numbers import DASH, MINUS
from doral.simulation.results.differences import Difference, difference_of, t_quantile
from doral.simulation.results.outcome import Outcome

NONE = "no difference shown"
NAMES: dict[str, Any] = {"policy": "a", "than": "b", "scenario": "s", "metric": "within_deadline"}


def of(mine: Any, theirs: Any) -> Difference:
    return difference_of(np.asarray(mine, dtype=float), np.asarray(theirs, dtype=float), **NAMES)


def test_quantiles_are_those_of_scipy() -> None:
    for degrees in (*range(1, 60), 99, 1_000, 1_001, 4.5):
        assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-12)


def outcome(scenario: str, policy: str, run: int, reward: float) -> Outcome:
    return Outcome(
        scenario=scenario,
        policy=policy,
        run=run,
        oracle=100.0,
        rewards=(reward, reward / 2.0, reward),
        expected=reward,
        rounds=np.array([1]),
        curve=np.zeros((1, 3)),
        course=np.zeros((1, 2)),
        decisions=1,
        spend=1.0,
        race_rounds=0,
        race_spend=0.0,
        race_ended=0,
        race_capped=False,
        accepted=(),
        cutoff=1.0,
    )


def result(**rewards: Any) -> doral.SimulationResult:
    outcomes = [
        outcome(scenario, policy, run, reward)
        for scenario in ("s", "t")
        for policy, several in rewards.items()
        for run, reward in enumerate(several)
    ]
    return doral.SimulationResult(outcomes=tuple(outcomes), seed=0)


@pytest.mark.parametrize(
    ("mine", "theirs", "says"),
    [
        ([103, 104, 102], [100, 101, 99], "a earns 3.0% more than b [2.9, 3.1], 3 paired runs"),
        ([97, 96.5, 98], [100, 100.5, 101.5], "a earns 3.5% less than b [2.3, 4.7], 3 paired runs"),
        ([103, 99, 101], [100, 101, 99], f"{NONE} between a and b: +1.0% [{MINUS}5.5, 7.7], 3 paired runs"),
        ([103], [100], "a earns 3.0% more than b, 1 paired run: too few for an interval"),
        ([103, 101], [100, 100], "a earns 2.0% more than b, 2 paired runs: too few for an interval"),
        ([100, 90, 80], [100, 90, 80], "a and b earn the same, 3 paired runs"),
        ([100, 90], [100, 90], "a and b earn the same, 2 paired runs"),
        ([5, 6, 7], [0, 0, 0], "a earns 6.00 more than b [3.52, 8.48], 3 paired runs"),
        ([0, 0, 0], [5, 6, 7], "a earns 100.0% less than b [100.0, 100.0], 3 paired runs"),
        ([101, 99], [99, 101], "a and b earn the same on average, 2 paired runs: too few for an interval"),
        ([100.03, 100.15, 100.13], [100, 100, 100], f"{NONE} between a and b: +0.1% [{MINUS}0.1, 0.3], 3 paired runs"),
        ([100.11, 100.10, 100.09], [100, 100, 100], "a earns 0.10% more than b [0.08, 0.12], 3 paired runs"),
        ([1 + 2.0**-40], [1], "a earns 0.0000000000909% more than b, 1 paired run: too few for an interval"),
        ([float("nan"), 1, 2], [1, 2, 3], f"{NONE} between a and b: {DASH} no interval, 3 paired runs"),
        ([2, 3, 1], [-5, -6, -7.5], "a earns 8.2 more than b [5.6, 10.8], 3 paired runs"),
    ],
)  # fmt: skip
def test_one_sentence(mine: list[float], theirs: list[float], says: str) -> None:
    found = of(mine, theirs)
    assert str(found) == says
    assert says[:40] in repr(found)
    assert found._repr_html_().count("<tr>") == 2
    assert found.runs == len(mine)


def test_the_percentage_is_shown_different_where_the_difference_is() -> None:
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(300):
        base = rng.gamma(5.0, 1.0, 6)
        found = of(base * 1.2 + rng.normal(0.0, 0.7, 6), base)
        if found.percent is not None:
            assert found.low is not None
            assert found.high is not None
            assert found.percent_low is not None
            assert found.percent_high is not None
            assert (found.percent_low > 0.0, found.percent_high < 0.0) == (found.low > 0.0, found.high < 0.0)
            assert found.percent_low <= found.percent <= found.percent_high
            seen.add(found.is_shown)
    assert seen == {True, False}


@pytest.mark.parametrize("n", [3, 20])
def test_the_interval_of_the_percentage_covers_what_is_true(n: int) -> None:
    """19 times in 20, for rewards that go up and down together: the truth is 10% more."""
    rng = np.random.default_rng(n)

    def pair() -> tuple[Floats, Floats]:
        common = rng.normal(0.0, 8.0, n)
        return 110.0 + common + rng.normal(0.0, 5.0, n), 100.0 + common + rng.normal(0.0, 5.0, n)

    covered = 0
    for _ in range(1_000):
        found = of(*pair())
        assert found.percent_low is not None
        assert found.percent_high is not None
        covered += found.percent_low <= 10.0 <= found.percent_high
    assert abs(covered - 950) < 4.0 * np.sqrt(1_000 * 0.95 * 0.05)


def test_at_the_ends_of_its_interval_the_percentage_is_just_not_contradicted() -> None:
    mine, theirs = np.array([3.0, 5.0, 4.0, 6.5]), np.array([2.0, 4.5, 4.0, 5.0])
    found = of(mine, theirs)
    for end in (found.percent_low, found.percent_high):
        assert end is not None
        assert stats.ttest_1samp(mine - (1.0 + end / 100.0) * theirs, 0.0).pvalue == pytest.approx(0.05)


def test_the_difference_is_students() -> None:
    mine, theirs = np.array([3.0, 5.0, 4.0, 6.5]), np.array([2.0, 4.5, 4.0, 5.0])
    found = of(mine, theirs)
    low, high = stats.ttest_rel(mine, theirs).confidence_interval(0.95)
    assert (found.mean, found.low, found.high) == pytest.approx((0.75, low, high))


def test_runs_are_paired_by_their_number() -> None:
    made = result(a=[1.0, 2.0, 3.0, 50.0], b=[2.0, 3.0, 4.0])
    assert made.difference("a", "b", scenario="s").mean == -1.0
    assert made.difference("a", "b", scenario="s").runs == 3
    assert made.difference("b", "a", scenario="t", metric="by_end").mean == 0.5
    backwards = doral.SimulationResult(outcomes=made.outcomes[::-1], seed=0)
    assert backwards.difference("a", "b", scenario="s") == made.difference("a", "b", scenario="s")


def test_all_pairs() -> None:
    made = result(a=[5.0, 6.0, 7.0], b=[4.0, 5.5, 6.0], **{"<script>": [0.0, 0.0, 0.0]})
    found = made.differences()
    frame = found.frame()
    assert len(found) == frame.height == 12
    for one in found:
        assert one == made.difference(one.policy, one.than, scenario=one.scenario)
    row = frame.filter(scenario="t", policy="a", than="b").row(0, named=True)
    assert row["mean"] == pytest.approx(5.0 / 6.0)
    assert row["is_shown"] == (row["low"] > 0.0)
    assert frame.filter(than="<script>")["percent"].is_null().all()
    assert all(len(line) <= 80 for line in str(found).splitlines())
    assert "+6.00*" in str(found)
    html = found._repr_html_()
    assert "<script>" not in html
    assert html.count("<table") == 2
    assert len(repr(found)) < 100
    assert {one.scenario for one in made.differences(scenario="t")} == {"t"}
    alone = doral.SimulationResult(outcomes=tuple(one for one in made.outcomes if one.policy == "a"), seed=0)
    assert alone.differences().frame().is_empty()
    assert str(alone.differences())


def test_many_policies_fit_a_terminal() -> None:
    made = result(**{f"policy number {i} of many": [float(i + j) for j in range(3)] for i in range(9)})
    assert all(len(line) <= 80 for line in str(made.differences()).splitlines())


def test_bad_questions_are_told_what_is_wrong() -> None:
    made = result(a=[1.0, 2.0], b=[2.0, 3.0])
    with pytest.raises(doral.InvalidValue, match=r"scenario = None: the result has several: name one of s, t, or"):
        made.difference("a", "b")
    with pytest.raises(doral.UnknownName, match="unknown policy 'c'"):
        made.difference("a", "c", scenario="s")
    with pytest.raises(doral.UnknownName, match="unknown scenario 'u'"):
        made.difference("a", "b", scenario="u")
    with pytest.raises(doral.UnknownName, match="unknown metric 'luck'"):
        made.differences(metric="luck")  # type: ignore[arg-type]
    wrong: Any
    for wrong in (3, []):
        with pytest.raises(doral.InvalidValue, match="scenario"):
            made.differences(scenario=wrong)
    assert dataclasses.replace(made.difference("a", "a", scenario="s")).is_same


@pytest.mark.parametrize("runs", [2, 3])
def test_tables_have_intervals_from_three_runs_on(runs: int) -> None:
    outcomes = tuple(outcome("s", policy, run, 10.0 + run**2 + len(policy)) for run in range(runs) for policy in "ab")
    result = doral.SimulationResult(outcomes=outcomes, seed=0)
    tables = (result.summary().filter(metric="within_deadline"), result.curves(), result.courses())
    ends = [table[name] for table in tables for name in table.columns if name.endswith(("_low", "_high", "_se"))]
    assert len(ends) > 8
    assert {one.null_count() for one in ends} == ({0} if runs > 2 else {2})
    said = [row["95%\ninterval"] for row in rows_of(result, "within_deadline")]
    assert said == ["", "[0, 0]" if runs > 2 else "no interval"]
