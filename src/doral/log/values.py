"""Cells as numbers and as rewards: what is written in many ways, and what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral._arrays import Flags, Floats
from doral.errors import InvalidValue, shown

if TYPE_CHECKING:
    import polars as pl

MISSING = ("", "na", "n/a", "nan", "null", "none", "nat", "missing", "-", "?", "#n/a")
YES = (
    "yes", "y", "true", "t", "positive", "pos", "success", "successful", "succeeded", "converted", "clicked", "bought",
    "purchased", "responded", "accepted", "won", "detected", "reactive", "x", "1", "1.0",
)  # fmt: skip
NO = (
    "no", "n", "false", "f", "negative", "neg", "failure", "failed", "not converted", "not clicked", "declined",
    "rejected", "lost", "not detected", "undetected", "non-reactive", "no response", "0", "0.0",
)  # fmt: skip
_PLAIN = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"
_GROUPED = r"^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$"  # 1,234,567.8
_COMMA = r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+$"  # 3,5 or 1.234,5
_EITHER = r"^[+-]?\d{1,3},\d{3}$"  # 1,234: either of them


class Numbers(NamedTuple):
    value: Floats  # NaN where there is none
    is_bad: Flags  # something is there, but no number


def text_of(series: pl.Series) -> pl.Series:
    """As trimmed text; empty cells are missing."""
    import polars as pl

    if series.dtype.is_float():  # whole numbers as people write them
        whole = series.cast(pl.Int64, strict=False)
        is_whole = (whole.cast(pl.Float64) == series).fill_null(value=False)
        text = pl.select(pl.when(is_whole).then(whole.cast(pl.String)).otherwise(series.cast(pl.String))).to_series()
        text = text.replace("NaN", None)
    elif isinstance(series.dtype, pl.Duration):
        text = series.dt.total_seconds(fractional=True).cast(pl.String) + " s"
    elif series.dtype.is_nested():
        raise InvalidValue("column", series.name, "holds lists or records; give one value per row")
    elif series.dtype == pl.Binary:
        raise InvalidValue("column", series.name, "holds bytes; give text or numbers")
    else:
        text = series.cast(pl.String, strict=False)
    text = text.str.strip_chars()
    return text.set(text == "", None).alias(series.name)


def without_missing(text: pl.Series) -> pl.Series:
    """Without the words that say that nothing is there."""
    return text.set(text.str.to_lowercase().is_in(list(MISSING)).fill_null(value=False), None)


def numbers_of(series: pl.Series, *, role: str) -> Numbers:
    """Numbers, also with decimal commas or separated thousands where there is no doubt which."""
    import polars as pl

    if series.dtype == pl.Boolean or series.dtype.is_numeric() or series.dtype == pl.Null:
        value = series.cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
        return Numbers(value, np.zeros(value.size, dtype=bool))
    text = without_missing(text_of(series))
    value_series = text.cast(pl.Float64, strict=False)
    is_left = text.is_not_null() & value_series.is_null()
    if is_left.any():
        rest = text.filter(is_left)
        either = rest.filter(rest.str.contains(_EITHER))
        if len(either):
            has_points = bool(text.str.contains(r"\.\d").any())
            is_comma = bool((rest.str.contains(_COMMA) & ~rest.str.contains(_EITHER)).any())
            is_grouped = bool((rest.str.contains(_GROUPED) & ~rest.str.contains(_EITHER)).any()) or has_points
            if is_comma == is_grouped:
                remedy = f"column {shown(series.name)}: a comma may be for thousands or decimals; write 1234 or 1.234"
                raise InvalidValue(role, either[0], remedy)
            marks = _COMMA if is_comma else _GROUPED
        else:
            marks = _COMMA if rest.str.contains(_COMMA).sum() > rest.str.contains(_GROUPED).sum() else _GROUPED
        fits = text.str.contains(marks).fill_null(value=False) & is_left
        if marks == _COMMA:
            written = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        else:
            written = text.str.replace_all(",", "", literal=True)
        again = written.cast(pl.Float64, strict=False)
        value_series = pl.select(pl.when(fits).then(again).otherwise(value_series)).to_series()
    value = value_series.fill_null(np.nan).to_numpy().copy()
    return Numbers(value, (text.is_not_null() & value_series.is_null()).to_numpy())


class Rewards(NamedTuple):
    value: Floats
    is_bad: Flags
    note: str | None


def rewards_of(series: pl.Series, *, positive: Sequence[str]) -> Rewards:
    """Numbers as they are; yes and no, and words like them, as 1 and 0; `positive` are words that count as 1."""
    import polars as pl

    if not positive and (series.dtype == pl.Boolean or series.dtype.is_numeric() or series.dtype == pl.Null):
        value, is_bad = numbers_of(series, role="reward")
        return Rewards(value, is_bad, None)
    text = text_of(series)
    words = text.str.to_lowercase()
    levels = set(words.drop_nulls().unique().head(10_000).to_list())
    if not positive:
        if not levels & (set(YES + NO) - {"0", "1", "0.0", "1.0", "x"}):
            numbers = numbers_of(series, role="reward")
            return Rewards(numbers.value, numbers.is_bad, None)
        yes, no = set(YES), set(NO)
    else:
        yes = {one.strip().lower() for one in positive}
        if not yes & levels:
            listed = ", ".join(shown(one) for one in sorted(levels)[:8])
            raise InvalidValue("positive", sorted(yes), f"is not in column {shown(series.name)}, which has {listed}")
        no = (levels & set(NO)) - yes or levels - yes - set(MISSING)
    said = text.is_in([]) if not levels else words.is_in(list(yes))
    is_no = words.is_in(list(no))
    missing = words.is_null() | words.is_in([one for one in MISSING if one not in yes | no])
    value = np.full(len(text), np.nan)
    value[said.fill_null(value=False).to_numpy()] = 1.0
    value[is_no.fill_null(value=False).to_numpy()] = 0.0
    is_bad = np.isnan(value) & ~missing.fill_null(value=True).to_numpy()
    ones, zeros = sorted(levels & yes), sorted(levels & no)
    note = f"Rewards are words: {_quoted(ones)} counts as 1" + (f", {_quoted(zeros)} as 0." if zeros else ".")
    return Rewards(value, is_bad, note)


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(shown(one) for one in words[:4]) + (" and others" if len(words) > 4 else "")
