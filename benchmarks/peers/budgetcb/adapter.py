"""budgetcb (`budget-constrained-CB` on PyPI): `UcbAlp`, `HATCH` and `LinUCB`, which keep a budget by themselves.

Every arm takes one unit of it: it is told how many decisions the budget that is left pays at the mean cost of those so
far, and learns rewards per unit of cost. Not to serve is an arm of its own beside those that are learned. It takes
classes from people's features with a mixture of Gaussians: of the first who come, who are served at random, and whose
answers it learns when it has its classes.
"""

from __future__ import annotations

import numpy as np
from budgetcb import constrained_cb
from plain import COIN, OWN, Plain
from sklearn.mixture import GaussianMixture

PEER, PACKAGE = "budgetcb", "budget-constrained-CB"
FIRST_PEOPLE, CLASSES = 200, 5
LEAST_NEWS = 0.1  # HATCH fits everything anew: again when it has heard so much more, as a share


class Contexts:
    """Classes that are known: the library asks a clustering for them."""

    def __init__(self, problem):
        self.means_ = np.eye(problem.n_contexts)
        self.weights_ = np.full(problem.n_contexts, 1 / problem.n_contexts)
        if problem.shares is not None:
            self.weights_ = np.array(problem.shares)

    def predict(self, rows):
        return rows.argmax(axis=1)


class Constrained(Plain):
    """What the three have in common."""

    WAYS = (OWN,)

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, COIN)
        np.random.seed(seed % 2**32)  # noqa: NPY002  # the generator that it uses
        self._rng, self._first = np.random.default_rng(seed), []
        self._arms = [arm for arm in range(problem.n_arms) if arm != problem.control]
        self._listed, self._decisions = float(self.costs[:, self._arms].mean()), 1
        self._early = []  # answers to those who came first
        self._policy = None if problem.person else self._made(Contexts(problem))

    def _made(self, classes):
        problem = self.problem
        self._classes = classes
        # Whole numbers by its types, but nothing depends on it. The arm that is none of them is the one not to serve.
        units = problem.budget / self._listed * self._decisions
        arms = len(self._arms)
        return self.make(narms=arms, T=problem.expected_rounds, B=units, dummy_arm=arms)

    def decide(self, arrival):
        if not arrival.available:
            return None
        if self._policy is None:
            self._first.append(arrival.x)
            if len(self._first) < FIRST_PEOPLE:
                return super().decide(arrival)
            mixture = GaussianMixture(CLASSES, random_state=self.seed % 2**31)
            self._policy = self._made(mixture.fit(np.array(self._first)))
            for answer, worth in self._early:
                self.learn(answer, worth)
        self._policy.b_tau = arrival.budget_left / self._listed * self._decisions
        played = self.problem.expected_rounds - arrival.rounds_left
        number = int(self._policy.play(tround=played, context=arrival.x[:, None]))
        if number == len(self._arms) or self._arms[number] not in arrival.available:
            return None
        arm = self._arms[number]
        self._listed, self._decisions = self._listed + arrival.costs[arm], self._decisions + 1
        return arm

    def choose(self, arrival):
        return int(self._rng.choice(arrival.available))

    def learn(self, answer, worth):
        if self._policy is None:
            self._early.append((answer, worth))
        else:
            self._policy.update(self._arms.index(answer.arm), worth, answer.x[:, None], answer.round)


class UcbAlp(Constrained):
    """`UcbAlp` as it is: its means and bounds are not those of the paper (the bound grows with what was heard)."""

    def make(self, **known):
        return constrained_cb.UcbAlp(pai=self._classes.weights_, gmm=self._classes, **known)


class Hatch(Constrained):
    """`HATCH` with alpha 1, fitted anew whenever it has heard a tenth more."""

    def __init__(self, problem, seed, way):
        self._heard, self._fitted = [], 0
        super().__init__(problem, seed, way)

    def make(self, **known):
        classes = self._classes
        centres = dict(enumerate(classes.means_))
        centres.setdefault(known["dummy_arm"], classes.means_[0])  # it looks there for the number of features
        shares = classes.weights_
        return constrained_cb.HATCH(gmm=classes, J=shares.size, pai=shares, context_dic=centres, alpha=1.0, **known)

    def learn(self, answer, worth):
        self._heard.append((self._arms.index(answer.arm), worth, answer.x))
        if self._policy is None or len(self._heard) < (1 + LEAST_NEWS) * self._fitted:
            return
        arms, worths, rows = (np.array(column) for column in zip(*self._heard, strict=True))
        self._policy.update(arms, worths, rows)
        self._fitted = len(self._heard)


class LinUCB(Constrained):
    """`LinUCB` with alpha 1, which serves with probability budget left / rounds left."""

    def make(self, **known):
        return constrained_cb.LinUCB(ndims=self.problem.n_x, alpha=1.0, **known)


POLICIES = {"UCB-ALP": UcbAlp, "HATCH": Hatch, "LinUCB": LinUCB}
SPEED = "LinUCB"
