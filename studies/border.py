"""Testing travellers at a border: whom to test, with as many tests as there were.

The data are those that the makers of Eva, the system that chose whom to test at the Greek border in 2020, have
published (EVA_Public_Data; Bastani et al., Nature 2021): for every two days, country and entry point how many were
announced, were to be tested, were tested, and were found positive. Every count in the file is twice what it was, and is
halved here.

Real: who came from where, who was to be tested and was not, and who was positive.
Borrowed: nothing.
Assumed: when somebody came within the two days, and how long a result took (about two days; the file has no delays).
Not to be trusted: testing was aimed at whom Eva thought positive, within a country by what the file does not hold:
those who were not tested would have been positive more rarely.
"""

from __future__ import annotations

from datetime import datetime

import numpy as np
import polars as pl
from study import options, tell

import doral

FILE = "eva_greece/publicly_available_data.csv"
COUNTS = {
    "numSchedArrivals": "came",
    "numTestsAlloc": "planned",
    "numTestsPerformed": "done",
    "numPositivesFound": "yes",
}
FIRST_EPOCH = 36  # 15 October: the last eighteen days
DAY = 86_400.0
MEDIAN_DAYS, SPREAD = 2.0, 0.4  # of the delays that are assumed


def prepared(path: object) -> pl.DataFrame:
    """One row for everybody who came: not to be tested, to be tested and not done, done, done and positive."""
    draws = np.random.default_rng(0)
    cells = (
        pl.read_csv(str(path))
        .rename(COUNTS)
        .filter(pl.col("epoch") >= FIRST_EPOCH)
        .with_columns(
            (pl.col(name) // 2 for name in COUNTS.values()), start=pl.col("epoch_dates").str.head(10).str.to_datetime()
        )
    )
    people = cells.with_columns(place=pl.int_ranges("came")).explode("place").drop_nulls("place")
    n = people.height
    seconds = pl.lit(pl.Series(draws.uniform(0.0, 2.0 * DAY, n).astype(np.int64)))
    wait = pl.lit(pl.Series(np.exp(np.log(MEDIAN_DAYS * DAY) + SPREAD * draws.standard_normal(n)).astype(np.int64)))
    is_done = pl.col("place") < pl.col("done")
    return people.with_columns(time=pl.col("start") + pl.duration(seconds=seconds)).select(
        "time",
        "country",
        "point_entry",
        arm=pl.when(pl.col("place") < pl.col("planned")).then(pl.lit("test")),
        positive=pl.when(is_done).then((pl.col("place") < pl.col("yes")).cast(pl.Int8)),
        answered=pl.when(is_done).then(pl.col("time") + pl.duration(seconds=wait)),
        paid=is_done.cast(pl.Int8),
    )


def main() -> None:
    chosen = options(__doc__ or "", data=FILE)
    log = doral.read_log(
        prepared(chosen.path),
        name="travellers to Greece",
        context="country",
        reward="positive",
        paid="paid",
        observed_until=datetime(2020, 11, 8),
    )
    tell(chosen, log, deadline="4d")


if __name__ == "__main__":
    main()
