"""How a cost grows with a size: an exponent, fitted to what was measured, next to the one that the algorithm has.

The fit is by least squares on logarithms, over the large end: constants hide what grows. The bound of an exponent is
what the algorithm should cost (0, 1/2, 1 or 2) and a tolerance, the same for all figures of a kind, so that it says
something about the code and nothing about the day on which it was chosen.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LARGE_END = 4  # points, the largest: the exponent is theirs
# Memory leaves one cache after the other as it grows: twice the time over a decade and a half is 0.2, and no algorithm.
TOLERANCE = 0.2
COUNTED_TOLERANCE = 0.1  # where bytes are counted: only pages and powers of two are in the way
TRIES = 3  # before an exponent is over its bound: neighbours can only add to a time


@dataclass(frozen=True)
class Fit:
    """A line through logarithms."""

    exponent: float
    half_width: float  # of its 95% interval, by Student's t; inf for two points
    sizes: tuple[int, ...]  # over which it was fitted

    def __str__(self) -> str:
        interval = f" +- {self.half_width:.2f}" if math.isfinite(self.half_width) else ""
        return f"{self.exponent:.2f}{interval} over {self.sizes[0]:,} to {self.sizes[-1]:,}, {len(self.sizes)} points"


def fit(sizes: Sequence[int], costs: Sequence[float], *, points: int = LARGE_END) -> Fit:
    """Of the last so many points, or of all where there are fewer."""
    if len(sizes) != len(costs) or len(sizes) < 2:
        raise ValueError(f"{len(sizes)} sizes and {len(costs)} costs: there must be as many, and at least two")
    if min(sizes) <= 0 or min(costs) <= 0 or list(sizes) != sorted(set(sizes)):
        raise ValueError(f"sizes must ascend, and be above 0 as costs must: {tuple(sizes)}, {tuple(costs)}")
    x, y = np.log(sizes[-points:]), np.log(costs[-points:])
    if x.size == 2:
        return Fit(float((y[1] - y[0]) / (x[1] - x[0])), math.inf, tuple(sizes[-2:]))
    from_middle = x - x.mean()
    slope = float(from_middle @ y / (from_middle @ from_middle))
    residuals = y - y.mean() - slope * from_middle
    error = math.sqrt(residuals @ residuals / (x.size - 2) / (from_middle @ from_middle))
    return Fit(slope, float(stats.t.ppf(0.975, x.size - 2)) * error, tuple(sizes[-points:]))


@dataclass(frozen=True, kw_only=True)
class Growth:
    """One cost along one axis."""

    name: str  # "arms", "events/decide"
    of: str  # what grows: "arms", "events"
    unit: str  # of the cost: "us per round"
    order: float  # the exponent that the algorithm has
    why: str
    sizes: tuple[int, ...]
    costs: tuple[float, ...]
    tolerance: float = TOLERANCE

    @property
    def fit(self) -> Fit:
        return fit(self.sizes, self.costs)

    @property
    def bound(self) -> float:
        return self.order + self.tolerance

    @property
    def is_over(self) -> bool:
        return self.fit.exponent > self.bound

    @property
    def times(self) -> float:
        """The largest size in times of the smallest."""
        return self.costs[-1] / self.costs[0]

    def least(self, other: Growth) -> Growth:
        """Of two measurements of the same, the smaller cost at each size."""
        if (self.name, self.sizes) != (other.name, other.sizes):
            raise ValueError(f"{self.name} and {other.name} are not the same measurement")
        return dataclasses.replace(self, costs=tuple(map(min, self.costs, other.costs)))

    def __str__(self) -> str:
        costs = ", ".join(f"{size:,}: {cost:,.3g}" for size, cost in zip(self.sizes, self.costs, strict=True))
        return f"{self.fit}; {self.unit} {costs}"


def again_if_over(measure: Callable[[], Sequence[Growth]], *, tries: int = TRIES) -> list[Growth]:
    """What is over its bound is measured again, and the smaller cost of each size counts.

    That cannot hide what an algorithm costs: it is in every measurement.
    """
    found = {one.name: one for one in measure()}
    for _ in range(tries - 1):
        if not any(one.is_over for one in found.values()):
            break
        for one in measure():
            found[one.name] = found[one.name].least(one)
    return list(found.values())


def show(growths: Sequence[Growth]) -> None:
    """A table for people."""
    print(f"{'':32}{'exponent':>20}{'bound':>12}")
    for one in growths:
        found = one.fit
        over = "  OVER ITS BOUND" if one.is_over else ""
        exponent = f"{found.exponent:.2f} +- {found.half_width:.2f}"
        print(f"{one.name:32}{exponent:>20}{f'<= {one.bound:.2f}':>12}   {one}{over}")
