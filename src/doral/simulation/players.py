"""Players: a policy and its logbook. The simulator hands them one chunk of tape after another."""

from __future__ import annotations

from typing import Protocol

from doral._arrays import Floats
from doral.policies.build import build_rules, build_state
from doral.policies.dropping import certificates
from doral.policies.options import PolicyOptions
from doral.policies.state import grown
from doral.racing import ACCEPTED
from doral.simulation.logbook import decision_log, new_logbook
from doral.simulation.loop import play
from doral.simulation.outcome import Outcome
from doral.simulation.scenario import Scenario
from doral.simulation.tape import Tape
from doral.simulation.world import Truth


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
        self._book = new_logbook(scenario)

    def play(self, tape: Tape, first_round: int) -> None:
        """Play a chunk; where the loop pauses, do what it waits for and go on."""
        played = 0
        while True:
            played = play(self._state, self._rules, self._truth.world, tape, self._book, first_round, played)
            if played == tape.context.size:
                return
            self._do_rare_work()

    def _do_rare_work(self) -> None:
        """What the loop does not do itself: the state is full and needs more room."""
        self._state = grown(self._state)

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
            log=decision_log(self._book) if keep_decisions else None,
        )
