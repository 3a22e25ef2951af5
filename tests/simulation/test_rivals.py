"""The rivals that ship: they learn, keep to the budget, and answer to their names."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from typer.testing import CliRunner

import doral
from doral.cli.app import app
from doral.cli.catalogue import parse_policy
from doral.delays import Geometric, Never
from doral.errors import InvalidValue, UnknownName
from doral.prediction.python_policy import Answer
from doral.simulation.rivals.policies import MainEffects
from doral.simulation.rivals.rival import RIVALS, make_rival, rival
from doral.simulation.rivals.trials import ReturnCurve, Trials
from doral.simulation.world.truth import make_truth

MEANS = [[0.03, 0.06, 0.10, 0.04], [0.05, 0.09, 0.07, 0.03], [0.02, 0.04, 0.06, 0.02]]  # nearly main effects


def conversions(horizon: int = 30_000, feedback: str = "silent", **changes: object) -> doral.Scenario:
    """Three contexts, four arms, rates of a few percent, answers after some hundred rounds."""
    problem = doral.Problem(
        arms=[doral.Arm(f"arm-{number}", features=[1.0]) for number in range(4)],
        contexts={"a": 0.5, "b": 0.3, "c": 0.2},
        budget=horizon / 2,
        horizon=horizon,
        deadline=1_000,
        feedback=feedback,  # type: ignore[arg-type]
    )
    settings = {"means": MEANS, "noise": "bernoulli", "delays": [Geometric(mean) for mean in (100, 200, 300, 150)]}
    return doral.Scenario(name="conversions", problem=problem, **(settings | changes))  # type: ignore[arg-type]


def expected_share(policy: object, scenario: doral.Scenario, runs: int) -> float:
    """What was chosen, in expectation, over what the oracle expects."""
    result = doral.simulate(policy, scenario, runs=runs, keep_decisions=True)  # type: ignore[arg-type]
    worth = make_truth(scenario, seed=0, run=0).counted[0]
    logs = [one.log for one in result.outcomes]
    earned = [worth[log.context, log.arm].sum() for log in logs if log is not None]
    return float(np.mean(earned)) / result.outcomes[0].oracle


@pytest.mark.parametrize("feedback", ["silent", "explicit"])
def test_beta_ts_lp_learns(feedback: str) -> None:
    assert expected_share("beta-ts-lp", conversions(feedback=feedback), runs=1) > 0.9


@pytest.mark.parametrize("name", [name for name in RIVALS if name != "status-quo"])
def test_rivals_that_learn_beat_chance(name: str) -> None:
    result = doral.simulate([name, "random"], "stress/short", runs=2)
    ours, chance = (result.rewards("stress/short", policy).sum() for policy in (name, "random"))
    assert ours > chance


def test_all_of_the_budget_is_spent_and_not_too_soon() -> None:
    result = doral.simulate(RIVALS, conversions(horizon=4_000), runs=1, keep_decisions=True)
    for one in result.outcomes:
        assert 0.97 * 2_000 <= one.spend <= 2_000
        assert one.log is not None
        half = (one.log.round <= 2_000).mean()
        assert 0.4 < half < 0.6, one.policy


def test_rewards_of_any_size_teach_the_same() -> None:
    """Scaled by the range seen: rewards in cents are those in units."""
    means = [[0.2, 0.6, 1.0, 0.3], [0.8, 0.2, 0.4, 0.3], [0.5, 1.2, 0.3, 0.2]]
    small = conversions(horizon=3_000, feedback="explicit", means=means, noise="gaussian", noise_sd=0.1)
    hundredfold = (100.0 * np.array(means)).tolist()
    large = conversions(horizon=3_000, feedback="explicit", means=hundredfold, noise="gaussian", noise_sd=10.0)
    one, other = (expected_share("beta-ts-lp", scenario, runs=2) for scenario in (small, large))
    assert one > 0.85
    assert other == pytest.approx(one, abs=0.02)


def test_an_arm_whose_answers_never_come_is_not_worth_its_mean() -> None:
    """The best arm by its answers answers one in ten: value is the mean times the chance of an answer in time."""
    laws = [Geometric(20), Never(Geometric(20), 0.9), Geometric(20), Geometric(20)]
    means = [[0.3, 0.9, 0.2, 0.2]] * 3
    scenario = conversions(horizon=5_000, feedback="explicit", means=means, delays=laws)
    assert expected_share("beta-ts-lp", scenario, runs=2) > 0.85


def test_weights_decide_who_is_served() -> None:
    problem = doral.Problem(
        arms=[doral.Arm("one", features=[1.0]), doral.Arm("two", features=[1.0])],
        contexts=[doral.Context("urgent", 0.5, weight=5), doral.Context("ordinary", 0.5)],
        budget=1_000,
        horizon=2_000,
        deadline=100,
    )
    scenario = doral.Scenario(
        name="weights", problem=problem, delays=Geometric(5), means=[[0.3, 0.3]] * 2, noise="bernoulli"
    )
    for name in ("beta-ts-lp", "explore-then-lp"):
        log = doral.simulate(name, scenario, runs=1, keep_decisions=True).outcomes[0].log
        assert log is not None
        assert (log.context == 0).mean() > 0.85


def test_status_quo_keeps_to_its_shares() -> None:
    one = rival("status-quo", shares=[5, 3, 2, 0])
    log = doral.simulate(one, conversions(horizon=10_000), runs=1, keep_decisions=True).outcomes[0].log
    assert log is not None
    assert np.bincount(log.arm, minlength=4) / log.arm.size == pytest.approx([0.5, 0.3, 0.2, 0.0], abs=0.03)
    with pytest.raises(InvalidValue, match="one per arm, 4"):
        doral.simulate(rival("status-quo", shares=(0.5, 0.5)), conversions(horizon=10), runs=1)


def test_status_quo_keeps_to_the_chances_of_a_log() -> None:
    scenario = conversions(horizon=10_000)
    chances = [[0.1, 0.2, 0.0, 0.0], [0.0, 0.0, 0.3, 0.1], *[[0.0] * 4] * (scenario.problem.n_contexts - 2)]
    one = rival("status-quo", chances=chances)
    found = doral.simulate(one, scenario, runs=1, keep_decisions=True).decisions()
    for context, row in zip(scenario.problem.context_names, chances, strict=True):
        arms = found.filter(context=context)["arm"]
        played = [(arms == name).sum() / len(arms) for name in scenario.problem.arm_names]
        assert played == pytest.approx(row, abs=0.03)
    for wrong in ([[0.6, 0.6]], [[0.1, -0.1]], "often"):
        with pytest.raises(InvalidValue, match="chances"):
            make_rival("status-quo", chances=wrong)
    with pytest.raises(InvalidValue, match="rows, one per context"):
        doral.simulate(rival("status-quo", chances=[[0.5, 0.5]]), scenario, runs=1)
    with pytest.raises(InvalidValue, match="not both"):
        rival("status-quo", shares=[1.0], chances=[[0.5]])


# --- what they are made of -----------------------------------------------------------------------------------------


def test_the_curve_of_answers_is_not_fooled_by_the_young() -> None:
    """While half of the decisions are young, most answers seen are quick ones; reversed time puts that right."""
    draws, law, now, deadline = np.random.default_rng(3), Geometric(300), 1_500, 1_000.0
    curve = ReturnCurve(deadlines=np.array([deadline]), n_arms=1)
    for decided in range(1, now):
        for delay in draws.geometric(1.0 / 300.0, size=5).tolist():
            if delay <= deadline and decided + delay <= now:
                curve.enter(0, decided, delay)
    ages = np.array([50, 150, 300, 600, 1_000])
    none = np.zeros(ages.size, dtype=np.int64)
    true = law.return_probability(ages.astype(np.float64)) / law.return_probability(deadline)
    assert curve.shares(now, none, none, ages) == pytest.approx(true, abs=0.06)


def test_an_open_decision_is_a_fraction_of_a_trial() -> None:
    """Rates are right long before the deadline although nobody hears of a zero."""
    problem, draws = conversions().problem, np.random.default_rng(5)
    trials, now = Trials(problem), 900
    answers = []
    for round_ in range(1, now):
        trials.decide(round_, 0, 0)
        delay = int(draws.geometric(1.0 / 200.0))
        if draws.random() < 0.3 and round_ + delay <= now:
            answers.append(Answer(round_ + delay, round_, 0, 0, 1.0))
    for answer in sorted(answers, key=lambda each: each.round):
        trials.observe(answer)
    rate = trials.rewards[0, 0] / trials.exposure(now)[0, 0]
    naive = trials.rewards[0, 0] / (now - 1)
    assert rate == pytest.approx(0.3, abs=0.05)
    assert naive < 0.26
    assert trials.exposure(now + 2_000)[0, 0] == now - 1  # whole trials when all are old


def test_main_effects_are_found_and_cells_are_trusted_as_they_scatter() -> None:
    draws = np.random.default_rng(7)
    logits = -2.0 + np.array([[-0.5], [0.0], [0.5]]) + np.array([[-0.6, 0.2, 0.4, 0.0, 0.0]])
    trials = np.full(logits.shape, 5_000.0)

    def fitted(of: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> MainEffects:
        effects = MainEffects(*of.shape)
        successes = draws.binomial(5_000, 1.0 / (1.0 + np.exp(-of))).astype(np.float64)
        for _ in range(10):
            effects.fit(successes, trials)
        return effects

    additive = fitted(logits)
    assert additive.rates == pytest.approx(1.0 / (1.0 + np.exp(-logits)), rel=0.12)
    scattered = fitted(logits + draws.normal(0.0, 1.0, logits.shape))
    assert scattered.strength < 30.0 < 300.0 < additive.strength


# --- their names ---------------------------------------------------------------------------------------------------


def test_words_of_the_command_line() -> None:
    assert parse_policy("beta-ts-lp:explore=0.05, width=1") == rival("beta-ts-lp", explore=0.05, width=1.0)
    assert parse_policy("status-quo:shares=0.5/0.3/0.2") == rival("status-quo", shares=(0.5, 0.3, 0.2))
    assert parse_policy("status-quo:chances=0.5/0.3;0/0.2") == rival("status-quo", chances=((0.5, 0.3), (0.0, 0.2)))
    assert parse_policy("a/b").name == "a/b"
    for word in ("beta-ts-lp:sampling=1", "a/b:explore=often", "a/b:explore=2", "a/b:explore=0.1,explore=0.2"):
        with pytest.raises((InvalidValue, UnknownName)):
            parse_policy(word)


def test_unknown_names_list_them() -> None:
    with pytest.raises(UnknownName, match="did you mean 'beta-ts-lp'"):
        doral.simulate("beta-ts", "stress/short", runs=1)
    with pytest.raises(UnknownName, match="did you mean 'explore-then-lp'"):
        parse_policy("explore-then")
    with pytest.raises(UnknownName):
        make_rival("doral-otf")
    with pytest.raises(UnknownName, match="explore"):
        make_rival("a/b", exploring=0.1)


def test_a_rival_is_data() -> None:
    """It goes to worker processes, and into the keys of finished work."""
    one = rival("status-quo", shares=[1, 2], label="as today")
    assert pickle.loads(pickle.dumps(one)) == one
    assert json.loads(json.dumps(one.to_dict()))["shares"] == [1.0, 2.0]
    assert one.name == "as today"
    with pytest.raises(InvalidValue, match="at least one"):
        rival("status-quo", shares=[0.0])
    with pytest.raises(InvalidValue, match="width"):
        rival("beta-ts-lp", width=-1)


def test_the_command_line_plays_and_compares_them(tmp_path: object) -> None:
    runner = CliRunner()
    played = runner.invoke(app, ["simulate", "stress/short", "-p", "a/b", "-p", "status-quo", "--runs", "1"])
    assert played.exit_code == 0, played.output
    assert "a/b" in played.output
    words = ["stress/short", "-p", "status-quo", "-p", "explore-then-lp:explore=0.2", "--runs", "1"]
    compared = runner.invoke(
        app, ["experiment", "compare", *words, "--quick", "--main-only", "--jobs", "1", "--out-dir", f"{tmp_path}/out"]
    )
    assert compared.exit_code == 0, compared.output
    assert "status-quo" in compared.output
    listed = runner.invoke(app, ["policies"])
    assert all(name in listed.output for name in RIVALS)
