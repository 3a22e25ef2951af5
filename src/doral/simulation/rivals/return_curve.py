"""When answers come, learned from those that came: in reversed time, since late ones have not had the time yet."""

from __future__ import annotations

import numpy as np

from doral._arrays import Floats, Ints
from doral._elementary import geometric_steps

_POINTS = 48  # ages on each of the two grids, the even and the geometric one
_MORE = 1.02  # the curve is read again when 2% more has come
_POOLED = 10.0  # answers for which the curve of all arms stands in that of each


class ReturnCurve:
    """The share of the answers that come within the deadline which have come by an age, by arm.

    A young decision can only have had a quick answer. So of the answers with delay u or less, to decisions of age u or
    more, the share with a delay of u tells how much F(u) exceeds F(u-); multiplied from the deadline backwards
    (Lagakos, Barraj and De Gruttola 1988) they give F(age) / F(deadline).
    """

    def __init__(self, *, deadlines: Floats, n_arms: int) -> None:
        limit = float(deadlines.max())
        even = np.linspace(0.0, limit, _POINTS)
        geometric = geometric_steps(1.0, max(limit, 1.0), _POINTS)
        self._ages = np.unique(np.floor(np.concatenate([[0.0], even, geometric, deadlines])))
        self._at_deadline: Ints = np.searchsorted(self._ages, deadlines, side="right") - 1  # (J,) indices into ages
        self._arms: list[int] = []
        self._decided: list[float] = []
        self._delays: list[float] = []
        self._read_at = 0  # number of answers
        self._come = np.ones((n_arms, self._ages.size))

    def enter(self, arm: int, decided: float, delay: float) -> None:
        """An answer has come."""
        self._arms.append(arm)
        self._decided.append(decided)
        self._delays.append(delay)

    def shares(self, now: float, contexts: Ints, arms: Ints, ages: Floats) -> Floats:
        """One per decision: how much of what will come in time has come by its age."""
        if len(self._arms) > _MORE * self._read_at:
            self._read(now)
        end = self._at_deadline[contexts]
        place = np.minimum(np.searchsorted(self._ages, ages, side="right") - 1, end)
        whole = self._come[arms, end]
        share: Floats = np.divide(self._come[arms, place], whole, out=np.ones(arms.size), where=whole > 0.0)
        return share

    def _read(self, now: float) -> None:
        n_arms, n_ages = self._come.shape
        self._read_at = len(self._arms)
        arms, delays = np.array(self._arms), np.array(self._delays)
        first = np.searchsorted(self._ages, delays)  # the age by which it had come
        last = np.searchsorted(self._ages, now - np.array(self._decided), side="right") - 1  # the age reached by now
        seen = first <= last
        arms, first, last = arms[seen], first[seen], last[seen]
        came = np.bincount(arms * n_ages + first, minlength=n_arms * n_ages).reshape(n_arms, n_ages).astype(np.float64)
        left = np.bincount(arms * n_ages + last, minlength=n_arms * n_ages).reshape(n_arms, n_ages)
        at_risk = np.cumsum(came, axis=1) - np.cumsum(left, axis=1) + left
        pooled = came.sum(axis=0) / (at_risk.sum(axis=0) + 1.0)
        hazard = (came + _POOLED * pooled) / (at_risk + _POOLED)
        self._come[:, -1] = 1.0
        self._come[:, :-1] = np.cumprod(1.0 - hazard[:, :0:-1], axis=1)[:, ::-1]
