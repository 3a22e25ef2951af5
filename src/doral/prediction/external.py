"""`doral.external`: rewards as a model from outside predicts them; delays, budget and ledger as ours.

Nothing of the model is in the engine. Whoever drives it keeps the models (`models.py`), fits them on decisions whose
fate is known, and hands in a prediction for each arm with everybody who arrives (`engine/pieces/predicted.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Unpack, get_args

from doral import _check
from doral._arrays import Floats
from doral.engine.option_types import OptionsBesideModel
from doral.engine.options import PolicyOptions, check_option_names
from doral.engine.pieces.predicted import PREFIX
from doral.engine.presets import policy
from doral.errors import InvalidValue
from doral.person import Missing, Number, checked_missing
from doral.prediction.models import Models, Regressor
from doral.prediction.schedule import Schedule
from doral.problem import Problem

Fit = Literal["per-arm", "joint"]
MAX_ANSWERS = 10**9
_OURS = ("values", "start_tries", "explore", "screening", "sampling", "basis", "products")


@dataclass(frozen=True, eq=False)
class External:
    """A model, when it is fitted, and the policy that takes its predictions. Made by `doral.external`."""

    model: Regressor
    fit: Fit
    schedule: Schedule
    options: PolicyOptions
    missing: Missing = "error"

    @property
    def name(self) -> str:
        return self.options.name

    def problem_of(self, problem: Problem) -> Problem:
        """The problem with a feature more for each arm: what is predicted for it, which may be missing."""
        predicted = [Number(PREFIX + name) for name in problem.arm_names]
        return dataclasses.replace(problem, person=(*problem.person, *predicted), missing="mean")

    def of_campaign(self, problem: Problem) -> Problem:
        """`problem_of` one that a campaign is made of: whoever opens it again has the model alone to go by."""
        if not isinstance(problem, Problem):
            raise InvalidValue("problem", problem, "must be a doral.Problem")
        if problem.missing != self.missing:
            remedy = f"the model says {self.missing!r}; make it with doral.external(..., missing={problem.missing!r})"
            raise InvalidValue("missing", problem.missing, remedy)
        return self.problem_of(problem)

    def models(self, problem: Problem, *, seed: Sequence[int], features: Floats | None = None) -> Models:
        """Models that know nothing yet, of a problem that knows nothing of predictions."""
        return Models(
            self.model,
            problem,
            is_joint=self.fit == "joint",
            schedule=self.schedule,
            seed=seed,
            features=features,
        )


def external(
    model: Regressor,
    /,
    *,
    refit_every: float = 0.1,
    fit: Fit = "per-arm",
    min_answers: int = 20,
    explore: float = 0.05,
    missing: Missing = "error",
    label: str | None = None,
    **options: Unpack[OptionsBesideModel],
) -> External:
    """A policy that values arms by what a model predicts: anything with fit(X, y) and predict(X), as scikit-learn's.

    `fit` is "per-arm" (a model for each, fitted on its own answers) or "joint" (one for all, which sees the arm, too).
    A model is made when there are `min_answers` for each arm, and made anew when there are `refit_every` more of them:
    a share below 1, or a number. Before that every arm is tried twice as often, as far as 5 % of the budget go.
    `explore` is the share of arrivals that get any of their options, so that an arm that a model thinks little of can
    prove it wrong. `missing` is for campaigns, and as in the problem: whether a feature may be missing, and is then as
    it is on average. Other `options` are those of `doral.policy("doral-otf")`.
    """
    if isinstance(model, type):
        raise InvalidValue("model", model.__name__, f"is a class: give a model, as in {model.__name__}()")
    lacking = [method for method in ("fit", "predict") if not callable(getattr(model, method, None))]
    if lacking:
        remedy = f"needs a method {' and a method '.join(lacking)}: fit(X, y) and predict(X) are asked for"
        raise InvalidValue("model", type(model).__name__, remedy)
    if not _check.is_among(fit, get_args(Fit)):
        raise InvalidValue("fit", fit, f"must be one of {', '.join(get_args(Fit))}")
    every = _check.finite_number("refit_every", refit_every, above=0, at_most=MAX_ANSWERS)
    if every >= 1.0:
        every = float(_check.whole_number("refit_every", refit_every, at_least=1, at_most=MAX_ANSWERS))
    fewest = _check.whole_number("min_answers", min_answers, at_least=2, at_most=MAX_ANSWERS)
    check_option_names(options)
    for option in _OURS:
        if option in options:
            raise InvalidValue(
                option, dict(options)[option], "is not for a policy whose values a model gives; leave it out"
            )
    made = policy(
        "doral-otf",
        label=f"external({type(model).__name__})" if label is None else label,
        values="given",
        start_tries=min(2 * fewest, MAX_ANSWERS),
        explore=explore,
        **options,
    )
    return External(model, fit, Schedule(every, fewest), made, checked_missing(missing))
