"""MABWiser: `LearningPolicy.LinUCB` and `LearningPolicy.LinTS`."""

from __future__ import annotations

import numpy as np
from mabwiser.mab import MAB, LearningPolicy
from plain import Plain

PEER, PACKAGE = "MABWiser", "mabwiser"


class Lin(Plain):
    """A ridge regression for each arm."""

    learning = None

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        self._mab = MAB(list(range(problem.n_arms)), self.learning, seed=seed % 2**31)
        self._is_fitted = False
        self._rng = np.random.default_rng(seed)

    def choose(self, arrival):
        if not self._is_fitted:  # it predicts nothing before the first answer
            return int(self._rng.choice(arrival.available))
        scores = self._mab.predict_expectations([arrival.x])
        return max(arrival.available, key=scores.__getitem__)

    def learn(self, answer, worth):
        fit = self._mab.partial_fit if self._is_fitted else self._mab.fit
        fit([answer.arm], [worth], [answer.x])
        self._is_fitted = True


class LinUCB(Lin):
    """`LearningPolicy.LinUCB` with its defaults (alpha 1), an answer at a time with `partial_fit`."""

    learning = LearningPolicy.LinUCB()


class LinTS(Lin):
    """`LearningPolicy.LinTS` with its defaults (alpha 1), an answer at a time with `partial_fit`."""

    learning = LearningPolicy.LinTS()


POLICIES = {"LinUCB": LinUCB, "LinTS": LinTS}
SPEED = "LinUCB"
