"""Tables of other libraries as Polars frames, and a log as a tidy frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from doral._arrays import Floats
from doral.errors import InvalidValue, shown
from doral.logs.log import SKIPPED, Log

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


def from_arrow(source: Any) -> pl.DataFrame:
    """Read anything that offers the Arrow PyCapsule interface; what Arrow cannot hand over becomes text."""
    import polars as pl

    frame = pl.DataFrame(source)
    odd = [name for name, kind in frame.schema.items() if kind == pl.Object]
    return frame.with_columns(column_of(name, frame[name].to_list()).alias(name) for name in odd)


def from_pandas(frame: Any) -> pl.DataFrame:
    """Read column by column, without Arrow, which pandas does not need for ordinary columns either.

    An index with a name is a column like any other: `set_index("time")` must not lose the times.
    """
    import polars as pl

    if named := [name for name in frame.index.names if name is not None and name not in frame.columns]:
        frame = frame.reset_index(level=named)

    names = [" ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise InvalidValue("name of a column", name, "appears twice; give each its own name")
    return pl.DataFrame([_from_pandas(name, frame.iloc[:, place]) for place, name in enumerate(names)])


def _from_pandas(name: str, column: Any) -> pl.Series:
    import polars as pl

    kind = getattr(column.dtype, "kind", "O")
    if hasattr(column.dtype, "pyarrow_dtype"):  # kept by Arrow: such columns have other methods
        import pyarrow

        arrow = pyarrow.array(column)
        return column_of(name, arrow)
    if kind == "M":  # moments; those with a zone are kept in UTC
        zone = getattr(column.dtype, "tz", None)
        plain = column if zone is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        moments = pl.Series(name, plain.to_numpy(dtype="datetime64[us]"))
        return moments if zone is None else moments.dt.replace_time_zone("UTC")
    if kind == "m":
        return pl.Series(name, column.to_numpy().astype("timedelta64[us]"))
    if isinstance(column.dtype, np.dtype) and kind in "biuf":
        return pl.Series(name, column.to_numpy())
    is_missing = np.asarray(column.isna(), dtype=bool)
    values = np.array(column.astype(object), dtype=object)  # a copy: pandas 3 hands out what cannot be written to
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


_TIME = {"seconds": "time_seconds", "rounds": "round", "units": "time"}  # columns that say their unit


def frame_of(log: Log) -> pl.DataFrame:
    """One row per arrival; what is not known is empty. With silent feedback, a zero is there but was never heard."""
    import polars as pl

    def at(times: Floats) -> pl.Series:
        if log.start is None:
            return pl.Series(times).set(pl.Series(~np.isfinite(times)), None)
        is_known = np.isfinite(times)
        micro = np.zeros(times.size, dtype=np.int64)
        micro[is_known] = np.rint(times[is_known] * 1e6).astype(np.int64)
        start = pl.Series([log.start]).dt.epoch("us")[0]
        moments = pl.Series(micro + start).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        return moments.set(pl.Series(~is_known), None)

    def known(values: Floats) -> pl.Series:
        return pl.Series(values).fill_nan(None)

    arms, contexts = np.array([*log.arms, None], dtype=object), np.array(log.contexts, dtype=object)
    columns: dict[str, pl.Series] = {}
    if log.key:
        columns["id"] = pl.Series(log.key)
    columns["time" if log.start is not None else _TIME[log.clock.unit]] = at(log.time)
    columns["context"] = pl.Series(contexts[log.context].tolist(), dtype=pl.String)
    places = np.where(log.arm == SKIPPED, len(log.arms), log.arm)
    columns["arm"] = pl.Series(arms[places].tolist(), dtype=pl.String)
    is_silent = log.feedback == "silent"
    columns["reward"] = known(np.where(np.isnan(log.reward), 0.0, log.reward) if is_silent else log.reward)
    if log.has_delays or is_silent:
        columns["answered_at"] = at(log.time + log.delay)
    columns["observed_until"] = at(log.time + log.watched)
    columns["cost"] = pl.Series(log.cost)
    columns["paid"] = known(log.paid)
    if log.told != "none":
        columns["probability"] = known(log.probability)
    return pl.DataFrame({name: one.alias(name) for name, one in columns.items()})
