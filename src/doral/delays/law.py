"""The interface of delay laws: sampling, return probability by age, conversion to plain values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from doral import _check
from doral._arrays import Floats
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class LawCode(NamedTuple):
    """A law as compiled code takes it: its number, its parameters, and the ascending table of an empirical one.

    Attributes:
        kind: The number of the law.
        a: Its first parameter.
        b: Its second parameter.
        never: The probability that no answer comes.
        values: The observed delays of an empirical law, ascending; else empty.
    """

    kind: int
    a: float
    b: float
    never: float
    values: Floats


@dataclass(frozen=True)
class Law(ABC):
    """A delay law; make one of those in `doral.delays`."""

    if TYPE_CHECKING:  # a real property here would take the place of the field `mean` that some laws have

        @property
        @abstractmethod
        def mean(self) -> float:
            """The mean delay in rounds, `math.inf` where it is infinite."""

    @abstractmethod
    def encode(self) -> LawCode:
        """The law in the form of the compiled simulator."""

    @abstractmethod
    def _returned_by(self, ages: Floats) -> Floats:
        """P(D <= age), for ages that are not negative; infinity is one of them."""

    def sample(self, uniforms: ArrayLike) -> Floats:
        """The delays at probabilities in [0, 1) (inverse transform), in the shape given; `inf` means never.

        Args:
            uniforms: Probabilities from 0 to below 1, in an array of any shape.
        """
        # Here and not above: describing a law is to stay free of the compiler and its start-up time.
        from doral.compiled import Block
        from doral.delays.kernels import DELAYS, Sample

        remedy = "must all be numbers from 0 to below 1"
        array = _checked_floats("uniforms", uniforms, remedy)
        if not np.all((array >= 0) & (array < 1)):
            raise InvalidValue("uniforms", uniforms, remedy)
        delays = np.empty_like(array)
        kind, a, b, never, values = self.encode()
        DELAYS["fill_delays"](Block(Sample(array.reshape(-1), values, delays.reshape(-1))), kind, a, b, never)
        return delays

    @overload
    def return_probability(self, age: float) -> float: ...

    @overload
    def return_probability(self, age: _check.FloatsLike) -> Floats: ...

    def return_probability(self, age: float | _check.FloatsLike) -> float | Floats:
        """The chance that the answer has come by this age in rounds; at `math.inf`, that it comes at all.

        Args:
            age: Rounds since the decision: a number, or several.
        """
        remedy = "must be a number of rounds"
        ages = _checked_floats("age", age, remedy)
        if np.any(np.isnan(ages)):
            raise InvalidValue("age", age, remedy)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):  # the limits at 0 and inf are right
            chances = np.where(ages < 0, 0.0, self._returned_by(np.maximum(ages, 0.0)))
        chances += 0.0  # a -0.0 becomes 0.0
        return float(chances) if np.isscalar(age) else chances

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold; `delays.from_dict` gives an equal law back."""
        return plain_values(self)


def plain_values(law: DataclassInstance) -> dict[str, Any]:
    """The type and the parameters of a law, and of those inside it."""
    data: dict[str, Any] = {"type": type(law).__name__}
    for field in fields(law):
        value = getattr(law, field.name)
        if isinstance(value, Law):
            value = value.to_dict()
        elif isinstance(value, tuple):
            value = [None if item == math.inf else item for item in value]  # JSON has no infinity
        data[field.name] = value
    return data


def law_code(kind: int, a: float = 0.0, b: float = 0.0, *, values: Floats | None = None) -> LawCode:
    """The code of a law whose answers all come in the end."""
    return LawCode(kind, a, b, never=0.0, values=np.empty(0) if values is None else values)


def _checked_floats(field: str, value: ArrayLike, remedy: str) -> Floats:
    """Return a fresh array in row order: compiled code knows one memory layout."""
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InvalidValue(field, value, remedy) from None
    return array
