"""From what is known of a person to the columns of a line.

Numbers come in any unit. They are centred and scaled by those of the first who came, so that nobody has to prepare
them; a number farther out than `FARTHEST` scales counts as just that: a line says nothing of what nobody has seen.

    columns    1,  z_i,  (z_i - knot)+ for splines,  z_i z_l for products on request       each centred and scaled

Until those first have come, all are alike: only the constant is there. What they are answered teaches how much arms
bring on average, and no more than that.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from doral._arrays import Array, Floats, Ints
from doral.compiled import kernel, rare

FARTHEST = 10.0  # scales from the centre
ROUNDING = 1e-13  # of a number: who differ by less are alike
KNOTS = 4  # of a number, at equal shares of those who came

LINEAR = -math.inf  # in place of a knot: the number itself


class Design(NamedTuple):
    """Of p columns, the first of which is 1, from n numbers."""

    number: Annotated[Ints, Array("n", index="m")]  # where each number is among the features of a person
    centre: Annotated[Floats, Array("n")]
    scale: Annotated[Floats, Array("n")]  # 0: not known yet
    first: Annotated[Ints, Array("p", fill=-1, index="n")]  # the number that a column is made of; -1: the constant
    second: Annotated[Ints, Array("p", fill=-1, index="n")]  # the number that it is multiplied with; -1: none
    knot: Annotated[Floats, Array("p")]  # LINEAR, or the rank of the knot, and then where it is
    shift: Annotated[Floats, Array("p")]  # the mean of the column
    unit: Annotated[Floats, Array("p", fill=1.0)]  # its scale
    group: Annotated[Ints, Array("p")]  # columns that tell the same thing are thought to matter as much
    z: Annotated[Floats, Array("n")]  # scratch
    is_known: Annotated[Ints, Array("1")]  # 1: the first have come


def new_design(*, numbers: list[int], splines: bool, products: list[tuple[int, int]]) -> Design:
    """`products` are pairs of places in `numbers`."""
    columns: list[tuple[int, int, float]] = [(-1, -1, LINEAR)]
    for i in range(len(numbers)):
        columns.append((i, -1, LINEAR))
        columns.extend((i, -1, float(rank)) for rank in range(KNOTS if splines else 0))
    columns.extend((i, other, LINEAR) for i, other in products)
    first, second, knot = (np.array(one) for one in zip(*columns, strict=True))
    group: dict[tuple[int, int, bool], int] = {}
    groups = [group.setdefault((one, two, at != LINEAR), len(group)) for one, two, at in columns]
    return Design(
        number=np.array(numbers, dtype=np.int64),
        centre=np.zeros(len(numbers)),
        scale=np.zeros(len(numbers)),
        first=first.astype(np.int64),
        second=second.astype(np.int64),
        knot=knot.astype(np.float64),
        shift=np.zeros(len(columns)),
        unit=np.ones(len(columns)),
        group=np.array(groups, dtype=np.int64),
        z=np.zeros(len(numbers)),
        is_known=np.zeros(1, dtype=np.int64),
    )


@kernel
def set_columns(design: Design, traits: Floats, columns: Floats) -> None:
    """The columns of a person; what is missing is as it is on average."""
    columns[0] = 1.0
    if design.is_known[0] == 0:
        for i in range(1, columns.size):
            columns[i] = 0.0
        return
    _set_z(design, traits)
    for i in range(1, columns.size):
        columns[i] = (_raw(design, i) - design.shift[i]) / design.unit[i]


@kernel
def _set_z(design: Design, traits: Floats) -> None:
    """Numbers, centred and scaled."""
    z = design.z
    for i in range(z.size):
        number = (traits[design.number[i]] - design.centre[i]) / design.scale[i]
        z[i] = 0.0 if math.isnan(number) else min(max(number, -FARTHEST), FARTHEST)


@kernel
def _raw(design: Design, column: int) -> float:
    value = design.z[design.first[column]]
    if design.knot[column] != LINEAR:
        return max(value - design.knot[column], 0.0)
    if design.second[column] >= 0:
        value *= design.z[design.second[column]]
    return value


@rare
def learn_design(design: Design, traits: Floats, first: int, n: int, sorted_: Floats) -> None:
    """Learn centres, scales and knots from n rows of traits; `sorted_` (at least n,) is scratch."""
    for i in range(design.number.size):
        known = 0
        for row in range(first, first + n):
            value = traits[row, design.number[i]]
            if not math.isnan(value):
                sorted_[known] = value
                known += 1
        mean, square = _moments(sorted_, known)
        design.centre[i] = mean
        varies = math.sqrt(square) > ROUNDING * abs(mean)
        design.scale[i] = math.sqrt(square) if varies else (abs(mean) if mean != 0.0 else 1.0)
        _sort(sorted_, known)
        for column in range(1, design.first.size):
            if design.first[column] == i and design.knot[column] != LINEAR and design.second[column] < 0:
                at = min(int((design.knot[column] + 1.0) / (KNOTS + 1.0) * known), max(known - 1, 0))
                value = sorted_[at] if known > 0 else 0.0
                design.knot[column] = (value - design.centre[i]) / design.scale[i]
    design.is_known[0] = 1
    for column in range(1, design.first.size):
        for row in range(n):
            _set_z(design, traits[first + row])
            sorted_[row] = _raw(design, column)
        mean, square = _moments(sorted_, n)
        design.shift[column], design.unit[column] = mean, math.sqrt(square) if square > 1e-12 else 1.0


@kernel
def _moments(values: Floats, n: int) -> tuple[float, float]:
    """Mean and variance of the first n."""
    if n == 0:
        return 0.0, 0.0
    mean, square = 0.0, 0.0
    for i in range(n):
        mean += values[i] / n
    for i in range(n):
        square += (values[i] - mean) * (values[i] - mean) / n
    return mean, square


@rare
def _sort(values: Floats, n: int) -> None:
    for i in range(1, n):
        value, to = values[i], i
        while to > 0 and values[to - 1] > value:
            values[to] = values[to - 1]
            to -= 1
        values[to] = value
