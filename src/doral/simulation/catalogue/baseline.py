"""Scenarios in which doing nothing is an answer: arms that do harm, and people who would have come anyway."""

from __future__ import annotations

from typing import Any

import numpy as np

from doral.delays import Geometric
from doral.problem import Arm, Context, Problem
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.sums import product

HORIZON, DEADLINE_ROUNDS = 20_000, 500
N_ARMS, N_CONTEXTS, N_FEATURES = 8, 6, 4
DELAYS = tuple(Geometric(float(mean)) for mean in np.linspace(40, 320, N_ARMS))


def _numbers() -> tuple[Any, Any]:
    """Of arms and of contexts: fixed, spread over (0, 1)."""
    numbers = np.modf(np.outer(np.arange(1, N_ARMS + N_CONTEXTS + 1), np.sqrt([2.0, 3.0, 5.0, 7.0])))[0]
    return numbers[:N_ARMS], numbers[N_ARMS:]


def _problem(features: Any, **changes: Any) -> Problem:
    return Problem(
        arms=[Arm(f"arm-{number}", features=row) for number, row in enumerate(features.tolist(), start=1)],
        contexts=[Context(f"context-{number}", 1.0 / N_CONTEXTS) for number in range(1, N_CONTEXTS + 1)],
        horizon=HORIZON,
        deadline=DEADLINE_ROUNDS,
        **changes,
    )


def _harm() -> Scenario:
    """Half of the arms do harm; in two contexts it is the other half."""
    arms, contexts = _numbers()
    arms[N_ARMS // 2 :] *= -1.0
    theta = 0.4 * contexts
    theta[-2:] *= -1.0
    problem = _problem(arms, budget=10_000)
    return Scenario(name="stress/harm", problem=problem, delays=DELAYS, theta=theta, noise_sd=0.5)


def only_harm(*, budget: float = 10_000, size: float = 0.4, noise_sd: float = 0.5) -> Scenario:
    """Every arm does harm, everywhere: nothing is worth its cost."""
    arms, contexts = _numbers()
    problem = _problem(arms, budget=budget)
    return Scenario(name="only-harm", problem=problem, delays=DELAYS, theta=-size * contexts, noise_sd=noise_sd)


def _control() -> Scenario:
    """Rates of success of 10 to 60%, and of the same size without any arm; in every other context more than with the
    best of them, where rates are highest: whoever counts successes serves those who need nothing.
    """
    arms, contexts = _numbers()
    features = np.column_stack([np.ones(N_ARMS), arms])
    rates = 0.1 + 0.6 * product(contexts, arms.T) / N_FEATURES
    rates[1::2] += 0.15
    nothing = np.where(np.arange(N_CONTEXTS) % 2 == 1, rates.max(axis=1) + 0.03, rates.min(axis=1) - 0.02)
    return Scenario(
        name="stress/control",
        problem=_problem(features, budget=5_000, baseline="observed"),
        delays=(*DELAYS, Geometric(150)),
        means=rates,
        baseline_means=nothing,
        noise="bernoulli",
    )


SCENARIOS = {scenario.name: scenario for scenario in (_control(), _harm())}
