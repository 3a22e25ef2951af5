"""Kinds of people from columns: what matters is kept, no cell is too thin, and names can be read."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest

import doral
from doral.errors import InvalidValue
from doral.logs.log import Log
from doral.logs.strata import FLOOR, MAX_STRATA
from doral.problem import EVERYONE
from tests.logs.tables import said


def people(n: int = 6_000, *, seed: int = 0, n_arms: int = 2) -> dict[str, Any]:
    """Rewards depend on age and place, and on nothing else."""
    rng = np.random.default_rng(seed)
    age, place = rng.integers(18, 90, n), rng.choice(["north", "south", "west"], n, p=[0.6, 0.3, 0.1])
    chance = 0.2 + 0.3 * (age >= 54) + 0.2 * (place == "south")
    return {
        "arm": rng.choice([f"a{one}" for one in range(n_arms)], n),
        "reward": (rng.random(n) < chance).astype(int),
        "age": age,
        "place": place,
        "coin": rng.choice(["head", "tail"], n),
    }


def cells_of(log: Log) -> np.ndarray[Any, Any]:
    counts = np.zeros((len(log.contexts), len(log.arms)), dtype=int)
    np.add.at(counts, (log.context, log.arm), 1)
    return counts


def test_what_matters_is_crossed_and_the_rest_is_said() -> None:
    log = doral.read_log(people(), context=["coin", "age", "place"])
    assert len(log.contexts) == 12
    assert all(one.startswith("age ") and one.endswith(("north", "south", "west")) for one in log.contexts)
    assert "12 strata from age, place" in said(log)
    assert "Column 'coin' was left out of the strata: it does not tell rewards apart" in said(log)
    assert (np.diff(np.bincount(log.context)) <= 0).all()  # the commonest first
    everything = doral.read_log(people(), context=["coin", "age", "place"], strata="all")
    assert len(everything.contexts) == 24
    assert cells_of(everything).min() >= FLOOR
    at_most = doral.read_log(people(), context=["coin", "age", "place"], strata=5)
    assert len(at_most.contexts) <= 5


def test_columns_that_say_nothing_make_no_strata() -> None:
    """In most of 40 logs a coin is left out: beyond one standard error it comes in 1 of 6."""
    rng = np.random.default_rng(3)
    split = 0
    for _ in range(40):
        rows = {
            "arm": rng.choice(["a", "b"], 1_000),
            "reward": rng.integers(0, 2, 1_000),
            "coin": rng.choice(["x", "y"], 1_000),
            "dice": rng.integers(1, 7, 1_000),
        }
        split += doral.read_log(rows, context=["coin", "dice"]).contexts != (EVERYONE,)
    assert split <= 14


@pytest.mark.parametrize("seed", range(6))
def test_no_cell_is_thin_and_no_row_is_lost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = people(int(rng.integers(300, 4_000)), seed=seed, n_arms=int(rng.integers(1, 5)))
    rows["city"] = rng.zipf(1.5, len(rows["arm"])) % 40
    rows["city"] = [f"city {one}" for one in rows["city"]]
    columns = ["age", "place", "coin", "city"]
    log = doral.read_log(rows, context=columns, strata="all")
    cells = cells_of(log)
    often = cells.sum(axis=0) >= FLOOR
    assert (cells[:, often] >= FLOOR).all() or len(log.contexts) == 1
    assert cells.sum() == len(rows["arm"])
    assert 1 <= len(log.contexts) <= MAX_STRATA
    assert len(set(log.contexts)) == len(log.contexts)


def test_strata_are_functions_of_their_columns() -> None:
    """Who is alike in every column is in one stratum, and a name says who is in it."""
    rows = people()
    log = doral.read_log(rows, context=["age", "place"])
    frame = pl.DataFrame({"age": rows["age"], "place": rows["place"], "stratum": log.context})
    assert frame.group_by("age", "place").agg(pl.col("stratum").n_unique())["stratum"].max() == 1
    for code, name in enumerate(log.contexts):
        ages, place = name.removeprefix("age ").split(", ")
        low, high = map(int, ages.split("-"))
        inside = frame.filter(pl.col("stratum") == code)
        assert inside["age"].is_between(low, high).all()
        assert (inside["place"] == place).all()


def test_one_column_of_words_stays_as_it_is() -> None:
    rng = np.random.default_rng(4)
    places = [*rng.choice(["north", "south"], 970), *["x"] * 9, *["y"] * 8, *[None] * 13]
    rows = {"arm": ["a"] * 1_000, "reward": [1] * 1_000, "segment": places}
    log = doral.read_log(rows)
    assert set(log.contexts) == {"north", "south", "other"}
    assert "3 rare levels are pooled as 'other'" in said(log)
    assert set(doral.read_log(rows, strata="as-is").contexts) == {"north", "south", "x", "y", "(missing)"}
    assert doral.read_log(rows, context=[]).contexts == (EVERYONE,)
    few = doral.read_log({"arm": ["a"] * 20, "reward": [1] * 20, "segment": ["x", "y"] * 10})
    assert few.contexts == ("x", "y")


def test_numbers_are_cut_and_few_are_levels() -> None:
    rows = people()
    log = doral.read_log(rows, context="age")
    assert len(log.contexts) == 4
    assert max(log.shares) < 0.3
    rows["visits"] = np.random.default_rng(0).integers(0, 3, len(rows["arm"]))
    assert set(doral.read_log(rows, context="visits").contexts) == {"visits 0", "visits 1", "visits 2"}
    rows["flag"] = rows["age"] > 50
    assert set(doral.read_log(rows, context="flag").contexts) == {"yes", "no"}


def test_many_levels_are_pooled_and_a_long_name_is_refused() -> None:
    rng = np.random.default_rng(5)
    words = [f"c{one}" for one in rng.integers(0, 200, 30_000)]
    rows = {"arm": ["a"] * 30_000, "reward": rng.integers(0, 2, 30_000), "context": words}
    log = doral.read_log(rows)
    assert len(log.contexts) == MAX_STRATA
    assert "other" in log.contexts
    with pytest.raises(InvalidValue, match="more than 200 characters"):
        doral.read_log({"arm": ["a"], "reward": [1], "context": ["x" * 500]})
    with pytest.raises(InvalidValue, match="strata = 'many'"):
        doral.read_log(rows, strata="many")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="holds times"):
        doral.read_log({"arm": ["a"], "reward": [1], "day_of": [date(2026, 1, 1)]}, context="day_of")
