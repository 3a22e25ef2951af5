"""contextualbandits: `online.LinUCB` and `online.LinTS`, a model of who arrives for each arm: features of arms are
unused, it has no place for them.
"""

from __future__ import annotations

import numpy as np
from contextualbandits.online import LinTS, LinUCB
from plain import Plain, shuffled

PEER, PACKAGE = "contextualbandits", "contextualbandits"


class Lin(Plain):
    """A ridge regression for each arm."""

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        self._policy = self.make(nchoices=problem.n_arms, random_state=seed % 2**31)
        self._is_fitted = False
        self._rng = np.random.default_rng(seed)
        self._order = shuffled(problem.n_arms, seed)[1]

    def choose(self, arrival):
        if not self._is_fitted:
            return int(self._rng.choice(arrival.available))
        scores = self._policy.decision_function(arrival.x[None, :])[0]
        arm = max((arm for arm in self._order if arm in arrival.available), key=scores.__getitem__)
        self.score = scores[arm]
        return arm

    def learn(self, answer, worth):
        self._policy.partial_fit(answer.x[None, :], np.array([answer.arm]), np.array([worth]))
        self._is_fitted = True


class Ucb(Lin):
    """`online.LinUCB` with its defaults (alpha 1, Sherman-Morrison), an answer at a time with `partial_fit`."""

    def make(self, **known):
        return LinUCB(**known)


class Ts(Lin):
    """`online.LinTS` with `sample_from="ci"`, an answer at a time: its default, "coef", draws coefficients with the
    inverse of their covariance for a covariance (version 0.3.30), so that it explores more the more it knows."""

    def make(self, **known):
        return LinTS(sample_from="ci", **known)


POLICIES = {"LinUCB": Ucb, "LinTS": Ts}
SPEED = "LinUCB"
