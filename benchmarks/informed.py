"""How much can be learned at all: what somebody earns who knows more of a scenario than any policy can.

    python benchmarks/informed.py [stress/rare ...] [--runs 20]

Known are the form of the means (a line in the features of the arms, or its exponential), the law that the parameters of
contexts were drawn from (their true mean and covariance), who arrives, how many answers come in time, and every answer
at once. What is left to be learned are the parameters themselves, by their posterior (with a Laplace approximation for
the exponential), and by Thompson sampling of several widths, width 0 being to do what seems best. The best of them is
no bound in the strict sense, but where it stays below a target, that target asks for more than there is to know.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.simulation.catalogue.lookup import named_scenario as scenario_of
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.truth import make_truth

WIDTHS = (0.0, 0.3, 0.5, 1.0)
ROUNDS_AT_ONCE = 100
NEWTON_STEPS = 8


class Known(NamedTuple):
    features: Floats  # (A, k)
    shares: Floats  # (J,)
    worth: Floats  # (J, A) of a decision, by what returns within the deadline
    returned: Floats  # (J, A) share of answers that do
    mean: Floats  # (k,) of the parameters of contexts
    covariance: Floats  # (k, k)
    oracle: float  # what can be earned
    is_exponential: bool


def known_of(scenario: Scenario) -> Known:
    """What is true, as far as it is told; of line and exponential, the one that fits the means."""
    means, features = np.array(scenario.means), scenario.problem.features
    truth = make_truth(scenario, seed=0, run=0)
    worth = truth.counted[0]
    for is_exponential in (False, True):
        target = np.log(means) if is_exponential else means
        parameters = np.linalg.lstsq(features, target.T, rcond=None)[0].T
        if np.allclose(parameters @ features.T, target, atol=1e-9):
            shares = scenario.problem.shares
            assert shares is not None
            covariance = np.cov(parameters.T) + 1e-9 * np.eye(features.shape[1])
            return Known(
                features=features,
                shares=shares,
                worth=worth,
                returned=worth / means,
                mean=parameters.mean(axis=0),
                covariance=covariance,
                oracle=truth.oracle,
                is_exponential=is_exponential,
            )
    raise SystemExit(f"{scenario.name}: means follow from the features neither as a line nor as its exponential")


def posterior(known: Known, trials: Floats, successes: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the parameters of one context."""
    features, precision = known.features, np.linalg.inv(known.covariance)
    if not known.is_exponential:
        rate = float((known.worth / known.returned).mean())
        noise = rate * (1.0 - rate)
        whole = (features.T * (trials / noise)) @ features + precision
        inverse = np.asarray(np.linalg.inv(whole))
        return inverse @ (features.T @ (successes / noise) + precision @ known.mean), inverse
    theta = start
    for _ in range(NEWTON_STEPS):
        expected = trials * np.minimum(np.exp(features @ theta), 0.9)
        whole = (features.T * expected) @ features + precision
        step = np.linalg.solve(whole, features.T @ (successes - expected) - precision @ (theta - known.mean))
        theta = theta + step * min(1.0, 1.0 / max(float(np.abs(features @ step).max()), 1e-12))
    return theta, np.linalg.inv(whole)


def play(scenario: Scenario, known: Known, *, width: float, run: int) -> float:
    """What is earned in expectation, of what the oracle earns."""
    problem, rng = scenario.problem, np.random.default_rng(run)
    n_contexts, n_arms = known.worth.shape
    trials, successes = np.zeros((n_contexts, n_arms)), np.zeros((n_contexts, n_arms))
    theta, covariance = np.tile(known.mean, (n_contexts, 1)), np.tile(known.covariance, (n_contexts, 1, 1))
    earned, left = 0.0, problem.budget
    for start in range(0, problem.horizon, ROUNDS_AT_ONCE):
        roots = np.linalg.cholesky(covariance + 1e-12 * np.eye(known.mean.size))
        drawn = theta + width * np.einsum("jkl,jl->jk", roots, rng.standard_normal(theta.shape))
        values = drawn @ known.features.T
        values = known.returned * (np.exp(values) if known.is_exponential else values)
        best, rate = values.argmax(axis=1), left / (problem.horizon - start)
        chance = np.zeros(n_contexts)
        for j in np.argsort(-values.max(axis=1)):
            chance[j] = min(1.0, rate / known.shares[j])
            rate -= chance[j] * known.shares[j]
        for j in rng.choice(n_contexts, size=min(ROUNDS_AT_ONCE, problem.horizon - start), p=known.shares):
            if left >= 1.0 and rng.random() < chance[j]:
                left -= 1.0
                earned += known.worth[j, best[j]]
                trials[j, best[j]] += known.returned[j, best[j]]
                successes[j, best[j]] += rng.random() < known.worth[j, best[j]]
        for j in range(n_contexts):
            theta[j], covariance[j] = posterior(known, trials[j], successes[j], theta[j])
    return earned / known.oracle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="*", default=["stress/rare", "stress/silent"])
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    for name in arguments.scenario:
        scenario = scenario_of(name)
        problem = scenario.problem
        if scenario.noise != "bernoulli" or scenario.means is None or not (problem.costs == 1.0).all():
            raise SystemExit(f"{name}: told only for conversions of given means, at a cost of 1")
        known = known_of(scenario)
        for width in WIDTHS:
            shares = 100 * np.array([play(scenario, known, width=width, run=run) for run in range(arguments.runs)])
            error = 1.96 * shares.std(ddof=1) / np.sqrt(arguments.runs)
            print(f"{name:20} width {width:3.1f}  {shares.mean():5.1f} +- {error:3.1f} % of the oracle", flush=True)


if __name__ == "__main__":
    main()
