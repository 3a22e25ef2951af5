"""What every policy knows: plain arrays, so that the same state serves simulator, log replay and snapshot.

A state is a tree: what is common to all policies, listed below, and one branch for each piece that has a memory of its
own. `compose.py` makes it. Numbers that never change (options) stand beside the arrays that they belong to.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from doral._arrays import Floats, Ints, Record
from doral._kernel import kernel

if TYPE_CHECKING:
    from doral.engine.pieces.costs import CostsMemory
    from doral.engine.pieces.drop import DropMemory
    from doral.engine.pieces.forecast import ForecastMemory
    from doral.engine.pieces.forget import ForgetMemory
    from doral.engine.pieces.index.oracle import TruthMemory
    from doral.engine.pieces.index.thompson import ThompsonMemory
    from doral.engine.pieces.learn.early import EarlyMemory
    from doral.engine.pieces.outcomes import OutcomesMemory
    from doral.engine.pieces.people import PeopleMemory
    from doral.engine.pieces.predicted import PredictedMemory
    from doral.engine.pieces.race import RaceMemory
    from doral.engine.pieces.rate.period import PeriodMemory
    from doral.engine.pieces.returns.estimated import ReturnsMemory
    from doral.engine.pieces.start import StartMemory
    from doral.engine.pieces.uplift import UpliftMemory
    from doral.estimators.ridge import Ridge
    from doral.estimators.shift import Shift
    from doral.estimators.shrinkage import Prior
    from doral.estimators.survival import ReturnCurves
    from doral.pacing import Demand, Hulls

FEWEST_ANSWERS = 100  # with fewer, neither noise nor delays are known at all
FIRST_CAPACITY = 1024  # of the ring of open decisions; it doubles when full
GUEST = -1  # in place of a slot of the ring: a decision that has left it

# A decision that may still matter; they live in a ring, by sequence number modulo a power of two.
DECISION = np.dtype(  # 64 bytes, a line of the cache
    [
        ("time", np.float64),
        ("answer_age", np.float64),  # infinite while unanswered
        ("reward", np.float64),
        (
            "weight",
            np.float64,
        ),  # with which its answer counts; 0: not learned. `scaled`: after which reading it settled
        ("expected", np.float64),  # with what it counts as if answered; -1 once its fate is known
        ("reading", np.int64),  # the last one before it: what is forgotten since
        ("context", np.int32),
        ("arm", np.int32),
        ("trains", np.int32),  # 1: its answer trains the rewards
        ("position", np.int32),  # in the race's delay record (`min_age`)
    ],
    align=True,
)

CONTEXT = np.dtype(
    [
        ("weight", np.float64),  # what a unit of reward is worth
        ("deadline", np.float64),  # infinite: none
        ("arrivals", np.float64),
        ("pulls", np.float64),  # n of the bonus
        ("is_stale", np.int64),  # 1: in the list of stale contexts
    ],
    align=True,
)

# Rows of `State.tiers`: what is reserved for contexts of less than this depth (nothing at 0), what contexts of this
# depth have spent, scratch for LP_m, and the price of a unit of budget when one of them last arrived.
RESERVED, SPENT, CAP, SLACK, TIER_PRICE = 0, 1, 2, 3, 4

NOW = np.dtype(
    [
        ("round", np.int64),  # arrivals seen
        ("clock", np.float64),
        ("opened", np.float64),  # what the clock showed when the first arrival was still to come
        ("horizon", np.int64),  # where the end is a date: arrivals seen, and forecast until then
        ("until", np.float64),  # what the clock shows at the end; infinite where that is a number of arrivals
        ("budget", np.float64),
        ("budget_left", np.float64),
        ("cutoff", np.float64),  # m; infinite while the race runs
        ("racing", np.int64),
        ("race_trains", np.int64),  # 1: answers to pulls of the race train the rewards
        ("first", np.int64),  # oldest decision in the ring
        ("learned", np.int64),  # answers (or settled decisions) that entered the rewards, where the prior follows them
        ("calibrate_at", np.int64),  # value of `learned` at which the prior is next moved
        ("read_at", np.int64),  # round in which the return curves are next read
        ("must_read", np.int64),  # 1: at once, whenever that is
        ("lost_rounds", np.int64),  # at the end, in which too little can return to be worth the budget
        ("n_stale", np.int64),  # contexts in the list of stale ones
        ("read_last", np.int64),  # round in which the return curves were last read
        ("settled", np.int64),  # first decision still inside the cut-off
        ("next", np.int64),  # sequence number of the next decision
        ("budget_rest", np.float64),  # by how much `budget_left` is wrong, see `purse`
        ("budget_dust", np.float64),  # and by how much `budget_rest` is
    ],
    align=True,
)


class Coin(NamedTuple):
    """The key of the policy's own draws."""

    seed: np.uint64
    run: np.uint64


class Limits(NamedTuple):
    """Ages and sizes that follow from problem and options, and never change."""

    longest_deadline: float  # infinite if any context has none
    learnable_age: float  # answers that are older teach nothing about rewards
    own_deadlines: bool  # nor do those after the deadline of their context: what is learned is by the deadline
    learns_shares: bool  # of the contexts: they are not given
    by_cutoff: bool  # the printed tau_a(m), also where there is a deadline
    until_end: bool  # what cannot return before the end is worth nothing
    reads: bool  # whether anything is read when stock is taken
    return_at_least: float  # what a unit of budget must bring, once something is known of rewards
    stock_rounds: int  # once a problem is large, stock is taken at most once in so many rounds


class Confidence(NamedTuple):
    """The numbers in the index of an arm: how wide what is not known is."""

    exploration: float  # scale of the bonus
    penalty: float  # lambda
    delta: float
    return_optimism: float  # standard errors added to tau
    certainty: float  # 2 log(1 / delta)
    printed_certainty: float  # 2 log(1 / lambda), a slip of the paper


class State(NamedTuple):
    """Everything that changes, for J contexts and A arms; rows of length A+ are padded, see `ridge.padded`.

    Where people have features, there are more rows than contexts: those who came lately have one each (`people`).
    """

    now: Record  # (1,) of NOW
    contexts: Record  # (rows,) of CONTEXT
    demand: Demand  # pi, and how many reserves are closed to each context
    tiers: Floats  # (5, D) by depth, rows RESERVED, SPENT, CAP, SLACK, TIER_PRICE
    ridge: Ridge  # J rows; J more where open decisions count, see `pending`
    tally: Floats  # (3, J, A) raw sums of rewards, see `shrinkage`
    exact: Floats  # (J, A, 4) the same without rounding, for corrections, see `exact_sums`
    thinning: Floats  # (J, A) what multiplies the features of the learner: 1, or tau for `scaled`
    tau: Floats  # (rows, A+) by the deadline
    tau_error: Floats  # (rows, A+) its standard error
    curves: ReturnCurves
    hulls: Hulls
    list_costs: Floats  # (R, A) what is reserved for one use, in one row for all contexts or in one per context
    cost_rest: Floats  # (R, A) what such a cost lacks to be the decimal that is meant, see `purse`
    dearest: Ints  # (R,) the arm with the largest
    barrier: Floats  # (rows + 1, A+) 0 for arms in play, -inf for others; the last row: whatever has been certified
    stale: Ints  # (rows,) the first `n_stale` are contexts whose hull must be rebuilt before it is used
    ring: Record  # (capacity,) of DECISION
    values: Floats  # (A+,) scratch
    gamma: Floats  # (A+,) scratch
    allowed: Ints  # (A,) scratch
    chosen: Any  # by name of a piece, whether it is chosen
    coin: Coin
    limits: Limits
    confidence: Confidence

    # Of single pieces: there only where the piece is.
    race: RaceMemory
    prior: Prior
    window: Floats
    outcomes: OutcomesMemory
    returns: ReturnsMemory
    oracle: Floats
    drop: DropMemory
    costs: CostsMemory
    doubt: Ints
    forget: ForgetMemory
    forecast: ForecastMemory
    period: PeriodMemory
    truth: TruthMemory
    uplift: UpliftMemory
    thompson: ThompsonMemory
    odds: Floats
    explore: Record
    start: StartMemory
    early: EarlyMemory
    ahead: Floats
    corrected: Record
    people: PeopleMemory
    people_shift: Shift
    people_costs: Shift
    predicted: PredictedMemory


COMMON: tuple[str, ...] = State._fields[: State._fields.index("race")]


@kernel
def mark_stale(state: State, context: int) -> None:
    """What this context, or the one in this row, is worth has changed; nobody asks where none are expected."""
    if state.contexts[context].is_stale == 0 and state.demand.weight[context] > 0.0:
        state.contexts[context].is_stale = 1
        state.stale[state.now[0].n_stale] = context
        state.now[0].n_stale += 1


@kernel
def mark_all_stale(state: State) -> None:
    """What every context is worth has changed. People are valued anew one after the other (`people`)."""
    for j in range(state.tally.shape[1]):
        mark_stale(state, j)


@kernel
def clock_passed(state: State) -> float:
    """Since arrivals began: decisions that were made elsewhere before that say nothing of their pace."""
    return state.now[0].clock - state.now[0].opened


@kernel
def clock_left(state: State) -> float:
    """Until the end: the clock of one round, on average, times the rounds that are left; not before the first round."""
    now = state.now[0]
    if now.until < math.inf:
        return max(0.0, now.until - now.clock)
    return (now.horizon - now.round) * (clock_passed(state) / now.round)


@kernel
def arms_in_play(state: State) -> float:
    """How many arms a context has to choose from, on average; while the race runs, none is ruled out yet."""
    n_contexts, n_arms = state.tally.shape[1], state.allowed.size
    if state.now[0].racing != 0:
        return float(n_arms)
    n = 0
    for j in range(n_contexts):
        for a in range(n_arms):
            n += state.barrier[j, a] == 0.0
    return n / n_contexts


def is_racing(state: State) -> bool:
    return bool(state.now["racing"][0])


def longest(deadlines: Floats) -> float:
    """Infinite if any context has none."""
    return float(deadlines.max()) if deadlines.size else math.inf


def has(state: State, piece: str) -> bool:
    """Whether this piece is chosen."""
    return bool(getattr(state.chosen, piece))
