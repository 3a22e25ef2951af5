"""What a policy knows: plain arrays, so that the same state serves simulator, log replay and snapshot.

`Rules` are the policy's options in compiled form and never change; `State` is everything that does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints, Record
from doral._jit import jit_inner
from doral.estimators.median_of_means import with_double_room
from doral.estimators.outcomes import new_outcomes
from doral.estimators.ridge import Ridge, new_ridge, padded
from doral.estimators.shrinkage import Prior, new_prior
from doral.estimators.survival import ReturnCurves, new_return_curves
from doral.pacing import Hulls, new_hulls
from doral.problem import Problem, reserve_depths
from doral.racing import Race, RaceRules, new_race

# Learners: what enters V and G.
LEARN_RETURNED, LEARN_SCALED, LEARN_THINNED = 0, 1, 2
# Where tau, the return probability, comes from.
TAU_ONE, TAU_ESTIMATED, TAU_ORACLE = 0, 1, 2
# Pacing.
PACE_GREEDY, PACE_COIN, PACE_LP = 0, 1, 2
# The prior of theta_j: given, given with measured noise, or shared and learned (empirical Bayes).
PRIOR_FIXED, PRIOR_NOISE, PRIOR_SHARED = 0, 1, 2
# The bonus.
BONUS_CORRECTED, BONUS_PRINTED, BONUS_CALIBRATED = 0, 1, 2
# rho.
RATE_REMAINING, RATE_PRINTED, RATE_PERIOD = 0, 1, 2

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
    bonus: int
    prior: int
    counts_pending: bool  # for the bonus, open decisions count as if answered as expected
    thompson: bool
    return_optimism: float  # standard errors added to tau
    with_bias: bool  # the window term of the bonus
    weighted_choice: bool  # the arm of a context maximises tau * index, not index
    tau: int
    tau_by_cutoff: bool  # the printed tau_a(m), also where there is a deadline
    until_end: bool  # what cannot return before the end is worth nothing
    pacing: int
    rate: int
    period_rounds: int
    learn_shares: bool
    has_deadline: bool  # every context
    longest_deadline: float
    splits_outcomes: bool  # answers of two kinds have return curves of their own
    outcome_split: float  # the one is above it
    outcome_limit: float  # answers that are older say nothing of those that count
    silent: bool  # no news and a reward of 0 look the same
    half_life: float  # rounds after which what was learned counts half; infinite: never
    drops: bool  # arms that cannot enter the LP's solution leave it, with a certificate
    adaptive_cutoff: bool
    cutoff_share: float  # m is the age by which this share of the answers has come
    seed: np.uint64
    run: np.uint64


# A decision that may still matter; they live in a ring, by sequence number modulo a power of two.
DECISION = np.dtype(  # 64 bytes, a line of the cache
    [
        ("time", np.float64),
        ("answer_age", np.float64),  # infinite while unanswered
        ("reward", np.float64),
        ("weight", np.float64),  # with which its answer counts; 0: not learned
        ("expected", np.float64),  # with what it counts as if answered; -1 once its fate is known
        ("reading", np.int64),  # the last one before it: what is forgotten since
        ("context", np.int32),
        ("arm", np.int32),
        ("in_race", np.int32),
        ("position", np.int32),  # in the race's delay record (`min_age`)
    ]
)

CONTEXT = np.dtype(
    [
        ("weight", np.float64),  # what a unit of reward is worth
        ("deadline", np.float64),  # infinite: none
        ("arrivals", np.float64),
        ("pulls", np.float64),  # n of the bonus
        ("is_stale", np.int64),  # 1: in the list of stale contexts
    ]
)

# Why an arm is out in a context: see `dropping`.
CERTIFICATE = np.dtype(
    [
        ("round", np.int64),  # since when; 0: it is in play
        ("rival", np.int64),  # the arm that is better for certain
        ("at_most", np.float64),  # what the arm could bring at best, less what its cost is worth
        ("at_least", np.float64),  # what the rival brings at worst, less what its cost is worth
        ("price", np.float64),  # of a unit of budget
    ]
)

# Rows of `State.tiers`: what is reserved for contexts of less than this depth (nothing at 0), what contexts of this
# depth have spent, scratch for LP_m, and the price of a unit of budget when one of them last arrived.
RESERVED, SPENT, CAP, SLACK, PRICE = 0, 1, 2, 3, 4

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
        ("learned", np.int64),  # answers (or settled decisions) that entered the rewards, where the prior follows them
        ("calibrate_at", np.int64),  # value of `learned` at which the prior is next moved
        ("read_at", np.int64),  # round in which the return curves are next read
        ("must_read", np.int64),  # 1: at once, whenever that is
        ("lost_rounds", np.int64),  # at the end, in which too little can return to be worth the budget
        ("n_stale", np.int64),  # contexts in the list of stale ones
        ("read_last", np.int64),  # and when they were last
        ("settled", np.int64),  # first decision still inside the cut-off
        ("next", np.int64),  # sequence number of the next decision
    ]
)


class State(NamedTuple):
    """Everything that changes, for J contexts and A arms; rows of length A+ are padded, see `ridge.padded`."""

    now: Record  # (1,) of NOW
    contexts: Record  # (J,) of CONTEXT
    shares: Floats  # (J,) pi
    depths: Ints  # (J,) how many reserves are closed to the context
    tiers: Floats  # (5, D) by depth, rows RESERVED, SPENT, CAP, SLACK, PRICE
    ridge: Ridge  # J rows; J more, whose norms count open decisions as if answered as expected, where those count
    prior: Prior
    tally: Floats  # (3, J, A)
    thinning: Floats  # (J, A) what multiplies the features of the learner: 1, or tau for `scaled`
    window: Floats  # (J, A) pulls inside the cut-off: w_ja
    tau: Floats  # (J, A+) by the deadline
    tau_error: Floats  # (J, A+) its standard error
    oracle: Floats  # (1 or J, A, ages) true return probabilities by age; empty unless tau is given
    curves: ReturnCurves
    outcomes: Floats  # (3, 2, A, ages + 1), see `outcomes`; empty unless they are told apart
    race: Race
    hulls: Hulls
    barrier: Floats  # (J + 1, A+) 0 for arms in play, -inf for others; the last row: whatever has been certified
    certificates: Record  # (J, A) of CERTIFICATE; (J, 0) where nothing is dropped
    stale: Ints  # (J,) the first `n_stale` are contexts whose hull must be rebuilt before it is used
    values: Floats  # (A+,) scratch
    gamma: Floats  # (A+,) scratch
    allowed: Ints  # (A,) scratch
    ring: Record  # (capacity,) of DECISION


@jit_inner
def mark_stale(state: State, context: int) -> None:
    """What this context is worth has changed."""
    if state.contexts[context].is_stale == 0:
        state.contexts[context].is_stale = 1
        state.stale[state.now[0].n_stale] = context
        state.now[0].n_stale += 1


@jit_inner
def clock_left(state: State) -> float:
    """Until the end: the clock of one round, on average, times the rounds that are left; not before the first round."""
    now = state.now[0]
    return (now.horizon - now.round) * (now.clock / now.round)


def new_state(
    *,
    rules: Rules,
    features: Floats,
    ages: Floats,
    curves_by_context: bool,
    oracle: Floats | None,
    problem: Problem,
) -> State:
    """The state before the first arrival."""
    n_arms, n_contexts = problem.n_arms, problem.n_contexts
    budget, horizon, costs, shares = problem.budget, problem.horizon, problem.costs, problem.shares
    now = np.zeros(1, dtype=NOW)
    now["horizon"], now["budget"], now["budget_left"] = horizon, budget, budget
    now["racing"] = int(rules.races)
    now["pass_left"] = n_arms
    now["cutoff"] = np.inf if rules.races else rules.cutoff
    now["calibrate_at"] = 1
    room = padded(n_arms)
    barrier = np.full((n_contexts + 1, room), -np.inf)
    barrier[:, :n_arms] = -np.inf if rules.races else 0.0
    contexts = np.zeros(n_contexts, dtype=CONTEXT)
    contexts["weight"], contexts["deadline"], contexts["is_stale"] = problem.weights, problem.deadlines, 1
    now["n_stale"] = n_contexts
    tiers = np.zeros((5, len(problem.reserves) + 1))
    tiers[RESERVED, 1:] = np.cumsum([share * budget for _, share in reversed(problem.reserves)])
    return State(
        now=now,
        contexts=contexts,
        shares=np.full(n_contexts, 1.0 / n_contexts) if shares is None else shares.copy(),
        depths=reserve_depths(problem),
        tiers=tiers,
        ridge=new_ridge(features, n_contexts, rules.penalty, copies=2 if rules.counts_pending else 1),
        prior=new_prior(n_contexts, features.shape[1], rules.penalty),
        tally=np.zeros((3, n_contexts, n_arms)),
        thinning=np.ones((n_contexts, n_arms)),
        window=np.zeros((n_contexts, n_arms)),
        tau=np.ones((n_contexts, room)),
        tau_error=np.full((n_contexts, room), 1.0 if rules.tau == TAU_ESTIMATED else 0.0),
        oracle=np.zeros((0, n_arms, 0)) if oracle is None else oracle,
        curves=new_return_curves(n_arms, n_contexts if curves_by_context else 1, ages),
        outcomes=new_outcomes(n_arms if rules.splits_outcomes else 0, ages.size),
        race=new_race(n_arms, rules.race, FIRST_CAPACITY, rules.races),
        hulls=new_hulls(costs, n_contexts),
        barrier=barrier,
        certificates=np.zeros((n_contexts, n_arms if rules.drops else 0), dtype=CERTIFICATE),
        stale=np.arange(n_contexts)[::-1].copy(),
        values=np.zeros(room),
        gamma=np.zeros(room),
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
