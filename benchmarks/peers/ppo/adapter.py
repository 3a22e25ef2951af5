"""Stable-Baselines3: PPO with masked actions (sb3-contrib), trained in DORAL's environments on other tapes.

`train.py` has made the networks; here they are only asked. What they see is what the environment shows
(`src/doral/gym/observation.py`), computed from what a player is told.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

PEER, PACKAGE = "Stable-Baselines3", "sb3_contrib"
FEW_PLAYS = 10.0
PLAYS, HEARD, REWARD, DELAY, SETTLED, WORTH = range(6)  # what is kept of a cell


def _squashed(x):
    return x / (1.0 + np.abs(x))


def _ratio(total, n):
    return np.divide(total, n, out=np.zeros_like(total), where=n > 0.0)


class Ppo:
    """A network, trained beforehand, scores every arm by what has come of it."""

    WAYS = ("own",)
    trained = ""

    def __init__(self, problem, seed, way):
        self._problem, self._rng = problem, np.random.default_rng(seed)
        self._net = dict(np.load(Path(__file__).parent / self.trained))
        self._cells = np.zeros((6, problem.n_contexts, problem.n_arms))
        self._came = np.zeros(problem.n_contexts)
        self._best = np.full(problem.n_contexts, -math.inf)
        self._longest = float(problem.deadlines.max())
        self._open, self._first, self._number = [], 0, {}  # decisions in order: [time, context, arm, worth]
        self._silent = problem.feedback == "silent"
        costs = problem.costs
        self._dearest, self._usual = costs.max(), costs[costs > 0.0].mean()
        self._skipped = problem.control

    def decide(self, arrival):
        self._settle(arrival.time)
        self._came[arrival.context] += 1.0
        seen = self._seen(arrival)
        scores = self._scores(seen)
        allowed = np.full(scores.size, -math.inf)
        allowed[[*arrival.available, scores.size - 1]] = 0.0
        choice = int((scores + allowed + self._rng.gumbel(size=scores.size)).argmax())  # drawn, as in training
        arm = None if choice == scores.size - 1 else choice
        done = self._skipped if arm is None else arm
        if done is not None:
            self._cells[PLAYS, arrival.context, done] += 1.0
            self._number[arrival.round] = len(self._open)
            self._open.append([arrival.time, arrival.context, done, 0.0])
        return arm

    def observe(self, answer):
        cell = self._cells[:, answer.context, answer.arm]
        cell[[HEARD, REWARD, DELAY]] += (1.0, answer.reward, answer.delay)
        worth = answer.reward * self._problem.weights[answer.context] if answer.is_in_time else 0.0
        if self._longest == math.inf:
            self._settle_one(answer.context, answer.arm, worth)
        else:
            self._open[self._number.pop(answer.decided)][3] = worth

    def _settle(self, time):
        """Decisions that are older than the longest deadline."""
        while self._first < len(self._open) and time - self._open[self._first][0] > self._longest:
            _, context, arm, worth = self._open[self._first]
            self._settle_one(context, arm, worth)
            self._first += 1

    def _settle_one(self, context, arm, worth):
        self._cells[[SETTLED, WORTH], context, arm] += (1.0, worth)
        settled, total = self._cells[SETTLED, context], self._cells[WORTH, context]
        self._best[context] = (total[settled > 0.0] / settled[settled > 0.0]).max()

    def _seen(self, arrival):
        """(A, 16) the inputs of the network."""
        problem, context = self._problem, arrival.context
        here, arms = self._cells[:, context], self._cells.sum(axis=1)
        longest = self._longest if self._longest < math.inf else float(problem.expected_rounds)
        can = np.zeros(problem.n_arms)
        can[list(arrival.available)] = 1.0
        by_arm = (
            can,
            np.asarray(arrival.costs) / self._dearest,
            here[PLAYS] / (here[PLAYS] + FEW_PLAYS),
            _ratio(here[HEARD], here[PLAYS]),
            _squashed(_ratio(here[REWARD], here[HEARD])),
            _squashed(_ratio(here[WORTH], here[SETTLED])),
            arms[PLAYS] / (arms[PLAYS] + FEW_PLAYS * problem.n_contexts),
            _ratio(arms[HEARD], arms[PLAYS]),
            _squashed(_ratio(arms[REWARD], arms[HEARD])),
            _squashed(_ratio(arms[WORTH], arms[SETTLED])),
            _squashed(_ratio(arms[DELAY], arms[HEARD]) / longest),
        )
        inputs = np.empty((problem.n_arms, 16), dtype=np.float32)
        inputs[:, :11] = np.column_stack(by_arm)
        inputs[:, 11:] = (*self._left(arrival), *self._rank(context))
        return inputs

    def _left(self, arrival):
        problem, ends = self._problem, arrival.until < math.inf
        expected = problem.expected_rounds
        left = max(0.0, 1.0 - arrival.time / arrival.until) if ends else 1.0 - (arrival.round - 1.0) / expected
        pace = arrival.round / max(arrival.time, arrival.until / expected) * arrival.until if ends else expected
        served = max(0.0, arrival.budget_left) / (self._usual * max(1.0, pace * left))
        return min(1.0, max(0.0, arrival.budget_left / problem.budget)), left, _squashed(served)

    def _rank(self, context):
        n_came = self._came.sum()
        mine = self._best[context]
        return self._came[self._best > mine].sum() / n_came, self._came[self._best >= mine].sum() / n_came

    def _scores(self, inputs):
        """The network, layer by layer."""
        net = self._net
        inputs = (inputs - net["shift"]) / net["scale"]
        hidden = np.tanh(
            np.tanh(inputs @ net["arms.0.weight"].T + net["arms.0.bias"]) @ net["arms.2.weight"].T + net["arms.2.bias"]
        )
        pooled = np.concatenate([hidden.mean(axis=0), hidden.max(axis=0), inputs[0, 11:]])
        common = np.tanh(net["all.0.weight"] @ pooled + net["all.0.bias"])
        arms = hidden @ net["arm.weight"][0] + net["arm.bias"]
        return np.append(arms, net["skip.weight"] @ common + net["skip.bias"])


class Returned(Ppo):
    """PPO with masked actions, trained beforehand on other tapes of the paper's four, rewarded as answers return."""

    trained = "returned.npz"


class AtDecision(Ppo):
    """PPO with masked actions, trained beforehand on other tapes of the paper's four, rewarded at each decision."""

    trained = "at_decision.npz"


POLICIES = {"PPO": AtDecision, "PPO, late rewards": Returned}
SPEED = None
