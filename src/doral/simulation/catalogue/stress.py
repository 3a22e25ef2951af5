"""Scenarios that each make one thing hard, and problems as they occur. Their numbers are fixed here.

They were made for no policy: spread over their ranges by fractions of square roots. Theta and features are drawn for
every run, unless means are given.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from doral._arrays import Floats
from doral.delays import AnyLaw, ByOutcome, Geometric, Never, Pareto
from doral.numerics.elementary import power, product
from doral.problem import Arm, Context, Problem
from doral.simulation.catalogue.paper import (
    DEADLINE_ROUNDS,
    DIVERSE_PARETO,
    DIVERSE_PARETO_MINIMA,
    N_FEATURES,
    SHARES,
    drawn_arms,
    numbered_arms,
    numbered_contexts,
    spread,
)
from doral.simulation.scenario.arrivals import Arrivals, Bursts
from doral.simulation.scenario.scenario import Scenario

HORIZON = 60_000
BUDGET = 30_000
N_ARMS = 10

COSTS = (0.5, 0.8, 1.0, 1.0, 1.5, 1.5, 2.0, 2.0, 2.5, 3.0)
NEVER_SHARES = tuple(float(share) for share in np.linspace(0.0, 0.6, N_ARMS))  # 30% on average
HEAVY_SHAPE = 1.1


def _problem(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "arms": drawn_arms((1.0,) * N_ARMS),
        "contexts": numbered_contexts(),
        "budget": BUDGET,
        "horizon": HORIZON,
        "deadline": DEADLINE_ROUNDS,
    }
    return Problem(**(given | changes))


def _scenario(name: str, problem: Problem, delays: Any, **changes: Any) -> Scenario:
    """Return a scenario whose features are drawn for every run, unless its means are given."""
    features = "given" if "means" in changes else "drawn"
    return Scenario(name=f"stress/{name}", problem=problem, delays=delays, **({"features": features} | changes))


def _context_delays() -> dict[str, list[AnyLaw]]:
    """The arms that answer half of the contexts at once keep the other half waiting, and the other way round."""
    quick, slow = Geometric(60), Geometric(900)
    return {
        context.name: [quick if (number + arm) % 2 == 0 else slow for arm in range(N_ARMS)]
        for number, context in enumerate(numbered_contexts())
    }


def _urgent() -> Problem:
    """Every fifth arrival is urgent, every third pressing: worth more, due sooner, with money kept for them."""
    contexts = [
        Context("urgent-1", 0.08, weight=3, deadline=250, tier=2),
        Context("urgent-2", 0.12, weight=3, deadline=250, tier=2),
        *(Context(f"pressing-{number}", 0.1, weight=1.5, tier=1) for number in range(1, 4)),
        *(Context(f"ordinary-{number}", 0.1) for number in range(1, 6)),
    ]
    return _problem(contexts=contexts, reserves={2: 0.15, 1: 0.1})


def _rate_parameters() -> tuple[Any, Any]:
    """Features and thetas whose products, over the number of features, are rates: linear, as the learner believes."""
    numbers = spread(1, 2 * N_ARMS, N_FEATURES)
    return numbers[:N_ARMS], numbers[N_ARMS:]


def _described(features: Floats) -> list[Arm]:
    """Return arms with one more feature, always 1, since rates do not start at 0."""
    return numbered_arms(np.column_stack([np.ones(N_ARMS), features]))


def _silent() -> Scenario:
    """Conversion rates between 1% and 12%."""
    features, theta = _rate_parameters()
    problem = _problem(arms=_described(features), feedback="silent")
    means = (0.01 + 0.11 * product(theta, features.T) / N_FEATURES).tolist()
    return _scenario("silent", problem, DIVERSE_PARETO, means=means, noise="bernoulli")


def _positives_first() -> Scenario:
    """A positive answer is passed on at once, a negative one late."""
    features, theta = _rate_parameters()
    problem = _problem(arms=_described(features), horizon=30_000, budget=15_000, deadline=3_000)
    law = ByOutcome(above=Geometric(150), below=Geometric(3_000), threshold=0.5)
    means = (0.1 + 0.8 * product(theta, features.T) / N_FEATURES).tolist()
    return _scenario("positives-first", problem, law, means=means, noise="bernoulli")


def many_arms(n_arms: int = 1_000) -> Scenario:
    """Far more arms than can be tried in every context; only features tell about most of them."""
    delays = [Geometric(float(mean)) for mean in np.linspace(50, 400, n_arms)]
    return _scenario("many-arms", _problem(arms=drawn_arms((1.0,) * n_arms), horizon=20_000, budget=10_000), delays)


def _between(low: float, high: float, scores: Floats) -> list[list[float]]:
    """Scores as rates: the smallest is `low`, the largest `high`, and equal steps are equal factors."""
    share = (scores - scores.min()) / (scores.max() - scores.min())
    rates: list[list[float]] = (low * power(high / low, share)).tolist()
    return rates


def _with_constant(features: Floats) -> Floats:
    return np.column_stack([np.ones(len(features)), features])


def _silent_slow() -> Scenario:
    """Conversions of 2 to 15% that come from the first days on, and a deadline of a sixth of the horizon."""
    features, tastes = spread(1, 8, 4), spread(31, 6, 4)
    problem = Problem(
        arms=numbered_arms(_with_constant(features)),
        contexts=numbered_contexts((0.1, 0.15, 0.15, 0.2, 0.2, 0.2)),
        budget=15_000,
        horizon=30_000,
        deadline=5_000,
        feedback="silent",
    )
    laws: list[AnyLaw] = [Geometric(mean) for mean in (600, 800, 1_000, 1_200, 1_500, 1_800, 2_400, 3_000)]
    means = _between(0.02, 0.15, product(tastes - 0.5, features.T))
    return _scenario("silent-slow", problem, laws, means=means, noise="bernoulli")


def _dear_is_right() -> Scenario:
    """Per unit of cost the dearest arm earns most in three of four contexts, and the cheapest in the last."""
    costs = (1.0, 1.0, 1.5, 2.0, 3.0, 4.0)
    per_cost = 0.1 + 0.08 * spread(11, 4, 6)
    per_cost[:3, 5] = (0.24, 0.22, 0.2)
    per_cost[3, 0] = 0.22
    problem = Problem(
        arms=numbered_arms(np.eye(6), costs),
        contexts=numbered_contexts((0.3, 0.3, 0.2, 0.2)),
        budget=2_500,
        horizon=5_000,
        deadline=400,
    )
    laws: list[AnyLaw] = [Geometric(mean) for mean in (60, 90, 120, 150, 180, 210)]
    return _scenario("dear-is-right", problem, laws, means=(per_cost * np.array(costs)).tolist(), noise_sd=0.3)


def _tiny() -> Scenario:
    """Eight hundred arrivals, four arms of which each is the best somewhere or nearly so."""
    problem = Problem(
        arms=numbered_arms(np.eye(4)), contexts=numbered_contexts((0.5, 0.3, 0.2)), budget=400, horizon=800, deadline=60
    )
    means = [[0.15, 0.45, 0.3, 0.25], [0.4, 0.2, 0.1, 0.35], [0.3, 0.25, 0.5, 0.1]]
    laws: list[AnyLaw] = [Geometric(mean) for mean in (10, 20, 30, 40)]
    return _scenario("tiny", problem, laws, means=means, noise="bernoulli")


def _wrong_features() -> Scenario:
    """Five features for each arm, none of which has to do with what it brings."""
    problem = Problem(
        arms=numbered_arms(spread(1, 8, 5)),
        contexts=numbered_contexts((0.1, 0.15, 0.15, 0.2, 0.2, 0.2)),
        budget=10_000,
        horizon=20_000,
        deadline=DEADLINE_ROUNDS,
    )
    means = 0.1 + 0.6 * spread(101, 6, 8)
    laws: list[AnyLaw] = [Pareto(minimum, 2) for minimum in DIVERSE_PARETO_MINIMA[:8]]
    return _scenario("wrong-features", problem, laws, means=means.tolist(), noise="bernoulli")


def _no_features() -> Scenario:
    """Arms without features: contexts differ most, arms less, and a little is special to both together."""
    arms = [Arm(f"arm-{number}") for number in range(1, 7)]
    problem = Problem(arms=arms, contexts=numbered_contexts(), budget=4_000, horizon=10_000, deadline=DEADLINE_ROUNDS)
    scores = 1.5 * spread(41, 10, 1) + spread(61, 6, 1).T + 0.7 * spread(71, 10, 6)
    laws: list[AnyLaw] = [Geometric(mean) for mean in (40, 70, 100, 130, 160, 190)]
    return _scenario("no-features", problem, laws, means=_between(0.05, 0.5, scores), noise="bernoulli")


def _rare() -> Scenario:
    """Conversions of 1 to 4%: no news and no conversion look the same."""
    features, tastes = spread(1, 10, 5), spread(21, 10, 5)
    problem = Problem(
        arms=numbered_arms(_with_constant(features)),
        contexts=numbered_contexts(),
        budget=30_000,
        horizon=60_000,
        deadline=DEADLINE_ROUNDS,
        feedback="silent",
    )
    laws: list[AnyLaw] = [Pareto(minimum / 2, 2) for minimum in DIVERSE_PARETO_MINIMA]
    means = _between(0.01, 0.04, product(tastes - 0.5, features.T))
    return _scenario("rare", problem, laws, means=means, noise="bernoulli")


UPLIFT_ARMS, UPLIFT_CONTEXTS = 8, 6
_UPLIFT_DELAYS = tuple(Geometric(float(mean)) for mean in np.linspace(40, 320, UPLIFT_ARMS))


_uplift_numbers = spread(1, UPLIFT_ARMS + UPLIFT_CONTEXTS, 4)


def _uplift_problem(features: Any, **changes: Any) -> Problem:
    return Problem(
        arms=numbered_arms(features),
        contexts=numbered_contexts([1.0 / UPLIFT_CONTEXTS] * UPLIFT_CONTEXTS),
        horizon=20_000,
        deadline=500,
        **changes,
    )


def _harm() -> Scenario:
    """Half of the arms do harm; in two contexts it is the other half."""
    arms, contexts = _uplift_numbers[:UPLIFT_ARMS].copy(), _uplift_numbers[UPLIFT_ARMS:]
    arms[UPLIFT_ARMS // 2 :] *= -1.0
    theta = 0.4 * contexts
    theta[-2:] *= -1.0
    problem = _uplift_problem(arms, budget=10_000)
    return Scenario(name="stress/harm", problem=problem, delays=_UPLIFT_DELAYS, theta=theta, noise_sd=0.5)


def only_harm(*, budget: float = 10_000, size: float = 0.4, noise_sd: float = 0.5) -> Scenario:
    """Every arm does harm, everywhere: nothing is worth its cost."""
    arms, contexts = _uplift_numbers[:UPLIFT_ARMS].copy(), _uplift_numbers[UPLIFT_ARMS:]
    problem = _uplift_problem(arms, budget=budget)
    return Scenario(name="only-harm", problem=problem, delays=_UPLIFT_DELAYS, theta=-size * contexts, noise_sd=noise_sd)


def _control() -> Scenario:
    """Rates of success of 10 to 60%, and of the same size without any arm; in every other context more than with the
    best of them, where rates are highest: counting successes serves those who need nothing.
    """
    arms, contexts = _uplift_numbers[:UPLIFT_ARMS].copy(), _uplift_numbers[UPLIFT_ARMS:]
    features = np.column_stack([np.ones(UPLIFT_ARMS), arms])
    rates = 0.1 + 0.6 * product(contexts, arms.T) / 4
    rates[1::2] += 0.15
    nothing = np.where(np.arange(UPLIFT_CONTEXTS) % 2 == 1, rates.max(axis=1) + 0.03, rates.min(axis=1) - 0.02)
    return Scenario(
        name="stress/control",
        problem=_uplift_problem(features, budget=5_000, baseline="observed"),
        delays=(*_UPLIFT_DELAYS, Geometric(150)),
        means=rates,
        baseline_means=nothing,
        noise="bernoulli",
    )


LIST_PRICES = (4.0, 6.0, 10.0, 15.0, 25.0)
MEAN_DELAYS = (150.0, 250.0, 200.0, 350.0, 300.0)


def _take_up() -> list[list[float]]:
    """Rates between 2% and 22%: dearer offers are taken up more often, though not in proportion, nor everywhere."""
    numbers = spread(1, len(SHARES), 5)
    appeal = 0.2 + 0.4 * np.sqrt(np.array(LIST_PRICES) / max(LIST_PRICES))
    rates: list[list[float]] = (0.02 + 0.2 * appeal * (0.3 + 1.4 * numbers) / 1.02).round(4).tolist()
    return rates


def pay_on_success(reserve: float = 1.0) -> Scenario:
    """A bonus that is paid when it is claimed. What open offers would cost at most ties up much of the budget."""
    arms = [
        Arm(f"offer-{price:g}", features=row, cost=price)
        for price, row in zip(LIST_PRICES, np.eye(len(LIST_PRICES)).tolist(), strict=True)  # rates follow no line
    ]
    problem = Problem(
        arms=arms,
        contexts=numbered_contexts(),
        budget=9_000,
        horizon=20_000,
        deadline=1_500,
        paid="on_answer",
        reserve=reserve,
    )
    return Scenario(
        name="stress/pay-on-success" if reserve == 1.0 else f"stress/pay-on-success@reserve={reserve:g}",
        problem=problem,
        delays=[Geometric(mean) for mean in MEAN_DELAYS],
        means=_take_up(),
        noise="bernoulli",
        paid="on_success",
    )


def silent(scenario: Scenario) -> Scenario:
    """Return the same scenario with silent feedback."""
    problem = dataclasses.replace(scenario.problem, feedback="silent")
    return dataclasses.replace(scenario, name=f"{scenario.name}@silent", problem=problem)


DAY = 1440.0  # minutes, as the deadline and the delays are
UNTIL = 56 * DAY
EXPECTED = 40_000
HOURS = (0.1,) * 6 + (0.5, 1.0, 1.5, 2.0, 2.0, 1.5) + (1.0, 1.5, 1.5, 1.5, 1.5, 2.0) + (2.5, 2.0, 1.5, 1.0, 0.5, 0.2)
WEEKDAYS = (1.3, 1.2, 1.1, 1.1, 1.2, 0.7, 0.4)


def until(times_expected: float = 2.0) -> Scenario:
    """So many times as many arrive as are expected, a tenth of them in bursts of half an hour."""
    problem = Problem(
        arms=drawn_arms([1.0] * len(DIVERSE_PARETO_MINIMA)),
        contexts=numbered_contexts(),
        budget=10_000,
        until=UNTIL,
        expected_arrivals=EXPECTED,
        deadline=DEADLINE_ROUNDS,
    )
    arrivals = Arrivals(
        number=times_expected * EXPECTED,
        day=DAY,
        hours=HOURS,
        weekdays=WEEKDAYS,
        bursts=Bursts(share=0.1, arrivals=50, length=30),
    )
    return Scenario(
        name="stress/until" if times_expected == 2.0 else f"stress/until@x{times_expected:g}",
        problem=problem,
        delays=DIVERSE_PARETO,
        features="drawn",
        arrivals=arrivals,
    )


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        _scenario(
            "never-30",
            _problem(),
            [Never(Geometric(mean), share) for mean, share in zip(range(100, 200, 10), NEVER_SHARES, strict=True)],
        ),
        _scenario("costs", _problem(arms=drawn_arms(COSTS)), DIVERSE_PARETO),
        _scenario("context-delays", _problem(), _context_delays()),
        _scenario("urgent", _urgent(), DIVERSE_PARETO),
        _silent(),
        _positives_first(),
        _scenario("drift", _problem(), DIVERSE_PARETO, phases=3),
        _scenario("short", _problem(horizon=5_000, budget=2_500), DIVERSE_PARETO),
        many_arms(),
        _scenario("heavy", _problem(), [Pareto(minimum / 4, HEAVY_SHAPE) for minimum in DIVERSE_PARETO_MINIMA]),
        _control(),
        _harm(),
        _silent_slow(),
        _dear_is_right(),
        _tiny(),
        _wrong_features(),
        _no_features(),
        _rare(),
        pay_on_success(),
        until(),
    )
}
