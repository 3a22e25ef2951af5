"""What a policy knows: plain arrays, so that the same state serves simulator, log replay and snapshot.

`Rules` are the policy's options in compiled form and never change; `State` is everything that does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints, Record
from doral.estimators.median_of_means import with_double_room
from doral.estimators.ridge import Ridge, new_ridge
from doral.estimators.survival import ReturnCurves, age_grid, new_return_curves
from doral.pacing import Hulls, new_hulls
from doral.racing import Race, RaceRules, new_race

# Learners: what enters V and G.
LEARN_RETURNED, LEARN_SCALED, LEARN_THINNED = 0, 1, 2
# Where tau, the return probability, comes from.
TAU_ONE, TAU_ESTIMATED, TAU_ORACLE = 0, 1, 2
# Pacing.
PACE_GREEDY, PACE_COIN, PACE_LP = 0, 1, 2
# Status of a decision in the ring.
OPEN, ANSWERED = 0, 1

FIRST_CAPACITY = 1024  # of the ring of open decisions; it doubles when full


class Rules(NamedTuple):
    """The compiled options of a policy."""

    races: bool
    race: RaceRules
    race_budget_share: float
    race_trains: bool
    cutoff: float  # rounds; NaN: the race finds it
    cutoff_over_all: bool
    learner: int
    penalty: float  # lambda
    delta: float
    exploration: float  # scale of the bonus
    printed_bonus: bool  # log(1 / lambda), and n = t
    with_bias: bool  # the window term of the bonus
    weighted_choice: bool  # the arm of a context maximises tau * index, not index
    tau: int
    tau_by_cutoff: bool  # the printed tau_a(m), also where there is a deadline
    pacing: int
    printed_rate: bool
    learn_shares: bool
    deadline: float  # infinite: none
    seed: np.uint64
    run: np.uint64


# A decision that may still matter; they live in a ring, by sequence number modulo a power of two.
DECISION = np.dtype(
    [
        ("time", np.float64),
        ("answer_age", np.float64),  # infinite while unanswered
        ("reward", np.float64),
        ("context", np.int64),
        ("arm", np.int64),
        ("in_race", np.int64),
        ("position", np.int64),  # in the race's delay record (`min_age`)
    ]
)

NOW = np.dtype(
    [
        ("round", np.int64),  # arrivals seen
        ("clock", np.float64),
        ("horizon", np.int64),
        ("budget", np.float64),
        ("budget_left", np.float64),
        ("cutoff", np.float64),  # m; infinite while the race runs
        ("racing", np.int64),
        ("pass_left", np.int64),  # pulls until the bounds are next compared
        ("race_rounds", np.int64),
        ("race_spend", np.float64),
        ("race_capped", np.int64),
        ("race_ended", np.int64),  # the round in which stage 1 ended
        ("first", np.int64),  # oldest decision in the ring
        ("settled", np.int64),  # first decision still inside the cut-off
        ("next", np.int64),  # sequence number of the next decision
    ]
)


class State(NamedTuple):
    """Everything that changes, for J contexts and A arms."""

    now: Record  # (1,) of NOW
    shares: Floats  # (J,) pi
    arrivals: Floats  # (J,)
    ridge: Ridge
    pulls: Floats  # (J,) n of the bonus
    window: Floats  # (J, A) pulls inside the cut-off: w_ja
    tau: Floats  # (J, A)
    tau_cutoff: Floats  # (J, A) tau by the cut-off, for the `scaled` learner
    settled_pulls: Floats  # (J, A) decisions that left the cut-off (`scaled`)
    settled_rewards: Floats  # (J, A) their thinned rewards
    oracle: Floats  # (1 or J, A, ages) true return probabilities by age; empty unless tau is given
    curves: ReturnCurves
    race: Race
    hulls: Hulls
    stale: Ints  # (J,) 1: the hull must be rebuilt before it is used
    barrier: Floats  # (A,) 0 for arms in play in stage 2, -inf for the others
    values: Floats  # (A,) scratch
    gamma: Floats  # (A,) scratch
    allowed: Ints  # (A,) scratch
    ring: Record  # (capacity,) of DECISION


def new_state(
    *,
    rules: Rules,
    features: Floats,
    costs: Floats,
    shares: Floats | None,
    n_contexts: int,
    budget: float,
    horizon: int,
    curve_points: int,
    oracle: Floats | None,
) -> State:
    """The state before the first arrival."""
    n_arms = costs.size
    now = np.zeros(1, dtype=NOW)
    now["horizon"], now["budget"], now["budget_left"] = horizon, budget, budget
    now["racing"] = int(rules.races)
    now["pass_left"] = n_arms
    now["cutoff"] = np.inf if rules.races else rules.cutoff
    if math.isfinite(rules.deadline):
        last_age = rules.deadline
    else:
        last_age = rules.cutoff if math.isfinite(rules.cutoff) else max(4.0, horizon / 4)
    return State(
        now=now,
        shares=np.full(n_contexts, 1.0 / n_contexts) if shares is None else shares.copy(),
        arrivals=np.zeros(n_contexts),
        ridge=new_ridge(features, n_contexts, rules.penalty),
        pulls=np.zeros(n_contexts),
        window=np.zeros((n_contexts, n_arms)),
        tau=np.ones((n_contexts, n_arms)),
        tau_cutoff=np.ones((n_contexts, n_arms)),
        settled_pulls=np.zeros((n_contexts, n_arms)),
        settled_rewards=np.zeros((n_contexts, n_arms)),
        oracle=np.zeros((0, n_arms, 0)) if oracle is None else oracle,
        curves=new_return_curves(n_arms, age_grid(last_age, curve_points)),
        race=new_race(n_arms, rules.race, FIRST_CAPACITY, rules.races),
        hulls=new_hulls(costs, n_contexts),
        stale=np.ones(n_contexts, dtype=np.int64),
        barrier=np.full(n_arms, -np.inf if rules.races else 0.0),
        values=np.zeros(n_arms),
        gamma=np.zeros(n_arms),
        allowed=np.zeros(n_arms, dtype=np.int64),
        ring=np.zeros(FIRST_CAPACITY, dtype=DECISION),
    )


def grown(state: State) -> State:
    """The same state with twice the room wherever it is full: kernels never allocate, their caller does."""
    now = state.now[0]
    ring, race = state.ring, state.race
    capacity = ring.size
    if now["next"] - now["first"] >= capacity:
        larger = np.zeros(2 * capacity, dtype=DECISION)
        sequence = np.arange(now["first"], now["next"])
        larger[sequence & (2 * capacity - 1)] = ring[sequence & (capacity - 1)]
        ring = larger
    if race.arms["pulls"].max() >= race.delays.sums.shape[1] - 1:
        race = race._replace(delays=with_double_room(race.delays))
    return state._replace(ring=ring, race=race)
