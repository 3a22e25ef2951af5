"""One run of a scenario as an episode: an action for each arrival, rewards as answers return."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral.compiled import Block
from doral.engine.setup import MAX_SEED
from doral.errors import InvalidValue
from doral.gym.observation import Layout, Observer, Statistics
from doral.simulation.api import MAX_RUNS
from doral.simulation.catalogue.lookup import named_scenario
from doral.simulation.results.outcome import WITHIN_DEADLINE
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.driver import Driver
from doral.simulation.world.logbook import n_served, rewards_counted
from doral.simulation.world.tape import CHUNK_ROUNDS, WORLD, new_tape, phase_of
from doral.simulation.world.truth import make_truth

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
