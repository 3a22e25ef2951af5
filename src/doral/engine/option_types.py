"""The options of a policy as type checkers and editors see them; what each means stands at `doral.policy`.

Checkers read no dataclass here, so names and types are said once more; a test compares them with `PolicyOptions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict

PolicyName: TypeAlias = Literal[
    "doral-otf",
    "doral-ids",
    "doral",
    "d-alp",
    "d-linucb",
    "random",
    "wait-linucb",
    "d-lints",
    "eva",
    "oracle",
    "doral/literal",
    "d-alp/literal",
    "d-linucb/literal",
    "random/literal",
]
ReadingName: TypeAlias = Literal["corrected", "literal"]


class OptionsBesideModel(TypedDict, total=False):
    """What can be chosen about every policy, that of `doral.external` included."""

    # What is learned
    learner: Literal["auto", "early", "returned", "scaled", "thinned"]
    features: Literal["given", "none"]
    prior: Literal["fixed", "cells", "noise", "shared"]
    penalty: float
    half_life: float | None
    outcome_split: float | None
    pending: Literal["ignored", "expected"]
    reservoir: int
    # How doubt counts
    bonus: Literal["ahead", "calibrated", "corrected", "printed", "to_come"]
    exploration: float
    delta: float
    window_bias: bool | None
    draws: int
    choice: Literal["weighted", "unweighted"]
    dropping: Literal["never", "certified"]
    start_share: float
    # How answers come back
    cutoff: float | Literal["adaptive", "none"] | None
    cutoff_share: float
    return_probability: Literal["one", "estimated", "oracle"]
    return_by: Literal["deadline", "cutoff"]
    return_optimism: float
    curves_by: Literal["arm", "context"]
    curve_points: int
    until_end: bool
    # How the budget is spent
    pacing: Literal["coin", "greedy", "lp"]
    rate: Literal["period", "printed", "remaining"]
    periods: int
    cost: Literal["list", "learned"]
    # The race
    accept: int | None
    acceptance: Literal["fastest", "printed"]
    baskets: Literal["corrected", "printed"]
    censoring: Literal["returned", "min_age", "kaplan_meier", "instant"]
    race_delta: float
    tail_exponent: float
    race_budget_share: float
    race_trains: bool
    cutoff_over: Literal["accepted", "all"]


class PolicyOptionsDict(OptionsBesideModel, total=False):
    """All options: with those that a model from outside decides for itself."""

    values: Literal["learned", "given"]
    basis: Literal["linear", "splines"]
    products: str | Sequence[tuple[str, str]]
    sampling: Literal["directed", "optimism", "oracle", "thompson"]
    explore: float
    start_tries: int
    screening: Literal["race", "none"]
    min_answers: int
