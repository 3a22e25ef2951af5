"""One run of a scenario as an episode: what an agent observes, an action per arrival, rewards as answers return."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral._arrays import Floats
from doral.compiled import Block
from doral.engine.setup import MAX_SEED
from doral.errors import InvalidValue
from doral.problem import Problem
from doral.simulation.api import MAX_RUNS
from doral.simulation.catalogue.lookup import named_scenario
from doral.simulation.results.outcome import WITHIN_DEADLINE
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.driver import Driver
from doral.simulation.world.logbook import n_served, rewards_counted
from doral.simulation.world.tape import CHUNK_ROUNDS, WORLD, new_tape, phase_of
from doral.simulation.world.truth import make_truth

FEW_PLAYS = 10.0  # plays n are shown as n / (n + FEW_PLAYS)


@dataclass(frozen=True)
class Layout:
    """The parts of an observation by name, in their order: `observation[layout["worth"]]` are the worths of the arms.

    Everything is between -1 and 1. What has no bounds is shown as x / (1 + |x|), numbers of plays as n / (n + 10).
    """

    sizes: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """How many numbers an observation has."""
        return sum(size for _, size in self.sizes)

    def __getitem__(self, part: str) -> slice:
        """Where a part lies."""
        start = 0
        for name, size in self.sizes:
            if name == part:
                return slice(start, start + size)
            start += size
        raise KeyError(part)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.sizes)


def layout_of(problem: Problem) -> Layout:
    """Return the layout of the observations of a problem."""
    n_contexts, n_arms = problem.n_contexts, problem.n_arms
    here = ("can", "cost", "plays", "heard", "mean", "worth")
    in_all = ("arm_plays", "arm_heard", "arm_mean", "arm_worth", "arm_delay")
    return Layout(
        (
            ("context", n_contexts),
            ("person", 2 * len(problem.person)),
            ("left", 3),
            ("rank", 2),
            *((name, n_arms) for name in (*here, *in_all)),
            ("context_share", n_contexts),
            ("context_best", n_contexts),
        )
    )


class Statistics:
    """Sums over decisions by context and arm; the last row is over all contexts."""

    def __init__(self, n_contexts: int, n_arms: int) -> None:
        shape = (n_contexts + 1, n_arms)
        self.plays = np.zeros(shape)
        self.heard = np.zeros(shape)  # answers
        self.reward = np.zeros(shape)  # of answers
        self.delay = np.zeros(shape)  # of answers
        self.settled = np.zeros(shape)  # plays older than the longest deadline
        self.worth = np.zeros(shape)  # of settled plays, by their deadline
        self.arrived = np.zeros(n_contexts)
        self.best = np.full(n_contexts, -math.inf)  # highest mean worth among the arms of a context

    def play(self, context: int, arm: int) -> None:
        """Count a decision."""
        for row in (context, -1):
            self.plays[row, arm] += 1.0

    def hear(self, context: int, arm: int, reward: float, delay: float) -> None:
        """Count an answer."""
        for row in (context, -1):
            self.heard[row, arm] += 1.0
            self.reward[row, arm] += reward
            self.delay[row, arm] += delay

    def settle(self, context: int, arm: int, worth: float) -> None:
        """Count the final worth of a decision."""
        for row in (context, -1):
            self.settled[row, arm] += 1.0
            self.worth[row, arm] += worth
        settled = self.settled[context]
        self.best[context] = (self.worth[context][settled > 0.0] / settled[settled > 0.0]).max()


class Observer:
    """Writes observations of one run."""

    def __init__(self, problem: Problem, layout: Layout) -> None:
        self._problem, self._layout = problem, layout
        self._at = {name: layout[name] for name in layout}
        costs = problem.costs_by_context
        self._costs = np.broadcast_to(costs, (problem.n_contexts, problem.n_arms))
        self._dearest, paid = float(costs.max()), costs[costs > 0.0]
        self._usual = float(paid.mean()) if paid.size else 0.0
        longest = float(problem.deadlines.max())
        self._longest = longest if longest < math.inf else float(problem.expected_rounds)

    def observe(
        self, known: Statistics, *, context: int, traits: Floats, mask: NDArray[np.uint8], left: tuple[float, ...]
    ) -> NDArray[np.float32]:
        """Return the observation of an arrival.

        Args:
            known: What has come of earlier decisions.
            context: Its number.
            traits: Features of the person, NaN where missing; empty where people have none.
            mask: (arms + 1,) what can be had.
            left: What `left_of` returned.
        """
        at, n_contexts = self._at, self._problem.n_contexts
        seen = np.zeros(self._layout.size)
        seen[at["context"].start + context] = 1.0
        is_known = ~np.isnan(traits)
        seen[at["person"]] = np.concatenate([np.where(is_known, _squashed(np.nan_to_num(traits)), 0.0), is_known])
        seen[at["left"]] = left
        total = known.arrived.sum()
        above = known.arrived[known.best > known.best[context]].sum()
        level = known.arrived[known.best >= known.best[context]].sum()
        seen[at["rank"]] = (above / total, level / total) if total > 0.0 else (0.0, 0.0)
        seen[at["can"]] = mask[:-1]
        seen[at["cost"]] = self._costs[context] / self._dearest if self._dearest > 0.0 else 0.0
        for prefix, row, few in (("", context, FEW_PLAYS), ("arm_", -1, FEW_PLAYS * n_contexts)):
            plays, heard = known.plays[row], known.heard[row]
            seen[at[f"{prefix}plays"]] = plays / (plays + few)
            seen[at[f"{prefix}heard"]] = _ratio(heard, plays)
            seen[at[f"{prefix}mean"]] = _squashed(_ratio(known.reward[row], heard))
            seen[at[f"{prefix}worth"]] = _squashed(_ratio(known.worth[row], known.settled[row]))
        seen[at["arm_delay"]] = _squashed(_ratio(known.delay[-1], known.heard[-1]) / self._longest)
        seen[at["context_share"]] = known.arrived / total if total > 0.0 else 0.0
        seen[at["context_best"]] = _squashed(np.where(known.best > -math.inf, known.best, 0.0))
        return seen.astype(np.float32)

    def observe_end(self, last: NDArray[np.float32], left: tuple[float, ...]) -> NDArray[np.float32]:
        """Return the observation after the last arrival: who is here and what can be had is blank."""
        seen, at = last.copy(), self._at
        seen[: at["left"].start] = 0.0
        seen[at["can"]] = 0.0
        seen[at["left"]] = left
        return seen

    def left_of(self, budget_left: float, *, round_: int, rounds: int, clock: float) -> tuple[float, float, float]:
        """Return the shares of budget and time that are left, and of the arrivals to come that the budget can serve."""
        problem = self._problem
        expected = float(problem.expected_rounds)
        if problem.until is None:
            time_left, pace = 1.0 - (round_ - 1.0) / rounds, expected
        else:  # arrivals until the end at the pace so far
            time_left = max(0.0, 1.0 - clock / problem.until)
            pace = round_ / max(clock, problem.until / expected) * problem.until
        needed = self._usual * max(1.0, pace * time_left)
        enough = max(0.0, budget_left) / needed if needed > 0.0 else math.inf
        share = 1.0 if enough == math.inf else enough / (1.0 + enough)
        return min(1.0, max(0.0, budget_left / problem.budget)), time_left, share


def _squashed(x: Floats) -> Floats:
    """Map numbers to between -1 and 1, in their order."""
    squashed: Floats = x / (1.0 + np.abs(x))
    return squashed


def _ratio(total: Floats, n: Floats) -> Floats:
    return np.divide(total, n, out=np.zeros_like(total), where=n > 0.0)


Credited = Literal["returned", "at_decision"]


def checked_scenario(scenario: object) -> Scenario:
    """Return a scenario, given itself or its name."""
    if isinstance(scenario, str):
        return named_scenario(scenario)
    if isinstance(scenario, Scenario):
        return scenario
    remedy = 'must be a name or a doral.Scenario, as in make("doral/Scenario-v0", scenario="stress/tiny")'
    raise InvalidValue("scenario", scenario, remedy)


def checked_reward(reward: object) -> Credited:
    """Check when answers are rewarded."""
    if not _check.is_among(reward, get_args(Credited)):
        raise InvalidValue("reward", reward, "must be returned or at_decision")
    return reward  # type: ignore[return-value]


def checked_seed(seed: object) -> int:
    """Check the seed of a tape."""
    found = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    if found != seed:  # it was rounded: one more than the largest
        raise InvalidValue("seed", seed, f"must be a whole number from 0 to {MAX_SEED:,}")
    return found


def checked_run(run: object) -> int:
    """Check the number of a run."""
    return _check.whole_number("run", run, at_least=0, at_most=MAX_RUNS)


class Step(NamedTuple):
    """What an action led to."""

    reward: float
    is_refused: bool  # the action was not available, and became a skip
    is_over: bool


class Episode:
    """A run on its tape, at one of its arrivals."""

    def __init__(self, scenario: Scenario, layout: Layout, credited: Credited, *, seed: int, run: int) -> None:
        problem, truth = scenario.problem, make_truth(scenario, seed=seed, run=run)
        self._driver = Driver(scenario, seed=seed, run=run, truth=truth)
        self._observer, self._known = Observer(problem, layout), Statistics(problem.n_contexts, problem.n_arms)
        self._credited, self._seed, self._run = credited, seed, run
        self._longest = float(problem.deadlines.max())
        self._tape = new_tape(truth.world, min(CHUNK_ROUNDS, truth.rounds))
        self._round, self._first_round, self._settled = 1, 1, 0
        self.mask: NDArray[np.uint8] = np.zeros(problem.n_arms + 1, dtype=np.uint8)
        self.mask[-1] = 1
        self.observation: NDArray[np.float32] = np.zeros(layout.size, dtype=np.float32)
        self._record()
        self._arrive()

    def _record(self) -> None:
        self._first_round = self._round
        WORLD["record"](Block(self._tape), self._driver.truth.block, self._seed, self._run, self._round)

    @property
    def _index(self) -> int:
        return self._round - self._first_round

    def act(self, action: int) -> Step:
        """Take an action for the current arrival, and let the next one arrive."""
        driver, problem, book = self._driver, self._driver.scenario.problem, self._driver.book
        is_refused = action < problem.n_arms and not self.mask[action]
        is_skip = is_refused or action >= problem.n_arms
        arm = problem.control if is_skip else action
        before, at_decision = float(book.totals[WITHIN_DEADLINE]), 0.0
        if arm is not None:
            person = int(self._tape.context[self._index])
            decision = driver.commit(Block(self._tape), self._index, self._round, person, arm)
            self._known.play(driver.context_of(person), arm)
            at_decision = self._worth_of(decision)
        is_over = self._round == driver.truth.rounds
        self._round += 1
        if is_over:
            self.mask[:-1] = 0
            self.observation = self._observer.observe_end(self.observation, self._left())
        else:
            if self._index == self._tape.context.size:
                self._record()
            self._arrive()
        reward = at_decision
        if self._credited == "returned":
            reward = float(book.totals[WITHIN_DEADLINE]) - before
            if is_over:  # what is still to come counts in the last step
                reward += self._earned - float(book.totals[WITHIN_DEADLINE])
        return Step(reward, is_refused, is_over)

    def _arrive(self) -> None:
        """Hear what has returned, and observe the next arrival."""
        driver, known = self._driver, self._known
        for answer in driver.hear(self._round, math.inf):
            known.hear(answer.context, answer.arm, answer.reward, answer.delay)
            if self._longest == math.inf:
                weight = float(driver.book.terms["weight"][answer.person])
                known.settle(answer.context, answer.arm, answer.reward * weight)
        driver.lapse(self._round)
        self._settle()
        person = int(self._tape.context[self._index])
        context = driver.context_of(person)
        known.arrived[context] += 1.0
        self.mask[:-1] = 0
        self.mask[list(driver.available(self._tape, self._index, context))] = 1
        n_traits = driver.scenario.problem.n_traits
        traits = driver.truth.world.people[person, :n_traits] if n_traits else np.zeros(0)
        self.observation = self._observer.observe(
            known, context=context, traits=traits, mask=self.mask, left=self._left()
        )

    def _settle(self) -> None:
        """Count the worth of decisions older than the longest deadline."""
        driver, book, clock = self._driver, self._driver.book, self._driver.clock(self._round)
        n_decisions = int(book.counts["decisions"][0])
        while self._longest < math.inf and self._settled < n_decisions:
            reward, delay, decided, person, arm, _ = book.entries[self._settled].item()
            if clock - driver.clock(decided) <= self._longest:
                return
            weight, deadline = book.terms[person].item()
            self._known.settle(driver.context_of(person), arm, reward * weight if delay <= deadline else 0.0)
            self._settled += 1

    def _left(self) -> tuple[float, float, float]:
        rounds = self._driver.truth.rounds
        clock = self._driver.clock(min(self._round, rounds))
        return self._observer.left_of(self._driver.budget_left, round_=self._round, rounds=rounds, clock=clock)

    def _worth_of(self, decision: int) -> float:
        """Return what a decision will have brought beyond skipping, as the logbook counts it."""
        truth, problem, book = self._driver.truth, self._driver.scenario.problem, self._driver.book
        reward, delay, decided, person, arm, _ = book.entries[decision].item()
        if arm == problem.control:
            return 0.0
        weight, deadline = book.terms[person].item()
        is_counted = problem.counted == "within_deadline" or (
            self._driver.clock(decided) + delay <= self._driver.clock(truth.rounds)
        )
        worth = reward * weight if is_counted and delay <= deadline else 0.0
        if truth.world.nothing.shape[1] > 0:
            worth -= float(truth.world.nothing[phase_of(truth.world, decided), person])
        return worth

    @property
    def _earned(self) -> float:
        return rewards_counted(self._driver.book, self._driver.scenario.problem, 0.0)[WITHIN_DEADLINE]

    def summary(self) -> dict[str, float | int]:
        """Return what the whole run earned, spent and served, and the oracle's reward."""
        return {
            "earned": self._earned,
            "spend": self._driver.spend,
            "served": n_served(self._driver.book),
            "oracle": self._driver.truth.oracle,
        }
