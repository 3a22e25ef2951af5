"""What a user writes around a library that knows nothing of budgets and late answers: small, and the same for all.

- The library chooses an arm; whether it is paid is decided in one of three plain ways. `spend` pays until the budget
  is gone. `coin` pays with probability rate = budget left / (rounds left x cost of the arm). `rank` pays the best:
  contexts by the mean of what was learned in them, from the best down until the rate is filled, by the shares in which
  they have come; people of one context by the library's own score of the arm, if it tells one, among the last 200
  scores, else as `coin`. All three are played on one more tape, which is not counted, and the best there on all that
  are.
- A decision teaches the library once: its answer when it comes within the deadline, 0 when the deadline has passed
  without one (silence counts as 0, and so does an answer that is too late to count). Late answers are ignored.
- What is learned is what counts: reward x weight of the context, less what doing nothing is known to bring, or has
  brought in the same context so far, per unit of what the arm costs.
"""

from __future__ import annotations

import collections
import math

import numpy as np

SPEND, COIN, RANK, OWN = "spend", "coin", "rank", "own"
LAST_SCORES = 200


class DoesNotApply(Exception):
    """The policy is not made for such a problem; says in a few words why."""


class Plain:
    """Subclasses have `choose(arrival)`, one of `arrival.available`, and `learn(answer, worth)`.

    `choose` may leave in `self.score` what the library thinks of the arm that it has chosen.
    """

    WAYS = (SPEND, COIN, RANK)

    def __init__(self, problem, seed, way):
        self.problem, self.seed, self.way, self.score = problem, seed, way, None
        self._coin = np.random.default_rng([seed, 1])
        paid = problem.costs[problem.costs > 0.0]
        # A free arm is worth as much as if it cost what the cheapest other one does: not infinitely much.
        self.costs = np.where(problem.costs > 0.0, problem.costs, paid.min() if paid.size else 1.0)
        self._bills = np.full(2, paid.mean() if paid.size else 1.0)  # paid and listed, of what is known by now
        self._nothing = np.zeros((problem.n_contexts, 2))  # sum and number of what came without an arm
        self._learned = np.zeros((problem.n_contexts, 2))  # sum and number of worths
        self._came = np.zeros(problem.n_contexts)
        self._scores = collections.deque(maxlen=LAST_SCORES)
        self._by_score = way == RANK and bool(problem.person) and problem.n_contexts == 1

    def decide(self, arrival):
        if not arrival.available:
            return None
        if self.way == SPEND:
            return self.choose(arrival)
        self._came[arrival.context] += 1.0
        drawn = self._coin.random()
        if not self._by_score or self.score is None:
            # Nobody is paid for whom the cheapest arm would be too dear: no need to ask the library.
            cheapest = min(arrival.available, key=arrival.costs.__getitem__)
            if drawn >= self._chance(arrival, cheapest):
                return None
        arm = self.choose(arrival)
        return arm if drawn < self._chance(arrival, arm) else None

    def _chance(self, arrival, arm):
        """With which an arrival is paid for."""
        rate = self.rate(arrival, arm)
        if self.way == COIN or (self._by_score and self.score is None):
            return rate
        if self._by_score:
            self._scores.append(self.score)
            values, mine, shares = np.array(self._scores), self.score, 1.0 / len(self._scores)
        else:
            values, shares = self.values(), self._came / self._came.sum()
            mine = values[arrival.context]
        before, tied = ((shares * is_so).sum() for is_so in (values > mine, values == mine))
        return (rate - before) / tied

    def rate(self, arrival, arm):
        """The share of those who are still to come that the budget pays the arm for."""
        cost = arrival.rounds_left * arrival.costs[arm] * self.paid_share()
        return arrival.budget_left / cost if cost > 0.0 else math.inf

    def paid_share(self):
        """Of list prices: less than 1 where only success is paid."""
        return self._bills[0] / self._bills[1]

    def values(self):
        """By context: the mean of what was learned, infinite where that is nothing."""
        total, number = self._learned.T
        return np.divide(total, number, out=np.full(total.size, math.inf), where=number > 0.0)

    def observe(self, answer):
        if answer.is_in_time:
            self._settle(answer)

    def expire(self, answer):
        self._settle(answer)

    def _settle(self, answer):
        if answer.arm == self.problem.control:
            self._nothing[answer.context] += (answer.reward, 1.0)
            return
        if self.problem.paid == "on_answer":
            self._bills += (answer.paid, self.problem.costs[answer.context, answer.arm])
        worth = self.worth(answer)
        if self.way == RANK:
            self._learned[answer.context] += (worth, 1.0)
        self.learn(answer, worth)

    def worth(self, answer):
        """What the answer is worth per unit of cost, beyond doing nothing."""
        problem, context = self.problem, answer.context
        without = 0.0
        if problem.baseline is not None:
            without = problem.baseline[context]
        elif problem.control is not None:
            total, number = self._nothing[context]
            without = total / number if number else 0.0
        return float(problem.weights[context] * (answer.reward - without) / self.costs[context, answer.arm])

    def choose(self, arrival):
        raise NotImplementedError

    def learn(self, answer, worth):
        raise NotImplementedError


def shuffled(n_arms, seed):
    """Another order of the arms, and the way back: many libraries break ties by number, and nobody should gain or lose
    by the order in which arms are listed."""
    number = np.random.default_rng([seed, 2]).permutation(n_arms)
    return number.tolist(), np.argsort(number).tolist()


def joint(problem, x, arm):
    """What is known of somebody times what is known of an arm, for libraries with one model for all arms.

    Arms without features are told apart by their number.
    """
    features = problem.arm_features
    of_arm = features[arm] if features.shape[1] else np.eye(problem.n_arms)[arm]
    return np.outer(x, of_arm).ravel()
