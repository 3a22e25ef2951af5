"""What to show in a fashion shop: a log of chance, and what a learner really made of the same week.

The data are the small sample of the Open Bandit Dataset (ZOZO Inc., CC BY 4.0; Saito et al. 2021) that comes inside the
package obp: `pip install --no-deps obp`. For a week in November 2019 the shop drew one of 34 men's items for each of
three places by lot, and told the probability. In the same week others were shown what a Thompson sampler chose.

Real: times, items, places on the page, probabilities, clicks, and how often the sampler's choices were clicked.
Borrowed: nothing.
Assumed: that a click is known at once, that showing costs 1, and that there is room to show one in two.
Not there: many clicks. 10,000 views have 46; a log can be perfectly randomised and still be too short.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import polars as pl
from study import options, tell

import doral

SHOWN_PER_VIEW = 0.5


def views(policy: str) -> pl.DataFrame:
    """10,000 views of the men's pages; found without importing the package, which wants much else."""
    found = importlib.util.find_spec("obp")
    if found is None or found.origin is None:
        sys.exit("the Open Bandit Dataset comes with a package that is not here: pip install --no-deps obp")
    path = Path(found.origin).parent / "dataset" / "obd" / policy / "men" / "men.csv"
    return pl.read_csv(path).select(
        "timestamp", "click", "propensity_score", item=pl.format("item {}", "item_id"), place=pl.col("position")
    )


def main() -> None:
    chosen = options(__doc__ or "")
    log = doral.read_log(
        views("random"),
        name="a fashion shop",
        time="timestamp",
        arm="item",
        context="place",
        reward="click",
        probability="propensity_score",
    )
    tell(chosen, log, budget=SHOWN_PER_VIEW * len(log))
    learner = views("bts")
    shares = {
        f"place {place}": dict(some.group_by("item").agg(share=pl.len() / some.height).iter_rows())
        for (place,), some in learner.group_by("place")
    }
    print(doral.evaluate(log, [("the sampler", shares)]).text())
    print(f"In truth, {learner['click'].sum()} of {len(learner):,} views that the sampler chose were clicked.")


if __name__ == "__main__":
    main()
