"""contextualbandits: `online.LinUCB` and `online.LinTS`."""

from __future__ import annotations

import numpy as np
from contextualbandits.online import LinTS, LinUCB
from plain import Plain

PEER, PACKAGE = "contextualbandits", "contextualbandits"


class Lin(Plain):
    """A ridge regression for each arm."""

    online = None

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        self._policy = self.online(nchoices=problem.n_arms, random_state=seed % 2**31)
        self._is_fitted = False
        self._rng = np.random.default_rng(seed)

    def choose(self, arrival):
        if not self._is_fitted:
            return int(self._rng.choice(arrival.available))
        scores = self._policy.decision_function(arrival.x[None, :])[0]
        return max(arrival.available, key=scores.__getitem__)

    def learn(self, answer, worth):
        self._policy.partial_fit(answer.x[None, :], np.array([answer.arm]), np.array([worth]))
        self._is_fitted = True


class Ucb(Lin):
    """`online.LinUCB` with its defaults (alpha 1, Sherman-Morrison), an answer at a time with `partial_fit`."""

    online = LinUCB


class Ts(Lin):
    """`online.LinTS` with its defaults, an answer at a time with `partial_fit`."""

    online = LinTS


POLICIES = {"LinUCB": Ucb, "LinTS": Ts}
SPEED = "LinUCB"
