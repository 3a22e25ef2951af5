"""Plays policies on problems, with a cache of what rivals in Python have reached.

A rival in Python is slow and does not depend on the engine: its shares are kept by policy, problem and run, under a
digest of what makes the problems and of the rivals' sources. A change to the engine replays engine policies alone.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import doral
from doral.cli.catalogue import parse_policy
from doral.engine.options import PolicyOptions
from doral.errors import DoralError

from .named import NAMED
from .space import arrivals_of, draw_scenario, strata_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = ROOT / "build" / "random_problems"
RIVALS = ROOT / "src" / "doral" / "simulation" / "rivals"
SOURCES = {  # on which the shares of rivals depend, by kind of problem
    kind: (HERE / file, *sorted(RIVALS.glob("*.py"))) for kind, file in (("random", "space.py"), ("named", "named.py"))
}
KNOWS_PEOPLE = ("doral", "ts-lp")  # policies of these names use the features of people; others get strata
BANDS: Mapping[str, tuple[int, int]] = {"short": (300, 2_000), "middle": (2_000, 8_000), "long": (8_000, 20_001)}


@dataclass
class Played:
    """A problem, and the share of the oracle that each policy reached in each run, in percent."""

    problem: str
    properties: dict[str, Any]
    shares: dict[str, list[float]] = field(default_factory=dict)  # by policy
    left_out: dict[str, str] = field(default_factory=dict)  # by policy, why it cannot play this

    @property
    def arrivals(self) -> int:
        return int(self.properties["n"])


def band_of(arrivals: int) -> str:
    """Return the band of a number of arrivals; beyond the last it is "long", too."""
    return next((name for name, (low, high) in BANDS.items() if low <= arrivals < high), "long")


def problems_of(seeds: Iterable[int], bands: Sequence[str] = tuple(BANDS)) -> list[str]:
    """Return the names of the problems of these seeds that are in these bands."""
    return [f"random/{seed}" for seed in seeds if band_of(arrivals_of(seed)) in bands]


def made_problem(name: str) -> tuple[doral.Scenario, dict[str, Any]]:
    """Return the scenario of a name, random/SEED or named/NAME, and its properties."""
    kind, _, which = name.partition("/")
    if kind == "random":
        return draw_scenario(int(which))
    scenario = NAMED[which]()
    return scenario, {"n": scenario.problem.expected_rounds}


def play(policy: str, scenario: doral.Scenario, *, runs: int, seed: int) -> list[float]:
    """Return shares of the oracle's expected reward, in percent, by run; gains over the baseline where there is one."""
    if scenario.people is not None and not policy.startswith(KNOWS_PEOPLE):
        scenario = strata_of(scenario)
    played = doral.simulate(parse_policy(policy), scenario, runs=runs, seed=seed, progress=False)
    return [100.0 * one.expected / one.oracle for one in played.outcomes]


def is_cached(policy: str) -> bool:
    """Return whether what a policy reaches does not depend on the engine."""
    return not isinstance(parse_policy(policy), PolicyOptions)


class Cache:
    """Shares by problem and policy, a file of JSON lines for each policy; processes that append do not disturb."""

    def __init__(self, folder: Path, sources: Sequence[Path]) -> None:
        """`sources` are the files on which the shares depend."""
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
        self._folder = folder / digest
        self._known: dict[str, dict[str, list[float]]] = {}

    def find(self, policy: str, problem: str, runs: int) -> list[float] | None:
        """Return the shares of the first runs, or None where fewer are known."""
        if policy not in self._known:
            self._known[policy] = {}
            path = self._path(policy)
            for line in path.read_text().splitlines() if path.exists() else ():
                row = json.loads(line)
                if len(row["shares"]) >= len(self._known[policy].get(row["problem"], [])):
                    self._known[policy][row["problem"]] = row["shares"]
        known = self._known[policy].get(problem, [])
        return known[:runs] if len(known) >= runs else None

    def keep(self, policy: str, problem: str, shares: list[float]) -> None:
        """Append what a policy reached on a problem."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._path(policy).open("a") as file:
            file.write(json.dumps({"problem": problem, "shares": shares}) + "\n")

    def _path(self, policy: str) -> Path:
        return self._folder / f"{policy.translate(str.maketrans(':=,/', '----'))}.jsonl"


def _play_problem(task: tuple[str, tuple[str, ...], int]) -> Played:
    problem, policies, runs = task
    scenario, properties = made_problem(problem)
    played = Played(problem, properties)
    for policy in policies:
        try:
            played.shares[policy] = play(policy, scenario, runs=runs, seed=int(properties.get("seed", 0)))
        except DoralError as error:
            played.left_out[policy] = str(error)
    return played


def play_panel(
    policies: Sequence[str],
    problems: Sequence[str],
    *,
    runs: int,
    jobs: int = 1,
    cache: Path = CACHE,
    progress: TextIO | None = None,
) -> list[Played]:
    """Return what these policies reach on these problems; what is not in the cache is played, and kept there."""
    caches = {kind: Cache(cache, sources) for kind, sources in SOURCES.items()}
    cached = [policy for policy in policies if is_cached(policy)]
    tasks, found = [], []
    for problem in problems:
        shares_of = {policy: _of(caches, problem).find(policy, problem, runs) for policy in cached}
        found.append({policy: shares for policy, shares in shares_of.items() if shares is not None})
        tasks.append((problem, tuple(policy for policy in policies if policy not in found[-1]), runs))
    results, start = [], time.perf_counter()
    for number, (played, known) in enumerate(zip(_each(tasks, jobs), found, strict=True), start=1):
        for policy in set(played.shares) & set(cached):
            _of(caches, played.problem).keep(policy, played.problem, played.shares[policy])
        new = played.shares | known
        played.shares = {policy: new[policy] for policy in policies if policy in new}
        results.append(played)
        if progress is not None:
            left = (time.perf_counter() - start) / number * (len(tasks) - number)
            print(f"\r{number} of {len(tasks)} problems, {left:4.0f} s left ", end="", file=progress, flush=True)
    if progress is not None:
        print(file=progress)
    return results


def _of(caches: Mapping[str, Cache], problem: str) -> Cache:
    return caches[problem.partition("/")[0]]


def _each(tasks: list[tuple[str, tuple[str, ...], int]], jobs: int) -> Iterator[Played]:
    if jobs <= 1:
        yield from map(_play_problem, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_play_problem, tasks)


def split_policies(words: str) -> list[str]:
    """Return the policies of a list such as doral-otf,doral-otf:bonus=to_come,exploration=0.5,eva.

    >>> split_policies("doral-otf:bonus=to_come,exploration=0.5,eva")
    ['doral-otf:bonus=to_come,exploration=0.5', 'eva']
    """
    found: list[str] = []
    for part in words.split(","):
        if "=" in part and ":" not in part and found:
            found[-1] += f",{part}"
        elif part:
            found.append(part)
    for policy in found:
        try:
            parse_policy(policy)
        except DoralError as error:
            sys.exit(f"{policy}: {error}")
    return found
