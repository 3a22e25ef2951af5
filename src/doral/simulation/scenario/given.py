"""What a scenario is given, for type checkers: tables by context or by person, people, and laws that draw them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from doral._given import Column, Columns, Frame, NumberArray, Numbers, NumberTable, NumberTables
from doral.delays import AnyLaw
from doral.simulation.scenario.crowd import Crowd, Table
from doral.simulation.scenario.rows import Rows

Law: TypeAlias = Callable[..., Any]
ArmLaws: TypeAlias = AnyLaw | Sequence[AnyLaw] | Mapping[str, AnyLaw]
DelaysLike: TypeAlias = ArmLaws | Mapping[str, ArmLaws] | tuple[tuple[AnyLaw, ...], ...]
MeansLike: TypeAlias = NumberTables | Law | Table
BaselineLike: TypeAlias = float | Numbers | Law | Table
AvailabilityLike: TypeAlias = float | Numbers | Mapping[str, float]
CellRows: TypeAlias = NumberTable  # (reward, delay), or (reward, delay, cost)
RowsLike: TypeAlias = Mapping[str, Mapping[str, CellRows]] | tuple[Sequence[CellRows], ...] | Rows
RowWeightsLike: TypeAlias = Mapping[str, Mapping[str, Numbers]] | tuple[Sequence[Numbers], ...]
PaidLike: TypeAlias = Literal["always", "on_success", "by_row"] | NumberTable | Law | Table
PeopleLike: TypeAlias = (
    NDArray[Any]
    | Frame
    | Columns
    | Sequence[Mapping[str, Any]]
    | Sequence[list[Any]]
    | Sequence[tuple[Any, ...]]
    | Law
    | Crowd
)
ClassesLike: TypeAlias = Column
SpeedLike: TypeAlias = Numbers | Law | Table
FrequenciesLike: TypeAlias = Sequence[float | Sequence[float] | NumberArray] | NumberArray | Law | Table
