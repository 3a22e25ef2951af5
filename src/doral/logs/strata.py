"""Contexts from columns: levels of each, crossed as long as every cell keeps rows enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral._check import MAX_NAME_CHARACTERS
from doral.errors import InvalidValue, shown
from doral.logs.columns import plain
from doral.logs.values import text_of
from doral.problem import EVERYONE, MAX_CONTEXTS

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


MAX_STRATA = 64  # what a page can show, and what logs of people's size can fill
# The mean of so many rows is known to a fifth of their spread (1 / sqrt(30)): from there on, differences between cells
# that matter show. In a single column, which the caller has named, a level is rare below this or 1 row in 20.
FLOOR = 30
_RARE = 1 / 20
_FOLDS = 10
Strata: TypeAlias = Literal["auto", "all", "as-is"] | int


@dataclass(frozen=True)
class Stratified:
    names: tuple[str, ...]
    codes: Ints
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Split:
    """Strata as they are so far."""

    names: tuple[str, ...]
    codes: Ints


def checked_strata(value: object) -> Strata:
    if isinstance(value, str) and value in ("auto", "all", "as-is"):
        return value  # type: ignore[return-value]
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_CONTEXTS:
        return value
    raise InvalidValue("strata", value, "must be 'auto', 'all', 'as-is' or the largest number of strata")


def stratify(
    columns: Sequence[pl.Series],
    *,
    strata: Strata,
    arm: Ints,
    value: Floats,
    is_valued: Flags,
    is_classes: bool = False,
) -> Stratified:
    """`value` is what came of those who are valued; arms below 0 are nothing. `is_classes`: keep levels as they are."""
    if not columns:
        return Stratified((EVERYONE,), np.zeros(arm.size, dtype=np.int64))
    is_as_it_is = strata == "as-is" or is_classes
    at_most = strata if isinstance(strata, int) else MAX_CONTEXTS if is_as_it_is else MAX_STRATA
    floor = min(float(FLOOR), _RARE * arm.size)
    # Of several columns, one alone must not take all places: numbers, at least, shall fit beside it.
    room = at_most if len(columns) == 1 or is_as_it_is else max(2, at_most // BINS)
    levels = [levels_of(one, floor=floor, at_most=room, is_as_it_is=is_as_it_is) for one in columns]
    notes: list[str] = []
    if len(levels) == 1:
        notes += [_pooled(one) for one in levels if one.pooled]
        found = levels[0]
        names = tuple(found.label(one, is_alone=True) for one in range(len(found.names)))
        if len(names) > MAX_CONTEXTS:
            raise InvalidValue(
                "number of contexts", len(names), f"must be at most {MAX_CONTEXTS:,}; strata='auto' pools"
            )
        return Stratified(names, found.codes, tuple(notes))
    left_out: list[tuple[str, str]] = []
    if is_as_it_is:
        split = _cross_all(levels)
    else:
        split, levels, left_out = _cross_best(levels, arm, value, is_valued, at_most=at_most, is_greedy=strata == "all")
    notes += [_pooled(one) for one in levels if one.pooled]
    used = [one.column for one in levels]
    n = len(split.names)
    told = f"{n} strata from {', '.join(used)}" if used else "One stratum"
    floor_told = "" if is_as_it_is else f"; every arm that is used in a stratum keeps {FLOOR} rows in each of its parts"
    notes.append(f"{told}{floor_told}.")
    notes += [f"Column {column!r} was left out of the strata: {why}." for column, why in left_out]
    return Stratified(split.names, split.codes, tuple(notes))


def _pooled(one: Levels) -> str:
    how = f"{one.pooled:,} rare levels are" if one.pooled > 1 else "a rare level is"
    return f"Column {one.column!r}: {how} pooled as {OTHER!r}, beside the {len(one.names) - 1} commonest."


def _cross_all(levels: Sequence[Levels]) -> _Split:
    size = 1
    codes = np.zeros(levels[0].codes.size, dtype=np.int64)
    for one in levels:
        codes, size = codes * len(one.names) + one.codes, size * len(one.names)
        if size > 2**40:
            raise InvalidValue("number of strata", size, "are too many; name fewer columns, or strata='auto'")
    found, first, small = np.unique(codes, return_index=True, return_inverse=True)
    if found.size > MAX_CONTEXTS:
        raise InvalidValue("number of strata", found.size, f"must be at most {MAX_CONTEXTS:,}; strata='auto' pools")
    names = [", ".join(one.label(int(one.codes[row]), is_alone=False) for one in levels) for row in first.tolist()]
    return _Split(_distinct(names), small.astype(np.int64))


def _cross_best(
    levels: Sequence[Levels], arm: Ints, value: Floats, is_valued: Flags, *, at_most: int, is_greedy: bool
) -> tuple[_Split, list[Levels], list[tuple[str, str]]]:
    split = _Split(("",), np.zeros(arm.size, dtype=np.int64))
    fold = np.random.Generator(np.random.Philox(0)).permutation(arm.size) % _FOLDS  # no order of rows is followed
    scored = _Scored(arm[is_valued] + 1, value[is_valued], fold[is_valued])
    left, used, left_out = list(levels), list[Levels](), list[tuple[str, str]]()
    while left:
        tried = []
        for one in left:
            crossed = _cross(split, one, arm)
            if crossed is not None and len(crossed.names) > at_most:
                one = one.commonest(at_most // len(split.names))
                crossed = _cross(split, one, arm)
            if crossed is None:
                why = f"its levels would leave cells with fewer than {FLOOR} rows"
            elif len(crossed.names) > at_most:
                why = f"it would make {len(crossed.names)} strata, more than {at_most}"
            else:
                gain, error = scored.gain(split.codes[is_valued], crossed.codes[is_valued])
                tried.append((gain, error, one, crossed))
                continue
            left_out.append((one.column, why))
        left = [one for _, _, one, _ in tried]
        if not tried:
            break
        gain, error, best, crossed = max(tried, key=lambda one: one[0])  # the first of equals
        if not is_greedy and scored.has_any and gain <= error:
            why = "it does not tell rewards apart beyond the others (strata='all' takes it all the same)"
            left_out += [(one.column, why) for one in left]
            break
        split = crossed
        used.append(best)
        left.remove(best)
    if split.names == ("",):
        split = _Split((EVERYONE,), split.codes)
    return _Split(_distinct(split.names), split.codes), used, left_out


def _cross(split: _Split, by: Levels, arm: Ints) -> _Split | None:
    """Every stratum split where its parts keep enough rows; None where that is nowhere."""
    n_arms, n_levels = int(arm.max(initial=-1)) + 2, len(by.names)
    cell = (split.codes * n_levels + by.codes) * n_arms + arm + 1
    counts = np.bincount(cell, minlength=len(split.names) * n_levels * n_arms)
    counts = counts.reshape(len(split.names), n_levels, n_arms)
    place = np.zeros((len(split.names), n_levels), dtype=np.int64)
    other = by.names.index(OTHER) if OTHER in by.names else None
    names: list[str] = []
    for stratum, old in enumerate(split.names):
        parts = _parts(counts[stratum], other)
        begin = f"{old}, " if old else ""
        for part in parts:
            place[stratum, part] = len(names)
            label = by.together(part)
            names.append(f"{begin}{label}" if len(parts) > 1 else old)
    if len(names) == len(split.names):
        return None
    return _Split(tuple(names), place[split.codes, by.codes])


def _parts(counts: Ints, other: int | None) -> list[list[int]]:
    """Levels of one stratum, those that are too small pooled with the next larger ones until they are not."""
    needed = counts.sum(axis=0) >= FLOOR  # arms that are rarer are too rare already
    rows = counts.sum(axis=1)
    present = [one for one in np.argsort(-rows, kind="stable").tolist() if rows[one]]

    def is_enough(part: list[int]) -> bool:
        return bool((counts[part].sum(axis=0)[needed] >= FLOOR).all()) and int(counts[part].sum()) >= FLOOR

    own = [[one] for one in present if is_enough([one])]
    pool = [one for one in present if [one] not in own]
    if pool and [other] in own:  # what is pooled here joins what was pooled before
        own.remove([other])
        pool = [other, *pool]
    while pool and own and not is_enough(pool):
        pool = own.pop() + pool
    return [*own, pool] if pool else own


class _Scored:
    """How well the means of cells foretell the rewards of rows that were not among them."""

    def __init__(self, arm: Ints, value: Floats, fold: Ints) -> None:
        self._arm, self._value, self._fold = arm, value, fold
        self._n_arms = int(arm.max(initial=0)) + 1
        self.has_any = value.size >= 2 * _FOLDS

    def gain(self, before: Ints, after: Ints) -> tuple[float, float]:
        """By how much the squared error falls, as a share of it, and the standard error of that over the folds."""
        if not self.has_any:
            return 0.0, 0.0
        by_fold = self._loss(before) - self._loss(after)
        scale = float(self._loss(before).mean()) or 1.0
        return float(by_fold.mean()) / scale, float(by_fold.std(ddof=1)) / np.sqrt(_FOLDS) / scale

    def _loss(self, strata: Ints) -> Floats:
        n_cells = (int(strata.max(initial=0)) + 1) * self._n_arms
        cell = (strata * self._n_arms + self._arm) * _FOLDS + self._fold
        n = np.bincount(cell, minlength=n_cells * _FOLDS).reshape(-1, _FOLDS).astype(np.float64)
        total = np.bincount(cell, self._value, minlength=n_cells * _FOLDS).reshape(-1, _FOLDS)
        square = np.bincount(self._fold, self._value**2, minlength=_FOLDS)
        rest_n, rest = n.sum(axis=1, keepdims=True) - n, total.sum(axis=1, keepdims=True) - total
        of_arm = np.arange(n_cells) % self._n_arms
        arm_n = np.stack([rest_n[of_arm == one].sum(axis=0) for one in range(self._n_arms)])
        arm_total = np.stack([rest[of_arm == one].sum(axis=0) for one in range(self._n_arms)])
        mean = arm_total / np.maximum(arm_n, 1.0)
        guess = (rest + mean[of_arm]) / (rest_n + 1.0)  # the arm's mean counts as one row
        loss = square - 2.0 * (guess * total).sum(axis=0) + (guess**2 * n).sum(axis=0)
        return np.asarray(loss / np.maximum(n.sum(axis=0), 1.0))


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Short enough for a name, and no two alike."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        short = name if len(name) <= MAX_NAME_CHARACTERS else name[: MAX_NAME_CHARACTERS - 12] + "..."
        seen[short] = seen.get(short, 0) + 1
        result.append(short if seen[short] == 1 else f"{short} #{seen[short]}")
    return tuple(result)
