"""What columns hold, whatever they are called, and how they hang together: kinds, levels, ranges, what decides what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.errors import InvalidValue
from doral.logs.columns import hints_at, plain
from doral.logs.log import Kind, SeenColumn
from doral.logs.times import (
    DAY_US,
    EPOCH_FIRST,
    EPOCH_LAST,
    EPOCHS,
    duration_seconds,
    is_of_spreadsheets,
    moments_of,
    times_of,
)
from doral.logs.values import MISSING, NO, PENDING, YES, currency_of, numbers_of, text_of, without_missing

if TYPE_CHECKING:
    import polars as pl

_MOST_CELLS = 20_000_000  # of larger tables, rows are taken evenly
_SAMPLED = 20_000  # rows in which columns are compared with each other
_TRIED = 300  # different values: enough to see what they are
_NEARLY_ALL = 0.95
FEWEST_ROWS = 3  # for each level, on average: what recurs less names rows
_FEWEST_CHOSEN = 0.2  # of rows, in which one of several columns is 1
_TIME_OF_DAY = r"^\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s*[AaPp][Mm])?$"
_WORDS = {*YES, *NO, *PENDING} - {"x"}


class Profile:
    """One column, and what its data say."""

    def __init__(self, series: pl.Series, *, decimal_comma: bool = False) -> None:
        self.name = series.name
        self.has_decimal_comma = decimal_comma
        self.kind, self._clean = self._recognised(series)
        self.rows = len(series)
        self.n_known = self.rows - self._clean.null_count()
        self.levels = 0 if self.kind in ("empty", "other") else int(self._clean.drop_nulls().n_unique())

    def _recognised(self, series: pl.Series) -> tuple[Kind, pl.Series]:
        """The kind, and the column with what is missing as null."""
        import polars as pl

        if series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Object):
            return "other", series
        if series.dtype.is_float():
            series = series.fill_nan(None)
        if series.null_count() == len(series):
            return "empty", series
        if isinstance(series.dtype, pl.Duration) or series.dtype == pl.Time:
            return "durations", series
        if series.dtype.is_temporal():
            return "times", series
        if series.dtype == pl.Boolean:
            return "yes/no", series
        if series.dtype.is_numeric():
            return self._of_numbers(series.cast(pl.Float64)), series
        text = without_missing(text_of(series))
        if text.null_count() == len(text):
            return "empty", text
        different = text.drop_nulls().unique()
        if len(different) > _TRIED:
            different = different.sort().gather(np.linspace(0, len(different) - 1, _TRIED).astype(np.int64))
        numbers = different.cast(pl.Float64, strict=False)
        if numbers.null_count() <= (1.0 - _NEARLY_ALL) * len(different):
            return self._of_numbers(text.cast(pl.Float64, strict=False)), text
        if {*different.str.to_lowercase().to_list()} <= _WORDS:
            return "yes/no", text
        if _is_number_text(different, decimal_comma=self.has_decimal_comma):
            return "numbers", text
        if self._is_duration_text(different):
            return "durations", text
        return ("times" if _is_time_text(different) else "words"), text

    def _is_duration_text(self, different: pl.Series) -> bool:
        """4:30 is a time of day, unless the column is called a delay; "1 day, 4:30" is none."""
        is_clock = bool(different.str.contains(_TIME_OF_DAY).all())
        if is_clock and not hints_at("delay", self.name):
            return False
        return duration_seconds(different).null_count() <= (1.0 - _NEARLY_ALL) * len(different)

    def _of_numbers(self, numbers: pl.Series) -> Kind:
        value = numbers.drop_nulls().to_numpy()
        if not value.size:
            return "numbers"
        if np.isin(value, (0.0, 1.0)).all():
            return "yes/no"
        is_named = any(hints_at(one, self.name) for one in ("any_time", "arrival", "answer"))
        is_serial = hints_at("any_time", self.name) and is_of_spreadsheets(value)
        if is_serial or self._is_epoch(value, is_named=is_named) or self._is_compact_date(value):
            return "times"
        return "numbers"

    def _is_epoch(self, value: Floats, *, is_named: bool) -> bool:
        """Seconds since 1970, or thousandths; identifiers of the same size have a name that says so."""
        value = value[np.abs(value) <= EPOCH_LAST * EPOCHS[-1][1]]
        middle = float(np.median(value)) if value.size else 0.0
        factor = next((one for _, one in EPOCHS if EPOCH_FIRST * one <= middle <= EPOCH_LAST * one), None)
        if factor is None or (hints_at("identifier", self.name) and not is_named):
            return False
        spread = float(value.max() - value.min()) / factor
        steps = np.diff(value)
        is_counted = value.size > 2 and bool((steps == steps[0]).all()) and abs(steps[0]) == 1.0
        return is_named or (3_600.0 <= spread <= EPOCH_LAST - EPOCH_FIRST and not is_counted)

    def _is_compact_date(self, value: Floats) -> bool:
        """20260131 and the like."""
        if not np.isfinite(value).all():
            return False
        is_in_range = value.min() >= 19_000_101 and value.max() <= 21_001_231 and not (value % 1).any()
        return bool(
            is_in_range and ((value // 100 % 100 >= 1) & (value // 100 % 100 <= 12) & (value % 100 <= 31)).all()
        )

    @property
    def is_surely_times(self) -> bool:
        """Dates, or numbers with a name of times."""
        is_number = self._clean.dtype.is_numeric() or bool(
            self.sampled.head(100).cast(_string()).str.contains(r"^\d{9,}").any()
        )
        return not is_number or any(hints_at(one, self.name) for one in ("any_time", "arrival", "answer"))

    @property
    def share_empty(self) -> float:
        return 1.0 - self.n_known / self.rows if self.rows else 1.0

    @property
    def recurs(self) -> bool:
        """Whether there are several levels, each of several rows."""
        return self.levels >= 2 and self.n_known >= FEWEST_ROWS * self.levels

    @property
    def is_constant(self) -> bool:
        return self.levels <= 1

    @property
    def is_two(self) -> bool:
        """Whether it says yes or no."""
        return self.kind == "yes/no"

    @cached_property
    def sampled(self) -> pl.Series:
        """At most 20,000 rows, the same of every column."""
        if self.rows <= _SAMPLED:
            return self._clean
        return self._clean.gather(np.linspace(0, self.rows - 1, _SAMPLED).astype(np.int64))

    @property
    def text(self) -> pl.Series:
        """All rows, with what is missing as null."""
        return self._clean

    @cached_property
    def is_known(self) -> Flags:
        """In the sample."""
        return self.sampled.is_not_null().to_numpy()

    @cached_property
    def codes(self) -> Ints:
        """In the sample: numbers of levels, -1 where there is none."""
        import polars as pl

        ranks = self.sampled.cast(pl.String, strict=False) if self.sampled.dtype == pl.Categorical else self.sampled
        return (ranks.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy()

    @cached_property
    def value(self) -> Floats:
        """In the sample: numbers, yes as 1, times in microseconds; NaN where there is none."""
        import polars as pl

        try:
            if self.kind == "times":
                read = times_of(self.sampled, role=self.name, unit=None)
                return read.value
            if self.kind == "yes/no" and self.sampled.dtype == pl.String:
                words = self.sampled.str.to_lowercase()
                said = pl.select(
                    pl.when(words.is_in(list(YES))).then(1.0).when(words.is_in(list(NO))).then(0.0).otherwise(None)
                ).to_series()
                return said.fill_null(np.nan).to_numpy()
            if self.kind in ("yes/no", "numbers"):
                return numbers_of(self.sampled, role=self.name, decimal_comma=self.has_decimal_comma).value
        except InvalidValue:
            pass  # the order of day and month, or of commas, is in doubt: asked when it is needed
        return np.full(len(self.sampled), np.nan)

    @cached_property
    def is_row_number(self) -> bool:
        """Whether it numbers the rows, as an index that was saved with a table does."""
        if self.kind not in ("numbers", "times") or self.n_known < self.rows or self.rows < 3:
            return False
        value = self.value if self.kind == "numbers" else np.zeros(0)
        if not np.isfinite(value).all():
            return False
        if value.size != self.rows:
            return bool(value.size) and self.levels == self.rows and bool((np.diff(value) > 0).all()) and self._is_whole
        return bool((np.diff(value) == 1.0).all())

    @property
    def _is_whole(self) -> bool:
        known = self.value[np.isfinite(self.value)]
        return bool(known.size) and not (known % 1).any()

    @cached_property
    def is_whole(self) -> bool:
        return self.kind == "yes/no" or (self.kind == "numbers" and self._is_whole)

    @cached_property
    def is_time_of_day(self) -> bool:
        """18:30, without a date."""
        import polars as pl

        if self._clean.dtype == pl.Time:
            return True
        if self.kind != "words":
            return False
        return bool(self.sampled.drop_nulls().str.contains(_TIME_OF_DAY).all())

    @cached_property
    def is_like_unread_times(self) -> bool:
        """Words that differ from row to row, each with several groups of digits."""
        if self.kind != "words" or self.levels <= 0.2 * self.n_known or hints_at("identifier", self.name):
            return False
        some = self.sampled.drop_nulls().head(_TRIED)
        return bool(some.str.contains(r"^(?:[^\d]*\d{1,4}[^\d]{1,4}){2,}\d{0,4}[^\d]{0,4}$").all()) and not bool(
            some.str.contains(r"[@/\\]\S*\p{L}|^[0-9a-fA-F-]{32,}$|^\+|^\d{1,3}(?:\.\d{1,3}){3}$").any()
        )

    @property
    def is_unnamed(self) -> bool:
        """Named by a library because the table did not."""
        said = plain(self.name)
        return (
            self.name.strip() == ""
            or said.startswith(("unnamed", "column_"))
            or said in ("index", "rownames", "level_0")
        )

    @property
    def is_identifier(self) -> bool:
        """Whether it names rows or people: nearly as many levels as rows, or a name that says so."""
        if self.kind not in ("words", "numbers"):
            return False
        is_many = self.levels > 200 and self.levels > 0.5 * self.n_known
        return self.is_row_number or (is_many and (self.kind == "words" or hints_at("identifier", self.name)))

    @cached_property
    def words(self) -> list[str]:
        """The commonest levels, at most 50."""
        counts = text_of(self._clean).drop_nulls().alias("level").value_counts(sort=True)
        return [str(one) for one in counts["level"].head(50).to_list()]

    @cached_property
    def currency(self) -> str | None:
        """Of amounts with a sign, such as "EUR"."""
        return currency_of(self.sampled) if self.kind == "numbers" and self.sampled.dtype == _string() else None

    def seen(self) -> SeenColumn:
        """For messages and pages."""
        low = high = ""
        if self.kind in ("numbers", "times"):
            known = self.value[np.isfinite(self.value)]
            if known.size:
                low, high = (self._said(float(one)) for one in (known.min(), known.max()))
        elif self.kind in ("words", "yes/no"):
            low = ", ".join(one[:20] for one in self.words[:3])
        return SeenColumn(
            name=self.name, kind=self.kind, levels=self.levels, share_empty=self.share_empty, low=low, high=high
        )

    def _said(self, value: float) -> str:
        if self.kind == "times":
            try:
                return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value):%Y-%m-%d %H:%M}"
            except OverflowError:
                return f"{value:g}"
        return f"{value:.0f}" if value % 1 == 0 and abs(value) < 1e15 else f"{value:.4g}"


def _string() -> type[pl.String]:
    import polars as pl

    return pl.String


def profiles_of(frame: pl.DataFrame, *, decimal_comma: bool = False) -> dict[str, Profile]:
    """Of every column; of a very large table, from rows that are taken evenly."""
    if frame.height * frame.width > _MOST_CELLS:
        n_rows = max(_MOST_CELLS // frame.width, 1_000)
        if n_rows < frame.height:
            frame = frame[np.linspace(0, frame.height - 1, n_rows).astype(np.int64)]
    return {name: Profile(frame[name], decimal_comma=decimal_comma) for name in frame.columns}


def _is_number_text(different: pl.Series, *, decimal_comma: bool) -> bool:
    try:
        read = numbers_of(different, role="number", decimal_comma=decimal_comma)
    except InvalidValue:
        return True  # numbers, of which it is not clear what a comma means
    return int(read.is_bad.sum()) <= (1.0 - _NEARLY_ALL) * len(different)


def _is_time_text(different: pl.Series) -> bool:
    if not different.str.contains(r"\d").mean() or different.str.len_chars().median() < 6:  # type: ignore[operator]
        return False
    try:
        read = moments_of(different, role="time")
    except InvalidValue as error:
        return "day or the month" in error.remedy
    return int(read.is_bad.sum()) <= 0.1 * len(different)


def is_no_word(word: str) -> bool:
    """Whether a word begins as those do that deny something.

    >>> is_no_word("no sale"), is_no_word("kein Erfolg"), is_no_word("sold")
    (True, True, False)
    """
    return plain(word).startswith(("no_", "not_", "non_", "un", "kein", "nicht", "sans_", "sin_", "pas_", "ohne_"))


def is_level_of_control(words: Sequence[str]) -> bool:
    """Whether one of a few levels means that nothing, or the usual, was done.

    >>> is_level_of_control(["Mens E-Mail", "No E-Mail"]), is_level_of_control(["Phone", "Web"])
    (True, False)
    """
    usual = {"control", "placebo", "none", "nothing", "holdout", "hold_out", "baseline", "untreated", "kontrolle",
             "kontrollgruppe", "keine", "nichts", "temoin", "controle", "aucun", "aucune", "control_group",
             "ninguno", "ninguna", "nada", "status_quo", "skip", "skipped"}  # fmt: skip
    said = [plain(one) for one in words]
    said = [one for one in said if not (one.startswith("no_") and one.removeprefix("no_") in said)]  # sale, no sale
    return any(
        one in usual or one.startswith(("no_", "kein_", "keine_", "sans_", "sin_", "ohne_", "pas_de_")) for one in said
    ) and not {*MISSING} >= {*words}


def without_copies(several: Sequence[Profile]) -> list[Profile]:
    """Columns of times without those that only say the days of another."""
    kept: list[Profile] = []
    with np.errstate(invalid="ignore"):
        for one in sorted(several, key=is_of_days):
            is_copy = any(
                np.array_equal(one.value // DAY_US, other.value // DAY_US, equal_nan=True)
                and (np.array_equal(one.value, other.value, equal_nan=True) or is_of_days(one))
                for other in kept
            )
            if not is_copy:
                kept.append(one)
    return [one for one in several if one in kept]


def is_of_days(one: Profile) -> bool:
    known = one.value[np.isfinite(one.value)]
    return not (known % DAY_US).any()


def decides(one: Profile, value: Floats) -> bool:
    """Whether the value is the same in all rows of a level, and not in all levels."""
    known = (one.codes >= 0) & np.isfinite(value)
    if one.codes.size != value.size or not known.any():
        return False
    n = int(one.codes.max()) + 1
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, one.codes[known], value[known])
    np.maximum.at(high, one.codes[known], value[known])
    there = np.isfinite(low)
    return bool(np.allclose(low[there], high[there], rtol=1e-9) and np.unique(low[there]).size > 1)


def is_one_to_one(one: Profile, other: Profile) -> bool:
    if one.levels != other.levels:
        return False
    pairs = np.unique(np.stack([one.codes, other.codes]), axis=1)
    return pairs.shape[1] == np.unique(one.codes).size == np.unique(other.codes).size


def is_numbering(one: Profile) -> bool:
    """Whether numbers only count levels: 0, 1, 2 or 1, 2, 3."""
    levels = np.unique(one.value[np.isfinite(one.value)])
    return bool(levels.size and levels[0] in (0.0, 1.0) and (np.diff(levels) == 1.0).all())


def distinct_partitions(several: Sequence[Profile]) -> list[Profile]:
    """Of columns that tell rows apart in the same way, such as a name and a number, the one with words."""
    if any(not one.recurs for one in several):
        return list(several)
    kept: list[Profile] = []
    for one in sorted(several, key=lambda one: (hints_at("identifier", one.name), one.kind != "words")):
        if not any(is_one_to_one(one, other) for other in kept):
            kept.append(one)
    return [one for one in several if one in kept]


def one_hot_group(flags: Sequence[Profile]) -> tuple[tuple[str, ...], str]:
    """Columns of 0 and 1 that share a word, of which at most one is 1 in every row; and that word."""
    flags = [one for one in flags if one.is_two and one.is_known.all() and one.levels == 2]
    groups: dict[tuple[str, bool], list[Profile]] = {}
    for one in flags:
        words = plain(one.name).split("_")
        if len(words) > 1:
            groups.setdefault((words[0], True), []).append(one)
            groups.setdefault((words[-1], False), []).append(one)
    for (word, _), group in groups.items():
        if len(group) < 2 or hints_at("context", word):
            continue
        total = np.sum([one.value for one in group], axis=0)
        if (total <= 1.0).all() and float(total.mean()) >= _FEWEST_CHOSEN:
            return tuple(one.name for one in group), word
    return (), ""


def wide_group(profiles: Mapping[str, Profile]) -> list[str]:
    """Columns that say the same of several arms: what came, or when, by a word that they do not share."""
    groups: dict[str, list[str]] = {}
    for name in profiles:
        words = plain(name).split("_")
        for cut in range(1, len(words)):
            groups.setdefault("_" + "_".join(words[cut:]), []).append(name)
            groups.setdefault("_".join(words[:cut]) + "_", []).append(name)
    fitting = [
        group
        for stem, group in groups.items()
        if len(group) >= 2
        and any(hints_at(what, stem.strip("_")) for what in ("outcome", "answer", "arrival"))
        and len({profiles[one].kind for one in group}) == 1
    ]
    return max(fitting, key=len, default=[])
