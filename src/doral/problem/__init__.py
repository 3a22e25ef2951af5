"""Problems: arms, contexts, budget and time."""

from __future__ import annotations

from doral.problem.arm import Arm, arm_to_dict
from doral.problem.checks import NOTHING, OBSERVED, Paid
from doral.problem.context import EVERYONE, Context
from doral.problem.limits import (
    MAX_AGE,
    MAX_AMOUNT,
    MAX_ARMS,
    MAX_CONTEXTS,
    MAX_HORIZON,
    MAX_REWARD,
    MAX_WEIGHT,
    MIN_AGE,
    MIN_AMOUNT,
    MIN_SHARE,
    MIN_WEIGHT,
    SHARES_TOLERANCE,
)
from doral.problem.problem import Counted, Feedback, Problem, n_given_features, reserve_depths

__all__ = [
    "EVERYONE",
    "MAX_AGE",
    "MAX_AMOUNT",
    "MAX_ARMS",
    "MAX_CONTEXTS",
    "MAX_HORIZON",
    "MAX_REWARD",
    "MAX_WEIGHT",
    "MIN_AGE",
    "MIN_AMOUNT",
    "MIN_SHARE",
    "MIN_WEIGHT",
    "NOTHING",
    "OBSERVED",
    "SHARES_TOLERANCE",
    "Arm",
    "Context",
    "Counted",
    "Feedback",
    "Paid",
    "Problem",
    "arm_to_dict",
    "n_given_features",
    "reserve_depths",
]
