"""The generator of random problems, the panel that plays them, and its report."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from benchmarks.random_problems.named import NAMED
from benchmarks.random_problems.panel import BANDS, Played, play_panel, problems_of, split_policies
from benchmarks.random_problems.report import Report
from benchmarks.random_problems.space import CHOICES, RANGES, arrivals_of, draw_scenario

from doral.simulation.scenario.description import describe_scenario
from doral.simulation.world.truth import make_truth

SEEDS = range(200)


def test_a_seed_draws_the_same_problem() -> None:
    for seed in range(12):
        (one, said), (other, again) = draw_scenario(seed), draw_scenario(seed)
        assert describe_scenario(one) == describe_scenario(other)
        assert one.rows == other.rows
        assert said == again
    assert describe_scenario(draw_scenario(0)[0]) != describe_scenario(draw_scenario(1)[0])


def test_every_property_occurs_and_every_problem_is_valid() -> None:
    seen = defaultdict[str, set[object]](set)
    for seed in SEEDS:
        scenario, properties = draw_scenario(seed)  # which refuses what is not valid
        for name, value in properties.items():
            seen[name].add(value)
        problem = scenario.problem
        low, high = RANGES["arrivals"]
        assert low <= problem.expected_rounds <= high or problem.expected_arrivals is None
        assert properties["n"] == arrivals_of(seed)
        assert (len(problem.person) > 0) == (properties["people"] == "with features")
        assert (problem.baseline is None) == (properties["baseline"] == "none")
        assert (scenario.rows is not None) == (properties["rewards"] == "spend")
        assert (problem.paid == "on_answer") == (properties["paid"] == "on success")
    for name, choices in CHOICES.items():
        assert seen[name] == set(choices), name
    for name in ("n_arms", "n_contexts"):
        assert seen[name] >= {2, 19, 20}


def test_a_free_and_worthless_arm_is_both() -> None:
    for seed in SEEDS:
        scenario, properties = draw_scenario(seed)
        if properties["free arm"] == "worthless" and scenario.people is None and properties["drift"] == "none":
            assert scenario.problem.arms[0].dearest == 0.0
            assert not np.asarray(scenario.means)[:, 0].any()


def test_values_are_linear_in_features_that_are_right() -> None:
    """Wrong ones explain some of the spread between arms, by chance."""
    shares = defaultdict[str, list[float]](list)
    for seed in SEEDS:
        scenario, properties = draw_scenario(seed)
        features, means = scenario.problem.features, scenario.means
        if means is None or scenario.people is not None or properties["baseline"] == "observed" or not features.size:
            continue
        values = np.asarray(means).T
        if features.shape[1] + 2 < len(features):
            fitted = features @ np.linalg.lstsq(features, values, rcond=None)[0]
            around = values - values.mean(axis=0)
            shares[str(properties["features"])].append(float(((values - fitted) ** 2).sum() / (around**2).sum()))
    assert np.median(shares["right"]) < 0.02
    assert np.mean(shares["right"]) < 0.15
    assert np.median(shares["wrong"]) > 0.4


def test_no_policy_beats_the_oracle_by_more_than_luck(tmp_path: Path) -> None:
    played = play_panel(["doral-otf", "d-lints"], problems_of(range(40), ["short"]), runs=2, cache=tmp_path)
    assert len(played) >= 10
    shares = np.array([[np.mean(of) for of in one.shares.values()] for one in played])
    assert shares.max() <= 115.0  # contexts that come more often than expected
    assert shares.mean() <= 100.0
    assert shares.mean() >= 30.0
    assert not any(one.left_out for one in played)


def test_rivals_are_played_once(tmp_path: Path) -> None:
    policies, problems = ["doral-otf", "explore-then-lp"], problems_of([1, 2, 5], ["short"])
    assert problems
    first = play_panel(policies, problems, runs=2, cache=tmp_path)
    files = list(tmp_path.rglob("*.jsonl"))
    assert [path.stem for path in files] == ["explore-then-lp"]  # engine policies change with the engine
    files[0].write_text(files[0].read_text().replace('"shares": [', '"shares": [-7.0, '))
    again = play_panel(policies, problems, runs=2, cache=tmp_path)
    for one, other in zip(first, again, strict=True):
        assert other.shares["doral-otf"] == one.shares["doral-otf"]
        assert other.shares["explore-then-lp"] == [-7.0, one.shares["explore-then-lp"][0]]


def test_the_report_pairs_and_counts() -> None:
    played = [
        Played(f"random/{i}", {"seed": i, "n": 1_000 * (i + 1), "kind": "a"}, {"mine": [60.0 + i] * 2, "rival": shares})
        for i, shares in enumerate([[50.0, 60.0], [90.0, 90.0], [100.0, 140.0], [63.0, 63.0]])
    ]
    report = Report(played, judged=["mine"], rivals=["rival"])
    assert report.means == pytest.approx(np.array([[60, 55], [61, 90], [62, 120], [63, 63]]))
    lines = report.lines(["behind", "worst", "bands"])
    mine = next(line for line in lines if line.startswith("mine") and "%" in line)
    assert mine.split()[1:4] == ["50.0%", "50.0%", "25.0%"]  # behind by 0, 29, 58 and 0 points
    worst = [line for line in lines if line.startswith("random/")]
    assert [line.split()[0] for line in worst[:2]] == ["random/2", "random/1"]
    assert any("--seeds 2:3 --policies mine" in line for line in lines)
    assert any("-20.5" in line for line in lines)  # 61.5 less 82, means over all


def test_a_policy_that_cannot_play_a_problem_is_left_out_of_it(tmp_path: Path) -> None:
    """Shares of two arms are refused where there are more or fewer."""
    impossible = "status-quo:shares=1/2"
    played = play_panel(["d-lints", impossible], problems_of(range(8), ["short"]), runs=1, cache=tmp_path)
    fits = [draw_scenario(int(one.properties["seed"]))[0].problem.n_arms == 2 for one in played]
    assert [impossible in one.shares for one in played] == fits
    assert [impossible in one.left_out for one in played] == [not one for one in fits]
    report = Report(played, judged=["d-lints"], rivals=[impossible])
    assert len(report.played) == sum(fits)
    assert sum(line.startswith("left out") for line in report.lines([])) == len(fits) - sum(fits)


def test_policies_are_words_of_the_command_line() -> None:
    assert split_policies("doral-otf,doral:accept=3,exploration=0.5,eva") == [
        "doral-otf",
        "doral:accept=3,exploration=0.5",
        "eva",
    ]
    with pytest.raises(SystemExit):
        split_policies("doral-oft")


def test_bands_part_the_seeds() -> None:
    seeds = range(60)
    parts = [problems_of(seeds, [band]) for band in BANDS]
    assert sorted(name for part in parts for name in part) == sorted(problems_of(seeds))
    assert all(parts)


@pytest.mark.parametrize("name", list(NAMED))
def test_named_problems_are_what_they_say(name: str) -> None:
    scenario = NAMED[name]()
    assert scenario.name == f"named/{name}"
    problem = scenario.problem
    cheap = np.array([arm.dearest for arm in problem.arms])
    if name == "router":
        assert cheap.tolist() == [29.0, 527.0, 15_155.0]
        assert problem.rate == pytest.approx(83.0)
        assert problem.reward_range == (0.0, 1.0)
    if name in ("at-once", "waves"):
        counted = make_truth(scenario, seed=0, run=0).counted[0]
        assert not counted[:, cheap == 0.0].any()
        assert (counted[:, cheap > 0.0] > 0.0).all()


def test_the_default_policy_is_not_far_below_a_uniform_allocation(tmp_path: Path) -> None:
    """On the shortest problems of some seeds, beside all arms alike at first and then the LP; 4 runs do not tell."""
    problems = [f"random/{seed}" for seed in range(2_000, 2_060) if arrivals_of(seed) < 500]
    played = play_panel(["doral-otf", "explore-then-lp"], problems, runs=20, cache=tmp_path)
    assert len(played) >= 6
    for one in played:
        ours, theirs = (np.mean(one.shares[policy]) for policy in ("doral-otf", "explore-then-lp"))
        assert ours > 0.8 * theirs, one.problem
