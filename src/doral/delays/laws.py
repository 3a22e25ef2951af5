"""Delay laws, each with its formula, its checks and its form for compiled code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.delays import kernels
from doral.delays.law import Law, LawCode, law_code, plain_values
from doral.errors import InvalidValue, UnknownName
from doral.numerics.elementary import expm1, log, raised

MAX_EMPIRICAL_VALUES = 10**7
_FEW = 8  # which are shown in full


@dataclass(frozen=True)
class Geometric(Law):
    """1, 2, 3, ... rounds: the answer comes with the same chance, 1/mean, in every round after the decision.

    Args:
        mean: The mean delay in rounds, at least 1.
    """

    mean: float

    def __post_init__(self) -> None:
        _check.set_fields(self, mean=_check.finite_number("mean of Geometric", self.mean, at_least=1))

    @property
    def _log_miss(self) -> float:
        """The logarithm of the chance that one round brings no answer."""
        return math.log1p(-1 / self.mean) if self.mean > 1 else -math.inf

    def _returned_by(self, ages: Floats) -> Floats:
        rounds = np.floor(ages)
        # 0 rounds times -inf (mean 1) has no value; before the first round nothing has come
        return np.where(rounds < 1, 0.0, -expm1(np.maximum(rounds, 1.0) * self._log_miss))

    def encode(self) -> LawCode:
        return law_code(kernels.GEOMETRIC, self.mean, self._log_miss)


@dataclass(frozen=True)
class Pareto(Law):
    """The classical Pareto law, P(D > x) = (minimum / x) ** shape from `minimum` on. A heavy tail: the mean is
    infinite for a shape of 1 or less, the variance for 2 or less.

    Args:
        minimum: The shortest delay, in rounds; above 0.
        shape: How quickly the tail falls: the smaller, the heavier. Above 0.
    """

    minimum: float
    shape: float

    def __post_init__(self) -> None:
        _check.set_fields(
            self,
            minimum=_check.finite_number("minimum of Pareto", self.minimum, above=0),
            shape=_check.finite_number("shape of Pareto", self.shape, above=0),
        )

    @property
    def mean(self) -> float:
        """The mean delay in rounds, `math.inf` where it is infinite."""
        return self.minimum * self.shape / (self.shape - 1) if self.shape > 1 else math.inf

    def _returned_by(self, ages: Floats) -> Floats:
        return -expm1(self.shape * log(self.minimum / np.maximum(ages, self.minimum)))

    def encode(self) -> LawCode:
        return law_code(kernels.PARETO, self.minimum, self.shape)


@dataclass(frozen=True)
class Lognormal(Law):
    """The logarithm of the delay is normal: half the answers come by `median`, and `sigma` is the spread in logs.

    Args:
        median: The delay by which half of the answers have come, in rounds; above 0.
        sigma: The standard deviation of the logarithm of the delay; above 0.
    """

    median: float
    sigma: float

    def __post_init__(self) -> None:
        _check.set_fields(
            self,
            median=_check.finite_number("median of Lognormal", self.median, above=0),
            sigma=_check.finite_number("sigma of Lognormal", self.sigma, above=0, hint="; without spread, use Fixed"),
        )

    @property
    def mean(self) -> float:
        """The mean delay in rounds, `math.inf` where it is infinite."""
        try:
            return self.median * math.exp(self.sigma * self.sigma / 2)
        except OverflowError:
            return math.inf

    def _returned_by(self, ages: Floats) -> Floats:
        from scipy.special import ndtr  # here, to keep SciPy's start-up time out of `import doral.delays`

        chances: Floats = ndtr((log(ages) - math.log(self.median)) / self.sigma)
        return chances

    def encode(self) -> LawCode:
        return law_code(kernels.LOGNORMAL, self.median, self.sigma)


@dataclass(frozen=True)
class Weibull(Law):
    """P(D > x) = exp(-(x / scale) ** shape): the longer the wait the less likely an answer, for a shape below 1.

    Args:
        scale: The delay by which 63% of the answers have come, in rounds; above 0.
        shape: Below 1 waiting makes an answer ever less likely, above 1 ever more. Above 0.
    """

    scale: float
    shape: float

    def __post_init__(self) -> None:
        _check.set_fields(
            self,
            scale=_check.finite_number("scale of Weibull", self.scale, above=0),
            shape=_check.finite_number("shape of Weibull", self.shape, above=0),
        )

    @property
    def mean(self) -> float:
        """The mean delay in rounds, `math.inf` where it is infinite."""
        try:
            return self.scale * math.gamma(1 + 1 / self.shape)
        except OverflowError:
            return math.inf

    def _returned_by(self, ages: Floats) -> Floats:
        return -expm1(-raised(ages / self.scale, self.shape))

    def encode(self) -> LawCode:
        return law_code(kernels.WEIBULL, self.scale, self.shape)


@dataclass(frozen=True)
class Exponential(Law):
    """P(D > x) = exp(-x / mean): however long one has waited, an answer is as likely as before.

    Args:
        mean: The mean delay in rounds; above 0.
    """

    mean: float

    def __post_init__(self) -> None:
        _check.set_fields(self, mean=_check.finite_number("mean of Exponential", self.mean, above=0))

    def _returned_by(self, ages: Floats) -> Floats:
        return -expm1(-ages / self.mean)

    def encode(self) -> LawCode:
        return law_code(kernels.EXPONENTIAL, self.mean)


@dataclass(frozen=True)
class Fixed(Law):
    """Always the same delay; 0 is an answer at once.

    Args:
        delay: The delay in rounds, from 0.
    """

    delay: float

    def __post_init__(self) -> None:
        hint = "; an answer that never comes is Never(law, p=1)"
        _check.set_fields(self, delay=_check.finite_number("delay of Fixed", self.delay, at_least=0, hint=hint))

    @property
    def mean(self) -> float:
        """The mean delay in rounds, `math.inf` where it is infinite."""
        return self.delay

    def _returned_by(self, ages: Floats) -> Floats:
        return np.where(ages >= self.delay, 1.0, 0.0)

    def encode(self) -> LawCode:
        return law_code(kernels.FIXED, self.delay)


@dataclass(frozen=True, init=False)
class Empirical(Law):
    """One of the observed delays, each equally likely; `math.inf` among them is an answer that never came.

    They are kept in ascending order.

    Args:
        values: The delays, in rounds, from 0; a list or an array.
    """

    values: tuple[float, ...]

    # Written out, because what is accepted (any list, any array) is wider than what is stored.
    def __init__(self, values: _check.FloatsLike) -> None:
        given = _check.items("values of Empirical", values, what="delays", at_most=MAX_EMPIRICAL_VALUES)
        _check.set_fields(self, values=tuple(sorted(_checked_delay(value) for value in given)))

    def __repr__(self) -> str:
        if len(self.values) <= _FEW:
            return f"Empirical(values={self.values})"
        low, middle, high = self.values[0], self.values[len(self.values) // 2], self.values[-1]
        return f"<Empirical: {len(self.values):,} delays from {low:g} to {high:g}, median {middle:g}>"

    @property
    def mean(self) -> float:
        """The mean delay in rounds, `math.inf` where it is infinite."""
        if self.values[-1] == math.inf:
            return math.inf
        return math.fsum(self.values) / len(self.values)

    def _returned_by(self, ages: Floats) -> Floats:
        table = np.array(self.values)
        # At an age of inf too, only the finite ones have come.
        n_returned = np.searchsorted(table[np.isfinite(table)], ages, side="right")
        return np.asarray(n_returned / table.size, dtype=np.float64)

    def encode(self) -> LawCode:
        return law_code(kernels.EMPIRICAL, values=np.array(self.values))


@dataclass(frozen=True)
class Never(Law):
    """With probability `p` no answer ever comes; otherwise it comes after a delay from `law`.

    Args:
        law: The law of the delays of those that come.
        p: The probability that none comes, from 0 to 1.

    One inside another becomes one:

    >>> Never(Never(Fixed(3), 0.5), 0.5)
    Never(law=Fixed(delay=3.0), p=0.75)
    """

    law: Law
    p: float

    def __post_init__(self) -> None:
        law = _checked_law("law of Never", self.law)
        p = _check.finite_number("p of Never", self.p, at_least=0, at_most=1)
        if isinstance(law, Never):
            p = law.p + p * (1 - law.p)
            law = law.law
        _check.set_fields(self, law=law, p=p)

    @property
    def mean(self) -> float:
        """The mean delay in rounds, `math.inf` where it is infinite."""
        return math.inf if self.p > 0 else self.law.mean

    def _returned_by(self, ages: Floats) -> Floats:
        return (1 - self.p) * self.law._returned_by(ages)

    def encode(self) -> LawCode:
        return self.law.encode()._replace(never=self.p)


@dataclass(frozen=True, kw_only=True)
class ByOutcome:
    """The delay depends on the reward: one law for rewards above `threshold`, another for the rest.

    For scenarios only. It has no return probability of its own, because that would depend on the rewards.

    Args:
        above: The law of the delay of rewards above the threshold.
        below: The law of the delay of all other rewards.
        threshold: A reward. Default 0.5, between a failure of 0 and a success of 1.
    """

    above: Law
    below: Law
    threshold: float = 0.5

    def __post_init__(self) -> None:
        _check.set_fields(
            self,
            above=_checked_law("above of ByOutcome", self.above),
            below=_checked_law("below of ByOutcome", self.below),
            threshold=_check.finite_number("threshold of ByOutcome", self.threshold),
        )

    def given(self, reward: float) -> Law:
        """The law of the delay of this reward.

        Args:
            reward: The reward of a decision.
        """
        return self.above if _check.finite_number("reward", reward) > self.threshold else self.below

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold; `delays.from_dict` gives an equal law back."""
        return plain_values(self)


AnyLaw: TypeAlias = Law | ByOutcome


def _checked_law(field: str, value: object) -> Law:
    if not isinstance(value, Law):
        raise InvalidValue(field, value, "must be a delay law with a return probability, such as Geometric(mean=300)")
    return value


def _checked_delay(value: object) -> float:
    if isinstance(value, float) and value == math.inf:
        return math.inf
    return _check.finite_number(
        "values of Empirical", value, at_least=0, hint="; math.inf for an answer that never came"
    )


_KINDS: tuple[type[AnyLaw], ...] = (
    Geometric, Pareto, Lognormal, Weibull, Exponential, Fixed, Empirical, Never, ByOutcome
)  # fmt: skip
LAWS: dict[str, type[AnyLaw]] = {law.__name__: law for law in _KINDS}
MAX_NESTED_LAWS = 8


def from_dict(data: Mapping[str, Any]) -> AnyLaw:
    """The law that `to_dict` wrote, with every check made again.

    Args:
        data: A mapping with the name of the law as "type", and its parameters.

    >>> from_dict({"type": "Pareto", "minimum": 400, "shape": 2})
    Pareto(minimum=400.0, shape=2.0)
    """
    return _from_dict(data, levels_left=MAX_NESTED_LAWS)


def _from_dict(data: object, *, levels_left: int) -> AnyLaw:
    if not isinstance(data, Mapping) or "type" not in data:
        raise InvalidValue("delay law", data, 'must be a mapping with a "type"')
    if levels_left == 0:
        raise InvalidValue("delay law", data, f"must not be nested deeper than {MAX_NESTED_LAWS} levels")
    type_name = data["type"]
    if not isinstance(type_name, str) or type_name not in LAWS:
        raise UnknownName("delay law", type_name, LAWS)
    law = LAWS[type_name]
    names = [field.name for field in fields(law)]
    given = _check.keys(type_name, data, required=("type", *names))
    arguments: dict[str, Any] = {}
    for name in names:
        value = given[name]
        if isinstance(value, Mapping):
            value = _from_dict(value, levels_left=levels_left - 1)
        elif isinstance(value, list):
            value = [math.inf if item is None else item for item in value]
        arguments[name] = value
    return law(**arguments)
