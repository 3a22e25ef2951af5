"""SMPyBandits knows no contexts: a bandit of its own for each context, and nothing where people have features."""

from __future__ import annotations

import contextlib
import sys

import numpy as np
from plain import DoesNotApply, Plain

with contextlib.redirect_stdout(sys.stderr):  # it prints what it misses
    from SMPyBandits import Policies
    from SMPyBandits.Policies.Posterior import Gauss

PEER, PACKAGE = "SMPyBandits", "SMPyBandits"


class ByContext(Plain):
    """A bandit for each context."""

    make = None

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        if problem.person:
            raise DoesNotApply("it knows no features")
        np.random.seed(seed % 2**32)  # noqa: NPY002  # the generator that it uses
        self._least, self._most = 0.0, 1.0  # it asks for bounds of what can be earned: its own, unless more was heard
        self._bandits = [self.make(problem.n_arms) for _ in range(problem.n_contexts)]
        self._heard = [[] for _ in self._bandits]
        for bandit in self._bandits:
            bandit.startGame()

    def choose(self, arrival):
        return int(self._bandits[arrival.context].choiceFromSubSet(np.array(arrival.available)))

    def learn(self, answer, worth):
        self._heard[answer.context].append((answer.arm, worth))
        if self._least <= worth <= self._most:
            self._bandits[answer.context].getReward(answer.arm, worth)
            return
        # It keeps sums of rewards between its bounds: with others, it has to hear everything again.
        self._least, self._most = min(worth, self._least), max(worth, self._most)
        for context, bandit in enumerate(self._bandits):
            bandit.lower, bandit.amplitude = self._least, self._most - self._least
            bandit.startGame()
            for arm, told in self._heard[context]:
                bandit.getReward(arm, told)


class KlUCB(ByContext):
    """`klUCB` for each context, with its defaults; bounds of rewards as heard so far."""

    make = Policies.klUCB


class Thompson(ByContext):
    """`Thompson` with Gaussian posteriors for each context; bounds of rewards as heard so far."""

    @staticmethod
    def make(arms):
        return Policies.Thompson(arms, posterior=Gauss)


POLICIES = {"kl-UCB": KlUCB, "Thompson": Thompson}
SPEED = None
