"""The draws of one run, made in chunks: contexts, availability, and one draw each for reward noise and delay.

The draws of a round are shared by all arms (common random numbers): whichever arm is played, its noise and its delay
come from the same two uniforms through its own laws. Only the answer of the played arm is ever seen, so what any policy
experiences has the right law, and differences between policies on one tape are as tight as they can be.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral._arrays import Bits, Floats, Ints
from doral.compiled import Entry, Program, kernel, position, shared
from doral.delays.kernels import EXPONENTIAL, GEOMETRIC, PARETO, unit_delay, whole_delay
from doral.numerics.kernels import (
    ARRIVAL,
    AVAILABILITY,
    PARAMETERS,
    make_normal,
    philox,
    quick_log,
    rounded_up,
    to_uniform,
)
from doral.simulation.scenario.rows import cost_shares

if TYPE_CHECKING:
    from doral.simulation.scenario.scenario import Scenario

CHUNK_ROUNDS = 8192
WALKED_CONTEXTS = 32  # up to here, counting finds the context of a draw sooner than a search

_BELOW_ONE = 1.0 - 2.0**-53

NO_SHAPE = -1

NOISE_NONE, NOISE_GAUSSIAN, NOISE_BERNOULLI, NOISE_POISSON, NOISE_ROWS = 0, 1, 2, 3, 4


class Laws(NamedTuple):
    """Delay laws by side of the threshold (0: rewards at or below it, 1: above), context (or 1 row for all) and arm."""

    kind: Ints  # (2, 1 or J, A)
    a: Floats
    b: Floats
    never: Floats
    start: Ints  # slice of `values`, for empirical laws
    stop: Ints
    values: Floats
    threshold: Floats  # (1 or J, A)
    shape: Ints  # (2, 1 or J, A) the number of its shape, NO_SHAPE where it has none
    shape_kind: Ints  # (S,) of laws that differ in `a` alone, the few of them for which a tape has `unit_delay`
    shape_b: Floats  # (S,)


ALWAYS, ON_SUCCESS, BY_CHANCE, BY_ROW = 0, 1, 2, 3

_KINDS = {"always": ALWAYS, "on_success": ON_SUCCESS, "by_row": BY_ROW}


class Payments(NamedTuple):
    """What is true of payments."""

    kind: int
    chance: Floats  # (J, A), or (N, A) of people, where they are by chance
    costs: Floats  # (R, A) list prices, in one row for all contexts or in one per context
    shares: Floats  # of list prices, that go with the `values` of the laws, where rows were observed with costs


class World(NamedTuple):
    """What is true in one run."""

    means: Floats  # (phases, J, A) expected reward
    phase_rounds: int  # how long each phase lasts
    noise: int
    noise_sd: float
    laws: Laws
    cumulative_shares: Floats  # (J,)
    silent: bool
    available: Floats  # (A,) probability of being available; empty: always
    counted: Floats  # (phases, J, A) expected worth of what returns within the deadline
    rewards: Floats  # that go with the `values` of the laws, where rows were observed; else empty
    row_sums: Floats  # of their weights, within each cell; empty where those are all alike
    nothing: Floats  # (phases, J) what doing nothing is worth, by the deadline; (phases, 0) where that is not asked
    payments: Payments
    speed: Floats  # (N,) by which the hazard of an answer is multiplied; empty: 1
    people: Floats  # (N, features of a person + 1) of all who may arrive, and their number; (1, 0): classes alone
    classes: Ints  # (N,) their contexts
    come: Ints  # (T,) the context of every arrival, where a calendar says so; empty: they are drawn


class Tape(NamedTuple):
    """A chunk of rounds."""

    context: Ints
    noise: Floats  # standard normal, or uniform for Bernoulli rewards, counts and rows
    delay: Floats  # uniform
    late: Floats  # about log(1 - delay)
    unit: Floats  # (S, rounds) `unit_delay` of each shape
    available: Bits  # (rounds, A), or (rounds, 0): always
    payment: Floats  # uniform; empty where nothing is paid by chance


def new_tape(world: World, rounds: int) -> Tape:
    """Room for a chunk."""
    n_arms = world.means.shape[2]
    return Tape(
        context=np.zeros(rounds, dtype=np.int64),
        noise=np.zeros(rounds),
        delay=np.zeros(rounds),
        late=np.zeros(rounds),
        unit=np.zeros((world.laws.shape_kind.size, rounds)),
        available=np.zeros((rounds, n_arms if world.available.size else 0), dtype=np.uint8),
        payment=np.zeros(rounds if world.payments.kind == BY_CHANCE else 0),
    )


def make_payments(scenario: Scenario) -> Payments:
    paid = scenario.paid
    kind = _KINDS[paid] if isinstance(paid, str) else BY_CHANCE
    by_context = kind == BY_CHANCE and scenario.people is None
    chance = np.array(paid if by_context else np.zeros((0, 0)), dtype=np.float64)
    shares = (
        cost_shares(scenario.rows, scenario.problem) if kind == BY_ROW and scenario.rows is not None else np.zeros(0)
    )
    return Payments(kind, chance, scenario.problem.costs_by_context.copy(), shares)


def example_payments() -> Payments:
    """One that stands for all."""
    return Payments(ALWAYS, np.zeros((0, 0)), np.zeros((1, 1)), np.zeros(0))


class Draws(NamedTuple):
    """Room for uniform draws."""

    uniforms: Floats


@kernel
def fill_uniforms(draws: Draws, seed: np.uint64, run: np.uint64, lane: int) -> None:
    """The draws of a run's parameters."""
    for i in range(draws.uniforms.size):
        word, _, _, _ = philox(seed, run, np.uint64(i), np.uint64(PARAMETERS), np.uint64(lane))
        draws.uniforms[i] = to_uniform(word)


@kernel
def find_context(cumulative_shares: Floats, first: int, n: int, u: float) -> int:
    """Return the first of n contexts whose cumulative share is above `u`; the last one where rounding leaves none."""
    last = n - 1
    if last < WALKED_CONTEXTS:
        n_below = 0
        for j in range(last):  # all of them: when to stop is hard to guess
            n_below += u >= cumulative_shares[position(first + j)]
        return n_below
    low, high = 0, last
    while low < high:
        middle = (low + high) >> 1
        if u >= cumulative_shares[position(first + middle)]:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def phase_of(world: World, round_: int) -> int:
    """The part of the horizon that a round belongs to."""
    if world.means.shape[0] == 1:  # mostly, and then nothing is divided
        return 0
    return min((round_ - 1) // world.phase_rounds, world.means.shape[0] - 1)


@shared
def _who_comes(world: World, round_: int, u: float) -> int:
    """The number of the person."""
    shares, n = world.cumulative_shares, world.classes.size
    if shares.size == 0:
        return min(int(u * n), n - 1)
    first = phase_of(world, round_) * n if shares.size > n else 0
    return find_context(shares, first, n, u)


@kernel
def class_of_arrival(world: World, who: int) -> int:
    """The context of one who arrives, which is all there is to say of them where people have no features."""
    return who if world.classes.size == 0 else world.classes[who]


@kernel
def record(tape: Tape, world: World, seed: np.uint64, run: np.uint64, first_round: int) -> None:
    """Fill the chunk that starts at `first_round`: a pure function of its arguments."""
    n_arms = world.means.shape[2]
    for i in range(tape.context.size):
        index = np.uint64(first_round + i)
        who, wait, luck, due = philox(seed, run, index, np.uint64(ARRIVAL), np.uint64(0))
        if world.come.size > 0:
            tape.context[i] = world.come[min(first_round + i, world.come.size) - 1]
        elif world.classes.size == 0:
            tape.context[i] = find_context(world.cumulative_shares, 0, world.cumulative_shares.size, to_uniform(who))
        else:
            tape.context[i] = _who_comes(world, first_round + i, to_uniform(who))
        tape.delay[i] = to_uniform(wait)
        tape.noise[i] = to_uniform(luck)
        if world.noise == NOISE_ROWS:
            tape.delay[i] = tape.noise[i]  # one draw picks the row of both
        if tape.payment.size > 0:
            tape.payment[i] = to_uniform(due)
        if tape.available.shape[1] > 0:
            for a in range(n_arms):
                word, _, _, _ = philox(seed, run, index, np.uint64(AVAILABILITY), np.uint64(a))
                tape.available[i, a] = to_uniform(word) < world.available[a]
    for i in range(tape.delay.size):
        tape.late[i] = quick_log(1.0 - tape.delay[i])
    for shape in range(tape.unit.shape[0]):
        _fill_units(world.laws.shape_kind[shape], world.laws.shape_b[shape], tape.late, tape.unit[shape])
    if world.noise == NOISE_GAUSSIAN:
        make_normal(tape.noise)


@kernel
def _fill_units(kind: int, b: float, late: Floats, unit: Floats) -> None:
    """A loop for each kind in `QUICK`, so that they become vectors."""
    if kind == PARETO:
        for i in range(late.size):
            unit[i] = unit_delay(PARETO, b, late[i])
    elif kind == GEOMETRIC:
        for i in range(late.size):
            unit[i] = unit_delay(GEOMETRIC, b, late[i])
    else:
        for i in range(late.size):
            unit[i] = unit_delay(EXPONENTIAL, b, late[i])


@kernel
def draw_answer(world: World, tape: Tape, i: int, round_: int, context: int, arm: int) -> tuple[float, float]:
    """The reward and the delay that the tape has at index `i` for this arm."""
    reward = draw_reward(world, round_, context, arm, tape.noise[i])
    if world.noise == NOISE_ROWS or world.speed.size > 0:
        return reward, draw_delay(world, context, arm, reward, tape.delay[i])
    laws, side, row = world.laws, side_of(world, context, arm, reward), law_row(world, context)
    shape = laws.shape[side, row, arm]
    if shape == NO_SHAPE:
        unit = unit_delay(laws.kind[side, row, arm], laws.b[side, row, arm], tape.late[i])
    else:
        unit = tape.unit[position(shape), i]
    return reward, _whole(laws, side, row, arm, tape.delay[i], unit)


@kernel
def draw_reward(world: World, round_: int, context: int, arm: int, noise: float) -> float:
    """The reward that this arm would bring."""
    mean = world.means[phase_of(world, round_), context, arm]
    if world.noise == NOISE_GAUSSIAN:
        return mean + world.noise_sd * noise
    if world.noise == NOISE_BERNOULLI:
        return 1.0 if noise < mean else 0.0
    if world.noise == NOISE_POISSON:
        return _count(mean, noise)
    if world.noise == NOISE_ROWS:
        return world.rewards[row_of(world, context, arm, noise)]
    return mean


@kernel
def row_of(world: World, context: int, arm: int, uniform: float) -> int:
    """The observed row that this draw picks."""
    start, stop = world.laws.start[0, context, arm], world.laws.stop[0, context, arm]
    if world.row_sums.size == 0:
        return start + min(int(uniform * (stop - start)), stop - start - 1)
    low, high = start, stop - 1
    while low < high:
        middle = (low + high) >> 1
        if uniform >= world.row_sums[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _count(mean: float, uniform: float) -> float:
    """The Poisson count at this probability: the first whose cumulative chance is above it."""
    count, chance = 0.0, math.exp(-mean)
    total = chance
    while uniform >= total and (count < mean or total + chance > total):  # beyond, rounding leaves nothing to add
        count += 1.0
        chance *= mean / count
        total += chance
    return count


@kernel
def draw_delay(world: World, context: int, arm: int, reward: float, uniform: float) -> float:
    """Whole rounds until its answer is seen, at least 1; infinite for never."""
    laws = world.laws
    if world.noise == NOISE_ROWS:
        return max(1.0, rounded_up(laws.values[row_of(world, context, arm, uniform)]))
    if world.speed.size > 0:
        uniform = _hastened(uniform, world.speed[context])
    return _whole(laws, side_of(world, context, arm, reward), law_row(world, context), arm, uniform, math.nan)


@kernel
def law_row(world: World, context: int) -> int:
    return position(min(class_of_arrival(world, context), world.laws.kind.shape[1] - 1))


@kernel
def side_of(world: World, context: int, arm: int, reward: float) -> int:
    return 1 if reward > world.laws.threshold[law_row(world, context), arm] else 0


@kernel
def _whole(laws: Laws, side: int, row: int, arm: int, uniform: float, unit: float) -> float:
    return whole_delay(
        laws.kind[side, row, arm],
        laws.a[side, row, arm],
        laws.b[side, row, arm],
        laws.never[side, row, arm],
        laws.values,
        laws.start[side, row, arm],
        laws.stop[side, row, arm],
        uniform,
        unit,
    )


@shared
def _hastened(uniform: float, speed: float) -> float:
    """The draw of the usual law at which this one has its answer: 1 - F is raised to the power `speed`."""
    return min(-math.expm1(math.log1p(-uniform) / speed), _BELOW_ONE)


@kernel
def cost_in(payments: Payments, context: int, arm: int) -> float:
    return payments.costs[min(context, payments.costs.shape[0] - 1), arm]


@kernel
def is_taken_up(payments: Payments, context: int, arm: int, reward: float, uniform: float) -> bool:
    """Whether an answer that is heard in time is paid for."""
    if payments.kind == ON_SUCCESS:
        return reward > 0.0
    return uniform < payments.chance[context, arm]


def example() -> tuple[World, Tape]:
    """A world and a tape that stand for all."""
    table, kinds = np.zeros((2, 1, 1)), np.zeros((2, 1, 1), dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    laws = Laws(kinds, table, table, table, kinds, kinds, np.zeros(0), np.zeros((1, 1)), kinds, none, np.zeros(0))
    world = World(
        means=table,
        phase_rounds=1,
        noise=NOISE_NONE,
        noise_sd=0.0,
        laws=laws,
        cumulative_shares=np.zeros(1),
        silent=False,
        available=np.zeros(0),
        counted=table,
        rewards=np.zeros(0),
        row_sums=np.zeros(0),
        nothing=np.zeros((1, 0)),
        payments=example_payments(),
        speed=np.zeros(0),
        people=np.zeros((1, 0)),
        classes=np.zeros(0, dtype=np.int64),
        come=np.zeros(0, dtype=np.int64),
    )
    return world, new_tape(world, 1)


def _entries() -> dict[str, Entry]:
    world, tape = example()
    return {
        "fill_uniforms": Entry(fill_uniforms, (Draws(np.zeros(0)), np.uint64, np.uint64, int)),
        "record": Entry(record, (tape, world, np.uint64, np.uint64, int)),
    }


WORLD = Program(name="world", entries=_entries)
