"""Whether the log of a policy that explores tells what other policies would have brought.

    python benchmarks/propensity.py            a million arrivals for each policy, a minute or two

Each arrival says what was done and with which probability. From that alone, three policies that nobody has played are
valued by inverse propensities: always the same arm, an arm by context, and one that skips now and then. Their truth is
known here. A line is right if it lies in the interval; of 95% intervals of single runs, about 95 in 100 should be.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import doral
from doral._arrays import Floats
from doral.simulation.catalogue.lookup import named_scenario
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.truth import make_truth

POLICIES = ("doral-otf", "d-lints", "doral", "random")


def targets(n_contexts: int, n_arms: int) -> Iterator[tuple[str, Floats]]:
    """Fixed policies: (J, 1 + A) the probability to skip, and of each arm."""
    always, by_context, skipping = (np.zeros((n_contexts, 1 + n_arms)) for _ in range(3))
    always[:, 1 + 3 % n_arms] = 1.0
    for j in range(n_contexts):
        by_context[j, 1 + (2 * j + 1) % n_arms] = 1.0
        skipping[j, 0], skipping[j, 1 + (j + 5) % n_arms] = (0.3, 0.7) if j % 2 else (1.0, 0.0)
    yield "always one arm", always
    yield "an arm by context", by_context
    yield "skips now and then", skipping


def errors(outcome: Outcome, scenario: Scenario, target: Floats, seed: int) -> tuple[Floats, float]:
    """By arrival, what inverse propensities say less the truth; and the truth on average.

    Arrivals count while every arm can be paid: that is known before each of them is decided.
    """
    arrivals, log, problem = outcome.arrivals, outcome.log, scenario.problem
    assert arrivals is not None
    assert log is not None
    spent = np.concatenate([[0.0], np.cumsum(np.where(arrivals.arm >= 0, problem.costs[arrivals.arm], 0.0))[:-1]])
    n = int((spent <= problem.budget - problem.costs.max()).sum())
    rewards = np.zeros(arrivals.arm.size)
    rewards[arrivals.arm >= 0] = log.reward
    weight = target[arrivals.context, arrivals.arm + 1] / arrivals.probability
    means = make_truth(scenario, seed=seed, run=outcome.run).world.means[0]
    truth = (target[:, 1:] * means).sum(axis=1)[arrivals.context]
    return (weight * rewards - truth)[:n], float(truth[:n].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="stress/costs")
    parser.add_argument("--arrivals", type=int, default=1_000_000)
    parser.add_argument("--explore", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=11)
    chosen = parser.parse_args()
    scenario = named_scenario(chosen.scenario)
    problem = scenario.problem
    runs = -(-chosen.arrivals // problem.horizon)
    for name in POLICIES:
        policy = doral.policy(name, explore=chosen.explore)
        result = doral.simulate(policy, scenario, runs=runs, seed=chosen.seed, keep_decisions=True)
        probability = np.concatenate([one.arrivals.probability for one in result.outcomes if one.arrivals is not None])
        print(f"{policy.name}: {probability.size:,} arrivals, {(probability < 1.0).mean():.1%} of them not certain")
        for label, target in targets(problem.n_contexts, problem.n_arms):
            found = [errors(one, scenario, target, chosen.seed) for one in result.outcomes]
            off = np.concatenate([one for one, _ in found])
            truth = float(np.average([mean for _, mean in found], weights=[one.size for one, _ in found]))
            reach = 1.96 * float(np.sqrt((off**2).sum())) / off.size
            inside = sum(abs(float(one.sum())) <= 1.96 * float(np.sqrt((one**2).sum())) for one, _ in found)
            verdict = "in" if abs(float(off.mean())) <= reach else "OUT"
            print(
                f"  {label:<20} truth {truth:.4f}, said {truth + float(off.mean()):.4f} +- {reach:.4f} ({verdict}); "
                f"single runs {inside} of {runs} in"
            )


if __name__ == "__main__":
    main()
