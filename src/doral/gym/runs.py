"""Runs of a scenario side by side: what the compiled steps work on, in rows of common arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral._arrays import Bits, Floats
from doral._kernel import Block
from doral.engine.blueprint import MAX_SEED
from doral.engine.purse import decimal_rest
from doral.errors import InvalidValue
from doral.gym.layout import layout_of
from doral.gym.steps import AT_DECISION, CELL, CHUNK_ROUNDS, NOW, RETURNED, STEPS, PlayedRun, Whole
from doral.simulation.api import MAX_RUNS
from doral.simulation.catalogue.lookup import named_scenario
from doral.simulation.results.outcome import WITHIN_DEADLINE
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.logbook import Logbook, n_served, new_logbook, rewards_counted, spent
from doral.simulation.world.tape import WORLD, Tape, new_tape
from doral.simulation.world.truth import Truth, make_truth

Credited = Literal["returned", "at_decision"]


def checked_scenario(given: object) -> Scenario:
    """By name, or as it is."""
    if isinstance(given, str):
        return named_scenario(given)
    if isinstance(given, Scenario):
        return given
    remedy = 'must be a name or a doral.Scenario, as in make("doral/Scenario-v0", scenario="stress/tiny")'
    raise InvalidValue("scenario", given, remedy)


def checked_seed(seed: object) -> int:
    found = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    if found != seed:  # it was rounded: one more than the largest
        raise InvalidValue("seed", seed, f"must be a whole number from 0 to {MAX_SEED:,}")
    return found


def checked_run(run: object) -> int:
    return _check.whole_number("run", run, at_least=0, at_most=MAX_RUNS)


def _not_begun(action: int) -> int:
    raise RuntimeError("the run has not begun")


class Runs:
    """So many runs, each at its own arrival."""

    def __init__(self, scenario: object, n: int, credited: object) -> None:
        self.scenario = checked_scenario(scenario)
        if not _check.is_among(credited, get_args(Credited)):
            raise InvalidValue("reward", credited, "must be returned or at_decision")
        problem = self.scenario.problem
        self.layout = layout_of(problem)
        self.seen: NDArray[np.float32] = np.zeros((n, self.layout.size), dtype=np.float32)
        self.masks: Bits = np.zeros((n, problem.n_arms + 1), dtype=np.uint8)
        self.now: Any = np.zeros(n, dtype=NOW)
        self._credited = AT_DECISION if credited == "at_decision" else RETURNED
        self._costs = np.ascontiguousarray(problem.costs_by_context)
        self._rests = np.array([[decimal_rest(cost) for cost in row] for row in self._costs.tolist()])
        self._truths: list[Truth | None] = [None] * n
        self._books: list[Logbook | None] = [None] * n
        self._played: list[tuple[PlayedRun, Tape] | None] = [None] * n
        self._steps: list[Callable[[int], int]] = [_not_begun] * n

    def begin(self, i: int, *, seed: int, run: int) -> None:
        """Let the first one of this run arrive."""
        scenario, problem = self.scenario, self.scenario.problem
        truth = make_truth(scenario, seed=seed, run=run)
        self._set_now(i, truth, seed=seed, run=run)
        book, tape = new_logbook(scenario, truth.times, truth.classes), new_tape(truth.world, CHUNK_ROUNDS)
        shape = (problem.n_contexts, problem.n_arms)
        state = PlayedRun(
            now=self.now[i : i + 1],
            list_costs=self._costs,
            cost_rest=self._rests,
            cells=np.zeros(shape, dtype=CELL),
            arms=np.zeros(shape[1], dtype=CELL),
            came=np.zeros(shape[0]),
            best=np.full(shape[0], -math.inf),
            starts=self.layout.starts(),
            mask=self.masks[i],
            seen=self.seen[i],
        )
        WORLD["record"](Block(tape), truth.block, seed, run, 1)
        self._truths[i], self._books[i], self._played[i] = truth, book, (state, tape)
        STEPS["arrive"](self._bound(i))

    def _bound(self, i: int) -> Block[Whole]:
        """All that a step works on, where it is now."""
        truth, book, played = self._truths[i], self._books[i], self._played[i]
        assert truth is not None
        assert book is not None
        assert played is not None
        whole = Block(Whole(played[0], truth.world, played[1], book))
        self._steps[i] = partial(STEPS["act"], whole)
        return whole

    def __getstate__(self) -> dict[str, Any]:
        """Addresses of memory stay here, and so does what follows from a seed and the number of a run."""
        return {name: value for name, value in vars(self).items() if name not in ("_steps", "_truths")}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """A copy goes on by itself, from where the run was."""
        self.__dict__.update(kept)
        self._truths, self._steps = [None] * len(self.now), [_not_begun] * len(self.now)
        self._played = list(self._played)
        for i, played in enumerate(self._played):
            if played is not None:
                own = {"now": self.now[i : i + 1], "mask": self.masks[i], "seen": self.seen[i]}
                self._played[i] = (PlayedRun(**(played[0]._asdict() | own)), played[1])
                seed, run = int(self.now["seed"][i]), int(self.now["run"][i])
                self._truths[i] = make_truth(self.scenario, seed=seed, run=run)
                self._bound(i)

    def _set_now(self, i: int, truth: Truth, *, seed: int, run: int) -> None:
        now, problem = self.now[i], self.scenario.problem
        self.now[i] = np.zeros((), dtype=NOW)
        now["budget"] = now["budget_left"] = problem.budget
        now["budget_rest"] = decimal_rest(problem.budget)
        now["longest"] = problem.deadlines.max()
        now["until"] = math.inf if problem.until is None else problem.until
        paid = self._costs[self._costs > 0.0]
        now["dearest"], now["usual"] = self._costs.max(), paid.mean() if paid.size else 0.0
        now["seed"], now["run"], now["credited"] = seed, run, self._credited
        now["round"], now["rounds"], now["expected"] = 1, truth.rounds, problem.expected_rounds
        now["counts_late"] = problem.counted == "within_deadline"

    def act(self, i: int, action: int) -> int:
        """What the step said: PLAIN, REFUSED, ENDED, or both of these; the reward stands in `now`."""
        return self._steps[i](action)

    def act_in_all(self, actions: list[int]) -> list[int]:
        """The same, for an action in each run."""
        return [step(action) for step, action in zip(self._steps, actions, strict=True)]

    def finish(self, i: int) -> dict[str, float | int]:
        """After the last arrival: what is still to come counts in the last step, and this is how it went."""
        book, truth, problem = self._books[i], self._truths[i], self.scenario.problem
        assert book is not None
        assert truth is not None
        earned = rewards_counted(book, problem, 0.0)[WITHIN_DEADLINE]
        if self._credited == RETURNED:
            self.now["reward"][i] += earned - float(book.totals[WITHIN_DEADLINE])
        now = self.now[i]
        left = float(now["budget_left"] + (now["budget_rest"] + now["budget_dust"]))
        return {
            "earned": earned,
            "spend": spent(book, self.scenario, left),
            "served": n_served(book),
            "oracle": truth.oracle,
        }

    def book(self, i: int) -> Logbook:
        """The logbook of a run."""
        book = self._books[i]
        assert book is not None
        return book

    @property
    def rewards(self) -> Floats:
        """Of the last step of each run."""
        rewards: Floats = self.now["reward"].copy()
        return rewards
