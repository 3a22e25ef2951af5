"""coba: `LinUCBLearner` and `LinTSLearner`."""

from __future__ import annotations

import numpy as np
from coba.learners import LinTSLearner, LinUCBLearner
from plain import Plain

PEER, PACKAGE = "coba", "coba"


class Lin(Plain):
    """One linear model of arms and of who arrives."""

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        self._learner = self.make(seed=seed)
        has_features = problem.arm_features.shape[1] > 0
        self._actions = (problem.arm_features if has_features else np.eye(problem.n_arms)).tolist()
        self._probability = {}  # by round: with which this arm was chosen

    def choose(self, arrival):
        there = [self._actions[arm] for arm in arrival.available]
        action, self._probability[arrival.round] = self._learner.predict(arrival.x.tolist(), there)
        return arrival.available[there.index(action)]

    def learn(self, answer, worth):
        probability = self._probability.pop(answer.decided)
        self._learner.learn(answer.x.tolist(), self._actions[answer.arm], worth, probability)


class LinUCB(Lin):
    """`LinUCBLearner` with its defaults (alpha 1; features of arms, and their products with those of who arrives)."""

    make = LinUCBLearner


class LinTS(Lin):
    """`LinTSLearner` with its defaults (v 1; features of arms, and their products with those of who arrives)."""

    make = LinTSLearner


POLICIES = {"LinUCB": LinUCB, "LinTS": LinTS}
SPEED = "LinUCB"
