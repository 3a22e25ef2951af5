"""Stage 1, screening: pull the arms in turn, compare their delays, and hand over to stage 2 (Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from doral import _check
from doral._arrays import Record
from doral._kernel import kernel, rare
from doral.engine.choice import PLAYED_RACING, SKIPPED_UNAVAILABLE, Choice
from doral.engine.hooks import control
from doral.engine.state import FIRST_CAPACITY, State
from doral.errors import InvalidValue
from doral.estimators.median_of_means import add_delay, add_open_pull, close_pull, with_double_room
from doral.pacing import NO_ARM
from doral.racing import (
    ACCEPTED,
    CENSOR_INSTANT,
    CENSOR_KAPLAN_MEIER,
    CENSOR_MIN_AGE,
    CENSOR_RETURNED,
    RACING,
    REJECTED,
    Race,
    RaceRules,
    close_race,
    fill_with_smallest,
    is_over,
    judge,
    new_race,
    next_pull,
    width_constant,
)

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

_CENSORING = {
    "returned": CENSOR_RETURNED,
    "min_age": CENSOR_MIN_AGE,
    "kaplan_meier": CENSOR_KAPLAN_MEIER,
    "instant": CENSOR_INSTANT,
}


@dataclass(frozen=True, kw_only=True)
class RaceOptions:
    """Options of stage 1."""

    screening: Literal["race", "none"] = "race"
    accept: int | None = None
    acceptance: Literal["fastest", "printed"] = "fastest"
    baskets: Literal["corrected", "printed"] = "corrected"
    censoring: Literal["returned", "min_age", "kaplan_meier", "instant"] = "returned"
    min_answers: int = 30
    race_delta: float = 0.05
    tail_exponent: float = 0.5
    race_budget_share: float = 0.4
    race_trains: bool = True
    cutoff_over: Literal["accepted", "all"] = "accepted"

    def accepted_of(self, n_arms: int) -> int:
        """How many arms a race accepts.

        Args:
            n_arms: How many there are.
        """
        if self.accept is None:
            return min(5, math.ceil(n_arms / 2))
        if self.accept > n_arms:
            raise InvalidValue("accept", self.accept, f"must be at most the number of arms, {n_arms}")
        return self.accept


def check(options: PolicyOptions) -> None:
    """The values of the options above."""
    if options.accept is not None:
        _check.set_fields(options, accept=_check.whole_number("accept", options.accept, at_least=1, at_most=100_000))
    _check.set_fields(
        options,
        min_answers=_check.whole_number("min_answers", options.min_answers, at_least=1, at_most=10**9),
        race_delta=_check.finite_number("race_delta", options.race_delta, at_least=1e-12, at_most=0.5),
        tail_exponent=_check.finite_number("tail_exponent", options.tail_exponent, at_least=1e-3, at_most=1e3),
        race_budget_share=_check.finite_number("race_budget_share", options.race_budget_share, at_least=0, at_most=1),
    )


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return options.screening == "race"


class Handover(NamedTuple):
    """How stage 1 ends."""

    budget_share: float
    cutoff: float  # NaN: the race finds it
    cutoff_over_all: bool
    has_deadline: bool  # every context


PROGRESS = np.dtype(
    [
        ("pass_left", np.int64),  # pulls until the bounds are next compared
        ("rounds", np.int64),
        ("spend", np.float64),
        ("is_capped", np.int64),
        ("ended", np.int64),  # the round in which stage 1 ended
    ],
    align=True,
)


class RaceMemory(NamedTuple):
    """What stage 1 knows."""

    rules: RaceRules
    handover: Handover
    field: Race
    progress: Record  # (1,) of PROGRESS


def memory(blueprint: Blueprint) -> RaceMemory:
    options, problem = blueprint.options, blueprint.problem
    n_racing = problem.n_arms if problem.control is None else problem.n_arms - 1  # doing nothing does not race
    rules = RaceRules(
        accept=options.accepted_of(n_racing),
        delta=options.race_delta,
        tail_exponent=options.tail_exponent,
        width_constant=width_constant(problem.budget, options.tail_exponent),
        censoring=_CENSORING[options.censoring],
        min_answers=options.min_answers,
        printed_baskets=options.baskets == "printed",
        printed_acceptance=options.acceptance == "printed",
    )
    handover = Handover(
        budget_share=options.race_budget_share,
        cutoff=blueprint.cutoff,
        cutoff_over_all=options.cutoff_over == "all",
        has_deadline=bool(np.isfinite(problem.deadlines).all()),
    )
    progress = np.zeros(1, dtype=PROGRESS)
    progress["pass_left"] = n_racing
    field = new_race(problem.n_arms, rules, FIRST_CAPACITY)
    if problem.control is not None:
        field.arms["standing"][problem.control] = REJECTED
    return RaceMemory(rules, handover, field, progress)


def grown(memory: RaceMemory) -> RaceMemory:
    """With room for twice as many delays, where they are full."""
    field = memory.field
    if field.arms["pulls"].max() < field.delays.sums.shape[1] - 1:
        return memory
    return memory._replace(field=field._replace(delays=with_double_room(field.delays)))


@kernel
def before_arrival(state: State, clock: float) -> None:
    """Compare bounds at the end of a pass, and end the race when A' arms are accepted."""
    if state.now[0].racing != 0:
        _judge_race(state, clock)


@rare
def _judge_race(state: State, clock: float) -> None:
    """Before a pull: at the end of a pass compare bounds; at the cap fill up; when A' are accepted, end."""
    race, rules, progress = state.race.field, state.race.rules, state.race.progress[0]
    if progress.pass_left <= 0:
        judge(race, rules, state.curves, clock)
        for a in range(race.arms.size):
            progress.pass_left += race.arms[a].standing == RACING
    dearest = 0.0
    for a in range(race.arms.size):
        if race.arms[a].standing == RACING:
            for row in range(state.list_costs.shape[0]):
                dearest = max(dearest, state.list_costs[row, a])
    allowance = state.race.handover.budget_share * state.now[0].budget
    if not is_over(race, rules) and progress.spend + dearest > allowance:
        fill_with_smallest(race, rules, state.curves, clock)
        progress.is_capped = 1
    if is_over(race, rules):
        _end_race(state, clock)


@kernel
def _end_race(state: State, clock: float) -> None:
    """S is complete: fix the cut-off m and start stage 2."""
    now, race, handover = state.now[0], state.race.field, state.race.handover
    cutoff = close_race(race, state.race.rules, state.curves, clock, handover.cutoff_over_all)
    if not math.isnan(handover.cutoff):
        cutoff = handover.cutoff
    elif not handover.has_deadline or math.isinf(cutoff):
        cutoff = min(cutoff, state.curves.ages[-1])
    now.cutoff = max(cutoff, 1.0)
    for a in range(race.arms.size):
        for row in range(state.barrier.shape[0]):
            state.barrier[row, a] = 0.0 if race.arms[a].standing == ACCEPTED else -math.inf
    now.racing = 0
    state.race.progress[0].ended = now.round + 1
    now.must_read = 1


@kernel
def pull(state: State) -> Choice:
    """One pull of Algorithm 1."""
    arm = next_pull(state.race.field, state.allowed)
    if arm == NO_ARM:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)
    return Choice(arm, 1.0, 0.0, 0.0, PLAYED_RACING)


@kernel
def on_commit(state: State, slot: int, context: int, arm: int, cost: float) -> None:
    """Count the pull."""
    if state.now[0].racing != 0 and arm != control(state):
        progress, race = state.race.progress[0], state.race.field
        progress.pass_left -= 1
        progress.rounds += 1
        progress.spend += cost
        race.arms[arm].pulls += 1
        if state.race.rules.censoring == CENSOR_MIN_AGE:
            state.ring[slot].position = add_open_pull(race.delays, arm, state.ring[slot].time)


@kernel
def on_answer(state: State, slot: int, reward: float, age: float) -> None:
    """An arm's delay became known (`instant` knew it before)."""
    censoring, race = state.race.rules.censoring, state.race.field
    arm = state.ring[slot].arm
    if state.now[0].racing != 0 and censoring != CENSOR_INSTANT and arm != control(state):
        race.arms[arm].answers += 1
        if censoring == CENSOR_RETURNED:
            add_delay(race.delays, arm, age)
        elif censoring == CENSOR_MIN_AGE:
            close_pull(race.delays, arm, state.ring[slot].position, state.ring[slot].time, age)


@kernel
def on_delay_known(state: State, arm: int, delay: float) -> None:
    """`instant`: the delay of a pull is known as soon as it is made."""
    if state.race.rules.censoring == CENSOR_INSTANT and state.now[0].racing != 0 and delay < math.inf:
        add_delay(state.race.field.delays, arm, delay)
        state.race.field.arms[arm].answers += 1


@kernel
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    """Its budget is free again; a `min_age` race keeps the pull, with the age that it had."""
    now, race = state.now[0], state.race.field
    if not in_race or now.racing == 0:
        return
    state.race.progress[0].spend -= cost
    if state.race.rules.censoring != CENSOR_MIN_AGE:
        race.arms[arm].pulls -= 1
    elif number >= now.first:
        decision = state.ring[number & (state.ring.size - 1)]
        close_pull(race.delays, arm, decision.position, decision.time, clock - decision.time)


@kernel
def is_record_full(state: State) -> bool:
    """All open pulls of an arm may answer in one round."""
    if state.now[0].racing != 0:
        race = state.race.field
        room = race.delays.sums.shape[1] - 1
        for a in range(race.arms.size):
            if race.arms[a].pulls >= room:
                return True
    return False
