"""What is left out of a log, and why; and which values lie so far off that they can only be slips."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Flags, Floats, Ints
from doral.errors import InvalidValue
from doral.logs.log import Dropped

if TYPE_CHECKING:
    import polars as pl

_EXAMPLES = 3
_LEVEL = 0.01  # of all tests together: the k-th has its share of 2^-k
_SHOWN_CHARACTERS = 60
# With so many rows of so many kinds, the halves of a table are equal by chance less often than once in 10^9.
_FEWEST_COPIED, _FEWEST_DIFFERENT = 60, 3


class Sieve:
    """The rows of a file of which some are left out, each for one reason."""

    def __init__(self, rows: int, name: str) -> None:
        self.kept: Flags = np.ones(rows, dtype=bool)
        self.dropped: list[Dropped] = []
        self._name = name

    def drop(self, those: Flags, why: str, say: Callable[[int], object] | None = None) -> int:
        """`say` tells what is wrong with a row; how many rows were left out that were there before."""
        new = those & self.kept
        rows = int(np.count_nonzero(new))
        if rows:
            places = np.flatnonzero(new)[:_EXAMPLES].tolist()
            told = (f"row {one + 1:,}" + ("" if say is None else f": {_short(say(one))}") for one in places)
            self.dropped.append(Dropped(rows=rows, why=why, examples=tuple(told)))
            self.kept &= ~those
        return rows

    def require_rows(self) -> None:
        if not self.kept.any():
            reasons = "; ".join(f"{one.rows:,} rows: {one.why} ({one.examples[0]})" for one in self.dropped)
            told = f"nothing is left of {self.kept.size:,} rows" if self.kept.size else "there are no rows"
            raise InvalidValue("source", self._name, f"{told}{': ' if reasons else ''}{reasons}")


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def drop_duplicates(
    sieve: Sieve,
    frame: pl.DataFrame,
    *,
    key: str | None,
    key_is_of_people: bool,
    time: Floats | None,
    content: Sequence[str],
) -> list[str]:
    """Rows that are there twice.

    Without a key, rows may be equal by chance: two of the same time are, with the probability q that any two rows have
    the same content. Only where more are equal than the pairs of the same time would have so, they are duplicates.
    """
    import polars as pl

    flat = [name for name, kind in frame.schema.items() if not kind.is_nested() and kind != pl.Object]
    if key is not None:
        again = _again(frame.select(key), sieve.kept) & frame[key].is_not_null().to_numpy()
        if not again.any():
            return []
        if key_is_of_people:
            return [f"Some in column {key!r} came more than once: taken for the same people, not for duplicates."]
        differs = again & ~_again(frame.select(flat), sieve.kept)
        names = frame[key]
        sieve.drop(differs, f"have the {key} of an earlier row, but say something else", lambda row: names[row])
        sieve.drop(again, f"have the {key} of an earlier row", lambda row: names[row])
        return []
    if (copies := _second_copies(frame.select(flat))) is not None:
        sieve.drop(copies, "repeat an earlier row: the whole table is there twice")
        return []
    equal = _again(frame.select(flat), sieve.kept)
    n_equal = int(equal.sum())
    if not n_equal:
        return []
    if time is not None and _chance(frame.select(content), time, n_equal) < _LEVEL:
        sieve.drop(equal, "are equal to an earlier row in every column, its time included")
        return []
    rows = "1 row is equal to another and was" if n_equal == 1 else f"{n_equal:,} rows are equal to others and were"
    return [f"{rows} kept: without a key= they may be different decisions."]


def _second_copies(frame: pl.DataFrame) -> Flags | None:
    """The second of each pair of rows, where all rows come twice: as two halves, or one after the other."""
    n = frame.height
    if n % 2 or n < _FEWEST_COPIED or frame.width == 0:
        return None
    rows = frame.hash_rows().to_numpy()
    if np.unique(rows).size < _FEWEST_DIFFERENT:
        return None
    copies = np.zeros(n, dtype=bool)
    if (rows[: n // 2] == rows[n // 2 :]).all() and not _has_shorter_period(rows):
        copies[n // 2 :] = True
    elif (rows[0::2] == rows[1::2]).all() and not (rows[0:-2:2] == rows[2::2]).all():
        copies[1::2] = True
    else:
        return None
    return copies


def _has_shorter_period(rows: NDArray[np.uint64]) -> bool:
    """Whether a pattern repeats within the halves, as in a design that goes round its arms."""
    begins = np.flatnonzero(rows[1 : rows.size // 2] == rows[0])[:200] + 1
    return any(bool((rows[begin:] == rows[:-begin]).all()) for begin in begins.tolist())


def _chance(content: pl.DataFrame, time: Floats, n_equal: int) -> float:
    """The probability of so many equal rows, if those of the same time have nothing to do with each other."""
    from scipy.stats import poisson

    alike = content.hash_rows().value_counts()["count"].to_numpy() / content.height
    at_once = np.unique(time[np.isfinite(time)], return_counts=True)[1].astype(np.float64)
    pairs = float((at_once * (at_once - 1.0)).sum()) / 2.0
    return float(poisson.sf(n_equal - 1, float((alike**2).sum()) * pairs))


def _again(frame: pl.DataFrame, kept: Flags) -> Flags:
    """Rows that are equal to one before them, of those that are kept."""
    places = np.flatnonzero(kept)
    again = np.zeros(kept.size, dtype=bool)
    again[places] = (~frame.hash_rows().gather(places).is_first_distinct()).to_numpy()
    return again


def isolated_times(time: Floats, kept: Flags, *, at_least: float) -> Flags:
    """Arrivals that lie apart from all others as no gap between them would: a wrong century.

    With n times spread evenly, a gap at either end takes a share x of the whole with probability 2 (1 - x)^(n-2). What
    is rarer than 1 in 100 n, and longer than all the rest and than `at_least` (a year: slips are in its digits), is no
    gap. As long as they are few: one, or 1 in 100. A pilot some weeks before the rest is real.
    """
    off = np.zeros(time.size, dtype=bool)
    places = np.flatnonzero(kept & np.isfinite(time))
    places = places[np.argsort(time[places], kind="stable")]
    most = max(1, places.size // 100)
    for ends in (places, places[::-1]):
        ordered = np.abs(time[ends] - time[ends[-1]])  # falls, from this end on
        for few in range(min(most, places.size - 2), 0, -1):
            gap, rest = ordered[few - 1] - ordered[few], ordered[few]
            n = places.size - few + 1
            if (
                gap > max(rest, at_least)
                and rest > 0.0
                and math.log(2.0) + (n - 2) * math.log(rest / (rest + gap)) < math.log(_LEVEL / n)
            ):
                off[ends[:few]] = True
                break
    return off


def absurd_delays(delay: Floats, span: Callable[[Flags], float], kept: Flags) -> Flags:
    """Delays that no tail of the others reaches, and that are longer than all else that the log saw together.

    Heavy tails are real: the longest of many delays may be far off. For a tail of Pareto's with index a, k a times the
    logarithm of the ratio of the k-th largest to the next is exponential, whatever a is, and Hill's estimate from the
    m spacings below it is independent of it: the ratio of both exceeds x with probability (1 + x/m)^-m. What is rarer
    than that, at a level of 1 in 100 over all k, and also longer than everything else lasted (`span` of the others), is
    a slip. One true row that is lost costs little; one false one would have all others watched for years.
    """
    places = np.flatnonzero(kept & np.isfinite(delay) & (delay > 0.0))
    n = places.size
    below = math.isqrt(n)
    if below < 4:  # nothing is known of a tail
        return np.zeros(delay.size, dtype=bool)
    ordered = places[np.argsort(-delay[places], kind="stable")]
    largest = np.log(delay[ordered])
    for k in range(max(1, math.ceil(math.log2(n))), 0, -1):
        tail = largest[k : k + below + 1]
        if tail.size < below + 1:
            continue
        spread = float((np.arange(k + 1, k + below + 1) * -np.diff(tail)).mean())  # 1 / a
        ratio = k * float(largest[k - 1] - largest[k])
        if spread <= 0.0:  # all the same: no tail to compare with, unless it is beyond all measure
            spread = 1.0 / below
        if below * math.log1p(ratio / spread / below) < k * math.log(2.0) - math.log(_LEVEL):
            continue
        off = np.zeros(delay.size, dtype=bool)
        off[ordered[:k]] = True
        if delay[ordered[k - 1]] > span(off):
            return off
    return np.zeros(delay.size, dtype=bool)


def grain_of(values: Floats, steps: Sequence[float]) -> float:
    """The largest of these steps of which all times are multiples; 0 where none is."""
    known = values[np.isfinite(values)]
    return next((one for one in steps if known.size and not (known % one).any()), 0.0)


def ranked(codes: Ints, names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Names with the commonest first, and the codes in that order; codes below 0 stay."""
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    order = sorted((one for one in range(len(names)) if counts[one]), key=lambda one: (-counts[one], names[one]))
    place = np.full(len(names) + 1, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    return tuple(names[one] for one in order), place[codes]
