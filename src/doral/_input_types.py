"""Types of user input for type checkers: numbers, tables and columns. A string is none of these.

(NumPy's ArrayLike takes texts, and a text is a sequence of texts: `means="nonsense"` would pass.)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

NumberArray: TypeAlias = NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
Numbers: TypeAlias = Sequence[float] | NumberArray  # (n,)
# One sequence at each level, so that checkers take whole numbers and others in one list.
NumberTable: TypeAlias = Sequence[Sequence[float] | NumberArray] | NumberArray  # (n, m)
# (n, m), or (k, n, m)
NumberTables: TypeAlias = Sequence[Sequence[float | Sequence[float] | NumberArray] | NumberArray] | NumberArray
Words: TypeAlias = list[str] | tuple[str, ...] | NDArray[np.str_]  # a text alone would be a sequence of letters


class Frame(Protocol):
    """A data frame, of Polars, pandas or others: names of columns, and each by its name."""

    @property
    def columns(self) -> Any:
        """The names."""

    def __getitem__(self, key: Any, /) -> Any:
        """A column."""


class Series(Protocol):
    """A column of a data frame."""

    def to_numpy(self) -> Any:
        """Its values."""


Column: TypeAlias = list[Any] | tuple[Any, ...] | range | NDArray[Any] | Series
Columns: TypeAlias = Mapping[str, Column]

Duration: TypeAlias = str | float | timedelta  # "14d", or a number in the unit that is given
FilePath: TypeAlias = str | os.PathLike[str]
