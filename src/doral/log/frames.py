"""A log as a tidy frame, which `read_log` reads as the same log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Floats
from doral.log.log import SKIPPED, Log

if TYPE_CHECKING:
    import polars as pl

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
