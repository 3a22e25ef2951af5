"""What several workers on one campaign earn less than one decider would: budget leases, simulated.

    python benchmarks/lease_loss.py [stress/short ...] [--runs 20] [--figure docs/img/scale/lease_loss.png]

Arrivals of a tape go to workers at random. Each decides on a copy of what the log said when it last looked, plus its
own decisions since; it hears of nobody else's decisions and of no answer before it looks again. A lease is half of
what is free, divided by the number of workers; where that does not pay for a decision, it is made under the lock, by
a state that knows everything. Decisions are the engine's own (`_lease_kernels.py`), worlds and tapes the simulator's.

When a worker looks again is what is varied:

    rest 5%    when arrivals have come that are 5% of those still to come (all workers together)
    past 5%    when arrivals have come that are 5% of those that came so far; at the latest at half of the rest
    every 1000 after so many arrivals (all workers together)

The loss is the paired difference of what the chosen arms are worth, in percent of what one decider's are, with the 95%
interval of Student's t over runs.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _kernel_run import Task, new_task, play_once
from _lease_kernels import HAIR, LEASES, Tour
from scipy import stats

from doral._arrays import leaves, replace_leaves
from doral.compiled import Block
from doral.engine.engine import ASK
from doral.engine.options import policy
from doral.engine.setup import first_state, grown
from doral.engine.state import State
from doral.simulation.catalogue.lookup import named_scenario as scenario_of
from doral.simulation.world.logbook import new_logbook

SCENARIOS = ("paper/diverse-pareto", "stress/costs", "stress/short", "people/linear")
WORKERS = (1, 2, 4, 8, 16, 32, 64)
RULES = ("rest 50%", "rest 5%", "past 50%", "past 10%", "past 1%", "every 1000")
LEASE_SHARE = 0.5  # of what is free, by all holders together


class Rule(NamedTuple):
    """When a worker looks again."""

    kind: str  # rest, past or every
    size: float

    @classmethod
    def of(cls, words: str) -> Rule:
        """
        >>> Rule.of("past 5%")
        Rule(kind='past', size=0.05)
        """
        kind, size = words.split()
        return cls(kind, float(size[:-1]) / 100 if size.endswith("%") else float(size))

    def arrivals(self, past: int, rest: int, workers: int) -> int:
        """Of one worker, until it looks again; 0: it decides this one under the lock."""
        wanted = {"rest": self.size * rest, "past": self.size * past, "every": self.size}[self.kind]
        return int(min(wanted, LEASE_SHARE * rest) / workers)


@dataclass(frozen=True)
class Tried:
    """What workers have earned together."""

    expected: float  # worth of the arms that were chosen
    spend: float
    looks: int  # how often workers have looked at the log
    ordinary: int  # decisions under the lock


def go(task: Task, *, workers: int, rule: Rule, same_coins: bool = False) -> Tried:
    """One run of several workers."""
    n, truth, problem = task.horizon, task.truth, task.scenario.problem
    draws = np.random.default_rng((task.blueprint.seed, task.blueprint.run, workers))
    owner = draws.integers(workers, size=n)
    mine = [np.flatnonzero(owner == worker) for worker in range(workers)]
    costs = problem.costs_by_context
    dearest, held = float(costs.max()), np.zeros(workers)
    arms, nothing, everything = np.full(n, ASK), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    known = Block(first_state(task.blueprint))  # what the log says
    program = LEASES
    program["prepare"](known)
    coins = [
        np.uint64(task.blueprint.run if same_coins else task.blueprint.run + ((1 + worker) << 32))
        for worker in range(workers)
    ]
    scratch = [Scratch(known.tree, coin) for coin in coins]
    book = Block(new_logbook(task.scenario, truth.times, truth.classes))
    tape, tour = (
        Block(task.tape),
        Block(Tour(arms, owner, held, nothing, np.zeros(2), everything, np.zeros(1, dtype=np.int64))),
    )
    done = [0] * workers  # of its own arrivals
    followed = looks = ordinary = 0

    def follow(upto: int) -> None:
        nonlocal followed
        while (followed := program["follow"](known, truth.block, tape, book, tour, followed, upto)) < upto:
            known.tree = grown(known.tree)
        while program["listen"](known, truth.block, tape, book, tour, upto, upto + 1) == upto:
            known.tree = grown(known.tree)

    meetings = [(int(own[0]), worker) for worker, own in enumerate(mine) if own.size]
    heapq.heapify(meetings)
    while meetings:
        now, worker = heapq.heappop(meetings)
        follow(now)
        looks += 1
        held[worker] = 0.0
        free = float(known.tree.now["budget_left"][0]) - float(held.sum())
        lease = LEASE_SHARE * free / workers
        arrivals = rule.arrivals(now, n - now, workers)
        own, first = mine[worker], done[worker]
        if arrivals == 0 or lease < dearest:
            ordinary += 1
            can_pay = costs[min(int(task.tape.context[now]), len(costs) - 1)] <= free + HAIR * dearest
            tour.replace(affordable=everything if can_pay.all() else can_pay.astype(np.uint8))
            follow(now + 1)
            done[worker] += 1
        else:
            held[worker] = lease
            stop = min(first + arrivals, own.size)
            scratch[worker].follow(known.tree)
            block = scratch[worker].block
            tour.replace(mine=own, lease=np.array([lease, dearest]))
            while (first := program["lead"](block, truth.block, tape, book, tour, first, stop)) < stop:
                if tour.tree.lease[0] < dearest * (1.0 - HAIR):
                    break
                block.tree = grown(block.tree)
            done[worker] = first
        if done[worker] < own.size:
            heapq.heappush(meetings, (int(own[done[worker]]), worker))
    follow(n)
    left = float(known.tree.now["budget_left"][0])
    if left < -HAIR * problem.budget or held.min() < -HAIR * problem.budget:
        raise AssertionError(f"overspent: {left} left, {held.min()} of a lease")
    return Tried(float(book.tree.counts["expected"][0]), problem.budget - left, looks, ordinary)


def _copied(state: State) -> State:
    copied: State = replace_leaves(state, {name: array.copy() for name, array in leaves(state)})
    return copied


class Scratch:
    """A worker's own state, to be made like another one again and again."""

    def __init__(self, state: State, run: np.uint64) -> None:
        self.block: Block[State] = Block(_copied(state))
        self._run = run  # of the coins that it tosses
        self._made_of: State | None = None

    def follow(self, state: State) -> None:
        """Array by array, into those that are there, unless one of both has grown since."""
        if self._made_of is not state or self._tree is not self.block.tree:
            copied = _copied(state)
            self.block.tree = self._tree = copied._replace(coin=copied.coin._replace(run=self._run))
            self._made_of = state
            pairs = zip(leaves(state), leaves(self._tree), strict=True)
            self._pairs = [(copy, array) for (_, array), (_, copy) in pairs if copy.flags.writeable]
        for copy, array in self._pairs:
            np.copyto(copy, array)


@dataclass(frozen=True)
class Loss:
    """In percent of what one decider earns; below 0: a gain."""

    scenario: str
    rule: str
    workers: int
    runs: int
    percent: float
    low: float
    high: float
    looks_per_worker: float
    ordinary_percent: float  # of the arrivals
    spend_percent: float  # of the budget


def losses(name: str, rules: Sequence[str], workers: Sequence[int], *, runs: int, same_coins: bool) -> list[Loss]:
    scenario = scenario_of(name)
    tried: dict[tuple[str, int], list[Tried]] = {(rule, count): [] for rule in rules for count in workers}
    alone: list[float] = []
    for run in range(runs):
        task = new_task(policy("doral-otf"), scenario, seed=0, run=run)
        alone.append(float(play_once(task).book.counts["expected"][0]))
        for rule, count in tried:
            tried[rule, count].append(go(task, workers=count, rule=Rule.of(rule), same_coins=same_coins))
    found = []
    for (rule, count), runs_of in tried.items():
        differences = [100.0 * (one - many.expected) / one for one, many in zip(alone, runs_of, strict=True)]
        middle, wide = float(np.mean(differences)), math.inf
        if runs > 1:
            wide = float(stats.t.ppf(0.975, runs - 1) * np.std(differences, ddof=1) / math.sqrt(runs))
        horizon, budget = scenario.problem.horizon, scenario.problem.budget
        found.append(
            Loss(
                scenario=name,
                rule=rule,
                workers=count,
                runs=runs,
                percent=middle,
                low=middle - wide,
                high=middle + wide,
                looks_per_worker=float(np.mean([one.looks for one in runs_of])) / count,
                ordinary_percent=100.0 * float(np.mean([one.ordinary for one in runs_of])) / horizon,
                spend_percent=100.0 * float(np.mean([one.spend for one in runs_of])) / budget,
            )
        )
    return found


def show(found: Sequence[Loss]) -> str:
    """A table for each scenario."""
    lines: list[str] = []
    for name in dict.fromkeys(one.scenario for one in found):
        here = [one for one in found if one.scenario == name]
        workers = sorted({one.workers for one in here})
        lines += [f"{name}, {here[0].runs} runs: loss in percent of one decider [95%]"]
        lines += ["workers     " + "".join(f"{count:>22}" for count in workers)]
        for rule in dict.fromkeys(one.rule for one in here):
            cells = {one.workers: one for one in here if one.rule == rule}
            row = [f"{cells[count].percent:.2f} [{cells[count].low:.2f}, {cells[count].high:.2f}]" for count in workers]
            lines += [f"{rule:<12}" + "".join(f"{cell:>22}" for cell in row)]
        lines += [""]
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", default=list(SCENARIOS))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=list(WORKERS))
    parser.add_argument("--rule", action="append", help="such as 'past 5%%'; may be said several times")
    parser.add_argument("--same-coins", action="store_true", help="workers toss the coins of the round they are in")
    parser.add_argument("--json", type=Path, help="where figures are added, a line for each")
    parser.add_argument("--figure", type=Path, help="draw what --json holds, and run nothing")
    told = parser.parse_args(given)
    if told.figure is not None:
        from _lease_figure import draw

        draw([json.loads(line) for line in told.json.read_text().splitlines()], told.figure)
        return
    for name in told.scenarios:
        start = time.monotonic()
        rules = told.rule or RULES
        found = losses(name, rules, told.workers, runs=told.runs, same_coins=told.same_coins)
        print(show(found), f"{time.monotonic() - start:.0f} s", sep="", flush=True)
        if told.json is not None:
            with told.json.open("a") as file:
                file.writelines(json.dumps(_row(one, told.same_coins)) + "\n" for one in found)


def _row(one: Loss, same_coins: bool) -> dict[str, Any]:
    return {**asdict(one), "coins": "same" if same_coins else "own"}


if __name__ == "__main__":
    sys.exit(main())
