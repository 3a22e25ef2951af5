"""Models from outside: the table of features, the schedule of fits, and predictions."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from doral._arrays import Floats, Ints
from doral.errors import DoralError, shown
from doral.problem import Problem

if TYPE_CHECKING:
    import polars as pl

MAX_LEVELS = 100
FEWEST_SEEN = 2
MISSING = "(missing)"  # in place of a word
_CONTEXT = "context"


class Columns:
    """The form of a table, for people of this problem."""

    def __init__(self, problem: Problem, contexts: Ints, traits: Floats) -> None:
        """As it is for those in these contexts, with these traits (people, features)."""
        self._n_contexts = problem.n_contexts if problem.n_contexts > 1 else 0
        self._levels = {i: _frequent(traits[:, i]) for i in problem.category_columns}
        self._means = np.array([_mean(column) for column in traits.T])

    def of(self, contexts: Ints, traits: Floats) -> Floats:
        """(people, columns)."""
        parts = [np.eye(self._n_contexts)[contexts]] if self._n_contexts else []
        for i, column in enumerate(traits.T):
            if i in self._levels:
                is_level = column[:, None] == self._levels[i][None, :]
                parts.append(np.column_stack([is_level, ~is_level.any(axis=1)]).astype(np.float64))
            else:
                parts.append(np.where(np.isnan(column), self._means[i], column)[:, None])
        return np.ascontiguousarray(np.hstack(parts or [np.ones((contexts.size, 1))]))


class LevelNames(Protocol):
    """Words of categories, as `doral.person.Levels` keeps them."""

    def names(self, category: str, /) -> Sequence[str]:
        """All that were seen, in the order of their numbers."""


class NamedColumns:
    """A data frame with the names of the problem: "context", where there are several, and each feature."""

    def __init__(self, problem: Problem, levels: LevelNames | None, traits: Floats) -> None:
        self._problem, self._levels = problem, levels
        self._means = [_mean(column) for column in traits.T]

    def of(self, contexts: Ints, traits: Floats) -> pl.DataFrame:
        """A row for each person."""
        import polars as pl

        columns: dict[str, pl.Series] = {}
        if self._problem.n_contexts > 1 or not self._problem.n_traits:
            names = np.array(self._problem.context_names, dtype=object)
            columns[_CONTEXT] = pl.Series(names[contexts].tolist(), dtype=pl.String)
        for i, name in enumerate(self._problem.person_names):
            if i in self._problem.category_columns:
                columns[name] = pl.Series(self._words(name, traits[:, i]), dtype=pl.String)
            else:
                columns[name] = pl.Series(np.where(np.isnan(traits[:, i]), self._means[i], traits[:, i]))
        return pl.DataFrame(columns)

    def _words(self, name: str, codes: Floats) -> list[str]:
        known = () if self._levels is None else self._levels.names(name)
        return [
            MISSING if np.isnan(code) else known[int(code)] if code < len(known) else str(int(code)) for code in codes
        ]


def _frequent(codes: Floats) -> Floats:
    """Levels by how often they were seen; of those that are alike, the one that was seen first."""
    levels, first, counts = np.unique(codes[~np.isnan(codes)], return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return np.asarray(levels[order][counts[order] >= FEWEST_SEEN][:MAX_LEVELS])


def _mean(column: Floats) -> float:
    known = column[~np.isnan(column)]
    return float(known.mean()) if known.size else 0.0


class Schedule(NamedTuple):
    """When models are fitted anew."""

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


class ModelFailed(DoralError):
    """A model from outside could not be fitted, or what it says is of no use."""


class Regressor(Protocol):
    """What is asked of a model; a classifier has `predict_proba` as well."""

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
    columns: Columns | NamedColumns
    model: Regressor | None  # None: all rewards were the same, which a classifier cannot be fitted on
    n_known: int  # what it was fitted on
    values: Floats  # of a classifier: the rewards that its classes stand for


MOST_CLASSES = 50  # different rewards that a classifier tells apart


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
        levels: LevelNames | None = None,
    ) -> None:
        """`problem` knows nothing of predictions; `features` are those of the arms, if a simulation draws them.

        `levels` has the words of categories, for a model that takes columns by name.
        """
        self._is_named, self._levels, self._is_classifier = takes_names(model), levels, is_classifier(model)
        self._model, self._problem, self._schedule, self._seed = model, problem, schedule, tuple(seed)
        self._arms = np.hstack([np.eye(problem.n_arms), problem.features if features is None else features])
        self._is_joint = is_joint
        self._fitted: dict[int | None, _Fitted] = {}  # by arm; None: one for all
        self.n_fits = 0

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
        traits = known.traits
        columns: Columns | NamedColumns = (
            NamedColumns(self._problem, self._levels, traits)
            if self._is_named
            else Columns(self._problem, known.contexts, traits)
        )
        table = columns.of(known.contexts, traits)
        if arm is None:
            table = self._with_arms(table, known.arms)
        rewards: Floats | Ints = known.rewards
        values = np.zeros(0)
        if self._is_classifier:
            values, classes = np.unique(rewards, return_inverse=True)
            if values.size > MOST_CLASSES:
                raise self._failed(arm, f"is a classifier, and rewards take {values.size:,} values: give a regressor")
            if values.size == 1:
                self._fitted[arm] = _Fitted(columns, None, n, values)
                self.n_fits += 1
                return
            rewards = classes
        model = fresh(self._model, (*self._seed, self.n_fits))
        try:
            model.fit(table, rewards)
        except Exception as error:
            raise self._failed(arm, f"cannot be fitted on {n:,} answers: {_said(error)}") from error
        self._fitted[arm] = _Fitted(columns, model, n, values)
        self.n_fits += 1

    def _with_arms(self, table: Any, arms: Ints) -> Any:
        """What a model for all arms sees beside the person: which arm it is, and its features."""
        if not self._is_named:
            return np.hstack([table, self._arms[arms]])
        import polars as pl

        names = np.array(self._problem.arm_names, dtype=object)
        features = self._arms[:, self._problem.n_arms :]
        return table.with_columns(
            pl.Series("arm", names[arms].tolist(), dtype=pl.String),
            *(pl.Series(f"arm_feature_{i}", column[arms]) for i, column in enumerate(features.T, start=1)),
        )

    def predict(self, contexts: Ints, traits: Floats) -> Floats:
        """(people, arms) what arms are thought to bring; NaN where there is no model yet."""
        n, n_arms = contexts.size, self._problem.n_arms
        found = np.full((n, n_arms), np.nan)
        if n == 0:
            return found
        for arm, fitted in self._fitted.items():
            if arm is not None:
                found[:, arm] = self._said_by(fitted, arm, fitted.columns.of(contexts, traits))
            else:
                each = fitted.columns.of(np.repeat(contexts, n_arms), np.repeat(traits, n_arms, axis=0))
                found[:] = self._said_by(fitted, None, self._with_arms(each, np.tile(np.arange(n_arms), n))).reshape(
                    n, n_arms
                )
        return found

    def _said_by(self, fitted: _Fitted, arm: int | None, x: Any) -> Floats:
        if fitted.model is None:
            return np.full(len(x), fitted.values[0])
        try:
            said = np.asarray(self._asked(fitted, x), dtype=np.float64)
        except Exception as error:
            raise self._failed(arm, f"cannot predict: {_said(error)}") from error
        if said.shape not in ((len(x),), (len(x), 1)):
            raise self._failed(arm, f"predicts an array of shape {said.shape} for {len(x)} rows: one number each")
        said = said.reshape(len(x))
        if not np.isfinite(said).all():
            worst = said[~np.isfinite(said)][0]
            raise self._failed(arm, f"predicts {worst}: predictions must be finite")
        return said

    def _asked(self, fitted: _Fitted, x: Any) -> Any:
        """What the model says: of a classifier, the mean of the rewards that its classes stand for."""
        model: Any = fitted.model
        if not self._is_classifier:
            return model.predict(x)
        shares = np.asarray(model.predict_proba(x), dtype=np.float64)
        classes = np.asarray(getattr(model, "classes_", np.arange(fitted.values.size)), dtype=np.int64)
        if shares.ndim != 2 or shares.shape[1] != classes.size:
            return shares  # refused with its shape
        return shares @ fitted.values[classes]

    def _failed(self, arm: int | None, what: str) -> ModelFailed:
        whose = "all arms" if arm is None else f"arm {shown(self._problem.arm_names[arm])}"
        remedy = f"try model.fit and model.predict on rows of {self._problem.n_traits} features by hand"
        return ModelFailed(f"the model {type(self._model).__name__} for {whose} {what}; {remedy}")


def is_classifier(model: object) -> bool:
    """Whether it says probabilities of classes; labels of a classifier are no expected rewards.

    Some only know once they are fitted, such as scikit-learn's `StackingClassifier`: a copy of these is.
    """
    if callable(getattr(model, "predict_proba", None)):
        return True
    if isinstance(model, type) or not callable(getattr(type(model), "predict_proba", None)):
        return False
    x = np.linspace(-1.0, 1.0, 60)[:, None]
    try:
        trial: Any = fresh(model, (0,))  # type: ignore[arg-type]
        trial.fit(x, np.arange(60) % 2)
    except Exception:  # noqa: BLE001  (whatever a model from elsewhere raises)
        return False
    return callable(getattr(trial, "predict_proba", None))


def is_classifier_without_probabilities(model: object) -> bool:
    """As a linear support vector machine of scikit-learn is, a pipeline that ends with one as well."""
    if is_classifier(model):
        return False
    try:
        from sklearn.base import is_classifier as says_so
    except ImportError:
        return False
    try:
        return bool(says_so(model))
    except Exception:  # noqa: BLE001  (whatever a model from elsewhere has instead of tags)
        return False


def takes_names(model: object) -> bool:
    """Whether any part of it selects columns by name, as a `ColumnTransformer` can."""
    parts = [model]
    if callable(getattr(model, "get_params", None)) and not isinstance(model, type):
        parts += list(model.get_params(deep=True).values())  # type: ignore[attr-defined]
    for part in parts:
        for entry in getattr(part, "transformers", None) or ():
            selected = entry[2] if isinstance(entry, tuple) and len(entry) == 3 else None
            if isinstance(selected, str) or callable(selected):
                return True
            if isinstance(selected, list | tuple) and any(isinstance(one, str) for one in selected):
                return True
    return False


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
