"""The options of `doral.read_log`, where other functions hand them on: a test compares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from doral._given import FilePath, Frame
from doral.log.columns import Chosen
from doral.log.strata import Strata
from doral.problem import Feedback

if TYPE_CHECKING:
    import polars as pl

    from doral.log.log import Log

LogSource: TypeAlias = "FilePath | pl.DataFrame | pl.LazyFrame | Frame | Mapping[str, Any]"
AnyLog: TypeAlias = "Log | LogSource"


class ColumnOptions(TypedDict, total=False):
    """All but `name`."""

    time: Chosen
    context: str | Sequence[str] | None
    arm: str | None
    reward: Chosen
    answered: Chosen
    delay: Chosen
    cost: Chosen
    paid: Chosen
    probability: Chosen
    observed_until: str | datetime | date | float | None
    key: Chosen
    time_unit: str | None
    delay_unit: str | None
    feedback: Feedback | None
    positive: str | Sequence[str] | None
    nothing: str | Sequence[str] | None
    arms: Sequence[str] | None
    strata: Strata
    max_rows: int


class ReadOptions(ColumnOptions, total=False):
    """All."""

    name: str | None
