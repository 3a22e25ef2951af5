"""COVID tests in Puerto Rico: where to test, as it could have been known on 24 June 2020.

The data are the public test reports of Puerto Rico's Department of Health as the repository rafalab/pr-covid kept them
on 19 July 2020 (all_tests, as CSV).

Real: cities, age bands, results, and when a result could be seen in the central database.
Borrowed: nothing.
Assumed: that a team of testers can go to any of the twelve cities with the most tests, that whom it meets there is as
old as those who were tested anywhere, and that there are tests for three in ten.
Not to be trusted: nobody drew lots; people were tested because they were ill, or because it was easy. Only tests that
came back are in the file, so the rows are those of 1 to 20 June, nearly all of which had come back by 19 July. What
was not there yet on the day of the decision is hidden from the plan; at the end, it is compared with what came.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl
from study import options, tell

import doral

FILE = "pr_bioportal/all_tests_2020-07-19.csv.gz"
FIRST, LAST, TODAY = datetime(2020, 6, 1), datetime(2020, 6, 21), datetime(2020, 6, 24)
CITIES, TESTS_PER_ARRIVAL, DEADLINE = 12, 0.3, timedelta(days=14)


def prepared(path: object) -> pl.DataFrame:
    """Tests of the largest cities; `seen` and `result` are empty where they were not there yet."""
    entered = pl.col("createdAt").str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
    reported = pl.col("reportedDate").str.to_datetime("%Y-%m-%d", strict=False)
    tests = (
        pl.read_csv(str(path), infer_schema=False)
        .with_columns(
            collected=pl.col("collectedDate").str.to_datetime("%Y-%m-%d", strict=False),
            came=pl.max_horizontal(entered, reported),
            came_out=pl.col("result"),
        )
        .filter(pl.col("collected").is_between(FIRST, LAST, closed="left"), pl.col("result") != "other")
        .drop_nulls(["patientCity", "ageRange", "came"])
    )
    sizes = tests.group_by("patientCity").len().sort(["len", "patientCity"], descending=[True, False])
    is_there = pl.col("came") <= TODAY
    return tests.filter(pl.col("patientCity").is_in(sizes["patientCity"].head(CITIES).to_list())).with_columns(
        seen=pl.when(is_there).then("came"), result=pl.when(is_there).then("result")
    )


def compare(plan: doral.Plan, tests: pl.DataFrame) -> None:
    """The return curve that the plan drew on its day, and what came in the end."""
    days = ((tests["came"] - tests["collected"]).dt.total_seconds() / 86_400.0).to_numpy()
    curve = next(one for one in plan.curves if one.arm is None)
    print("\nanswered after   known that day [95%]   in the end   by counting what was there")
    there = tests["seen"].is_not_null().to_numpy()
    for day in (3.0, 5.0, 8.0, 10.0, 14.0):
        at = int(np.searchsorted(curve.ages, day * 86_400.0, side="right")) - 1
        share, low, high = curve.share[at], curve.low[at], curve.high[at]
        band = "?" if low is None or high is None else f"{100 * share:.0f}% [{100 * low:.0f}, {100 * high:.0f}]"
        ended, counted = 100.0 * np.mean(days <= day), 100.0 * np.mean(days[there] <= day)
        print(f"{day:7.0f} days   {band:>20s}   {ended:9.0f}%   {counted:9.0f}%")


def main() -> None:
    chosen = options(__doc__ or "", data=FILE)
    tests = prepared(chosen.path)
    log = doral.read_log(
        tests,
        name="tests in Puerto Rico",
        time="collected",
        arm="patientCity",
        context="ageRange",
        reward="result",
        positive="positive",
        answered="seen",
        observed_until=TODAY,
    )
    plan = tell(chosen, log, budget=float(round(TESTS_PER_ARRIVAL * len(log))), deadline=DEADLINE)
    compare(plan, tests)


if __name__ == "__main__":
    main()
