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
        self._vw = Workspace(f"--cb_explore_adf {self.options} --interactions ca --quiet --random_seed {seed % 2**31}")
        self._arms = [f"|a {arm_text(problem, arm)}" for arm in range(problem.n_arms)]
        self._rng = np.random.default_rng(seed)
        self._asked = {}  # by round: the arms that could be had, and with which probability this one was chosen

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
        self._vw.learn(lines)


def arm_text(problem, arm):
    features = problem.arm_features[arm]
    return " ".join([f"arm={arm}", *(f"f{i}:{value:.6g}" for i, value in enumerate(features.tolist()))])


def _shared(x):
    return "shared |c " + " ".join(f"x{i}:{value:.6g}" for i, value in enumerate(x.tolist()) if value)


class RegCb(Adf):
    """`--cb_explore_adf --regcbopt`, costs of -1 to 0: the arm with the best bound, the closest to LinUCB it has."""

    options = "--regcbopt --cb_min_cost -1 --cb_max_cost 0"


class SquareCb(Adf):
    """`--cb_explore_adf --squarecb` with its defaults."""

    options = "--squarecb"


POLICIES = {"RegCB": RegCb, "SquareCB": SquareCb}
SPEED = "RegCB"
