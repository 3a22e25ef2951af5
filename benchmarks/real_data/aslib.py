"""Algorithm selection as a problem, replayed exactly: each instance arrives once, and what each solver does is known.

Arms are solvers, arrivals are instances in random order, one a minute. A reward is a solved instance, its delay is the
run time; a run that ended by time or memory never answers, and the deadline is the cut-off of the library. Features of
an instance are the first principal components of what the library measured of it (signed logarithms, standardised).

- `as-is`: a use costs what the solver takes on average, cut-off where it does not solve; the budget is 40% of what
  serving every instance costs on average over solvers.
- `silent`: the same with silent feedback.
- `paid`: a use reserves the cut-off and costs the run time where the instance is solved, and nothing where it is not.
  One instance arrives every ten minutes, so that it is the budget that binds and not what pending runs reserve.

The oracle knows the outcome of each instance, which no policy can: shares compare policies, and are low.
"""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import doral
from doral._arrays import Floats
from doral.delays import Fixed
from doral.simulation.api import MadePolicy, make_player
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.rows import Rows
from doral.simulation.world.tape import BY_ROW, NOISE_ROWS, new_tape
from doral.simulation.world.truth import laws_of_rows, make_truth

from .absent import Absent

VARIANTS = ("as-is", "silent", "paid")
SCENARIOS = ("QBF-2011", "BNSL-2016", "SAT12-HAND")
ROUND_S = {"as-is": 60.0, "silent": 60.0, "paid": 600.0}  # seconds between two arrivals
SHARE = 0.4  # of what serving every instance costs
COMPONENTS = 8
BINS, MOST_STRATA = 3, 9  # for policies that know contexts alone


@dataclass(frozen=True, kw_only=True)
class Runs:
    """What each solver does with each instance."""

    name: str
    solvers: tuple[str, ...]
    seconds: Floats  # (N, A) run time, infinite where the instance is not solved
    features: Floats  # (N, k), NaN where not known
    cutoff_s: float


def read_arff(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the attributes and the rows of a file whose values have no quotes or commas."""
    if not path.exists():
        raise Absent(f"{path} is not there")
    with gzip.open(path, "rt") as file:
        lines = [line.strip() for line in file]
    begin = next(i for i, line in enumerate(lines) if line.upper() == "@DATA")
    names = [line.split()[1].strip("'\"") for line in lines[:begin] if line.upper().startswith("@ATTRIBUTE")]
    return names, [line.split(",") for line in lines[begin + 1 :] if line and not line.startswith("%")]


def read(folder: Path, name: str) -> Runs:
    """Return the runs of an ASlib scenario; instances in the order of the file."""
    home = folder / "aslib" / name
    names, rows = read_arff(home / "algorithm_runs.arff.gz")
    instance, solver, seconds, status = (
        names.index(one) for one in ("instance_id", "algorithm", "runtime", "runstatus")
    )
    instances = list(dict.fromkeys(row[instance] for row in rows))
    solvers = tuple(sorted({row[solver] for row in rows}))
    number = {one: i for i, one in enumerate(instances)}
    taken = np.full((len(instances), len(solvers)), np.inf)
    for row in rows:
        if row[status] == "ok":
            taken[number[row[instance]], solvers.index(row[solver])] = float(row[seconds])
    columns, values = read_arff(home / "feature_values.arff.gz")
    kept = [i for i, column in enumerate(columns) if column not in ("instance_id", "repetition")]
    features = np.full((len(instances), len(kept)), np.nan)
    for row in values:
        features[number[row[columns.index("instance_id")]]] = [np.nan if row[i] == "?" else float(row[i]) for i in kept]
    text = (home / "description.txt").read_text()
    cutoff = next(line for line in text.splitlines() if line.startswith("algorithm_cutoff_time"))
    return Runs(
        name=name.lower(),
        solvers=solvers,
        seconds=taken,
        features=features,
        cutoff_s=float(cutoff.partition(":")[2]),
    )


def components(features: Floats, n: int = COMPONENTS) -> Floats:
    """Return the first principal components (N, n) of signed logarithms, each with a standard deviation of 1."""
    logs = np.sign(features) * np.log1p(np.abs(features))
    known = ~np.isnan(logs)
    sums, n_known = np.where(known, logs, 0.0).sum(axis=0), known.sum(axis=0)
    means = sums / np.maximum(n_known, 1)
    centred = np.where(known, logs - means, 0.0)
    spread = centred.std(axis=0)
    standardised = centred[:, spread > 0.0] / spread[spread > 0.0]
    left, sizes, _ = np.linalg.svd(standardised, full_matrices=False)
    found: Floats = left[:, :n] * np.sign(left[:, :n].sum(axis=0) + 1e-12) * np.sqrt(len(left))
    return found[:, sizes[:n] > 0.0]


def scenario(runs: Runs, variant: str) -> doral.Scenario:
    """Return the problem of a variant; `replay` plays it."""
    n, n_arms = runs.seconds.shape
    solved = np.isfinite(runs.seconds)
    taken = np.where(solved, runs.seconds, runs.cutoff_s)
    is_paid = variant == "paid"
    costs = np.full(n_arms, runs.cutoff_s) if is_paid else np.maximum(taken.mean(axis=0), 1.0)
    of_all = np.where(solved, runs.seconds, 0.0).mean() if is_paid else costs.mean()
    x = components(runs.features)
    names = [f"component_{i + 1}" for i in range(x.shape[1])]
    terms: dict[str, Any] = {"paid": "on_answer"} if is_paid else {}
    problem = doral.Problem(
        arms=dict(zip(runs.solvers, costs.tolist(), strict=True)),
        person=names,
        budget=SHARE * n * float(of_all),
        horizon=n,
        deadline=np.ceil(runs.cutoff_s / ROUND_S[variant]),
        feedback="silent" if variant == "silent" else "explicit",
        reward_range=(0.0, 1.0),
        **terms,
    )
    # Delays are those of the replay; for the oracle, what is solved is in time.
    return doral.Scenario(
        name=f"{runs.name}/{variant}",
        problem=problem,
        people=dict(zip(names, x.T, strict=True)),
        means=solved.astype(np.float64),
        noise="none",
        delays=Fixed(1.0),
        paid=np.where(solved, runs.seconds, 0.0) / runs.cutoff_s if is_paid else "always",
    )


def stratified(scenario: doral.Scenario) -> doral.Scenario:
    """Return the same instances for policies that know contexts alone."""
    return scenario.stratified(bins=BINS, at_most=MOST_STRATA)


def replay(
    policies: Sequence[MadePolicy], scenario: doral.Scenario, taken: Runs, *, runs: int, seed: int
) -> list[Outcome]:
    """Let policies play the instances, each once, in another order in each run; the same for all policies.

    The simulator draws what an arrival brings from the rows of a cell. Here each instance has cells of its own, with
    the one row that was observed.
    """
    variant = scenario.name.partition("@")[0].rpartition("/")[2]  # without the mark of strata
    solved, round_s = np.isfinite(taken.seconds), ROUND_S[variant]
    cells = np.arange(solved.size).reshape(solved.shape)
    rows = Rows.from_arrays(
        reward=solved.ravel().astype(np.float64), delay=np.ceil(taken.seconds / round_s).ravel(), starts=cells
    )
    truth = make_truth(scenario, seed=0, run=0)
    world: dict[str, Any] = {"noise": NOISE_ROWS, "laws": laws_of_rows(rows), "rewards": rows.reward}
    if scenario.paid != "always":
        shares = np.where(solved, taken.seconds, 0.0).ravel() / taken.cutoff_s
        world["payments"] = truth.world.payments._replace(kind=BY_ROW, shares=shares)
    exact = dataclasses.replace(truth, block=truth.block.with_fields(**world))
    found = []
    for run in range(runs):
        order = np.random.default_rng(np.random.SeedSequence((seed, run))).permutation(len(solved))
        for policy in policies:
            player = make_player(policy, scenario, exact, seed=seed, run=run)
            tape = new_tape(exact.world, len(order))
            tape.context[:] = order
            player.play(tape, 1)
            found.append(player.outcome(keep_decisions=False))
    return found
