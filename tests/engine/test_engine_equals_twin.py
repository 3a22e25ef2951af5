"""The compiled engine and its naive twin make the same decisions, whatever is chosen."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import doral
from doral.delays import (
    AnyLaw,
    ByOutcome,
    Empirical,
    Exponential,
    Fixed,
    Geometric,
    Law,
    Lognormal,
    Never,
    Pareto,
    Weibull,
)
from doral.engine import options as options_module
from doral.engine.options import OPTION_NAMES, PolicyOptions
from doral.engine.presets import POLICY_NAMES, policy
from doral.problem import Arm, Context, Problem
from doral.simulation.api import MAX_SEED
from doral.simulation.scenario import Noise, Scenario
from tests.small_worlds import MIXED_LAWS, make_scenario
from tests.twin import Agreement, follow

# Rounds that rounding may decide; more would mean that the comparison hides something.
NEAR_TIES_ALLOWED = 1
# The same while a first conversion is all that is known of the noise, and V all but singular.
ILL_CONDITIONED_ALLOWED = 8
# The same while all answers are alike (conversions whose silences nobody hears): arms differ by rounding and no more.
NOISELESS_ALLOWED = 30


def compare(options: PolicyOptions, scenario: Scenario, *, seed: int = 1, run: int = 0) -> Agreement:
    result = doral.simulate(options, scenario, runs=1, seed=seed, first_run=run, keep_decisions=True)
    agreement = follow(options, scenario, result.outcomes[0], seed=seed)
    assert agreement.near_ties <= NEAR_TIES_ALLOWED
    assert agreement.ill_conditioned <= ILL_CONDITIONED_ALLOWED
    assert agreement.noiseless <= NOISELESS_ALLOWED
    return agreement


UNIT = make_scenario()
# Everything else at once: different costs, no deadline, learned shares, arms that are missing, answers that never come.
MIXED = make_scenario(
    costs=(1.0, 2.5, 0.7, 1.3, 2.5),
    budget=350.0,
    horizon=400,
    deadline=None,
    delays=MIXED_LAWS,
    shares=None,
    availability=(1.0, 0.6, 0.9, 0.8, 0.5),
    seed=3,
    name="mixed",
)
# Urgency: weights, deadlines and reserves by context; and a world that changes.
URGENT = Scenario(
    name="urgent",
    problem=Problem(
        arms=[Arm(f"a{i}", features=row, cost=1.0 + 0.5 * (i % 2)) for i, row in enumerate(UNIT.problem.features)],
        contexts=[
            Context("now", 0.15, weight=3, deadline=15, tier=2),
            Context("soon", 0.35, weight=1.5, tier=1),
            Context("some day", 0.5),
        ],
        budget=160.0,
        horizon=260,
        deadline=60.0,
        reserves={2: 0.15, 1: 0.2},
    ),
    delays=UNIT.delays,
    noise_sd=0.2,
    phases=3,
)
# Conversions: no news and a reward of zero look the same.
SILENT = Scenario(
    name="silent",
    problem=dataclasses.replace(MIXED.problem, feedback="silent", deadline=25.0, horizon=260, budget=230.0),
    delays=tuple((Geometric(3), Pareto(5, 2), Geometric(9), Pareto(2, 2), Geometric(30)) for _ in range(3)),
    shares=(0.4, 0.35, 0.25),
    means=np.random.default_rng(4).uniform(0.05, 0.6, (3, 5)),
    noise="bernoulli",
)
SCENARIOS = [UNIT, MIXED, URGENT, SILENT]
QUICK_RACE: dict[str, Any] = {"min_answers": 4}

OPTION_VALUES: dict[str, tuple[Any, ...]] = {
    "screening": ("race", "none"),
    "accept": (None, 1, 2, 5),
    "acceptance": ("fastest", "printed"),
    "baskets": ("corrected", "printed"),
    "censoring": ("returned", "min_age", "kaplan_meier", "instant"),
    "min_answers": (1, 10, 10**9),
    "race_delta": (1e-12, 0.05, 0.5),
    "tail_exponent": (0.2, 0.5, 3.0),
    "race_budget_share": (0.0, 0.1, 0.4, 1.0),
    "race_trains": (True, False),
    "cutoff": (None, 1.0, 7.5, 30.0, 1000.0, "adaptive", "none"),
    "cutoff_share": (0.3, 0.95, 1.0),
    "cutoff_over": ("accepted", "all"),
    "learner": ("auto", "returned", "scaled", "thinned"),
    "features": ("given", "none"),
    "prior": ("fixed", "noise", "shared"),
    "half_life": (None, 15.0, 300.0),
    "outcome_split": (None, 0.5, 0.9),
    "sampling": ("optimism", "thompson"),
    "pending": ("ignored", "expected"),
    "penalty": (0.01, 1.0, 30.0),
    "delta": (1e-12, 0.05, 1.0),
    "exploration": (0.0, 0.1, 1.0, 5.0),
    "bonus": ("corrected", "printed", "calibrated"),
    "window_bias": (None, True, False),
    "choice": ("weighted", "unweighted"),
    "return_probability": ("estimated", "oracle", "one"),
    "return_by": ("deadline", "cutoff"),
    "return_optimism": (0.0, 0.5, 3.0),
    "curves_by": ("arm", "context"),
    "until_end": (True, False),
    "dropping": ("never", "certified"),
    "pacing": ("lp", "coin", "greedy"),
    "rate": ("remaining", "printed", "period"),
    "periods": (1, 7, 50),
    "curve_points": (2, 16, 60),
}


def completed(options: Mapping[str, Any], problem: Problem, *, option: str = "") -> dict[str, Any]:
    """With what an option cannot do without; `option` itself stays as it is."""
    chosen = dict(options)
    if chosen["outcome_split"] is not None:
        if option in ("learner", "return_probability", "half_life"):
            chosen["outcome_split"] = None
        else:
            chosen["learner"] = "auto" if chosen["learner"] == "auto" else "returned"
            chosen["return_probability"], chosen["half_life"] = "estimated", None
    if chosen["dropping"] == "certified" and chosen["choice"] == "unweighted":
        chosen["dropping" if option == "choice" else "choice"] = "never" if option == "choice" else "weighted"
    if chosen["dropping"] == "certified" and chosen["prior"] == "fixed":
        chosen["dropping" if option == "prior" else "prior"] = "never" if option == "prior" else "noise"
    if chosen["return_probability"] != "estimated" and chosen["cutoff"] == "adaptive":
        if option == "cutoff":
            chosen["return_probability"] = "estimated"
        else:
            chosen["cutoff"] = 25.0
    if chosen["prior"] == "fixed" and (chosen["bonus"] == "calibrated" or chosen["sampling"] == "thompson"):
        if option == "prior":
            chosen["bonus"], chosen["sampling"] = "corrected", "optimism"
        else:
            chosen["prior"] = "noise"
    if chosen["sampling"] == "thompson" and chosen["return_optimism"] > 0.0:
        chosen["return_optimism" if option == "sampling" else "sampling"] = 0.0 if option == "sampling" else "optimism"
    if chosen["learner"] == "thinned" and chosen["prior"] != "fixed":
        if option in ("prior", "bonus", "sampling", "features", "dropping"):
            chosen["learner"] = "returned"
        else:
            chosen["prior"], chosen["sampling"], chosen["dropping"] = "fixed", "optimism", "never"
            chosen["bonus"] = "corrected" if chosen["bonus"] == "calibrated" else chosen["bonus"]
    if chosen["features"] == "none" and chosen["sampling"] == "optimism" and chosen["bonus"] != "calibrated":
        if option == "features":
            chosen["bonus"], chosen["prior"] = "calibrated", "shared"
            chosen["learner"] = "returned" if chosen["learner"] == "thinned" else chosen["learner"]
        else:
            chosen["features"] = "given"
    if chosen["learner"] == "thinned" and chosen["pending"] == "expected":
        chosen["learner" if option == "pending" else "pending"] = "returned" if option == "pending" else "ignored"
    if chosen["screening"] == "none" and chosen["cutoff"] is None and not np.isfinite(problem.deadlines).all():
        chosen["cutoff"] = 50.0
    return chosen


def changed(base: str, option: str, value: Any, problem: Problem) -> PolicyOptions:
    options = {**policy(base).to_dict(), **QUICK_RACE, option: value}
    return PolicyOptions(**completed(options, problem, option=option))


EVERY_VALUE = [(option, value) for option, values in OPTION_VALUES.items() for value in values]


def test_every_value_of_every_option_is_compared() -> None:
    assert set(OPTION_VALUES) == set(OPTION_NAMES)
    for option, words in options_module.option_words().items():
        assert set(OPTION_VALUES[option]) == set(words), option
    for option, value in EVERY_VALUE:
        for base in ("doral", "doral-otf"):
            options = changed(base, option, value, URGENT.problem)
            assert getattr(options, option) == value


@pytest.mark.parametrize("name", POLICY_NAMES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.name))
def test_presets(name: str, scenario: Scenario) -> None:
    options = policy(name)
    complete = PolicyOptions(**completed(options.to_dict(), scenario.problem))
    assert compare(complete, scenario).decisions > 0
    if options.screening == "race":
        compare(policy(name, **QUICK_RACE), scenario)


@pytest.mark.parametrize(("option", "value"), EVERY_VALUE)
@pytest.mark.parametrize("scenario", [UNIT, MIXED], ids=["unit", "mixed"])
def test_options_one_at_a_time(option: str, value: Any, scenario: Scenario) -> None:
    compare(changed("doral", option, value, scenario.problem), scenario)


@pytest.mark.parametrize(("option", "value"), EVERY_VALUE)
@pytest.mark.parametrize("scenario", [URGENT, SILENT], ids=["urgent", "silent"])
def test_options_of_learning_on_the_fly_one_at_a_time(option: str, value: Any, scenario: Scenario) -> None:
    options = changed("doral-otf", option, value, scenario.problem)
    compare(options, scenario)


@pytest.mark.parametrize("learner", ["returned", "scaled", "thinned"])
@pytest.mark.parametrize("return_probability", ["estimated", "oracle", "one"])
@pytest.mark.parametrize("screening", ["none", "race"])
def test_learners_with_and_without_a_race(learner: str, return_probability: str, screening: str) -> None:
    chosen = {"learner": learner, "return_probability": return_probability, "screening": screening}
    compare(policy("doral", **QUICK_RACE, **chosen), UNIT)


def test_a_long_run() -> None:
    scenario = dataclasses.replace(UNIT, problem=dataclasses.replace(UNIT.problem, horizon=2500, budget=1400.0))
    agreement = compare(policy("doral"), scenario)
    assert agreement.decisions > 1300


def test_a_budget_that_runs_out_early_and_one_that_never_does() -> None:
    poor = dataclasses.replace(MIXED, problem=dataclasses.replace(MIXED.problem, budget=17.3))
    rich = dataclasses.replace(MIXED, problem=dataclasses.replace(MIXED.problem, budget=1e6))
    for name in ("doral", "doral/literal"):
        compare(policy(name, **QUICK_RACE), poor)
        compare(policy(name, **QUICK_RACE), rich)


# Good news travels fast, and bad news does not, except where it is the other way round.
TELLING = Scenario(
    name="telling",
    problem=dataclasses.replace(UNIT.problem, horizon=300, budget=220.0),
    delays=(
        ByOutcome(above=Geometric(2), below=Geometric(25), threshold=0.5),
        ByOutcome(above=Geometric(20), below=Geometric(4), threshold=0.5),
        ByOutcome(above=Pareto(3, 2), below=Geometric(40), threshold=0.5),
        Geometric(8),
        ByOutcome(above=Exponential(6), below=Never(Geometric(15), 0.3), threshold=0.5),
    ),
    means=np.random.default_rng(5).uniform(0.1, 0.8, (3, 5)),
    noise="bernoulli",
)


@pytest.mark.parametrize("prior", ["fixed", "noise", "shared"])
@pytest.mark.parametrize("features", ["given", "none"])
@pytest.mark.parametrize("screening", ["none", "race"])
@pytest.mark.parametrize("pending", ["ignored", "expected"])
def test_outcomes_that_are_told_apart(prior: str, features: str, screening: str, pending: str) -> None:
    options = {
        **policy("doral-otf", outcome_split=0.5, cutoff=None, **QUICK_RACE).to_dict(),
        "prior": prior,
        "features": features,
        "screening": screening,
        "pending": pending,
    }
    if prior == "fixed":
        options |= {"bonus": "corrected", "features": "given", "dropping": "never"}
    compare(PolicyOptions(**options), TELLING)


@pytest.mark.parametrize("cutoff", ["adaptive", 6.0])
def test_outcomes_that_are_told_apart_inside_a_cutoff(cutoff: Any) -> None:
    """Answers stop growing older for their weight when they leave it; an adaptive one moves."""
    compare(policy("doral-otf", outcome_split=0.5, cutoff=cutoff), TELLING)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.name))
@pytest.mark.parametrize("cutoff", [2.0, 6.0, 20.0])
def test_open_decisions_that_leave_the_cutoff(scenario: Scenario, cutoff: float) -> None:
    """With and without features: who leaves the cut-off without an answer no longer counts as if one would come."""
    compare(policy("eva", cutoff=cutoff), scenario)
    compare(policy("doral-otf", cutoff=cutoff), scenario)


def test_open_decisions_that_nobody_expected_to_be_answered() -> None:
    """Played because nothing else was there, with tau = 0: an answer after the deadline teaches like any other."""
    scenario = make_scenario(
        delays=(Fixed(50), Fixed(45), Geometric(4), Geometric(9), Geometric(6)),
        availability=(1.0, 1.0, 0.3, 0.3, 0.3),
        noise_sd=1.0,
    )
    changes: dict[str, Any] = {
        "curves_by": "arm",
        "return_optimism": 0.0,
        "until_end": False,
        "cutoff": 60.0,
        "exploration": 5.0,
    }
    for seed in range(3):
        compare(policy("doral-otf", pacing="greedy", **changes), scenario, seed=seed)


def test_certificates_are_given_and_withdrawn() -> None:
    """Arms that are far apart, and a world that changes: who was out for certain comes back."""
    scenario = dataclasses.replace(
        UNIT,
        problem=dataclasses.replace(UNIT.problem, horizon=900, budget=700.0),
        delays=((Geometric(3), Geometric(4), Geometric(5), Geometric(6), Geometric(7)),),
        theta=None,
        phases=3,
    )
    given = withdrawn = 0
    for run in range(3):
        options = policy("doral-otf", half_life=150.0)
        compare(options, scenario, run=run)
        course = doral.simulate(options, scenario, runs=1, seed=1, first_run=run).outcomes[0].course[:, 1]
        given += int((np.diff(course) < 0.0).sum())
        withdrawn += int((np.diff(course) > 0.0).sum())
    assert given > 0
    assert withdrawn > 0


# --- random problems and random options ----------------------------------------------------------------------------

SIMPLE_LAWS: st.SearchStrategy[Law] = st.one_of(
    st.builds(Geometric, st.floats(1, 30)),
    st.builds(Pareto, st.floats(0.5, 20), st.floats(0.8, 4)),
    st.builds(Lognormal, st.floats(1, 20), st.floats(0.2, 1.5)),
    st.builds(Weibull, st.floats(1, 20), st.floats(0.5, 2)),
    st.builds(Exponential, st.floats(1, 20)),
    st.builds(Fixed, st.integers(0, 40).map(float)),
    st.builds(Empirical, st.lists(st.integers(1, 60).map(float) | st.just(math.inf), min_size=1, max_size=6)),
)
LAWS: st.SearchStrategy[AnyLaw] = st.one_of(
    SIMPLE_LAWS,
    st.builds(Never, SIMPLE_LAWS, st.floats(0, 1)),
    st.builds(ByOutcome, above=SIMPLE_LAWS, below=SIMPLE_LAWS, threshold=st.floats(0.2, 1.0)),
)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    n_contexts, n_arms, n_features = draw(st.integers(2, 5)), draw(st.integers(2, 6)), draw(st.integers(1, 4))
    # Parameters from a generator: hypothesis loves zeros and equal numbers, and those are ties for rounding to decide.
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    unit_costs = draw(st.booleans())
    costs = np.ones(n_arms) if unit_costs else rng.choice([0.5, 1.0, 1.7, 3.0], n_arms)
    horizon = draw(st.integers(150, 400))
    names = [f"c{j}" for j in range(n_contexts)]
    shares = rng.dirichlet(np.full(n_contexts, 3.0)) * 0.9 + 0.1 / n_contexts
    learns_shares = draw(st.booleans())
    urgency = draw(st.booleans())
    contexts = [
        Context(
            name,
            None if learns_shares else share,
            weight=float(rng.uniform(0.5, 4.0)) if urgency else 1.0,
            deadline=draw(st.none() | st.floats(1, 100)) if urgency else None,
            tier=draw(st.integers(0, 2)) if urgency else 0,
        )
        for name, share in zip(names, shares.tolist(), strict=True)
    ]
    highest = max(context.tier for context in contexts)
    reserves = {tier: draw(st.floats(0.01, 0.5)) for tier in range(1, highest + 1) if draw(st.booleans())}
    problem = Problem(
        arms=[
            Arm(f"a{i}", features=rng.uniform(-0.3, 1.0, n_features), cost=float(cost)) for i, cost in enumerate(costs)
        ],
        contexts=contexts,
        feedback=draw(st.sampled_from(["explicit", "silent"])),
        reserves=reserves,
        budget=draw(st.sampled_from([0.03, 0.2, 0.5, 0.9, 3.0])) * horizon * float(costs.mean()),
        horizon=horizon,
        deadline=draw(st.none() | st.floats(1, 100)),
    )
    by_context = draw(st.booleans())
    rows = tuple(tuple(draw(LAWS) for _ in range(n_arms)) for _ in range(n_contexts if by_context else 1))
    noise: Noise = draw(st.sampled_from(get_args(Noise)))
    means = rng.uniform(0.05, 0.95, (n_contexts, n_arms))
    return Scenario(
        name="random",
        problem=problem,
        delays=rows,
        shares=shares if learns_shares else None,
        noise=noise,
        noise_sd=draw(st.sampled_from([0.0, 0.1, 1.0])),
        availability=None
        if reserves
        else draw(st.none() | st.lists(st.floats(0, 1), min_size=n_arms, max_size=n_arms)),
        phases=draw(st.sampled_from([1, 1, 3])),
        # Bernoulli rewards need chances; otherwise rewards are linear, as the learner believes, or not.
        means=means if noise == "bernoulli" or draw(st.booleans()) else None,
    )


def _choices(option: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(OPTION_VALUES[option])


@st.composite
def policies(draw: st.DrawFn, scenario: Scenario) -> PolicyOptions:
    chosen = {option: draw(_choices(option)) for option in OPTION_NAMES if option not in ("accept", "min_answers")}
    chosen["accept"] = draw(st.none() | st.integers(1, scenario.problem.n_arms))
    chosen["min_answers"] = draw(st.sampled_from([1, 3, 8]))
    # outcomes that are told apart leave little else to choose
    chosen["outcome_split"] = draw(st.sampled_from([None, None, None, 0.5, 0.9]))
    return PolicyOptions(**completed({"name": "random", **chosen}, scenario.problem))


# The same examples in every run of the checks; others with `make torture`.
@settings(
    max_examples=80,
    derandomize="DORAL_TORTURE" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data(), seed=st.integers(0, MAX_SEED), run=st.integers(0, 1000))
def test_any_policy_on_any_problem(data: st.DataObject, seed: int, run: int) -> None:
    scenario = data.draw(scenarios())
    options = data.draw(policies(scenario))
    compare(options, scenario, seed=seed, run=run)
