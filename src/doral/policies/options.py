"""What can be chosen about a policy: one word per piece, so that an ablation is one changed word.

The words are those of `docs/paper.md`; "printed" always means the text of the paper as it stands.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from doral import _check
from doral.errors import InvalidValue, UnknownName

Screening = Literal["race", "none"]
Acceptance = Literal["fastest", "printed"]
Censoring = Literal["returned", "min_age", "kaplan_meier", "instant"]
Learner = Literal["auto", "returned", "scaled", "thinned"]
Prior = Literal["fixed", "noise", "shared"]
Bonus = Literal["corrected", "printed", "calibrated"]
Cutoff = Literal["adaptive", "none"]
Rate = Literal["remaining", "printed", "period"]
ReturnProbability = Literal["estimated", "oracle", "one"]
Dropping = Literal["never", "certified"]
Pacing = Literal["lp", "coin", "greedy"]

MAX_CURVE_POINTS = 1_000


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """A policy of the compiled engine, fully specified. Made by `doral.policy`, changed by `dataclasses.replace`.

    >>> PolicyOptions(name="mine", accept=3).pacing
    'lp'
    """

    name: str = "doral"

    # stage 1: the race
    screening: Screening = "race"
    accept: int | None = None
    """A', how many arms the race accepts; None: 5, or half of the arms where there are fewer than 10."""
    acceptance: Acceptance = "fastest"
    baskets: Literal["corrected", "printed"] = "corrected"
    censoring: Censoring = "returned"
    """How the race treats delays that are not known yet; `instant` (known at once) exists in simulation only."""
    min_answers: int = 30
    """An arm with fewer answers (for `min_age`: pulls) is neither accepted nor rejected."""
    race_delta: float = 0.05
    tail_exponent: float = 0.5
    race_budget_share: float = 0.4
    """Stage 1 may spend this share of the budget; then the arms with the smallest estimates are accepted."""
    race_trains: bool = True
    """Whether answers to pulls of the race also train the rewards."""

    # the cut-off m
    cutoff: float | Cutoff | None = None
    """None: found by the race; without one, the deadline. "adaptive": follows the return curves. "none": no limit."""
    cutoff_share: float = 0.95
    """An adaptive cut-off is the age by which this share of the answers has come."""
    cutoff_over: Literal["accepted", "all"] = "accepted"

    # stage 2: learning
    learner: Learner = "returned"
    """"auto": returned where feedback is explicit, scaled where it is silent."""
    features: Literal["given", "none"] = "given"
    """"none": every context and arm stands for itself."""
    prior: Prior = "fixed"
    """Of theta_j: "fixed" (the penalty), "noise" (and the noise is measured) or "shared" (learned over contexts)."""
    penalty: float = 1.0
    """lambda of the ridge; with a shared prior, only its start."""
    half_life: float | None = None
    """Rounds after which what was learned counts half, where the world changes; None: it counts for ever."""
    delta: float = 0.05
    exploration: float = 1.0
    """Scale of the confidence bonus, or of the noise of Thompson sampling."""
    outcome_split: float | None = None
    """Where the delay depends on the outcome: answers above it and those at or below it have return curves of their
    own, by which the answers of young decisions are weighted. None: outcomes are not told apart. (Silent feedback is
    learned when decisions have settled, and needs no weights.)"""
    sampling: Literal["optimism", "thompson"] = "optimism"
    bonus: Bonus = "corrected"
    """"calibrated": in units of the measured noise."""
    pending: Literal["ignored", "expected"] = "ignored"
    """Whether open decisions narrow the bonus as if they were answered as expected. Thompson sampling does not ask."""
    window_bias: bool | None = None
    """The bias term of the bonus, over pulls inside the cut-off; None: for the `thinned` learner only."""

    # stage 2: allocation
    choice: Literal["weighted", "unweighted"] = "weighted"
    """Whether the arm of a context maximises tau * index, or the index alone."""
    return_probability: ReturnProbability = "estimated"
    return_by: Literal["deadline", "cutoff"] = "deadline"
    return_optimism: float = 0.0
    """Standard errors that are added to an estimated return probability."""
    curves_by: Literal["arm", "context"] = "arm"
    """Return curves per arm, or per context and arm, shrunk to the arm's while data are few."""
    until_end: bool = False
    """Whether answers that cannot come before the end are worth nothing, and the budget is spent before. Needs return
    curves: where every answer is thought to return, or feedback is silent, the end is not seen."""
    dropping: Dropping = "never"
    """"certified": an arm leaves a context, until further notice, when another one is better there for certain."""
    pacing: Pacing = "lp"
    rate: Rate = "remaining"
    periods: int = 50
    """Into how many equal periods the horizon is cut for rate="period"."""
    curve_points: int = 16
    """Ages at which the return curves are kept."""

    def __post_init__(self) -> None:
        _check.name("name of a policy", self.name)
        for field, words in _WORDS.items():
            word = getattr(self, field)
            if word not in words:
                raise InvalidValue(field, word, f"must be one of {', '.join(words)}")
        for field in ("race_trains", "window_bias", "until_end"):
            flag = getattr(self, field)
            if not isinstance(flag, bool) and not (flag is None and field == "window_bias"):
                raise InvalidValue(field, flag, "must be True or False")
        if self.accept is not None:
            _check.set_fields(self, accept=_check.whole_number("accept", self.accept, at_least=1, at_most=100_000))
        if isinstance(self.cutoff, str):
            if self.cutoff not in get_args(Cutoff):
                raise InvalidValue("cutoff", self.cutoff, "must be a number of rounds, adaptive, none or None")
        elif self.cutoff is not None:
            _check.set_fields(self, cutoff=_check.finite_number("cutoff", self.cutoff, at_least=1))
        if self.half_life is not None:
            _check.set_fields(self, half_life=_check.finite_number("half_life", self.half_life, above=0))
        _check.set_fields(
            self,
            return_optimism=_check.finite_number("return_optimism", self.return_optimism, at_least=0),
            periods=_check.whole_number("periods", self.periods, at_least=1, at_most=10**9),
            cutoff_share=_check.finite_number("cutoff_share", self.cutoff_share, above=0, at_most=1),
            min_answers=_check.whole_number("min_answers", self.min_answers, at_least=1, at_most=10**9),
            curve_points=_check.whole_number("curve_points", self.curve_points, at_least=2, at_most=MAX_CURVE_POINTS),
            race_delta=_check.finite_number("race_delta", self.race_delta, at_least=1e-12, at_most=0.5),
            tail_exponent=_check.finite_number("tail_exponent", self.tail_exponent, above=0),
            race_budget_share=_check.finite_number("race_budget_share", self.race_budget_share, at_least=0, at_most=1),
            penalty=_check.finite_number("penalty", self.penalty, above=0),
            delta=_check.finite_number("delta", self.delta, at_least=1e-12, at_most=1),
            exploration=_check.finite_number("exploration", self.exploration, at_least=0),
        )
        self._check_pairs()

    def _check_pairs(self) -> None:
        """What cannot go together."""
        if self.cutoff == "adaptive" and self.return_probability != "estimated":
            raise InvalidValue("cutoff", self.cutoff, "follows return curves: needs return_probability='estimated'")
        if self.prior != "fixed" and self.learner == "thinned":
            raise InvalidValue("prior", self.prior, "is measured on answers; the thinned learner has none of its own")
        if self.pending == "expected" and self.learner == "thinned":
            raise InvalidValue("pending", self.pending, "counts open decisions, which the thinned learner does anyway")
        if self.sampling == "thompson" and self.return_optimism > 0:
            raise InvalidValue("return_optimism", self.return_optimism, "must be 0 with sampling='thompson'")
        if self.features == "none" and self.sampling == "optimism" and self.bonus != "calibrated":
            raise InvalidValue("features", self.features, "has only a bonus in units of noise: bonus='calibrated'")
        if self.bonus == "calibrated" and self.prior == "fixed":
            raise InvalidValue("bonus", self.bonus, "is in units of measured noise: needs prior='noise' or 'shared'")
        if self.sampling == "thompson" and self.prior == "fixed":
            raise InvalidValue(
                "sampling", self.sampling, "is in units of measured noise: needs prior='noise' or 'shared'"
            )
        if self.dropping == "certified" and self.prior == "fixed":
            raise InvalidValue("dropping", self.dropping, "rests on measured noise: needs prior='noise' or 'shared'")
        if self.dropping == "certified" and self.choice == "unweighted":
            raise InvalidValue("dropping", self.dropping, "is by what arms are worth: needs choice='weighted'")
        if self.outcome_split is not None:
            if self.learner in ("scaled", "thinned"):
                remedy = "weighs answers as they come in: needs learner='returned' or 'auto'"
                raise InvalidValue("outcome_split", self.outcome_split, remedy)
            if self.return_probability != "estimated":
                remedy = "rests on return curves: needs return_probability='estimated'"
                raise InvalidValue("outcome_split", self.outcome_split, remedy)
            if self.half_life is not None:
                raise InvalidValue("outcome_split", self.outcome_split, "cannot be combined with half_life")
            _check.set_fields(self, outcome_split=_check.finite_number("outcome_split", self.outcome_split))

    def accepted_of(self, n_arms: int) -> int:
        """A' for a problem with so many arms."""
        if self.accept is None:
            return min(5, math.ceil(n_arms / 2))
        if self.accept > n_arms:
            raise InvalidValue("accept", self.accept, f"must be at most the number of arms, {n_arms}")
        return self.accept

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `PolicyOptions(**d)` gives an equal object back."""
        return dataclasses.asdict(self)


_WORDS: Mapping[str, tuple[str, ...]] = {
    "screening": get_args(Screening),
    "acceptance": get_args(Acceptance),
    "baskets": ("corrected", "printed"),
    "censoring": get_args(Censoring),
    "cutoff_over": ("accepted", "all"),
    "learner": get_args(Learner),
    "bonus": get_args(Bonus),
    "features": ("given", "none"),
    "prior": get_args(Prior),
    "sampling": ("optimism", "thompson"),
    "pending": ("ignored", "expected"),
    "curves_by": ("arm", "context"),
    "choice": ("weighted", "unweighted"),
    "return_probability": get_args(ReturnProbability),
    "return_by": ("deadline", "cutoff"),
    "dropping": get_args(Dropping),
    "pacing": get_args(Pacing),
    "rate": get_args(Rate),
}

OPTION_NAMES = tuple(field.name for field in dataclasses.fields(PolicyOptions) if field.name != "name")


def check_option_names(given: Mapping[str, object]) -> None:
    """A misspelt option names itself and the nearest one."""
    for option in given:
        if option not in OPTION_NAMES:
            raise UnknownName("policy option", option, OPTION_NAMES)
