"""Open Bandit Pipeline: `obp.policy.LinUCB` and `obp.policy.LinTS`.

It is made to evaluate policies from logs; these are the linear ones that it has to be played online. Python 3.11 gets
0.4.1: later versions refuse it, and differ in these policies by the checks of their arguments only. `obp.policy` cannot
be imported without torch, which these policies do not use. A model of who arrives for each arm: features of arms are
unused, it has no place for them.
"""

from __future__ import annotations

from obp import policy
from plain import Plain, shuffled

PEER, PACKAGE = "Open Bandit Pipeline", "obp"


class Lin(Plain):
    """A ridge regression for each arm."""

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        arms = problem.n_arms  # a list of all of them, best first: some may not be there
        self._policy = self.make(dim=problem.n_x, n_actions=arms, len_list=arms, random_state=seed % 2**31)
        self._number, self._arm = shuffled(arms, seed)

    def choose(self, arrival):
        ranked = self._policy.select_action(arrival.x[None, :])
        return next(arm for arm in map(self._arm.__getitem__, ranked) if arm in arrival.available)

    def learn(self, answer, worth):
        self._policy.update_params(self._number[answer.arm], worth, answer.x[None, :])


class LinUCB(Lin):
    """`obp.policy.LinUCB` with epsilon 1 (its default, 0, explores nothing), an answer at a time."""

    def make(self, **known):
        return policy.LinUCB(epsilon=1.0, **known)


class LinTS(Lin):
    """`obp.policy.LinTS`, which has nothing to set, an answer at a time."""

    def make(self, **known):
        return policy.LinTS(**known)


POLICIES = {"LinUCB": LinUCB, "LinTS": LinTS}
SPEED = "LinUCB"
