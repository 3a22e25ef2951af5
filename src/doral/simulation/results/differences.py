"""Means over runs with intervals, and how much more one policy earns than another: paired runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Floats
from doral.numerics.elementary import weighted_sum
from doral.pages.names import short
from doral.pages.notebook import card, note, small_table
from doral.pages.numbers import DASH, count, number, spread

if TYPE_CHECKING:
    import polars as pl

CONFIDENCE = 0.95
FEWEST_RUNS = 3  # two give an interval 12.7 standard errors wide to each side


@dataclass(frozen=True, repr=False)
class Interval:
    """A mean with its standard error and a 95% interval (Student's t); unknown (NaN) from fewer than 3 runs.

    Attributes:
        mean: Over the runs.
        se: Its standard error.
        low: The lower end of the interval.
        high: The upper end.
    """

    mean: float
    se: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"<Interval: {number(self.mean, 3)} {spread(self.low, self.high, 3)}>"


UNKNOWN = Interval(float("nan"), float("nan"), float("nan"), float("nan"))


def interval(sample: Floats) -> Interval:
    """Return the mean of independent runs; with fewer than `FEWEST_RUNS`, nothing else is known."""
    n = sample.size
    mean = float(sample.mean()) if n else float("nan")
    if n < FEWEST_RUNS:
        return replace(UNKNOWN, mean=mean)
    se = float(float(sample.std(ddof=1)) / np.sqrt(n))
    reach = se * t_quantile(n - 1)
    return Interval(mean, se, mean - reach, mean + reach)


@cache
def t_quantile(degrees: float) -> float:
    """Return how many standard errors a confidence interval reaches to each side.

    SciPy takes longer to start than a short simulation to run, so it is asked only where `_within` is no short sum.
    """
    if degrees > 1_000 or degrees != int(degrees):
        from scipy.special import stdtrit

        return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2.0))
    low, high = 0.0, math.pi / 2.0  # of atan(t / sqrt(degrees))
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if _within(middle, int(degrees)) < CONFIDENCE else (low, middle)
    return math.tan(high) * math.sqrt(degrees)


def _within(angle: float, degrees: int) -> float:
    """Return P(|t| <= sqrt(degrees) * tan(angle)), a finite sum: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    is_odd = degrees % 2 == 1
    term, total = math.cos(angle) if is_odd else 1.0, 0.0
    for k in range(3 if is_odd else 2, degrees + 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (k - 1) / k
    return 2.0 / math.pi * (angle + math.sin(angle) * total) if is_odd else math.sin(angle) * total


_LINE = 80  # letters on a terminal
_MOST_DIGITS = 15  # after the point
_WIDEST = 14  # letters of a name at the head of a column on a terminal


@dataclass(frozen=True, kw_only=True, repr=False)
class Difference:
    """What `policy` earns more than `than`, in runs that both played with the same draws.

    The interval of the percentage is Fieller's: all ratios of the two means that the paired runs do not contradict. It
    is exact for normal rewards, however few the runs, and covers 0 exactly where the interval of the difference does.

    Attributes:
        policy: The one.
        than: The other.
        scenario: Where they played.
        metric: Which rewards count, see `SimulationResult.summary`.
        runs: Pairs of runs.
        mean: Reward of `policy` less that of `than`, on average over the runs.
        low: The lower end of its 95% interval (Student's t); None with fewer than 3 runs.
        high: The upper end.
        percent: The difference in percent of what `than` earns; None where that is not above 0 for certain.
        percent_low: The lower end of its 95% interval; None with fewer than 3 runs.
        percent_high: The upper end.
        is_same: Whether the two earned the same in every run.
    """

    policy: str
    than: str
    scenario: str
    metric: str
    runs: int
    mean: float
    low: float | None
    high: float | None
    percent: float | None
    percent_low: float | None
    percent_high: float | None
    is_same: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether the runs show a difference: the interval leaves 0 out. Fewer than 3 runs show nothing."""
        return self.low is not None and self.high is not None and (self.low > 0.0 or self.high < 0.0)

    def __str__(self) -> str:
        pairs = count(self.runs, "paired run", "paired runs")
        if self.is_same:
            return f"{self.policy} and {self.than} earn the same, {pairs}"
        if self.low is None or self.is_shown:
            is_less, few = self.mean < 0.0, "" if self.low is not None else ": too few for an interval"
            if self.mean == 0.0:
                return f"{self.policy} and {self.than} earn the same on average, {pairs}{few}"
            words = "less" if is_less else "more"
            amount, ends = self._amount(-1.0 if is_less else 1.0)
            return f"{self.policy} earns {amount} {words} than {self.than}{ends}, {pairs}{few}"
        amount, ends = self._amount(1.0, signed=True)
        return f"no difference shown between {self.policy} and {self.than}: {amount}{ends}, {pairs}"

    def _amount(self, sign: float, *, signed: bool = False) -> tuple[str, str]:
        """The difference, in percent where that is known, and its interval in brackets, or nothing."""
        if self.percent is not None:
            mean, ends, unit = self.percent, (self.percent_low, self.percent_high), "%"
        else:
            mean, ends, unit = self.mean, (self.low, self.high), ""
        low, high = ends
        known = [one for one in (mean, low, high) if one is not None and math.isfinite(one)]
        digits = 1 if unit and max(map(abs, known), default=0.0) >= 0.1 else _digits(known)
        if not signed:  # what is shown is more than nothing, also when it is rounded
            digits = max([digits, *(_first_digit(one) for one in known)])
        said = number(sign * mean, digits, signed=signed) + unit
        if low is None or high is None:
            return said, ""
        low, high = sorted((sign * low, sign * high))
        return said, f" {spread(low, high, digits)}"

    def __repr__(self) -> str:
        return f"<Difference: {short(str(self), 180)}>"

    def _repr_html_(self) -> str:
        of_difference = "" if self.low is None else f" {spread(self.low, self.high, 2)}"
        facts = [
            ("scenario", self.scenario),
            ("difference of rewards", number(self.mean, 2, signed=True) + of_difference),
        ]
        return card(str(self), facts)


@dataclass(frozen=True, repr=False)
class Differences:
    """All pairs of policies, by scenario: a matrix where it is shown, and one row for each in `frame()`.

    Attributes:
        pairs: Every ordered pair, as a `Difference`.
    """

    pairs: tuple[Difference, ...]

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def frame(self) -> pl.DataFrame:
        """One row for each ordered pair: the columns are those of `Difference`, and `is_shown`."""
        import polars as pl

        words = ("scenario", "policy", "than", "metric")
        numbers = ("mean", "low", "high", "percent", "percent_low", "percent_high")
        schema = {
            **dict.fromkeys(words, pl.String),
            "runs": pl.Int64,
            **dict.fromkeys(numbers, pl.Float64),
            "is_shown": pl.Boolean,
        }
        return pl.DataFrame([{name: getattr(one, name) for name in schema} for one in self.pairs], schema=schema)

    def _matrices(self) -> Iterator[tuple[str, list[str], list[list[str]]]]:
        """Per scenario its policies, and what those of the rows earn more than those of the columns."""
        for scenario in dict.fromkeys(one.scenario for one in self.pairs):
            mine = {(one.policy, one.than): one for one in self.pairs if one.scenario == scenario}
            policies = list(dict.fromkeys(policy for policy, _ in mine))
            rows = [[_entry(mine.get((policy, than))) for than in policies] for policy in policies]
            yield scenario, policies, rows

    def __repr__(self) -> str:
        n = len({one.scenario for one in self.pairs})
        return f"<Differences: {count(len(self.pairs), 'pair', 'pairs')} in {count(n, 'scenario', 'scenarios')}>"

    def __str__(self) -> str:
        lines: list[str] = []
        for scenario, policies, rows in self._matrices():
            heads = [short(policy, _WIDEST) for policy in policies]
            width = max(len(one) for one in (*heads, *(entry for row in rows for entry in row)))
            at_a_time = max(1, (_LINE - width) // (width + 2))
            lines.append(scenario)
            for first in range(0, len(policies), at_a_time):
                mine = slice(first, first + at_a_time)
                lines.append("  ".join([" " * width, *(f"{one:>{width}}" for one in heads[mine])]))
                lines += [
                    "  ".join([f"{head:<{width}}", *(f"{one:>{width}}" for one in row[mine])])
                    for head, row in zip(heads, rows, strict=True)
                ]
        return "\n".join([*lines, *_LEGEND])

    def _repr_html_(self) -> str:
        parts = []
        for scenario, policies, rows in self._matrices():
            body = [[policy, *row] for policy, row in zip(policies, rows, strict=True)]
            parts += [note(scenario), small_table(["", *policies], body, numbers=range(1, len(policies) + 1))]
        return card("Differences of policies", parts=[*parts, note(" ".join(_LEGEND))])


_LEGEND = ("Rows less columns, in percent of the column (*: in rewards).", "In brackets: no difference shown.")


def _entry(one: Difference | None) -> str:
    if one is None:
        return DASH
    digits = max(1, _first_digit(one.percent)) if one.percent is not None and one.is_shown else 1
    words = f"{number(one.percent, digits, signed=True)}%" if one.percent is not None else _rewards(one.mean)
    return words if one.is_shown else f"({words})"


def _rewards(mean: float) -> str:
    return f"{number(mean, _digits([mean]), signed=True)}*"


def _digits(values: Sequence[float]) -> int:
    """So many that the largest has three that mean something."""
    largest = max((abs(one) for one in values if math.isfinite(one)), default=0.0)
    return 1 if largest == 0.0 or largest >= 100.0 else min(_MOST_DIGITS, 2 - math.floor(math.log10(largest)))


def _first_digit(value: float) -> int:
    """So many that it is not rounded to 0."""
    return 0 if abs(value) >= 1.0 or value == 0.0 else min(_MOST_DIGITS, -math.floor(math.log10(abs(value))))


def difference_of(mine: Floats, theirs: Floats, *, policy: str, than: str, scenario: str, metric: str) -> Difference:
    """Of rewards by run, in the same order."""
    runs, paired = mine.size, interval(mine - theirs)
    has_interval = runs >= FEWEST_RUNS
    ratio = _ratio(mine, theirs) if has_interval else _ratio_of_few(mine, theirs)
    percents = [None if one is None else 100.0 * (one - 1.0) for one in ratio]
    return Difference(
        policy=policy,
        than=than,
        scenario=scenario,
        metric=metric,
        runs=runs,
        mean=paired.mean,
        low=paired.low if has_interval else None,
        high=paired.high if has_interval else None,
        percent=percents[0],
        percent_low=percents[1],
        percent_high=percents[2],
        is_same=bool((mine == theirs).all()),
    )


_Ratio = tuple[float | None, float | None, float | None]
_UNKNOWN: _Ratio = (None, None, None)


def _ratio_of_few(mine: Floats, theirs: Floats) -> _Ratio:
    below = float(theirs.mean())
    return _UNKNOWN if below <= 0.0 or theirs.min() <= 0.0 else (float(mine.mean()) / below, None, None)


def _ratio(mine: Floats, theirs: Floats) -> _Ratio:
    """mean(mine) / mean(theirs) and its 95% interval by Fieller (1954): all r with |mean(mine - r theirs)| within t
    standard errors, the roots of a r^2 - 2 b r + c. Where `theirs` may as well be 0 there is no such interval.
    """
    n, x, y = mine.size, float(mine.mean()), float(theirs.mean())
    reach = t_quantile(n - 1) ** 2 / n
    if y <= 0.0 or y**2 <= reach * theirs.var(ddof=1):
        return _UNKNOWN
    ratio = x / y
    # The same about the estimate: with residuals e = mine - ratio theirs, whose mean is 0, r = ratio + d solves
    # (y^2 - k var) d^2 + 2 k cov(e, theirs) d - k var(e) = 0. Nothing cancels where the two are nearly equal.
    residual = mine - ratio * theirs
    centred = theirs - y
    a = y**2 - reach * weighted_sum(centred, centred) / (n - 1)
    b = reach * weighted_sum(residual, centred) / (n - 1)
    c = reach * weighted_sum(residual, residual) / (n - 1)
    root = math.sqrt(b**2 + a * c)
    return ratio, ratio + (-b - root) / a, ratio + (-b + root) / a


def pairs_of(rewards: dict[str, Floats], *, scenario: str, metric: str) -> list[Difference]:
    """Every ordered pair of the policies of a scenario."""
    return [
        difference_of(mine, theirs, policy=policy, than=than, scenario=scenario, metric=metric)
        for policy, mine in rewards.items()
        for than, theirs in rewards.items()
        if policy != than
    ]
