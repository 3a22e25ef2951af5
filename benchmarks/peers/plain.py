"""What a user writes around a library that knows nothing of budgets and late answers: small, and the same for all.

- The budget is kept in one of two plain ways: `spend` serves everybody until it is gone; `coin` serves an arrival with
  probability budget left / (rounds left x cost). Both are played, and the better one of a scenario is reported.
- A decision teaches the library once: its answer when it comes within the deadline, 0 when the deadline has passed
  without one (silence counts as 0, and so does an answer that is too late to count). Late answers are ignored.
- What is learned is what counts: reward x weight of the context, less what doing nothing is known to bring, or has
  brought in the same context so far, per unit of what the arm costs.
"""

from __future__ import annotations

import numpy as np

SPEND, COIN, OWN = "spend", "coin", "own"


class DoesNotApply(Exception):
    """The policy is not made for such a problem; says in a few words why."""


class Plain:
    """Subclasses have `choose(arrival)`, one of `arrival.available`, and `learn(answer, worth)`."""

    WAYS = (SPEND, COIN)

    def __init__(self, problem, seed, way):
        self.problem, self.seed, self.way = problem, seed, way
        self._coin = np.random.default_rng([seed, 1])
        self._mean_cost = [
            float(np.mean([row[arm] for arm in range(problem.n_arms) if arm != problem.control]))
            for row in problem.costs
        ]
        self._nothing = np.zeros((problem.n_contexts, 2))  # sum and number of what came without an arm

    def decide(self, arrival):
        if not arrival.available:
            return None
        if self.way == COIN:
            rate = arrival.budget_left / (arrival.rounds_left * self._mean_cost[arrival.context])
            if self._coin.random() >= rate:
                return None
        return self.choose(arrival)

    def observe(self, answer):
        if answer.is_in_time:
            self._settle(answer)

    def expire(self, answer):
        self._settle(answer)

    def _settle(self, answer):
        if answer.arm == self.problem.control:
            self._nothing[answer.context] += (answer.reward, 1.0)
            return
        self.learn(answer, self.worth(answer))

    def worth(self, answer):
        """What the answer is worth per unit of cost, beyond doing nothing."""
        problem, context = self.problem, answer.context
        without = 0.0
        if problem.baseline is not None:
            without = problem.baseline[context]
        elif problem.control is not None:
            total, number = self._nothing[context]
            without = total / number if number else 0.0
        return float(problem.weights[context] * (answer.reward - without) / problem.costs[context, answer.arm])

    def choose(self, arrival):
        raise NotImplementedError

    def learn(self, answer, worth):
        raise NotImplementedError


def joint(problem, x, arm):
    """What is known of somebody times what is known of an arm, for libraries with one model for all arms.

    Arms without features are told apart by their number.
    """
    features = problem.arm_features
    of_arm = features[arm] if features.shape[1] else np.eye(problem.n_arms)[arm]
    return np.outer(x, of_arm).ravel()
