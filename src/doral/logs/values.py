"""Cells as numbers and as rewards: what is written in many ways, and what cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral._arrays import Flags, Floats
from doral.errors import InvalidValue, shown

if TYPE_CHECKING:
    import polars as pl

MISSING = (
    "", "na", "n/a", "nan", "null", "none", "nat", "missing", "-", "--", "?", "#n/a", "<na>", "\\n", "nil", "k.a.",
    "n.d.", "s/d", "#value!", "#ref!", "#div/0!", "#name?", "#null!", "#num!",
)  # fmt: skip
YES = (
    "yes", "y", "true", "t", "positive", "pos", "success", "successful", "succeeded", "converted", "clicked", "bought",
    "purchased", "responded", "accepted", "won", "detected", "reactive", "x", "1", "1.0", "ja", "wahr", "positiv",
    "gekauft", "gebucht", "erfolg", "oui", "vrai", "positif", "sí", "si", "verdadero", "positivo", "sim", "tak", "да",
    "ano", "kyllä", "igen", "evet", "ya", "是", "はい", "예",
)  # fmt: skip
NO = (
    "no", "n", "false", "f", "negative", "neg", "failure", "failed", "not converted", "not clicked", "declined",
    "rejected", "lost", "not detected", "undetected", "non-reactive", "no response", "0", "0.0", "nein", "falsch",
    "negativ", "abgelehnt", "misserfolg", "non", "faux", "négatif", "negatif", "falso", "negativo", "não", "nee", "nie",
    "nej", "nei", "нет", "ne", "ei", "nem", "hay\u0131r", "tidak", "否",
    "いいえ", "아니오",
)  # fmt: skip
# Of outcomes that are not known yet.
PENDING = (
    "pending", "open", "waiting", "in progress", "unknown", "offen", "ausstehend", "unbekannt", "en attente", "ouvert",
    "inconnu", "pendiente", "abierto", "desconocido",
)  # fmt: skip
# Of outcomes that could not be told: such rows are left out.
VOID = ("invalid", "inconclusive", "indeterminate", "error", "void", "other", "ungültig", "invalide", "inválido")
_PLAIN = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"
_GROUPED = r"^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$"  # 1,234,567.8
_COMMA = r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+$"  # 3,5 or 1.234,5
_EITHER = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # 1,234: either of them
CURRENCIES = ("EUR", "USD", "GBP", "CHF", "SEK", "NOK", "DKK", "PLN", "JPY", "CAD", "AUD", "INR", "BRL", "MXN", "RUB",
              "TRY", "CZK", "HUF", "KRW", "CNY")  # fmt: skip
SIGNS = {"R$": "BRL", "€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "₹": "INR", "zł": "PLN", "₽": "RUB", "₺": "TRY",
         "Kč": "CZK", "₩": "KRW", "kr": "kr"}  # fmt: skip
_CURRENCY_OF = {sign.lower(): name for sign, name in SIGNS.items()}
_UNIT = "|".join((*map(re.escape, SIGNS), *CURRENCIES))
_MONEY = rf"(?i)^([+-]?)\s*(?:{_UNIT})\s*|\s*(?:{_UNIT})$"
_OWED = r"^\((.+)\)$"  # (12.50), as accountants write -12.50
_BLANK = r"[\s\x{a0}\x{202f}'\x{2019}]"
_BLANK_GROUPS = r"^[+-]?\d{1,3}(?:[\s\x{a0}\x{202f}'\x{2019}]\d{3})+(?:[.,]\d+)?$"  # 1 234,5 and 1'234.5


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


def currency_of(text: pl.Series) -> str | None:
    """The currency that amounts are written with, such as "EUR" for "3,50 €"; None without one, or with several."""
    found = text.drop_nulls().str.extract(f"(?i)({_UNIT})").drop_nulls().unique()
    names = {_CURRENCY_OF.get(one.lower(), one.upper()) for one in found.to_list()}
    return names.pop() if len(names) == 1 else None


def numbers_of(series: pl.Series, *, role: str, decimal_comma: bool = False) -> Numbers:
    """Numbers, also with decimal commas, separated thousands, currencies and per cent where there is no doubt.

    `decimal_comma`: whether "1,234" is 1.234, because columns are not separated by commas.
    """
    import polars as pl

    if series.dtype == pl.Boolean or series.dtype.is_numeric() or series.dtype == pl.Null:
        value = series.cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
        return Numbers(value, np.zeros(value.size, dtype=bool))
    text = without_missing(text_of(series))
    value_series = text.cast(pl.Float64, strict=False)
    is_left = text.is_not_null() & value_series.is_null()
    if is_left.any():
        is_percent = text.str.ends_with("%").fill_null(value=False) & is_left
        bare = text.str.replace(_OWED, "-${1}").str.strip_suffix("%")
        bare = bare.str.replace(_MONEY, "${1}").str.replace(_MONEY, "${1}").str.strip_chars()
        bare = pl.select(
            pl.when(bare.str.contains(_BLANK_GROUPS)).then(bare.str.replace_all(_BLANK, "")).otherwise(bare)
        ).to_series()
        rest = bare.filter(is_left)
        either = rest.filter(rest.str.contains(_EITHER))
        if len(either) and not decimal_comma:
            has_points = bool(bare.str.contains(r"\.\d").any())
            is_comma = bool((rest.str.contains(_COMMA) & ~rest.str.contains(_EITHER)).any())
            is_grouped = bool((rest.str.contains(_GROUPED) & ~rest.str.contains(_EITHER)).any()) or has_points
            if is_comma == is_grouped:
                remedy = f"column {shown(series.name)}: a comma may be for thousands or decimals; write 1234 or 1.234"
                raise InvalidValue(role, either[0], remedy)
            marks = _COMMA if is_comma else _GROUPED
        elif len(either):
            marks = _COMMA
        else:
            marks = _COMMA if rest.str.contains(_COMMA).sum() > rest.str.contains(_GROUPED).sum() else _GROUPED
        fits = bare.str.contains(marks).fill_null(value=False)
        if marks == _COMMA:
            written = bare.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        else:
            written = bare.str.replace_all(",", "", literal=True)
        again = pl.select(pl.when(fits).then(written).otherwise(bare)).to_series().cast(pl.Float64, strict=False)
        again = pl.select(pl.when(is_percent).then(again / 100.0).otherwise(again)).to_series()
        value_series = pl.select(pl.when(is_left).then(again).otherwise(value_series)).to_series()
    value = value_series.fill_null(np.nan).to_numpy().copy()
    return Numbers(value, (text.is_not_null() & value_series.is_null()).to_numpy())


def is_yes_or_no(series: pl.Series) -> bool:
    """Whether a column only says yes or no."""
    import polars as pl

    if series.dtype == pl.Boolean:
        return True
    if series.dtype != pl.String:
        return False
    levels = {one.lower() for one in without_missing(text_of(series)).drop_nulls().unique().head(100).to_list()}
    return bool(levels) and levels <= {*YES, *NO}


class Rewards(NamedTuple):
    value: Floats
    is_bad: Flags
    note: str | None


def rewards_of(series: pl.Series, *, positive: Sequence[str], decimal_comma: bool = False) -> Rewards:
    """Numbers as they are; yes and no, and words like them, as 1 and 0; `positive` are words that count as 1."""
    import polars as pl

    if not positive and (series.dtype == pl.Boolean or series.dtype.is_numeric() or series.dtype == pl.Null):
        value, is_bad = numbers_of(series, role="reward", decimal_comma=decimal_comma)
        return Rewards(value, is_bad, None)
    text = text_of(series)
    words = text.str.to_lowercase()
    levels = set(words.drop_nulls().unique().head(10_000).to_list())
    if not positive:
        if not levels & (set(YES + NO) - {"0", "1", "0.0", "1.0", "x"}):
            numbers = numbers_of(series, role="reward", decimal_comma=decimal_comma)
            is_said = without_missing(text).is_not_null().to_numpy()
            if int(numbers.is_bad.sum()) > 0.5 * int(is_said.sum()):
                _refuse_words(series.name, levels)
            return Rewards(numbers.value, numbers.is_bad, None)
        yes, no = set(YES), set(NO)
    else:
        yes = {one.strip().lower() for one in positive}
        if not yes & levels:
            listed = ", ".join(shown(one) for one in sorted(levels)[:8])
            raise InvalidValue("positive", sorted(yes), f"is not in column {shown(series.name)}, which has {listed}")
        no = (levels & set(NO)) - yes or levels - yes - {*MISSING, *PENDING}
    said = text.is_in([]) if not levels else words.is_in(list(yes))
    is_no = words.is_in(list(no))
    missing = words.is_null() | words.is_in([one for one in (*MISSING, *PENDING) if one not in yes | no])
    value = np.full(len(text), np.nan)
    value[said.fill_null(value=False).to_numpy()] = 1.0
    value[is_no.fill_null(value=False).to_numpy()] = 0.0
    is_bad = np.isnan(value) & ~missing.fill_null(value=True).to_numpy()
    is_void = words.is_in(list(VOID)).fill_null(value=False).to_numpy()
    if not positive and int((is_bad & ~is_void).sum()) > 0.1 * int((~np.isnan(value)).sum() + is_bad.sum()):
        _refuse_words(series.name, levels)
    ones, zeros = sorted(levels & yes), sorted(levels & no)
    note = f"Rewards are words: {_quoted(ones)} counts as 1" + (f", {_quoted(zeros)} as 0." if zeros else ".")
    return Rewards(value, is_bad, note)


def _refuse_words(name: str, levels: set[str]) -> None:
    listed = ", ".join(shown(one) for one in sorted(levels)[:8])
    raise InvalidValue("positive", None, f"say with positive= which words of column {shown(name)} count as 1: {listed}")


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(shown(one) for one in words[:4]) + (" and others" if len(words) > 4 else "")
