"""The simulator: paired, repeatable, tidy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import doral
from doral import delays
from doral.errors import InvalidValue, UnknownName
from doral.simulation.results.plots import colour_of, dash_of
from doral.simulation.results.result import PlotKind
from doral.simulation.world.players import BadDecision
from doral.simulation.world.truth import make_truth

ALL = ["doral", "d-alp", "d-linucb", "random"]


def scenario(**changes: Any) -> doral.Scenario:
    problem: dict[str, Any] = {
        "arms": [doral.Arm(f"arm-{i}", features=[1.0, 0.2 * i, 0.1 * i * i]) for i in range(4)],
        "contexts": {"x": 0.25, "y": 0.75},
        "budget": 700,
        "horizon": 1500,
        "deadline": 30,
    }
    laws = [delays.Geometric(3), delays.Geometric(12), delays.Pareto(8, 1.5), delays.Never(delays.Fixed(2), 0.3)]
    return doral.Scenario(name="small", problem=doral.Problem(**(problem | changes)), delays=laws)


class Always:
    """Plays the first arm that can be had."""

    cutoff = 10.0

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        self.answers: list[doral.Answer] = []

    def decide(self, arrival: doral.Arrival) -> int | None:
        return arrival.available[0] if arrival.available else None

    def observe(self, answer: doral.Answer) -> None:
        self.answers.append(answer)


class Greedy(Always):
    """Wants an arm that does not exist."""

    def decide(self, arrival: doral.Arrival) -> int | None:
        return 99


def test_same_numbers_whatever_the_number_of_jobs_or_chunks_of_runs() -> None:
    whole = doral.simulate(ALL, scenario(), runs=4, seed=5, n_jobs=1)
    parallel = doral.simulate(ALL, scenario(), runs=4, seed=5, n_jobs=2)
    later = doral.simulate(ALL, scenario(), runs=2, seed=5, first_run=2)
    assert whole.runs().equals(parallel.runs())
    assert whole.curves().equals(parallel.curves())
    assert whole.runs().filter(run=3).equals(later.runs().filter(run=3))


def test_policies_play_the_same_draws() -> None:
    """A policy gives the same result alone and in company, and two copies of one policy never differ."""
    twin = doral.policy("d-linucb", label="twin")
    together = doral.simulate(["d-linucb", "doral", twin], scenario(), runs=3)
    alone = doral.simulate("d-linucb", scenario(), runs=3)
    assert together.runs().filter(policy="d-linucb").equals(alone.runs())
    row = together.summary().filter(policy="twin", metric="by_end")
    assert row.select("difference_mean", "difference_low", "difference_high").row(0) == (0.0, 0.0, 0.0)


def test_totals_are_the_sums_of_the_decisions() -> None:
    result = doral.simulate([*ALL, Always], scenario(), runs=2, keep_decisions=True)
    decisions = result.decisions().drop_nulls("arm")
    for row in result.runs().iter_rows(named=True):
        mine = decisions.filter(policy=row["policy"], run=row["run"])
        delay, reward = mine["delay"].to_numpy(), mine["reward"].to_numpy()
        returned = mine["round"].to_numpy() + delay <= 1500
        assert row["by_end"] == pytest.approx(reward[returned].sum())
        assert row["within_deadline"] == pytest.approx(reward[delay <= 30].sum())
        if row["race_rounds"] == 0:  # one cut-off throughout
            assert row["within_cutoff"] == pytest.approx(reward[delay <= row["cutoff"]].sum())
        assert row["decisions"] == len(mine) == len(set(mine["round"]))
        assert row["spend"] == pytest.approx(len(mine))
        assert row["spend"] <= 700
        assert delay.min() >= 1


def test_summary_is_what_it_says() -> None:
    result = doral.simulate(["random", "d-linucb"], scenario(), runs=6, seed=2)
    row = result.summary().filter(policy="d-linucb", metric="within_deadline").row(0, named=True)
    mine, first = (result.rewards("small", name) for name in ("d-linucb", "random"))
    assert row["reward_mean"] == pytest.approx(mine.mean())
    assert row["reward_se"] == pytest.approx(stats.sem(mine))
    low, high = stats.ttest_rel(mine, first).confidence_interval(0.95)
    assert (row["difference_low"], row["difference_high"]) == pytest.approx((low, high))
    best = np.mean([make_truth(scenario(), seed=2, run=run).oracle for run in range(6)])
    assert row["oracle_mean"] == pytest.approx(best)
    assert row["regret_share"] == pytest.approx(1 - mine.mean() / best)
    assert result.summary().columns[:7] == [
        "scenario",
        "policy",
        "metric",
        "runs",
        "reward_mean",
        "reward_se",
        "oracle_mean",
    ]


def test_nobody_beats_the_oracle() -> None:
    """In the mean over runs, with an honest allowance for luck."""
    summary = doral.simulate([*ALL, "doral/literal"], scenario(), runs=20).summary().filter(metric="within_deadline")
    for row in summary.iter_rows(named=True):
        assert row["reward_mean"] <= row["oracle_mean"] + 3 * row["reward_se"]


def test_curves_end_at_what_has_come_and_never_jump_back_in_count() -> None:
    result = doral.simulate("doral", scenario(counted="by_end"), runs=2)
    for metric in ("within_deadline", "by_end", "within_cutoff"):
        curve = result.curves(metric)
        assert curve["round"].to_list() == sorted(set(curve["round"]))
        assert curve["round"][-1] == 1500
        assert curve["reward_mean"][-1] == pytest.approx(result.rewards("small", "doral", metric).mean())


def test_one_run_has_no_interval() -> None:
    row = doral.simulate("random", scenario(), runs=1).summary().row(0, named=True)
    assert row["reward_se"] is None
    assert row["difference_low"] is None
    assert row["reward_mean"] > 0


def test_a_python_policy_sees_every_answer_in_time() -> None:
    made: list[Always] = []

    def maker(problem: doral.Problem, seed: int) -> Always:
        made.append(Always(problem, seed))
        return made[-1]

    result = doral.simulate(maker, scenario(), keep_decisions=True, runs=1)
    log = result.decisions().drop_nulls("arm")
    expected = int((log["round"].to_numpy() + log["delay"].to_numpy() <= 1500).sum())
    answers = made[0].answers
    assert len(answers) == expected
    assert [one.round for one in answers] == sorted(one.round for one in answers)
    assert all(one.delay >= 1 for one in answers)


def test_a_python_policy_that_cheats_is_stopped() -> None:
    with pytest.raises(BadDecision, match=r"policy 'Greedy', round 1: chose arm 99, which is not among \(0, 1, 2, 3\)"):
        doral.simulate(Greedy, scenario(), runs=1)


def test_a_python_policy_of_which_half_is_missing_is_told_before_the_first_arrival() -> None:
    class Deaf:
        def __init__(self, problem: doral.Problem, seed: int) -> None: ...

        def decide(self, arrival: object) -> None: ...

    class Seedless(Always):
        def __init__(self, problem: doral.Problem) -> None: ...

    with pytest.raises(InvalidValue, match="policy = 'Deaf': needs a method observe: decide"):
        doral.simulate(Deaf, scenario(), runs=1)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidValue, match=r"policy = 'Seedless': is made with \(problem, seed\), and cannot be: too many"
    ):
        doral.simulate(Seedless, scenario(), runs=1)  # type: ignore[arg-type]


def test_python_policies_run_in_processes_too() -> None:
    one, two = (doral.simulate(Always, scenario(), runs=2, n_jobs=jobs) for jobs in (1, 2))
    assert one.runs().equals(two.runs())


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: doral.simulate("dorall", scenario()), UnknownName, "did you mean 'doral'"),
        (lambda: doral.simulate([], scenario()), InvalidValue, "at least one policy"),
        (lambda: doral.simulate(["doral", "doral"], scenario()), InvalidValue, "appears twice"),
        (lambda: doral.simulate("doral", "paper/similar"), UnknownName, "did you mean 'paper/similar-"),
        (lambda: doral.simulate("doral", scenario(), runs=0), InvalidValue, "runs = 0"),
        (lambda: doral.simulate("doral", scenario(), seed=-1), InvalidValue, "seed = -1"),
        (lambda: doral.simulate("doral", scenario(), seed=2.5), InvalidValue, "seed = 2.5"),  # type: ignore[arg-type]
        (lambda: doral.simulate("doral", scenario(), n_jobs=0), InvalidValue, "-1 for all cores"),
        (lambda: doral.simulate(3, scenario()), (InvalidValue, TypeError), "policy|iterable"),  # type: ignore[arg-type]
        (
            lambda: doral.PolicyOptions.named("doral", {"accpet": 3}),
            UnknownName,
            "'accpet'; did you mean 'accept'",
        ),
        (lambda: doral.PolicyOptions.named("doral", {"learner": "thin"}), InvalidValue, "learner = 'thin'"),
        (lambda: doral.policy("doral", exploration=math.nan), InvalidValue, "exploration = nan"),
        (lambda: doral.policy("doral", accept=0), InvalidValue, "accept = 0"),
        (lambda: doral.PolicyOptions.named("doral/lit"), UnknownName, "doral/literal"),
        (lambda: doral.simulate(doral.policy("doral", accept=9), scenario()), InvalidValue, "number of arms, 4"),
        (
            lambda: doral.simulate(doral.policy("d-linucb", learner="scaled"), scenario(deadline=None)),
            InvalidValue,
            "cutoff = None: .* or take doral-otf",
        ),
        (lambda: doral.simulate("random", scenario(), runs=1).curves("regret"), UnknownName, "unknown metric"),  # type: ignore[arg-type]
        (lambda: doral.simulate("random", scenario(), runs=1).decisions(), InvalidValue, "keep_decisions=True"),
        (lambda: doral.simulate("random", scenario(), runs=1).plot("pie"), UnknownName, "kind of plot"),  # type: ignore[arg-type]
    ],
)
def test_bad_calls_name_what_is_wrong(call: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_thirty_policies_look_different() -> None:
    assert len({(colour_of(i), dash_of(i)) for i in range(30)}) == 30


@pytest.mark.parametrize("kind", ["reward", "regret", "share"])
def test_plots_draw_every_policy(kind: PlotKind) -> None:
    figure = doral.simulate(ALL, scenario(), runs=2).plot(kind)
    axes = figure.axes[0]
    if kind == "share":
        labels = [text.get_text() for text in axes.get_yticklabels()]
    else:
        labels = [str(line.get_label()) for line in axes.get_lines()]
    assert labels == ALL


def test_rewards_that_all_come_too_late_are_told() -> None:
    """A deadline that was meant in another unit."""
    asked = scenario(deadline=14).problem
    late = doral.Scenario(name="late", problem=asked, delays=delays.Fixed(30))
    result = doral.simulate("random", late, runs=1)
    assert result.too_late == ("late",)
    assert "none within the deadline" in str(result)
    assert "none within the deadline" in result._repr_html_()
    in_time = doral.Scenario(name="in time", problem=asked, delays=delays.Fixed(3))
    assert doral.simulate("random", in_time, runs=1).too_late == ()
