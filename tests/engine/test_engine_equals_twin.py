"""The compiled engine and its naive twin make the same decisions, whatever is chosen."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable
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
from doral.engine.options import OPTION_NAMES, PRINTED_READINGS, PolicyOptions, option_words, policy_of
from doral.engine.setup import MAX_SEED
from doral.problem import Arm, Context, Problem
from doral.simulation.scenario.scenario import Noise, Scenario
from tests.engine.cases import (
    EVERY_VALUE,
    MIXED,
    OF_PEOPLE,
    OPTION_VALUES,
    QUICK_RACE,
    SILENT,
    SMALL_WORLDS,
    UNIT,
    URGENT,
    Case,
    baselines,
    by_date,
    by_end,
    changed,
    completed,
    distinct,
    explorers,
    learners,
    offers,
    option_values,
    outcomes_told_apart,
    presets,
    short_cutoffs,
    spread,
)
from tests.small_worlds import make_scenario
from tests.twin import Agreement, follow

IS_TORTURE = "DORAL_TORTURE" in os.environ
# Rounds that rounding may decide; more would mean that the comparison hides something.
NEAR_TIES_ALLOWED = 1
# The same while a first conversion is all that is known of the noise, and V all but singular.
ILL_CONDITIONED_ALLOWED = 16
# The same while all answers are alike (conversions whose silences nobody hears): arms differ by rounding and no more.
NOISELESS_ALLOWED = 30


def compare(options: PolicyOptions, scenario: Scenario, *, seed: int = 1, run: int = 0) -> Agreement:
    result = doral.simulate(options, scenario, runs=1, seed=seed, first_run=run, keep_decisions=True)
    agreement = follow(options, scenario, result.outcomes[0], seed=seed)
    assert agreement.near_ties <= NEAR_TIES_ALLOWED
    assert agreement.ill_conditioned <= ILL_CONDITIONED_ALLOWED
    assert agreement.noiseless <= NOISELESS_ALLOWED
    return agreement


def test_every_value_of_every_option_is_compared() -> None:
    assert set(OPTION_VALUES) | OF_PEOPLE == set(OPTION_NAMES)
    for option, words in option_words().items():
        assert option in OF_PEOPLE or set(OPTION_VALUES[option]) == set(words), option
    for option, value in EVERY_VALUE:
        for base in ("doral", "doral-otf"):
            options = changed(base, option, value, URGENT.problem)
            assert getattr(options, option) == value


def some(cases: Iterable[Case], n: int) -> list[Case]:
    """Return n of the cases, and with `make torture` all of them."""
    return list(cases) if IS_TORTURE else spread(cases, n)


ALL_WORLDS = len(SMALL_WORLDS)
CASES = distinct(
    [
        *presets(each=ALL_WORLDS if IS_TORTURE else 2),
        *option_values("doral", [UNIT, MIXED, URGENT, SILENT], each=ALL_WORLDS if IS_TORTURE else 1),
        *option_values("doral-otf", [URGENT, SILENT, UNIT, MIXED], each=ALL_WORLDS if IS_TORTURE else 1),
        *some(learners(), 9),
        *some(outcomes_told_apart(), 15),
        *some(short_cutoffs(), 8),
        *some(by_end(), 8),
        *some(baselines(), 21),
        *some(explorers(), 9),
        *some(offers(), 12),
        *some(by_date(), 12),
    ]
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_the_twin_wants_the_same(case: Case) -> None:
    agreement = compare(case.options, case.scenario)
    assert agreement.decisions > 0 or case.options.exploration == 0.0  # who never tries anything may never start


@pytest.mark.parametrize("name", ["d-linucb", "d-linucb/literal", "random", "d-lints"])
def test_without_a_deadline_every_answer_counts(name: str) -> None:
    """And the bonus has no term for a window that never ends."""
    assert np.isinf(MIXED.problem.deadlines).all()
    assert compare(policy_of(name, {}), MIXED).decisions > 100


def test_a_long_run() -> None:
    scenario = dataclasses.replace(UNIT, problem=dataclasses.replace(UNIT.problem, horizon=2500, budget=1400.0))
    agreement = compare(policy_of("doral", {}), scenario)
    assert agreement.decisions > 1300


def test_a_budget_that_runs_out_early_and_one_that_never_does() -> None:
    poor = dataclasses.replace(MIXED, problem=dataclasses.replace(MIXED.problem, budget=17.3))
    rich = dataclasses.replace(MIXED, problem=dataclasses.replace(MIXED.problem, budget=1e6))
    for name in ("doral", "doral/literal"):
        compare(policy_of(name, QUICK_RACE), poor)
        compare(policy_of(name, QUICK_RACE), rich)


def test_open_decisions_that_nobody_expected_to_be_answered() -> None:
    """Played because nothing else was there, with tau = 0: an answer after the deadline teaches like any other."""
    scenario = make_scenario(
        delays=(Fixed(50), Fixed(45), Geometric(4), Geometric(9), Geometric(6)),
        availability=(1.0, 1.0, 0.3, 0.3, 0.3),
        noise_sd=1.0,
    )
    changes: dict[str, Any] = {
        "curves_by": "arm",
        "until_end": False,
        "cutoff": 60.0,
        "exploration": 5.0,
    }
    for seed in range(3):
        compare(policy_of("doral-otf", {"pacing": "greedy", **changes}), scenario, seed=seed)


def test_certificates_where_the_price_counts() -> None:
    """Costs that differ, shares that are learned, and budget that is kept for some: a range of prices for each tier."""
    costs, means = (0.2, 1.0, 1.2, 2.0, 2.2), np.array([[0.3, 0.9, 0.1, 1.5, 0.2], [0.2, 0.4, 0.1, 1.0, 0.1]])
    contexts = (Context("now", tier=1), Context("later", weight=0.8), Context("some day", weight=0.5))
    for reserves in ((), ((1, 0.3),)):
        problem = dataclasses.replace(
            UNIT.problem,
            arms=tuple(Arm(f"a{i}", features=np.eye(5)[i].tolist(), cost=cost) for i, cost in enumerate(costs)),
            contexts=contexts if reserves else tuple(dataclasses.replace(one, tier=0) for one in contexts),
            reserves=reserves,
            horizon=900,
            budget=800.0,
        )
        scenario = dataclasses.replace(
            UNIT,
            problem=problem,
            delays=((Geometric(3), Geometric(4), Geometric(5), Geometric(6), Geometric(7)),),
            theta=None,
            means=means[[0, 1, 0]].tolist(),
            noise_sd=0.05,
            shares=(0.3, 0.4, 0.3),
        )
        options = policy_of("doral-otf", {"until_end": False})
        compare(options, scenario)
        found = doral.simulate(options, scenario, runs=1, seed=1).certificates()
        assert found.height > 3
        assert (found["price_low"] < found["price"]).all()
        assert (found["price"] < found["price_high"]).all()


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
        counted=draw(st.sampled_from(["within_deadline", "by_end"])),
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
        means=means if noise in ("bernoulli", "poisson") or draw(st.booleans()) else None,
    )


def _choices(option: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(OPTION_VALUES[option])


@st.composite
def policies(draw: st.DrawFn, scenario: Scenario) -> PolicyOptions:
    others = {"accept", "min_answers", "printed", "start_tries"} | OF_PEOPLE
    chosen = {option: draw(_choices(option)) for option in OPTION_NAMES if option not in others}
    chosen["accept"] = draw(st.none() | st.integers(1, scenario.problem.n_arms))
    chosen["min_answers"] = draw(st.sampled_from([1, 3, 8]))
    chosen["printed"] = draw(st.just([]) | st.lists(st.sampled_from(PRINTED_READINGS), unique=True))
    chosen["start_tries"] = draw(st.sampled_from([0, 0, 0, 9]))
    # outcomes that are told apart leave little else to choose
    chosen["outcome_split"] = draw(st.sampled_from([None, None, None, 0.5, 0.9]))
    return PolicyOptions(**completed({"name": "random", **chosen}, scenario.problem))


# The same examples in every run of the checks; others, and more, with `make torture`.
@settings(
    max_examples=int(os.environ.get("DORAL_TORTURE", "80")),
    derandomize=not IS_TORTURE,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data(), seed=st.integers(0, MAX_SEED), run=st.integers(0, 1000))
def test_any_policy_on_any_problem(data: st.DataObject, seed: int, run: int) -> None:
    scenario = data.draw(scenarios())
    options = data.draw(policies(scenario))
    compare(options, scenario, seed=seed, run=run)
