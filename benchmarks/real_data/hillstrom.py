"""Hillstrom's randomised e-mail experiment as a problem: 64,000 customers, two e-mails, and a control group.

Arms are the two e-mails and no e-mail, which is the control: customers who are not served get it, and what an e-mail is
worth is what it brings beyond it. Contexts are what customers bought before (men's goods, women's, or both) and whether
they are new. Rows of a context and arm are drawn again, so that a reward is one that was observed there.

The file has no costs and no times. Set here: an e-mail costs 1, the budget is for 30% of 20,000 arrivals within 60
days, and an answer within two weeks takes a lognormal time with a median of a day.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

import doral
from doral.simulation.scenario.rows import Rows

from .absent import Absent

ARRIVALS, DAYS, DEADLINE_DAYS, SHARE = 20_000, 60.0, 14.0, 0.3
CONTROL = "No E-Mail"
ARMS = ("Mens E-Mail", "Womens E-Mail", CONTROL)
VARIANTS = ("visits", "conversions", "spend", "explicit", "2000")
_REWARD = {"conversions": "conversion", "spend": "spend"}


def read(folder: Path) -> pl.DataFrame:
    """Return the customers with their contexts."""
    path = folder / "hillstrom" / "hillstrom.csv.gz"
    if not path.exists():
        raise Absent(f"{path} is not there")
    of_one = pl.when(pl.col("mens") == 1).then(pl.lit("men's")).otherwise(pl.lit("women's"))
    bought = pl.when(pl.col("mens") + pl.col("womens") == 2).then(pl.lit("both")).otherwise(of_one)
    known = pl.when(pl.col("newbie") == 1).then(pl.lit("new")).otherwise(pl.lit("known"))
    return pl.read_csv(path, infer_schema_length=None).with_columns(
        context=pl.concat_str([bought, known], separator=", ")
    )


def scenario(customers: pl.DataFrame, variant: str) -> doral.Scenario:
    """Return the problem of a variant: what a reward is, whether zeros are seen after two weeks, or how many arrive."""
    arrivals = int(variant) if variant.isdigit() else ARRIVALS
    per_day = arrivals / DAYS
    counted = customers.group_by("context").len().sort("context")
    shares = dict(zip(counted["context"], (counted["len"] / customers.height).to_list(), strict=True))
    draws = np.random.default_rng(0)
    rewards, delays, sizes = [], [], []
    for context in shares:
        for arm in ARMS:
            cell = customers.filter((pl.col("context") == context) & (pl.col("segment") == arm))
            reward = cell[_REWARD.get(variant, "visit")].to_numpy().astype(np.float64)
            days = np.minimum(draws.lognormal(0.0, 1.0, reward.size), DEADLINE_DAYS)
            silence = DEADLINE_DAYS * per_day if variant == "explicit" else np.inf
            rewards.append(reward)
            delays.append(np.where(reward > 0.0, np.maximum(1.0, np.floor(days * per_day)), np.floor(silence)))
            sizes.append(reward.size)
    problem = doral.Problem(
        arms={arm: 0.0 if arm == CONTROL else 1.0 for arm in ARMS},
        contexts=shares,
        budget=SHARE * arrivals,
        horizon=arrivals,
        deadline=np.floor(DEADLINE_DAYS * per_day),
        feedback="explicit" if variant == "explicit" else "silent",
        baseline=CONTROL,
    )
    starts = (np.cumsum(sizes) - sizes).reshape(len(shares), len(ARMS))
    rows = Rows.from_arrays(reward=np.concatenate(rewards), delay=np.concatenate(delays), starts=starts)
    return doral.Scenario(name=f"hillstrom/{variant}", problem=problem, rows=rows)
