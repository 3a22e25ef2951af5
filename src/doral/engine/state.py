"""The state of every policy: one table of fields, from which allocation, growth, snapshots and memory follow.

Sizes by name (`setup.sizes_of`): J contexts, A arms (Ap padded), k features, G ages of the return curves, D depths of
urgency, `rows` of values (one per context and, where arrivals have features, one per recent arrival), `ring` decisions
that may still matter. A part that a policy does not have is there with no rows: `rules` says which parts it has.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from doral._arrays import Array, Floats, Ints, Record
from doral.compiled import kernel
from doral.estimators.design import Design
from doral.estimators.levels import NO_LEVEL, LevelEffects
from doral.estimators.line import Line
from doral.estimators.median_of_means import DelayRecord
from doral.estimators.ridge import Ridge
from doral.estimators.shift import Shift
from doral.estimators.shrinkage import NOISE, Prior
from doral.estimators.survival import ReturnCurves
from doral.pacing import Demand, Hulls

FEWEST_ANSWERS = 100  # with fewer, neither noise nor delays are known at all
FIRST_CAPACITY = 1024  # of the ring of decisions; it doubles when full
GONE_SLOT = -1  # in place of a slot of the ring: the decision has left it

# --- constants -------------------------------------------------------------------------------------------------------

# Values of `Rules.learner`, `prior`, `returns`, `bonus`, `sampling`, `pacing` and `rate`.
RETURNED, THINNED, SCALED, EARLY = 0, 1, 2, 3
FIXED, NOISE_ONLY, SHARED, CELLS, LINES = 0, 1, 2, 3, 4
ONE, ESTIMATED, GIVEN, FACTORS, BY_DEADLINE = 0, 1, 2, 3, 4
CORRECTED, PRINTED, CALIBRATED, TO_COME = 0, 1, 2, 3
OPTIMISM, THOMPSON, TRUE_VALUES = 0, 1, 2
LP, GREEDY, COIN = 0, 1, 2
REMAINING, PERIOD, PRINTED_RATE, PRINTED_COIN = 0, 1, 2, 3


class Rules(NamedTuple):
    """What options and problem decide once: branches of the program ask for these, and they never change."""

    learner: int  # RETURNED, THINNED, SCALED, EARLY
    prior: int  # FIXED, NOISE_ONLY, SHARED, CELLS, LINES
    returns: int  # ONE, ESTIMATED, GIVEN, FACTORS, BY_DEADLINE
    bonus: int  # CORRECTED, PRINTED, CALIBRATED, TO_COME
    sampling: int  # OPTIMISM, THOMPSON, TRUE_VALUES
    pacing: int  # LP, GREEDY, COIN
    rate: int  # REMAINING, PERIOD, PRINTED_RATE, PRINTED_COIN
    has_race: bool  # stage 1
    has_curves: bool  # return curves are kept
    has_people: bool  # arrivals have features
    has_pending: bool  # pending decisions narrow the bonus as if answered as expected
    has_learned_costs: bool  # plans go by what is paid, where costs are paid on answer
    has_outcomes: bool  # answers above a split have return curves of their own
    has_forecast: bool  # the end is a date
    has_odds: bool  # the probability of every action is written down
    has_start: bool  # every arm is tried before it is passed over
    has_doubt: bool  # a worthless context is valued once more before it is skipped
    has_window: bool  # the bias term of the bonus
    has_baseline: bool  # skipping has an outcome
    has_predictions: bool  # values of arms come as features of the arrival
    has_shift: bool  # return curves are shifted by features
    has_cost_shift: bool  # learned costs are shifted by features
    forgets: bool  # with a half-life
    stretches: bool  # the bonus is TO_COME
    is_unweighted: bool  # printed: the index alone chooses the arm of a context
    control: int  # the arm of those who are skipped; NO_ARM: none
    draws: int  # with THOMPSON: posterior draws that are mixed for one arrival
    period_rounds: int  # with PERIOD
    periods: int
    half_life: float  # rounds
    outcome_split: float
    explore: float  # share of arrivals that get a random option
    start_share: float  # of the budget
    start_tries: float
    certainty_of_credit: float  # log 1 / (1 - reserve); 0: nothing is free before it is released
    dearest: float  # cost of all
    cutoff_follows: bool  # m is the age by which all answers have come
    look_rounds: int  # that cost as much as valuing all recent arrivals anew
    first_people: int  # by whom numbers are centred and scaled
    shares_lines: bool  # arms share what they have in common
    predicts_by_silence: bool  # a decision teaches a model when it has grown old, not when it is answered


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
    reads: bool  # whether a refresh reads anything off the curves
    return_at_least: float  # what a unit of budget must bring, once something is known of rewards
    least_reward: float  # declared, or far out
    most_reward: float
    refresh_rounds: int  # in a large problem, at least so many rounds between two refreshes


class Confidence(NamedTuple):
    """The numbers in the index of an arm: how wide what is not known is."""

    exploration: float  # scale of the bonus
    penalty: float  # lambda
    delta: float
    certainty: float  # 2 log(1 / delta)
    printed_certainty: float  # 2 log(1 / lambda), a slip of the paper


class RaceRules(NamedTuple):
    """The options of a race, and how it ends."""

    accept: int  # A', how many arms to accept
    delta: float
    tail_exponent: float  # alpha of the paper's assumption on tails
    width_constant: float  # 2 log(16 / (1 - B^-alpha))
    censoring: int  # CENSOR_... of `race`
    min_answers: int  # below this many answers an arm is neither accepted nor rejected
    printed_baskets: bool
    printed_acceptance: bool  # accepts the slowest, and rejects none
    budget_share: float
    cutoff: float  # NaN: the race finds it
    cutoff_over_all: bool
    has_deadline: bool  # every context


# --- records ---------------------------------------------------------------------------------------------------------

# A decision that may still matter; they live in a ring, by sequence number modulo a power of two.
DECISION = np.dtype(  # 64 bytes, a line of the cache
    [
        ("time", np.float64),
        ("answer_age", np.float64),  # infinite while pending, NaN once cancelled
        ("reward", np.float64),
        ("weight", np.float64),  # of its answer; 0: not learned. SCALED, EARLY: the refresh after which it was entered
        ("expected", np.float64),  # with what it counts as if answered; -1 once its fate is known
        ("reading", np.int64),  # the last refresh before it: what is forgotten since
        ("context", np.int32),
        ("arm", np.int32),
        ("position", np.int64),  # in the race's delay record (`min_age`); 8 bytes, so that nothing is padded
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
NOW = np.dtype(
    [
        ("round", np.int64),  # arrivals seen
        ("clock", np.float64),
        ("opened", np.float64),  # what the clock showed before the first arrival
        ("horizon", np.int64),  # where the end is a date: arrivals seen, and forecast until then
        ("until", np.float64),  # what the clock shows at the end; infinite where that is a number of arrivals
        ("budget", np.float64),
        ("budget_left", np.float64),
        ("cutoff", np.float64),  # m; infinite while the race runs
        ("racing", np.int64),
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
        ("budget_rest", np.float64),  # by how much `budget_left` is wrong, see `budget`
        ("budget_dust", np.float64),  # and by how much `budget_rest` is
    ],
    align=True,
)
WIDTH = np.dtype(
    [("pulls", np.float64), ("f_t", np.float64), ("next", np.float64)], align=True
)  # f_t after so many pulls
RUNNER = np.dtype(  # what a race knows of one arm
    [
        ("standing", np.int64),
        ("pulls", np.int64),
        ("answers", np.int64),
        ("estimate", np.float64),  # d^M
        ("lower", np.float64),  # LCB
        ("upper", np.float64),  # UCB
    ],
    align=True,
)
PROGRESS = np.dtype(  # of stage 1
    [
        ("pass_left", np.int64),  # pulls until the bounds are next compared
        ("rounds", np.int64),
        ("spend", np.float64),
        ("is_capped", np.int64),
        ("ended", np.int64),  # the round in which stage 1 ended
    ],
    align=True,
)
CLAIM = np.dtype(  # the reservation of a decision in the ring
    [
        ("cost", np.float64),  # reserved; 0: nothing is, or its fate is known
        ("back", np.float64),  # what is expected to be released of it
        ("spread", np.float64),  # the variance of that
        ("paid", np.float64),  # share of the list price; NaN: it tells nothing of shares
        ("paid_age", np.float64),  # when that was; infinite so far
    ],
    align=True,
)
EXPLORED = np.dtype(
    [
        ("arrivals", np.int64),  # that got a random option
        ("loss", np.float64),  # what that is estimated to have cost
        ("worth", np.float64),  # of what the policy itself has chosen so far
        ("cost", np.float64),  # of that
    ],
    align=True,
)
PACE = np.dtype(
    [
        ("counted", np.int64),  # arrivals that are in the sums
        ("last", np.float64),  # when the last one came
        ("span", np.float64),  # length of a span
        ("level", np.float64),  # arrivals per unit of the clock
        ("error", np.float64),  # the variance of the level, relative to its square
        ("noise", np.float64),  # of a span, likewise; 0: not known yet
        ("drift", np.float64),  # of the level from span to span, likewise
        ("look_at", np.int64),  # arrival with which the level is next worked out
        ("looked", np.int64),  # span in which it was last
    ],
    align=True,
)
CYCLE = np.dtype(
    [
        ("now", np.int64),  # the hour, or the day, since the week of the beginning began
        ("count", np.float64),  # arrivals in it
        ("is_whole", np.int64),  # 0: the first one, which had begun before
    ],
    align=True,
)

# Rows of `State.tiers`: what is reserved for contexts of less than this depth (nothing at 0), what contexts of this
# depth have spent, scratch for LP_m, and the shadow price when one of them last arrived.
RESERVED, SPENT, CAP, SLACK, TIER_PRICE = 0, 1, 2, 3, 4
SPANS, HOURS, WEEKDAYS = 64, 24, 7  # of the forecast

# --- parts -----------------------------------------------------------------------------------------------------------


class Race(NamedTuple):
    """Stage 1: present with `has_race`."""

    rules: RaceRules
    arms: Annotated[Record, Array("A", dtype=RUNNER, when="race", index="standing:3 pulls:delays+1")]
    delays: DelayRecord
    progress: Annotated[Record, Array("1", dtype=PROGRESS)]


class Costs(NamedTuple):
    """What is paid in the end: present with `has_learned_costs`."""

    share: Annotated[Floats, Array("J A", fill=1.0, when="costs")]  # of the list price, that is expected to be paid
    error: Annotated[Floats, Array("J A", fill=1.0, when="costs")]  # its standard error
    passed: Annotated[Floats, Array("J A G", when="costs")]  # decisions past this age, up to the deadline
    paid: Annotated[Floats, Array("J A G", when="costs")]  # shares that were paid in the interval, of those
    answered: Annotated[Floats, Array("A G", when="costs")]  # answers in the interval, of those
    come: Annotated[Floats, Array("A G", when="costs")]  # F_a: paid by this age
    unpaid: Annotated[Floats, Array("A G", when="costs")]  # answered by this age at no cost
    known: Annotated[Floats, Array("A 2", when="costs")]  # whole decisions behind the share of an arm, and that share
    claims: Annotated[Record, Array("ring", dtype=CLAIM, when="costs")]  # in step with the ring
    totals: Annotated[Floats, Array("7")]  # see `budget`
    deadlines: Annotated[Floats, Array("K", when="costs")]  # that there are
    lapsed: Annotated[Ints, Array("K", when="costs")]  # the first decision that is not older than this deadline
    deadline_of: Annotated[Ints, Array("J", when="costs", index="K+1")]  # its place among those; K: none
    last_age: Annotated[Ints, Array("J", when="costs", index="G")]  # the grid age that is the deadline, or the last


class Silence(NamedTuple):
    """Silent feedback, learned as it comes: present with the learner EARLY."""

    passed: Annotated[Floats, Array("J A G+1", when="early")]  # decisions made, and how many have passed each age
    counts: Annotated[Floats, Array("2 A G", when="early")]  # answers, see `positives`
    shares: Annotated[Floats, Array("A G", fill=1.0, when="early")]  # F by arm


class Start(NamedTuple):
    """First tries of every arm: present with `has_start`."""

    tries: Annotated[Floats, Array("A")]  # made so far, planned or not
    enough: Annotated[Floats, Array("A")]  # tries that are wanted
    is_open: Annotated[Floats, Array("1", fill=1.0)]  # 1: some arm may still need a try


class Forecast(NamedTuple):
    """Arrivals until a date: present with `has_forecast`."""

    pace: Annotated[Record, Array("1", dtype=PACE)]
    spans: Annotated[Floats, Array("64")]  # arrivals
    exposures: Annotated[Floats, Array("64")]  # scratch
    cycles: Annotated[Record, Array("2", dtype=CYCLE)]  # the hour and the day
    hours: Annotated[Floats, Array("3 24")]  # rows SEEN, ARRIVALS, SQUARES
    weekdays: Annotated[Floats, Array("3 7")]
    hour_factors: Annotated[Floats, Array("24", fill=1.0)]
    weekday_factors: Annotated[Floats, Array("7", fill=1.0)]
    day: float  # length of a day; 0: not known
    time_of_week: float  # when the clock showed 0
    guess: float  # of the level
    guess_weight: float  # how many independent arrivals it is worth


class TrueValues(NamedTuple):
    """Expected worth of what returns within the deadline, in simulation only: present with TRUE_VALUES."""

    values: Annotated[Floats, Array("phases truths A")]
    phase_rounds: int  # how long each phase lasts
    phase: Annotated[Ints, Array("1")]  # for which hulls were made last


class Predictions(NamedTuple):
    """Values of arms from a model outside: present with `has_predictions`."""

    column: Annotated[Ints, Array("A", fill=-1, index="m")]  # its prediction, among the features; -1: none
    counts: Annotated[Ints, Array("2")]  # KNOWN, ASK_AT of `people`


class People(NamedTuple):
    """Arrivals with features: m features, p columns, C categories. Present with `has_people`."""

    line: Line
    design: Design
    traits: Annotated[Floats, Array("rows m", fill=math.nan, when="people")]
    columns: Annotated[Floats, Array("rows p", when="people")]
    context: Annotated[Ints, Array("rows", when="people", index="J")]
    who: Annotated[Ints, Array("rows", when="people")]  # in simulation, the number of the arrival
    ring_columns: Annotated[Floats, Array("ring+1 p", when="people")]  # in step with the ring; last: a decision outside
    counts: Annotated[Ints, Array("5")]  # CAME, NEXT_LOOK, ... of `people`
    by_age: Annotated[Floats, Array("A G+1 p p", when="aged")]  # decisions made and past each age, if silence counts
    sorted: Annotated[Floats, Array("rows", when="people")]  # scratch
    levels: LevelEffects  # of the context, if there are several, and of categories
    categories: Annotated[Ints, Array("C", fill=NO_LEVEL, index="m")]  # among the features; NO_LEVEL: the context
    own_levels: Annotated[Ints, Array("rows C", fill=NO_LEVEL, when="people", index="L")]
    ring_levels: Annotated[Ints, Array("ring+1 C", fill=NO_LEVEL, when="people", index="L")]  # as `ring_columns`
    narrowed: Annotated[Floats, Array("Ap")]  # scratch
    kin: Annotated[
        Floats, Array("rows", fill=1.0, when="people")
    ]  # effective share of arrivals that share information with a row
    tau: Annotated[
        Floats, Array("3 J Ap", fill=1.0, when="people")
    ]  # at the last look: tau, its error, log of what does not return
    costs: Annotated[Floats, Array("J A", when="row_costs")]  # likewise, where plans have costs by row
    shift: Shift  # of return curves, with `has_shift`
    cost_shift: Shift  # of learned costs, with `has_cost_shift`


class State(NamedTuple):
    """Everything that changes, for one policy on one problem."""

    rules: Rules
    limits: Limits
    confidence: Confidence
    coin: Coin
    now: Annotated[Record, Array("1", dtype=NOW, index="n_stale:rows+1 racing:2")]
    contexts: Annotated[Record, Array("rows", dtype=CONTEXT)]
    demand: Demand  # pi, and how many reserves are closed to each context
    tiers: Annotated[Floats, Array("5 D")]  # rows RESERVED, SPENT, CAP, SLACK, TIER_PRICE
    ridge: Ridge
    tally: Annotated[Floats, Array("3 J A")]  # raw sums of rewards, see `shrinkage`
    exact: Annotated[Floats, Array("J A 4")]  # the same without rounding, for corrections, see `reward_sums`
    thinning: Annotated[Floats, Array("J A", fill=1.0)]  # multiplies the features of the learner: 1, or tau for SCALED
    tau: Annotated[Floats, Array("rows Ap", fill=1.0)]  # by the deadline
    tau_error: Annotated[Floats, Array("rows Ap")]  # its standard error
    curves: ReturnCurves
    hulls: Hulls
    list_costs: Annotated[
        Floats, Array("Rc A")
    ]  # what is reserved for one use, in one row for all contexts or one each
    cost_rest: Annotated[Floats, Array("Rc A")]  # what such a cost lacks to be the decimal that is meant, see `budget`
    dearest: Annotated[Ints, Array("Rc", index="A")]  # the arm with the largest
    barrier: Annotated[Floats, Array("rows+1 Ap", fill=-math.inf)]  # 0 for arms in play; last row: whoever arrives
    stale: Annotated[Ints, Array("rows", index="rows")]  # the first `n_stale`: their hulls are rebuilt before use
    ring: Annotated[Record, Array("ring", dtype=DECISION, index="context:J arm:A position:delays")]
    values: Annotated[Floats, Array("Ap")]  # scratch
    gamma: Annotated[Floats, Array("Ap")]  # scratch
    allowed: Annotated[Ints, Array("A")]  # scratch
    prior: Prior
    window: Annotated[Floats, Array("J A", when="window")]  # pulls inside the cut-off: w_ja
    widths: Annotated[Record, Array("rows", dtype=WIDTH, when="corrected")]  # f_t; NaN pulls: not worked out yet
    ahead: Annotated[Floats, Array("rows Ap", fill=1.0, when="ahead")]  # `bonus.stretch`, as of the last refresh
    doubt: Annotated[Ints, Array("2 rows", when="doubt")]  # IS_WORTHLESS, LAST_ROUND of `decide`
    odds: Annotated[Floats, Array("A+1", when="odds")]  # probability of skip, then of each arm
    draw: Annotated[Ints, Array("1")]  # number of the posterior draw in use
    forgotten: Annotated[Floats, Array("1")]  # half-lives after which exact sums count in ones
    outcomes: Annotated[Floats, Array("3 2 A G+1", when="outcomes")]  # see `estimators.outcomes`
    known_returns: Annotated[Floats, Array("curves_given A ages_given", when="given")]  # return probabilities by age
    explored: Annotated[Record, Array("1", dtype=EXPLORED)]
    baseline: Annotated[Floats, Array("J")]  # what skipping brings by context, where that is known; units of reward
    race: Race
    costs: Costs
    silence: Silence
    start: Start
    forecast: Forecast
    truth: TrueValues
    predictions: Predictions
    people: People


# --- what every chapter asks -----------------------------------------------------------------------------------------


@kernel
def mark_stale(state: State, context: int) -> None:
    """Have the hull of a context rebuilt before it is next used; rows that stand for no arrival have none."""
    if state.contexts[context].is_stale == 0 and state.demand.weight[context] > 0.0:
        state.contexts[context].is_stale = 1
        state.stale[state.now[0].n_stale] = context
        state.now[0].n_stale += 1


@kernel
def mark_all_stale(state: State) -> None:
    """Have the hulls of all contexts rebuilt; recent arrivals are valued anew one after the other (`people`)."""
    for j in range(state.tally.shape[1]):
        mark_stale(state, j)


@kernel
def clock_passed(state: State) -> float:
    """Return the time since arrivals began, not counting decisions that were recorded from before."""
    return state.now[0].clock - state.now[0].opened


@kernel
def clock_left(state: State) -> float:
    """Return the time until the end: mean time per round times the rounds left. Not defined before the first round."""
    now = state.now[0]
    if now.until < math.inf:
        return max(0.0, now.until - now.clock)
    return (now.horizon - now.round) * (clock_passed(state) / now.round)


@kernel
def class_of(state: State, row: int) -> int:
    """Return the context of a row."""
    return state.people.context[row] if state.rules.has_people else row


@kernel
def slot_of(state: State, number: int) -> int:
    """Return the slot of a decision in the ring, GONE_SLOT if it has left it."""
    if number < state.now[0].first:
        return GONE_SLOT
    return number & (state.ring.size - 1)


@kernel
def deadline_of(state: State, slot: int, context: int) -> float:
    """Return the age by which a decision must be answered to teach; for people the longest, tau does the rest."""
    return state.limits.longest_deadline if state.rules.has_people else state.contexts[context].deadline


@kernel
def is_learnable(state: State, slot: int, context: int, age: float) -> bool:
    """Return whether an answer of this age teaches something about rewards."""
    limits = state.limits
    if limits.own_deadlines and age > deadline_of(state, slot, context):
        return False
    return age <= state.now[0].cutoff and age <= limits.learnable_age


@kernel
def norm_row(state: State, row: int) -> int:
    """Return the row of the ridge whose norms the bonus takes: with pending decisions as if answered, if they count."""
    return row + state.contexts.size if state.rules.has_pending else row


@kernel
def noise_variance(state: State) -> float:
    """Return the measured variance of one reward; 1 where it is not measured."""
    return state.prior.scale[NOISE] if state.rules.prior != FIXED else 1.0


# --- a half-life: what was learned counts half after so many rounds ---------------------------------------------------


@kernel
def kept(state: State) -> float:
    """Return the weight of what was learned before the last refresh."""
    if not state.rules.forgets:
        return 1.0
    now = state.now[0]
    return 0.5 ** (max(0, now.round - now.read_last) / state.rules.half_life)


@kernel
def remembered(state: State, slot: int) -> float:
    """Return the weight that is left of what a decision, or by now its answer, once entered."""
    if not state.rules.forgets:
        return 1.0
    return 0.5 ** ((state.now[0].read_last - state.ring[slot].reading) / state.rules.half_life)


@kernel
def unit_at(state: State, reading: int) -> float:
    """Return the unit of exact sums after this refresh: what came a half-life later counts twice, unrounded."""
    if not state.rules.forgets:
        return 1.0
    half_lives = reading / state.rules.half_life
    whole = float(math.floor(half_lives))
    return 2.0 ** (half_lives - whole) * 2.0 ** (whole - state.forgotten[0])


def is_racing(state: State) -> bool:
    """Return whether stage 1 still runs."""
    return bool(state.now["racing"][0])
