"""Scenarios in which a decision costs only where something comes of it."""

from __future__ import annotations

import dataclasses

import numpy as np

from doral.delays import Geometric
from doral.problem import Arm, Context, Problem
from doral.simulation.catalogue.paper import SHARES
from doral.simulation.scenario.scenario import Scenario

HORIZON, BUDGET, DEADLINE_ROUNDS = 20_000, 9_000, 1_500
LIST_PRICES = (4.0, 6.0, 10.0, 15.0, 25.0)
MEAN_DELAYS = (150.0, 250.0, 200.0, 350.0, 300.0)


def _take_up() -> list[list[float]]:
    """Rates between 2% and 22%: dearer offers are taken up more often, though not in proportion, nor everywhere."""
    numbers = np.modf(np.outer(np.arange(1, len(SHARES) + 1), np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0])))[0]
    appeal = 0.2 + 0.4 * np.sqrt(np.array(LIST_PRICES) / max(LIST_PRICES))
    rates: list[list[float]] = (0.02 + 0.2 * appeal * (0.3 + 1.4 * numbers) / 1.02).round(4).tolist()
    return rates


def _features() -> list[list[float]]:
    """Which offer it is: rates follow no line."""
    rows: list[list[float]] = np.eye(len(LIST_PRICES)).tolist()
    return rows


def pay_on_success(reserve: float = 1.0) -> Scenario:
    """A bonus that is paid when it is claimed. What open offers would cost at most ties up much of the budget."""
    arms = [
        Arm(f"offer-{price:g}", features=row, cost=price) for price, row in zip(LIST_PRICES, _features(), strict=True)
    ]
    contexts = [Context(f"context-{number}", share) for number, share in enumerate(SHARES, start=1)]
    problem = Problem(
        arms=arms,
        contexts=contexts,
        budget=BUDGET,
        horizon=HORIZON,
        deadline=DEADLINE_ROUNDS,
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
    """The same where nobody says no."""
    problem = dataclasses.replace(scenario.problem, feedback="silent")
    return dataclasses.replace(scenario, name=f"{scenario.name}@silent", problem=problem)


SCENARIOS = {scenario.name: scenario for scenario in (pay_on_success(),)}
