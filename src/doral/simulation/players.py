"""Players: a policy, its state and its book. The simulator hands them one chunk of tape after another."""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol

import numpy as np

from doral._arrays import Floats
from doral.errors import DoralError
from doral.policies.build import build_rules, build_state
from doral.policies.dropping import certificates
from doral.policies.options import PolicyOptions
from doral.policies.state import grown
from doral.problem import Arm, Problem
from doral.racing import ACCEPTED
from doral.simulation.loop import Book, new_book, play
from doral.simulation.outcome import METRICS, Decisions, Outcome, checkpoints
from doral.simulation.python_policy import Answer, Arrival, PolicyMaker
from doral.simulation.scenario import Scenario
from doral.simulation.tape import Tape, draw_delay, draw_reward
from doral.simulation.world import Truth


class BadDecision(DoralError):
    """A policy written in Python chose an arm that it could not have."""


class Player(Protocol):
    """One policy in one run."""

    def play(self, tape: Tape, first_round: int) -> None:
        """Play a chunk."""

    def outcome(self, *, keep_decisions: bool) -> Outcome:
        """What happened, after the last chunk."""


class CompiledPlayer:
    """A policy of the engine, played by the compiled loop."""

    def __init__(
        self, options: PolicyOptions, scenario: Scenario, truth: Truth, *, seed: int, run: int, oracle: Floats | None
    ) -> None:
        problem = scenario.problem
        self._options, self._scenario, self._truth, self._run = options, scenario, truth, run
        self._rules = build_rules(options=options, problem=problem, seed=seed, run=run)
        self._state = build_state(
            options=options, rules=self._rules, problem=problem, features=truth.features, oracle=oracle
        )
        self._book = new_book(problem.horizon, checkpoints(problem.horizon))

    def play(self, tape: Tape, first_round: int) -> None:
        """Play a chunk; where the state is full, give it more room and go on."""
        played = play(self._state, self._rules, self._truth.world, tape, self._book, first_round, 0)
        while played < tape.context.size:
            self._state = grown(self._state)
            played = play(self._state, self._rules, self._truth.world, tape, self._book, first_round, played)

    def outcome(self, *, keep_decisions: bool) -> Outcome:
        now = self._state.now[0]
        names = self._scenario.problem.arm_names
        standing = self._state.race.arms["standing"].tolist()
        return Outcome(
            scenario=self._scenario.name,
            policy=self._options.name,
            run=self._run,
            clairvoyant=self._truth.clairvoyant,
            rewards=tuple(self._book.totals.tolist()),
            rounds=self._book.checkpoints,
            curve=self._book.curve,
            course=self._book.course,
            decisions=int(now["next"]),
            spend=float(now["budget"] - now["budget_left"]),
            race_rounds=int(now["race_rounds"]),
            race_spend=float(now["race_spend"]),
            race_ended=int(now["race_ended"]),
            race_capped=bool(now["race_capped"]),
            accepted=tuple(name for name, is_in in zip(names, standing, strict=True) if is_in == ACCEPTED),
            cutoff=float(now["cutoff"]),
            certificates=certificates(self._state, self._scenario.problem),
            log=_decisions(self._book, int(now["next"])) if keep_decisions else None,
        )


def _decisions(book: Book, n: int) -> Decisions:
    return Decisions(
        round=book.round[:n].copy(),
        context=book.context[:n].copy(),
        arm=book.arm[:n].copy(),
        reward=book.reward[:n].copy(),
        delay=book.delay[:n].copy(),
    )


def _with_features(problem: Problem, features: Floats) -> Problem:
    """The problem as it is in this run: a policy must see the features that were drawn."""
    arms = tuple(
        Arm(arm.name, features=row, cost=arm.cost) for arm, row in zip(problem.arms, features.tolist(), strict=True)
    )
    return dataclasses.replace(problem, arms=arms)


def _seed_of(seed: int, run: int) -> int:
    """A seed of its own for every pair."""
    return int(np.random.SeedSequence((seed, run)).generate_state(1)[0])


class PythonPlayer:
    """A policy written in Python, on the same tapes."""

    def __init__(self, maker: PolicyMaker, name: str, scenario: Scenario, truth: Truth, *, seed: int, run: int) -> None:
        self._name, self._scenario, self._truth, self._run = name, scenario, truth, run
        problem = scenario.problem
        if scenario.features == "drawn":
            problem = _with_features(problem, truth.features)
        self._policy = maker(problem, _seed_of(seed, run))
        self._costs: list[float] = scenario.problem.costs.tolist()
        self._budget_left = scenario.problem.budget
        self._due: dict[int, list[Answer]] = {}
        self._log: list[tuple[int, int, int, float, float]] = []
        self._totals = [0.0] * len(METRICS)
        self._checkpoints = checkpoints(scenario.problem.horizon)
        self._curve: list[list[float]] = []
        self._course: list[tuple[float, float]] = []  # as in COURSE

    def play(self, tape: Tape, first_round: int) -> None:
        wanted = set(self._checkpoints.tolist())
        for i, context in enumerate(tape.context.tolist()):
            round_ = first_round + i
            for answer in self._due.pop(round_, ()):
                self._count(answer)
                if answer.reward != 0.0 or not self._truth.world.silent:
                    self._policy.observe(answer)
            arm = self._decide(tape, i, round_, context)
            if arm is not None:
                self._play_arm(tape, i, round_, context, arm)
            if round_ in wanted:
                self._curve.append(list(self._totals))
                self._course.append((self._cutoff, float(len(self._costs))))

    def _decide(self, tape: Tape, i: int, round_: int, context: int) -> int | None:
        there = tape.available[i].tolist() or [1] * len(self._costs)
        available = tuple(arm for arm, cost in enumerate(self._costs) if there[arm] and cost <= self._budget_left)
        rounds_left = self._scenario.problem.horizon - round_ + 1
        arm = self._policy.decide(Arrival(round_, context, available, self._budget_left, rounds_left))
        if arm is not None and arm not in available:
            message = f"policy {self._name!r}, round {round_}: chose arm {arm!r}, which is not among {available}"
            raise BadDecision(message)
        return arm

    def _play_arm(self, tape: Tape, i: int, round_: int, context: int, arm: int) -> None:
        reward = draw_reward(self._truth.world, round_, context, arm, float(tape.noise[i]))
        delay = draw_delay(self._truth.world, context, arm, reward, float(tape.delay[i]))
        self._budget_left -= self._costs[arm]
        self._log.append((round_, context, arm, reward, delay))
        if round_ + delay <= self._scenario.problem.horizon:
            due = round_ + int(delay)
            self._due.setdefault(due, []).append(Answer(due, round_, context, arm, reward))

    def _count(self, answer: Answer) -> None:
        problem = self._scenario.problem
        limits = {
            "within_deadline": float(problem.deadlines[answer.context]),
            "by_end": math.inf,
            "within_cutoff": self._cutoff,
        }
        for i, metric in enumerate(METRICS):
            if answer.delay <= limits[metric]:
                self._totals[i] += answer.reward * float(problem.weights[answer.context])

    @property
    def _cutoff(self) -> float:
        return float(getattr(self._policy, "cutoff", math.inf))

    def outcome(self, *, keep_decisions: bool) -> Outcome:
        problem = self._scenario.problem
        columns = np.array(self._log, dtype=np.float64).reshape(-1, 5)
        return Outcome(
            scenario=self._scenario.name,
            policy=self._name,
            run=self._run,
            clairvoyant=self._truth.clairvoyant,
            rewards=tuple(self._totals),
            rounds=self._checkpoints,
            curve=np.array(self._curve),
            course=np.array(self._course),
            decisions=len(self._log),
            spend=problem.budget - self._budget_left,
            race_rounds=0,
            race_spend=0.0,
            race_ended=0,
            race_capped=False,
            accepted=problem.arm_names,
            cutoff=self._cutoff,
            log=Decisions(
                round=columns[:, 0].astype(np.int64),
                context=columns[:, 1].astype(np.int64),
                arm=columns[:, 2].astype(np.int64),
                reward=columns[:, 3],
                delay=columns[:, 4],
            )
            if keep_decisions
            else None,
        )
