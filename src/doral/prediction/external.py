"""`doral.external`: rewards as a model from outside predicts them; delays, budget and ledger as ours.

Nothing of the model is in the engine. Whoever drives it keeps the models (`models.py`), fits them on decisions whose
fate is known, and hands in a prediction for each arm with every arrival (`engine/people.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Unpack, get_args

from doral import _check
from doral._arrays import Floats
from doral.engine.options import OptionsBesideModel, PolicyOptions, check_option_names
from doral.engine.options import make_policy as policy
from doral.engine.setup import PREDICTION_PREFIX as PREFIX
from doral.errors import InvalidValue
from doral.person import Missing, Number, checked_missing
from doral.prediction.models import (
    LevelNames,
    Models,
    Regressor,
    Schedule,
    is_classifier,
    is_classifier_without_probabilities,
)
from doral.problem import Problem

Fit = Literal["per-arm", "joint"]
MAX_ANSWERS = 10**9
START_SHARE = 0.05  # of the budget, for tries before there is a model
_OURS = ("values", "start_tries", "explore", "screening", "sampling", "basis", "products")


@dataclass(frozen=True, eq=False)
class External:
    """A model, when it is fitted, and the policy that takes its predictions. Made by `doral.external`.

    Attributes:
        model: The model as it was given, which is copied and never fitted itself.
        fit: "per-arm" or "joint".
        schedule: When it is fitted.
        options: The policy that takes the predictions.
        missing: Whether features may be missing.
    """

    model: Regressor
    fit: Fit
    schedule: Schedule
    options: PolicyOptions
    missing: Missing = "error"

    @property
    def name(self) -> str:
        """What it is called in results."""
        return self.options.name

    def __repr__(self) -> str:
        return f"<External {self.name!r}: {self._in_words()}>"

    def _repr_html_(self) -> str:
        from doral.pages.notebook import card

        return card(f"External {self.name}", [("Model", type(self.model).__name__), ("Fitted", self._in_words())])

    def _in_words(self) -> str:
        every, fewest = self.schedule.every, self.schedule.min_answers
        more = f"{every:.0%}" if every < 1.0 else f"{every:,.0f}"
        each = "for each arm" if self.fit == "per-arm" else "for all arms together"
        return f"a {type(self.model).__name__} {each}, from {fewest:,} answers on, anew with {more} more"

    def problem_of(self, problem: Problem) -> Problem:
        """The problem with a feature more for each arm: what is predicted for it, which may be missing."""
        predicted = [Number(PREFIX + name) for name in problem.arm_names]
        return dataclasses.replace(problem, person=(*problem.person, *predicted), missing="mean")

    def of_campaign(self, problem: Problem) -> Problem:
        """`problem_of` one that a campaign is made of: opened again, it has the model alone to go by."""
        if not isinstance(problem, Problem):
            raise InvalidValue("problem", problem, "must be a doral.Problem")
        if problem.missing != self.missing:
            remedy = f"the model says {self.missing!r}; make it with doral.external(..., missing={problem.missing!r})"
            raise InvalidValue("missing", problem.missing, remedy)
        return self.problem_of(problem)

    def models(
        self,
        problem: Problem,
        *,
        seed: Sequence[int],
        features: Floats | None = None,
        levels: LevelNames | None = None,
    ) -> Models:
        """Models that know nothing yet, of a problem that knows nothing of predictions."""
        return Models(
            self.model,
            problem,
            is_joint=self.fit == "joint",
            schedule=self.schedule,
            seed=seed,
            features=features,
            levels=levels,
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

    A classifier is asked for `predict_proba`: rewards are its classes, and their mean is what an arm is worth. While
    all answers of an arm are the same, it is worth that. A pipeline that selects columns by name gets a data frame
    with the names of the problem, everything else a table of numbers.

    Before there is a model, every arm is tried twice as often as `min_answers` says, as far as 5 % of the budget go.

    Args:
        model: The model: an object with methods fit(X, y) and predict(X), or predict_proba(X); it is copied and never
            fitted itself.
        refit_every: When there are so many more answers a model is made anew: a share of them below 1, or a number.
            Default: 0.1.
        fit: "per-arm": a model for each arm, fitted on its own answers; "joint": one for all, which sees the arm, too.
            Default: "per-arm".
        min_answers: A first model is made when there are so many answers for each arm. From 2. Default: 20.
        explore: The share of arrivals, from 0 to 1, that get any of their options at random, so that an arm that a
            model thinks little of can prove it wrong. Default: 0.05.
        missing: For campaigns, as in the problem: "error": every feature has to be given; "mean": what is missing is as
            it is on average. Default: "error".
        label: What it is called in results. Default: external(...) with the class of the model.
        options: Other options of `doral.policy("doral-otf")`, where they are described.
    """
    if isinstance(model, type):
        raise InvalidValue("model", model.__name__, f"is a class: give a model, as in {model.__name__}()")
    asked = ("fit",) if is_classifier(model) else ("fit", "predict")
    lacking = [method for method in asked if not callable(getattr(model, method, None))]
    if lacking:
        remedy = f"needs a method {' and a method '.join(lacking)}: fit(X, y) and predict(X) are asked for"
        raise InvalidValue("model", type(model).__name__, remedy)
    if is_classifier_without_probabilities(model):
        remedy = "is a classifier without predict_proba: its labels are no expected rewards; give one with it"
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
        start_share=options.pop("start_share", START_SHARE),
        **options,
    )
    return External(model, fit, Schedule(every, fewest), made, checked_missing(missing))
