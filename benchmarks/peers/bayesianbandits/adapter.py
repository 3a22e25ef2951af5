"""bayesianbandits: `ContextualAgent`, a Bayesian regression for each arm, which sets its own prior and noise.

Of who arrives: features of arms are unused, `ContextualAgent` has no place for them.
"""

from __future__ import annotations

import numpy as np
from bayesianbandits import (
    Arm,
    ContextualAgent,
    EmpiricalBayesNormalRegressor,
    ThompsonSampling,
    UpperConfidenceBound,
)
from plain import Plain

PEER, PACKAGE = "bayesianbandits", "bayesianbandits"


class Agent(Plain):
    """A Bayesian regression for each arm."""

    policy = None

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        arms = [Arm(arm, learner=EmpiricalBayesNormalRegressor()) for arm in range(problem.n_arms)]
        self._agent = ContextualAgent(arms, self.policy(), random_seed=seed)

    def choose(self, arrival):
        ranked = self._agent.pull(arrival.x[None, :], top_k=self.problem.n_arms)[0]
        return next(arm for arm in ranked if arm in arrival.available)

    def learn(self, answer, worth):
        self._agent.select_for_update(answer.arm).update(answer.x[None, :], np.array([worth]))


class LinUCB(Agent):
    """`EmpiricalBayesNormalRegressor` for each arm and `UpperConfidenceBound`, with their defaults (quantile 0.68)."""

    policy = UpperConfidenceBound


class LinTS(Agent):
    """`EmpiricalBayesNormalRegressor` for each arm and `ThompsonSampling`, with their defaults."""

    policy = ThompsonSampling


POLICIES = {"LinUCB": LinUCB, "LinTS": LinTS}
SPEED = "LinUCB"
