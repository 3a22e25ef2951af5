"""A column of what is known of people as a few levels: words as they are, numbers cut at their quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Floats, Ints
from doral._check import MAX_NAME_CHARACTERS
from doral.errors import InvalidValue, shown
from doral.log.columns import plain
from doral.log.values import text_of

if TYPE_CHECKING:
    import polars as pl

MISSING, OTHER = "(missing)", "other"
BINS = 4  # quarters: a curve shows in them, and as many columns as possible can be crossed
_FEW_NAMES = 3  # that are named one by one
_FEW = 10  # different numbers that are levels by themselves
_OF_CLASSES = ("context", "contexts", "stratum", "strata", "segment", "cohort", "group")
_BARE = {"yes", "no", "true", "false", OTHER, MISSING, "unknown", "none", "y", "n"}


@dataclass(frozen=True)
class Levels:
    """A column as codes of named levels, the commonest first."""

    column: str
    names: tuple[str, ...]
    codes: Ints
    pooled: int = 0  # rare levels that became "other"
    is_number: bool = False

    def commonest(self, n: int) -> Levels:
        """With the n commonest levels alone, the last of them all others; ranges of numbers cannot be told so."""
        if len(self.names) <= n or n < 2 or self.is_number:
            return self
        counts = np.bincount(self.codes, minlength=len(self.names)).astype(np.float64)
        if OTHER in self.names:
            counts[self.names.index(OTHER)] = -1.0
        order = np.argsort(-counts, kind="stable")[: n - 1].tolist()
        place = np.full(len(self.names), n - 1, dtype=np.int64)
        place[order] = np.arange(n - 1)
        names = (*(self.names[one] for one in order), OTHER)
        pooled = self.pooled + len(self.names) - n + 1 - (OTHER in self.names)
        return Levels(self.column, names, place[self.codes], pooled)

    def together(self, levels: Sequence[int]) -> str:
        """Levels that stand for one beside those of other columns."""
        if len(levels) > _FEW_NAMES or (OTHER in self.names and self.names.index(OTHER) in levels):
            return f"{self.column} {OTHER}"
        first, *rest = sorted(levels) if self.is_number else levels
        return " or ".join([self.label(first, is_alone=False), *(self.names[one] for one in rest)])

    def label(self, level: int, *, is_alone: bool) -> str:
        """A level where it stands beside those of other columns: with the name of its column, unless it is a word."""
        name = self.names[level]
        is_word = not self.is_number and name.lower() not in _BARE and any(map(str.isalpha, name))
        if (is_alone and not self.is_number) or (is_word and not is_alone) or plain(self.column) in _OF_CLASSES:
            return name
        return f"{self.column} {name}"


def levels_of(series: pl.Series, *, floor: float, at_most: int, is_as_it_is: bool = False) -> Levels:
    """Levels with fewer rows than the floor are pooled, if there are several of them, and those beyond `at_most`."""
    import polars as pl

    if series.dtype.is_temporal():
        remedy = "holds times, which are no kinds of people; name a column of words or numbers"
        raise InvalidValue("context", series.name, remedy)
    if series.dtype == pl.Boolean:
        series = series.replace_strict({True: "yes", False: "no"}, return_dtype=pl.String)
    text = text_of(series)
    is_class = plain(series.name) in _OF_CLASSES
    if not is_as_it_is and (numbers := _numbers_in(series, text)) is not None:
        n_distinct = np.unique(numbers[~np.isnan(numbers)]).size
        if n_distinct > (at_most if is_class else _FEW):
            return _cut(series.name, numbers)
    found = text.fill_null(MISSING).rename("level").to_frame().with_row_index("row")
    counts = found.group_by("level").agg(pl.len().alias("rows")).sort(["rows", "level"], descending=[True, False])
    names, rows = counts["level"].to_list(), counts["rows"].to_numpy()
    keep = len(names)
    if not is_as_it_is:
        n_rare = int((rows < floor).sum())
        keep = len(names) - n_rare if n_rare > 1 else len(names)
        keep = keep if len(names) <= at_most else min(keep, at_most - 1)
    for name in names[:keep]:
        if len(name) > MAX_NAME_CHARACTERS:
            remedy = (
                f"a level has more than {MAX_NAME_CHARACTERS} characters; is {shown(series.name)} a kind of people?"
            )
            raise InvalidValue("context", name, remedy)
    pooled = len(names) - keep
    kept = names[:keep]
    if pooled and OTHER in kept:  # the file has a level of this name: they are the same
        place = {name: kept.index(name) if name in kept else kept.index(OTHER) for name in names}
    else:
        kept += [OTHER] if pooled else []
        place = {name: min(index, keep) for index, name in enumerate(names)}
    codes = text.fill_null(MISSING).replace_strict(list(place), list(place.values()), return_dtype=pl.Int64).to_numpy()
    is_number = not any(any(map(str.isalpha, one)) for one in kept if one not in (OTHER, MISSING))
    return Levels(series.name, tuple(map(_clean, kept)), codes, pooled, is_number)


def _clean(name: str) -> str:
    return "".join(one if one.isprintable() else " " for one in name).strip() or MISSING


def _numbers_in(series: pl.Series, text: pl.Series) -> Floats | None:
    import polars as pl

    if series.dtype.is_numeric():
        values = series.cast(pl.Float64)
    else:
        values = text.cast(pl.Float64, strict=False)
        if values.null_count() > text.null_count():
            return None
    values = values.fill_nan(None)
    return values.fill_null(np.nan).to_numpy()


def _cut(column: str, values: Floats) -> Levels:
    known = values[~np.isnan(values)]
    is_whole = not (known % 1).any()
    edges = np.unique(np.quantile(known, np.arange(1, BINS) / BINS, method="higher"))
    bins = np.searchsorted(edges, values, side="right")
    bins[np.isnan(values)] = BINS + 1
    names: list[str] = []
    codes = np.empty(values.size, dtype=np.int64)
    for one in np.unique(bins).tolist():
        inside = bins == one
        codes[inside] = len(names)
        names.append(MISSING if one > BINS else _range(values[inside], is_whole=is_whole, known=names))
    return Levels(column, tuple(names), codes, is_number=True)


def _range(values: Floats, *, is_whole: bool, known: Sequence[str]) -> str:
    low, high = float(values.min()), float(values.max())
    if is_whole and max(abs(low), abs(high)) < 1e15:
        name = f"{low:.0f}" if low == high else f"{low:.0f}-{high:.0f}" if low >= 0 else f"{low:.0f} to {high:.0f}"
    else:
        name = f"{low:.3g} to {high:.3g}"
    return name if name not in known else f"{low!r} to {high!r}"
