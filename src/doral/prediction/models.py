"""Models at work: fitted on answers, one for each arm or one for all, and asked what arms will bring."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from doral._arrays import Floats, Ints
from doral.errors import DoralError, shown
from doral.prediction.columns import Columns
from doral.prediction.schedule import Schedule
from doral.problem import Problem


class ModelFailed(DoralError):
    """A model from outside could not be fitted, or what it says is of no use."""


class Regressor(Protocol):
    """What is asked of a model."""

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803
        """Learn rewards y of rows X."""

    def predict(self, X: Any) -> Any:  # noqa: N803
        """A number for each row."""


class Known(NamedTuple):
    """Decisions whose fate is known, in their order."""

    contexts: Ints
    traits: Floats  # (n, features of a person)
    arms: Ints
    rewards: Floats

    def of_arm(self, arm: int) -> Known:
        mine = self.arms == arm
        return Known(self.contexts[mine], self.traits[mine], self.arms[mine], self.rewards[mine])


class _Fitted(NamedTuple):
    columns: Columns
    model: Regressor
    n_known: int  # what it was fitted on


class Models:
    """The models of one campaign, or of one run."""

    def __init__(
        self,
        model: Regressor,
        problem: Problem,
        *,
        is_joint: bool,
        schedule: Schedule,
        seed: Sequence[int],
        features: Floats | None = None,
    ) -> None:
        """`problem` knows nothing of predictions; `features` are those of the arms, if a simulation draws them."""
        self._model, self._problem, self._schedule, self._seed = model, problem, schedule, tuple(seed)
        self._arms = np.hstack([np.eye(problem.n_arms), problem.features if features is None else features])
        self._is_joint = is_joint
        self._fitted: dict[int | None, _Fitted] = {}  # by arm; None: one for all
        self.n_fits = 0

    @property
    def is_ready(self) -> bool:
        """Whether there is any model yet."""
        return bool(self._fitted)

    def refit(self, known: Known) -> None:
        """Those for which it is due."""
        if self._is_joint:
            self._fit(None, known, self._schedule.min_answers * self._problem.n_arms)
            return
        for arm in range(self._problem.n_arms):
            self._fit(arm, known.of_arm(arm), self._schedule.min_answers)

    def _fit(self, arm: int | None, known: Known, at_least: int) -> None:
        n, last = known.rewards.size, self._fitted.get(arm)
        if n < at_least or (last is not None and n < self._schedule.after(last.n_known)):
            return
        columns = Columns(self._problem, known.contexts, known.traits)
        model = fresh(self._model, (*self._seed, self.n_fits))
        x = columns.of(known.contexts, known.traits)
        try:
            model.fit(x if arm is not None else np.hstack([x, self._arms[known.arms]]), known.rewards)
        except Exception as error:
            raise self._failed(arm, f"cannot be fitted on {n:,} answers: {_said(error)}") from error
        self._fitted[arm] = _Fitted(columns, model, n)
        self.n_fits += 1

    def predict(self, contexts: Ints, traits: Floats) -> Floats:
        """(people, arms) what arms are thought to bring; NaN where there is no model yet."""
        n, n_arms = contexts.size, self._problem.n_arms
        found = np.full((n, n_arms), np.nan)
        if n == 0:
            return found
        for arm, (columns, model, _) in self._fitted.items():
            x = columns.of(contexts, traits)
            if arm is not None:
                found[:, arm] = self._said_by(model, arm, x)
            else:
                each = np.hstack([np.repeat(x, n_arms, axis=0), np.tile(self._arms, (n, 1))])
                found[:] = self._said_by(model, None, each).reshape(n, n_arms)
        return found

    def _said_by(self, model: Regressor, arm: int | None, x: Floats) -> Floats:
        try:
            said = np.asarray(model.predict(x), dtype=np.float64)
        except Exception as error:
            raise self._failed(arm, f"cannot predict: {_said(error)}") from error
        if said.shape not in ((len(x),), (len(x), 1)):
            raise self._failed(arm, f"predicts an array of shape {said.shape} for {len(x)} rows: one number each")
        said = said.reshape(len(x))
        if not np.isfinite(said).all():
            worst = said[~np.isfinite(said)][0]
            raise self._failed(arm, f"predicts {worst} for somebody: predictions must be finite")
        return said

    def _failed(self, arm: int | None, what: str) -> ModelFailed:
        whose = "all arms" if arm is None else f"arm {shown(self._problem.arm_names[arm])}"
        remedy = f"try model.fit and model.predict on rows of {self._problem.n_traits} features by hand"
        return ModelFailed(f"the model {type(self._model).__name__} for {whose} {what}; {remedy}")


def fresh(model: Regressor, seed: Sequence[int]) -> Regressor:
    """One that was never fitted, with the same settings; where its randomness has no seed, it gets this one."""
    made: Any = _copied(model)
    if hasattr(made, "get_params") and hasattr(made, "set_params"):
        open_ = [name for name, value in made.get_params().items() if _is_state(name) and value is None]
        if open_:
            drawn = np.random.SeedSequence(tuple(seed)).generate_state(len(open_)) >> 1  # as signed ones of 32 bits
            made.set_params(**{name: int(one) for name, one in zip(sorted(open_), drawn, strict=True)})
    return made


def _is_state(name: str) -> bool:
    return name == "random_state" or name.endswith("__random_state")


def _copied(model: Regressor) -> Regressor:
    if hasattr(model, "get_params"):
        try:
            from sklearn.base import clone
        except ImportError:
            pass
        else:
            return clone(model)
    return copy.deepcopy(model)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'it does not say why'}"
