"""MABWiser: `LearningPolicy.LinUCB` and `LearningPolicy.LinTS`.

Its models are one for each arm, of who arrives: features of arms have no place in them. `Joint` gives it one arm, and
what is known of people and of arms in its features.
"""

from __future__ import annotations

import numpy as np
from mabwiser.mab import MAB, LearningPolicy
from plain import DoesNotApply, Plain, joint, shuffled

PEER, PACKAGE = "MABWiser", "mabwiser"


class Lin(Plain):
    """A ridge regression for each arm."""

    learning = None

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        self._mab = MAB(list(range(problem.n_arms)), self.learning, seed=seed % 2**31)
        self._is_fitted = False
        self._rng = np.random.default_rng(seed)
        self._order = shuffled(problem.n_arms, seed)[1]

    def choose(self, arrival):
        if not self._is_fitted:  # it predicts nothing before the first answer
            return int(self._rng.choice(arrival.available))
        scores = self.scores(arrival)
        arm = max((arm for arm in self._order if arm in arrival.available), key=scores.__getitem__)
        self.score = scores[arm]
        return arm

    def scores(self, arrival):
        """By arm."""
        return self._mab.predict_expectations([arrival.x])

    def learn(self, answer, worth):
        self.fit(answer.arm, worth, answer.x)

    def fit(self, arm, worth, x):
        fit = self._mab.partial_fit if self._is_fitted else self._mab.fit
        fit([arm], [worth], [x])
        self._is_fitted = True


class LinUCB(Lin):
    """`LearningPolicy.LinUCB` with its defaults (alpha 1), an answer at a time with `partial_fit`."""

    learning = LearningPolicy.LinUCB()


class LinTS(Lin):
    """`LearningPolicy.LinTS` with its defaults (alpha 1), an answer at a time with `partial_fit`."""

    learning = LearningPolicy.LinTS()


class Joint(Lin):
    """`LearningPolicy.LinUCB` with its defaults, one model of products of features of arms and of who arrives."""

    learning = LearningPolicy.LinUCB()

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        if not problem.arm_features.shape[1]:
            raise DoesNotApply("arms have no features")
        self._mab = MAB([0], self.learning, seed=seed % 2**31)

    def scores(self, arrival):
        rows = np.array([joint(self.problem, arrival.x, arm) for arm in arrival.available])
        told = self._mab.predict_expectations(rows)
        told = told if isinstance(told, list) else [told]  # of one row it tells no list
        return {arm: one[0] for arm, one in zip(arrival.available, told, strict=True)}

    def learn(self, answer, worth):
        self.fit(0, worth, joint(self.problem, answer.x, answer.arm))


POLICIES = {"LinUCB": LinUCB, "LinTS": LinTS, "LinUCB, joint": Joint}
SPEED = "LinUCB"
