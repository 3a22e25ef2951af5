"""river: `bandit.LinUCBDisjoint`, a model of who arrives for each arm: features of arms are unused, it has no place for
them.
"""

from __future__ import annotations

from plain import Plain
from river import bandit

PEER, PACKAGE = "river", "river"


class LinUCB(Plain):
    """`bandit.LinUCBDisjoint` with its defaults: a Bayesian linear regression for each arm, mean plus one deviation."""

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        self._policy = bandit.LinUCBDisjoint(seed=seed)

    def choose(self, arrival):
        return self._policy.pull(list(arrival.available), context=_named(arrival.x))

    def learn(self, answer, worth):
        self._policy.update(answer.arm, _named(answer.x), worth)


def _named(x):
    """river's features are dicts; what is 0 may be left out."""
    return {i: value for i, value in enumerate(x.tolist()) if value}


POLICIES = {"LinUCB": LinUCB}
SPEED = "LinUCB"
