"""When models are fitted anew."""

from __future__ import annotations

import math
from typing import NamedTuple


class Schedule(NamedTuple):
    every: float  # below 1: when this share more is known; else: when so many more decisions are
    min_answers: int  # of an arm, before there is a model of it

    @property
    def first(self) -> int:
        """The fewest known decisions, over all arms, with which there can be a model."""
        return self.min_answers

    def after(self, n_known: int) -> int:
        """With how many known decisions a model is due, after one that was fitted on so many."""
        more = math.ceil(n_known * self.every) if self.every < 1.0 else int(self.every)
        return n_known + max(1, more)
