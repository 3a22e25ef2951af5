"""Tables of other kinds as Polars frames, column by column, so that one odd cell does not cost the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from doral.errors import InvalidValue, shown

if TYPE_CHECKING:
    import polars as pl

_SOURCE = "source"


def from_mapping(given: Mapping[Any, Any]) -> pl.DataFrame:
    """Columns of equal length, by name."""
    import polars as pl

    columns = {}
    for name, values in given.items():
        if not isinstance(name, str):
            raise InvalidValue("name of a column", name, "must be a string")
        if (
            isinstance(values, str | bytes | Mapping)
            or not hasattr(values, "__len__")
            or not hasattr(values, "__iter__")
        ):
            raise InvalidValue(f"column {shown(name)}", values, "must be a list or an array, one value for every row")
        if type(values).__module__.split(".")[0] == "pandas":
            columns[name] = _from_pandas(name, values)
        else:
            columns[name] = values if isinstance(values, pl.Series) else column_of(name, values)
    lengths = {name: len(one) for name, one in columns.items()}
    if len(set(lengths.values())) > 1:
        shortest, longest = min(lengths, key=lambda one: lengths[one]), max(lengths, key=lambda one: lengths[one])
        said = f"{shown(shortest)} has {lengths[shortest]:,} values and {shown(longest)} {lengths[longest]:,}"
        raise InvalidValue(_SOURCE, sorted(lengths)[:5], f"columns must be equally long: {said}")
    return pl.DataFrame({name: one.alias(name) for name, one in columns.items()})


def from_pandas(frame: Any) -> pl.DataFrame:
    """Without Arrow, which pandas does not need for ordinary columns either."""
    import polars as pl

    names = [" ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise InvalidValue("name of a column", name, "appears twice; give each its own name")
    return pl.DataFrame([_from_pandas(name, frame.iloc[:, place]) for place, name in enumerate(names)])


def _from_pandas(name: str, column: Any) -> pl.Series:
    import polars as pl

    kind = getattr(column.dtype, "kind", "O")
    if kind == "M":  # moments; those with a zone are kept in UTC
        zone = getattr(column.dtype, "tz", None)
        plain = column if zone is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        moments = pl.Series(name, plain.to_numpy().astype("datetime64[us]"))
        return moments if zone is None else moments.dt.replace_time_zone("UTC")
    if kind == "m":
        return pl.Series(name, column.to_numpy().astype("timedelta64[us]"))
    if isinstance(column.dtype, np.dtype) and kind in "biuf":
        return pl.Series(name, column.to_numpy())
    is_missing = np.asarray(column.isna(), dtype=bool)
    values = np.asarray(column.astype(object), dtype=object)
    values[is_missing] = None
    return column_of(name, values.tolist())


def column_of(name: str, values: Any) -> pl.Series:
    """As they are where they are of one kind, as text where they are not."""
    import polars as pl

    try:
        series = pl.Series(name, values)
        if series.dtype != pl.Object:
            return series
    except (
        TypeError,
        ValueError,
        OverflowError,
        RuntimeError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ):
        pass
    return pl.Series(name, [None if one is None else _text_of(one) for one in values], dtype=pl.String)


def _text_of(value: object) -> str:
    try:
        return str(value).encode("utf-8", errors="replace").decode()
    except Exception:  # noqa: BLE001  (a foreign __str__ may raise anything)
        return f"<{type(value).__name__}>"
