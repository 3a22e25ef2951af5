"""Vowpal Wabbit: `--cb_explore_adf`, a line of text for who arrives and one for each arm."""

from __future__ import annotations

import numpy as np
from plain import Plain
from vowpalwabbit import Workspace

PEER, PACKAGE = "Vowpal Wabbit", "vowpalwabbit"


class Adf(Plain):
    """Features of who arrives, those of the arm, its number, and the products of both, in one linear model."""

    options = ""

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        self._vw = self.made()
        self._arms = [f"|a {arm_text(problem, arm)}" for arm in range(problem.n_arms)]
        self._rng = np.random.default_rng(seed)
        self._asked = {}  # by round: the arms that could be had, and with which probability this one was chosen

    def made(self):
        seed = self.seed % 2**31
        return Workspace(f"--cb_explore_adf {self.options} --interactions ca --quiet --random_seed {seed}")

    def choose(self, arrival):
        shares = self._vw.predict([_shared(arrival.x), *(self._arms[arm] for arm in arrival.available)])
        shares = np.array(shares) / np.sum(shares)
        place = int(self._rng.choice(shares.size, p=shares))
        self._asked[arrival.round] = arrival.available, place, shares[place]
        return arrival.available[place]

    def learn(self, answer, worth):
        available, place, share = self._asked.pop(answer.decided)
        lines = [_shared(answer.x), *(self._arms[arm] for arm in available)]
        lines[1 + place] = f"0:{-worth}:{share} {lines[1 + place]}"
        self.hear(lines, worth)

    def hear(self, lines, worth):
        self._vw.learn(lines)


def arm_text(problem, arm):
    features = problem.arm_features[arm]
    return " ".join([f"arm={arm}", *(f"f{i}:{value:.6g}" for i, value in enumerate(features.tolist()))])


def _shared(x):
    return "shared |c " + " ".join(f"x{i}:{value:.6g}" for i, value in enumerate(x.tolist()) if value)


class RegCb(Adf):
    """`--cb_explore_adf --regcbopt`, the arm with the best bound, the closest to LinUCB it has; it asks for the range
    of costs, which is that of all that was heard: when that grows, it hears everything again."""

    def __init__(self, problem, seed, way):
        self._least, self._most, self._heard = -1.0, 0.0, []
        super().__init__(problem, seed, way)

    @property
    def options(self):
        return f"--regcbopt --cb_min_cost {self._least} --cb_max_cost {self._most}"

    def hear(self, lines, worth):
        self._heard.append(lines)
        if self._least <= -worth <= self._most:
            self._vw.learn(lines)
            return
        self._least, self._most = min(self._least, -worth), max(self._most, -worth)
        self._vw.finish()
        self._vw = self.made()
        for heard in self._heard:
            self._vw.learn(heard)


class SquareCb(Adf):
    """`--cb_explore_adf --squarecb` with its defaults."""

    options = "--squarecb"


POLICIES = {"RegCB": RegCb, "SquareCB": SquareCb}
SPEED = "RegCB"
