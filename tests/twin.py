"""The policy once more, slow and obvious: the oracle of the compiled engine.

Written from the formulas, not from the engine: every round starts from the list of all decisions ever made, and of
what entered the learner and when, and works everything out anew. Kept between rounds is only what depends on the past
by definition: the race, the prior that moves step by step, what was last read off the return curves, and what follows
from a reading until the next one (certificates, weights of outcomes, trials of silent feedback, norms that count open
decisions); and for how many who are still to come a context was last valued, since that is not done for everybody in
every round. Shares no code with the policies, the race, the pacing or the estimators. `follow` lets it look over the
engine's shoulder: same tape, same past, and in every round both must want the same.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.random import Philox
from scipy import stats
from scipy.special import ndtri

from doral._arrays import Flags, Floats, Ints
from doral.compiled import Block
from doral.delays import AnyLaw, ByOutcome, Law
from doral.engine.options import PolicyOptions
from doral.problem import Problem
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth
from tests.twin_forecast import ForecastTwin

REFRESH_ROUNDS = 32  # return curves are read in rounds 1, 33, 65, ...
CURVE_POINTS = 16  # ages of the grid
DRAWS = 8  # of Thompson sampling, mixed for one arrival
DELTA, TAIL_EXPONENT = 0.05, 0.5  # of the race
REFRESH_SHARE, REFRESH_MOST = 32, 512  # curves by context once in a share of the rounds so far, at most in so many
ORACLE_AGES = 16_384  # a known return probability is constant beyond this age
COIN, POSTERIOR = 3, 4  # purposes of the policy's own draws
MOST_VOTES = 20.0  # a context with more decisions says no more about how far contexts differ
AGE_PRIOR, ARM_PRIOR = 1.0, 2.0  # decisions behind the Beta prior of the hazard of an age, and of an arm at that age
CUTOFF_SHARE = 0.999  # of the answers, which an adaptive cut-off waits for
FIRST_DEVIATION, REACH_PRIOR = 1.0, 1.0  # of cells before any reward; arms behind the prior of the size of an arm
FACTOR_PRIOR_SD = 0.3  # of the factors of silent feedback, around 1
CONTEXT_DEGREES, NOISE_FLOOR = 20.0, 1e-12  # of the measured noise
SPREAD_FLOOR = 1e-9  # of s^2
SPREAD_GUESS = 0.1  # omega^2 as a share of s^2, thought of as one observation of it
FEWEST_ANSWERS = 100  # before anything is certain
PRICES = 4096  # between none and the highest: that exact is a range of prices, to the outside
ALIKE = 1e-9  # relative: arms that differ by less do not rule each other out
PRIOR_ANSWERS, HEAVIEST = 5.0, 20.0  # of the weights of outcomes
WHOLE = 1.0 - 1e-12  # a larger part of an edge is all of it
ROUNDING = 1e-15  # of an inverse, relative to its condition
INHERITED, REMEMBERED = 1e-16, 0.8  # of what a prior was learned with, and how much of that the next one still has
FIRST_TRIES = 4.0  # of an arm, before any answer says how many are enough
ARM_ANSWERS, EVEN_ANSWERS = 5.0, 1.0  # of the law of delays of an arm, and of all
LEAST_Z, MOST_LEVERAGE = -6.0, 1.0 - 1e-9  # of a variance that is estimated below 0; of a cell in its own line
NEAR = 1e-9  # decisions whose scores are nearer than this may differ by rounding
T = TypeVar("T")


PHILOX = Philox(0)  # one for all draws: a new one would ask the system for a seed first
NO_WORDS = np.zeros(4, dtype=np.uint64)


def uniform(seed: int, run: int, round_: int, purpose: int, lane: int = 0) -> float:
    """One of the policy's draws, from NumPy's own generator, which steps its counter before the first block."""
    counter = np.array([round_ - 1, purpose, lane, 0], dtype=np.uint64)
    PHILOX.state = {
        "bit_generator": "Philox",
        "state": {"counter": counter, "key": np.array([seed, run], dtype=np.uint64)},
        "buffer": NO_WORDS,
        "buffer_pos": 4,  # all of them are used
        "has_uint32": 0,
        "uinteger": 0,
    }
    return float(int(PHILOX.random_raw()) >> 11) * 2.0**-53


def coin(seed: int, run: int, round_: int) -> float:
    """Whether the marginal context is served."""
    return uniform(seed, run, round_, COIN)


def normals(seed: int, run: int, round_: int, n: int, number: int = 0) -> Floats:
    """One draw of Thompson sampling in a round: a standard normal per feature, or per arm where there are none."""
    draws = [max(uniform(seed, run, round_, POSTERIOR, number * n + lane), 2.0**-54) for lane in range(n)]
    return np.asarray(ndtri(draws), dtype=np.float64)


def gap(numbers: Iterable[float]) -> float:
    """The smallest distance between any two, relative where they are large."""
    ordered = sorted(filter(math.isfinite, numbers))
    return min([(b - a) / max(1.0, abs(b)) for a, b in itertools.pairwise(ordered)], default=math.inf)


def inverse_of(matrix: Floats) -> Floats:
    """Of a symmetric matrix that may be all but singular: then the condition says so, and rounding decides."""
    return _inverted(matrix.tobytes(), len(matrix))


def condition_of(matrix: Floats) -> float:
    return _condition(matrix.tobytes(), len(matrix))


# Most rounds ask for what the round before has asked for: of the same bytes it is worked out once.
@lru_cache(maxsize=64)
def _inverted(data: bytes, size: int) -> Floats:
    matrix = np.frombuffer(data).reshape(size, size)
    try:
        inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        inverse = np.asarray(np.linalg.pinv(matrix, hermitian=True), dtype=np.float64)
    inverse.setflags(write=False)
    return inverse


@lru_cache(maxsize=64)
def _condition(data: bytes, size: int) -> float:
    return float(np.linalg.cond(np.frombuffer(data).reshape(size, size)))


@dataclass(frozen=True)
class Edge:
    """One step up the hull of a context: from the arm before (or from skipping) to `arm`."""

    slope: float
    cost: float
    context: int
    arm: int


def hull(values: Floats, costs: Floats, arms: Iterable[int], context: int) -> tuple[list[Edge], float]:
    """From skipping at (0, 0), always to the arm that gains most per unit of cost; and how near a tie was."""
    edges: list[Edge] = []
    cost, value = 0.0, 0.0
    candidates, worth, price = list(arms), values.tolist(), costs.tolist()
    margin = min((abs(worth[a]) for a in candidates), default=math.inf)
    while True:
        better = [a for a in candidates if worth[a] > value and (price[a] > cost or price[a] == 0.0)]
        if not better:
            return edges, margin
        free = [a for a in better if price[a] == 0.0]
        if free:  # straight up, at no cost
            best = max(free, key=lambda a: (worth[a], -a))
            edges.append(Edge(math.inf, 0.0, context, best))
            value = worth[best]
            continue
        slopes = {a: (worth[a] - value) / (price[a] - cost) for a in better}
        margin = min(margin, gap(slopes.values()))
        steepest = max(slopes.values())
        # of equally steep ones the farthest: those between are on the line; of equal arms the first
        best = max((a for a in better if slopes[a] == steepest), key=lambda a: (price[a], -a))
        edges.append(Edge(slopes[best], price[best] - cost, context, best))
        cost, value = price[best], worth[best]


@dataclass(frozen=True)
class Wish:
    """What the twin wants in one round: an arm or None, and how near it was to wanting something else."""

    arm: int | None
    margin: float
    near: float = NEAR  # margins below this are for rounding to decide
    odds: dict[int | None, float] = field(default_factory=dict)  # of everything that might have been done


@dataclass(frozen=True)
class Toss:
    """One thing with a probability, and another otherwise."""

    arm: int | None
    otherwise: int | None
    probability: float


@dataclass(frozen=True)
class Lesson:
    """Something that entered V (a pull), G (an answer) or, as an observation, both."""

    decision: int
    context: int
    arm: int
    reward: float
    thin: float  # what multiplies the features
    at_reading: int  # the last reading of the return curves before it: what is entered is forgotten from then on
    pull: bool
    answer: bool
    weight: float = 1.0  # how many observations it stands for
    entered: float = 1.0  # the same when V and G were last built from the observations


@dataclass(frozen=True)
class Ruling:
    """Why an arm is out of a context."""

    round: int
    rival: int
    at_most: float
    at_least: float
    price: float
    price_low: float
    price_high: float


def _hazards(at_risk: Floats, returned: Floats, without: Floats) -> Floats:
    """returned / at_risk; where nobody was at risk, `without`."""
    return np.where(at_risk > 0.0, returned / np.where(at_risk > 0.0, at_risk, 1.0), without)


@dataclass(frozen=True)
class Group:
    """Arms that are learned together: all of them through their features, or each by itself."""

    arms: list[int]
    features: Floats
    center: Floats  # of mu


class Hierarchy:
    """mu ~ N(center, s^2 I), theta_j ~ N(mu, omega^2 I), rewards around <theta_j, f_a>: one normal law over all of it.

    Worked out as that: the precision of (mu, theta_1, ..., theta_J) together, solved as a whole, in units of the noise.
    """

    def __init__(
        self, group: Group, weight: Floats, target: Floats, *, noise: float, spread: float, scale: float
    ) -> None:
        self.n_contexts, self.n_features = weight.shape[0], group.features.shape[1]
        self.center, self.noise, self.spread, self.scale = group.center, noise, spread, scale
        self.condition = 1.0  # the worst so far
        self.data = [(group.features.T * own) @ group.features for own in weight[:, group.arms]]
        self.pull = [group.features.T @ own for own in target[:, group.arms]]
        has_data = (weight != 0.0) | (target != 0.0)
        self.tried = [j for j in range(self.n_contexts) if has_data[j, group.arms].any()]

    def _solve(self, contexts: Sequence[int]) -> tuple[Floats, Floats]:
        """Means (1 + contexts, k), mu first, and covariances (1 + contexts, k, 1 + contexts, k), from their data."""
        blocks, k = len(contexts) + 1, self.n_features
        precision, pull = np.zeros((blocks, k, blocks, k)), np.zeros((blocks, k))
        of_mu, of_theta = self.noise / self.scale * np.eye(k), self.noise / self.spread * np.eye(k)
        precision[0, :, 0] = of_mu + len(contexts) * of_theta
        pull[0] = of_mu @ self.center
        for block, j in enumerate(contexts, start=1):
            precision[block, :, block] = of_theta + self.data[j]
            precision[0, :, block] = precision[block, :, 0] = -of_theta
            pull[block] = self.pull[j]
        whole = precision.reshape(blocks * k, blocks * k)
        self.condition = max(self.condition, condition_of(whole))
        size = np.sqrt(np.outer(np.diag(whole), np.diag(whole)))  # after a single answer, precisions differ by 1e12
        covariance = inverse_of(whole / size) / size
        mean = np.asarray(covariance @ pull.ravel()).reshape(blocks, k)
        return mean, self.noise * np.asarray(covariance).reshape(blocks, k, blocks, k)

    def without(self, context: int) -> tuple[Floats, Floats]:
        """Mean and covariance of theta_j from the data of all others.

        Only of those who have any: the rest say nothing about mu, and contexts that know the same must get the same,
        to the last bit, for the order of the contexts to decide between them.
        """
        mean, covariance = self._solve([j for j in self.tried if j != context])
        return mean[0], covariance[0, :, 0] + self.spread * np.eye(self.n_features)

    def squares(self) -> float:
        """The sum over contexts of E |theta_j - mu|^2."""
        mean, covariance = self._solve(range(self.n_contexts))
        total = 0.0
        for j in range(1, self.n_contexts + 1):
            spread = covariance[j, :, j] + covariance[0, :, 0] - covariance[j, :, 0] - covariance[0, :, j]
            total += float(((mean[j] - mean[0]) ** 2).sum() + np.trace(spread))
        return total


class Bills:
    """What decisions cost in the end, as a twin learns it: `passed`, `F` and shares as in the formulas of the piece."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        shape = twin.problem.n_contexts, twin.problem.n_arms
        self.share, self.error = np.ones(shape), np.ones(shape)
        self.to_come, self.doubted = np.zeros(0), np.zeros(0)  # of each decision, since it was last looked at
        self.doubt = 0.0

    def note(self) -> None:
        j, a = int(self.twin.contexts[-1]), int(self.twin.arms[-1])
        self.to_come = np.append(self.to_come, self.share[j, a])
        self.doubt += float(self.twin.list_costs[j, a] * self.error[j, a])

    def _reserved(self) -> Floats:
        """What is reserved for each decision that is open: not answered, not lapsed."""
        twin = self.twin
        age = twin.now - twin.made
        is_open = (age <= twin.deadlines[twin.contexts]) & (age < twin.delays)
        return np.where(is_open, twin.list_costs[twin.contexts, twin.arms], 0.0)

    def refunds(self) -> float:
        return float((self._reserved() * (1.0 - self.to_come)).sum())

    def credit(self) -> float:
        """Bernstein: what open decisions cost exceeds this with a probability of at most 1 - reserve."""
        reserve, reserved = self.twin.problem.reserve, self._reserved()
        if reserve == 1.0:
            return 0.0
        variance = float((reserved**2 * self.to_come * (1.0 - self.to_come)).sum()) + self.doubt**2
        log = math.log(1.0 / (1.0 - reserve))
        largest = float(self.twin.list_costs.max())
        return max(0.0, self.refunds() - math.sqrt(2.0 * log * variance) - log * largest / 3.0)

    def read(self, clock: float) -> None:
        twin = self.twin
        clocks, readings = (np.array(column) for column in zip(*(twin.watches or [(0.0, 0)]), strict=True))
        ages, n_ages = twin.ages, twin.ages.size
        passed, paid = (np.zeros((twin.n_contexts, twin.n_arms, n_ages)) for _ in range(2))
        answered = np.zeros((twin.n_arms, n_ages))
        costs_something = twin.list_costs[twin.contexts, twin.arms] > 0.0
        is_paid = np.isinf(twin.refunded_at)
        for g in range(n_ages):
            start = ages[g - 1] if g else -math.inf
            seen = clocks[:, None] - twin.made[None, :] > ages[g]
            kept = twin._kept(readings[seen.argmax(axis=0)])
            counted = seen.any(axis=0) & (ages[g] <= twin.deadlines[twin.contexts]) & costs_something
            inside = counted & (twin.delays > start) & (twin.delays <= ages[g])
            passed[:, :, g] = twin._in_cells(twin.contexts, twin.arms, counted * kept)
            paid[:, :, g] = twin._in_cells(twin.contexts, twin.arms, (inside & is_paid) * kept)
            answered[:, g] = np.bincount(twin.arms, weights=inside * kept, minlength=twin.n_arms)
        last = [int(np.flatnonzero(ages <= deadline)[-1]) for deadline in twin.deadlines]
        come, unpaid = self._by_age(passed.sum(axis=0), paid.sum(axis=0), answered)
        trials, sums = np.zeros((2, twin.n_contexts, twin.n_arms))
        for j, a in itertools.product(range(twin.n_contexts), range(twin.n_arms)):
            end = last[j] + 1
            steps = np.diff(come[a, :end], prepend=0.0)
            whole = come[a, last[j]]
            trials[j, a] = passed[j, a, :end] @ steps / whole if whole > 0.0 else passed[j, a, last[j]]
            sums[j, a] = min(paid[j, a, :end].sum(), trials[j, a])
        self._shrink(trials, sums)
        list_costs = twin.list_costs
        twin.costs = list_costs * self.share
        twin.now = max(twin.now, int(clock))
        reserved = self._reserved()
        for i in np.flatnonzero(reserved > 0.0).tolist():
            j, a = int(twin.contexts[i]), int(twin.arms[i])
            n_passed = int((ages[: last[j] + 1] < clock - twin.made[i]).sum())
            share, whole = float(self.share[j, a]), float(come[a, last[j]])
            self.to_come[i] = share
            if n_passed and whole > 0.0:
                came = share * float(come[a, n_passed - 1]) / whole
                still_open = 1.0 - float(unpaid[a, n_passed - 1]) - came
                self.to_come[i] = min((share - came) / still_open, 1.0) if still_open > share - came else 1.0
        by_arm = np.bincount(twin.arms, weights=reserved * self.error[twin.contexts, twin.arms], minlength=twin.n_arms)
        self.doubt = float(np.sqrt((by_arm**2).sum()))

    def _by_age(self, passed: Floats, paid: Floats, answered: Floats) -> tuple[Floats, Floats]:
        """F_a, beyond the oldest decision at the pace so far; and what is answered at no cost."""
        ages = self.twin.ages
        come, unpaid = np.zeros(passed.shape), np.zeros(passed.shape)
        for a in range(passed.shape[0]):
            known = int((passed[a] > 0.0).sum())
            rates = np.divide(paid[a], passed[a], out=np.zeros(ages.size), where=passed[a] > 0.0)
            heard = np.divide(answered[a], passed[a], out=np.zeros(ages.size), where=passed[a] > 0.0)
            sofar, by = np.cumsum(rates), np.cumsum(heard)
            come[a], unpaid[a] = np.minimum(sofar, 1.0), np.maximum(by - sofar, 0.0)
            if known:
                most = sofar[-1] + max(1.0 - max(by[-1], sofar[-1]), 0.0)
                beyond = sofar[-1] * ages[known:] / ages[known - 1]
                come[a, known:] = np.minimum(beyond, most)
        return come, unpaid

    def _shrink(self, trials: Floats, paid: Floats) -> None:
        """Beta-binomial: contexts around their arm, arms around all, all around one decision that was paid in full."""

        def borrowed(n: Floats, y: Floats, share: Floats, of: Floats) -> float:
            told = n > 1.0 + ALIKE
            variance = share * (1.0 - share)
            n1 = np.where(told, n, 2.0)
            excess = np.where(told, (y - n * share) ** 2 / n1 - variance * np.maximum(1.0 - n / of, 0.0), 0.0).sum()
            possible = np.where(told, (n - 1.0) * variance, 0.0).sum()
            return 1e9 if excess <= 0.0 or possible <= 0.0 else float(min(max(possible / excess - 1.0, 1.0), 1e9))

        n_arm, y_arm = trials.sum(axis=0), paid.sum(axis=0)
        n_all, y_all = 1.0 + n_arm.sum(), 1.0 + y_arm.sum()
        of_all = np.full(n_arm.shape, y_all / n_all)
        by_arm = borrowed(n_arm, y_arm, of_all, np.full(n_arm.shape, n_all))
        of_arm = (y_arm + by_arm * of_all) / (n_arm + by_arm)
        own = np.broadcast_to(of_arm, trials.shape)
        k = borrowed(trials, paid, own, np.maximum(np.broadcast_to(n_arm, trials.shape), 1e-300))
        self.share = (paid + k * own) / (trials + k)
        known = np.minimum(trials + k, np.minimum(n_arm + by_arm, n_all)) + 1.0
        self.error = np.sqrt((self.share * (1.0 - self.share) + 1.0 / known) / known)


class Twin:
    """One policy in one run."""

    def __init__(
        self,
        options: PolicyOptions,
        problem: Problem,
        *,
        features: Floats,
        delays: Sequence[Sequence[AnyLaw]],
        seed: int,
        run: int,
        true_values: Floats | None = None,
        times: Floats | None = None,
        day: float | None = None,
    ) -> None:
        self.options, self.problem, self.seed, self.run = options, problem, seed, run
        self.times = times  # of all arrivals, where the end is a date; each is looked at once it has passed
        self.forecast = None if times is None else ForecastTwin(problem, day)
        self.horizon = problem.expected_rounds
        self.until_end = options.until_end and problem.counted == "by_end"
        if options.prior == "cells":  # a level is among them
            size = math.sqrt(float((features**2).sum(axis=1).mean())) if features.shape[1] else 1.0
            if size > 0.0 and not any(column[0] != 0.0 and (column == column[0]).all() for column in features.T):
                features = np.column_stack([np.full(problem.n_arms, size), features])
        elif features.shape[1] == 0:  # they are not given: one for each arm
            features = np.eye(problem.n_arms)
        self.features = features if options.features == "given" else np.zeros((problem.n_arms, 0))
        self.control = problem.control  # what those get who are skipped
        # what a use takes from the budget, and what plans take it to cost
        self.list_costs = np.broadcast_to(problem.costs_by_context, (problem.n_contexts, problem.n_arms)).copy()
        self.costs = self.list_costs.copy()
        self.bills = Bills(self) if options.cost == "learned" and problem.paid == "on_answer" else None
        self._true_laws = delays  # looked at by `oracle` only
        self._true_values = true_values  # (phases, J, A), the same
        self.n_arms, self.n_contexts, self.n_features = problem.n_arms, problem.n_contexts, self.features.shape[1]
        self.silent = problem.feedback == "silent"
        self.learner = options.learner
        if options.learner == "auto":
            estimates = options.return_probability == "estimated"
            self.learner = ("early" if estimates else "scaled") if self.silent else "returned"
        own = [problem.deadline if context.deadline is None else context.deadline for context in problem.contexts]
        self.deadlines = np.array([math.inf if deadline is None else deadline for deadline in own])
        # how many reserves are closed to a context
        self.depths = [sum(context.tier < tier for tier, _ in problem.reserves) for context in problem.contexts]
        self.ages = self._age_grid()
        self.by_context = options.curves_by == "context"
        # one entry per decision ever made
        self.made = np.zeros(0)  # what the clock showed
        self.contexts = np.zeros(0, dtype=np.int64)
        self.arms = np.zeros(0, dtype=np.int64)
        self.in_race = np.zeros(0, dtype=np.bool_)
        self.rewards = np.zeros(0)
        self.floor = problem.return_at_least if options.prior == "fixed" else 0.0  # once something is known of rewards
        self.refunded_at = np.zeros(0)  # the round in which its cost came back; infinite where it is paid
        self.now = 0
        self.delays = np.zeros(0)  # used only once they have passed; infinite where nobody hears of the answer
        self.true_delays = np.zeros(0)  # used by `instant` only
        self.heard = np.zeros(0)  # the reward, once it came within the cut-off
        self.expected = np.zeros(0)  # tau when the decision was made
        self.decided_at_reading = np.zeros(0)
        self.learned_at_reading = np.zeros(0)  # the last one before its answer entered the learner; NaN: it has not
        self.settled = 0  # the first decision that has not left the cut-off
        self.arrivals: list[int] = []
        self.last_round = [0] * self.n_contexts  # in which one of the context was asked for
        self.now = 0
        # one entry per thing that entered the learner
        self.learned: list[Lesson] = []
        self._times_thinned = 0
        self._known_sums: dict[tuple[int, int, int], tuple[Floats, Floats]] = {}  # of the last state of the above
        # by context: what the posterior was last worked out from, what it is, and the condition of V
        self._known_posteriors: dict[int, tuple[bytes, tuple[Floats, Floats], float]] = {}
        self.n_learned, self.calibrate_at = 0, 1
        self._margin = math.inf  # of the decision being made
        self._condition = 1.0  # the worst of a matrix that was inverted for it
        self._inherited = 1.0  # the same for the prior
        # the race
        self.races = options.screening == "race"
        everyone = frozenset(range(self.n_arms)) - {self.control}
        self.racing = everyone if self.races else frozenset()
        self.accepted = frozenset() if self.races else everyone
        self.n_accept = options.accepted_of(len(everyone))
        self.pulls_to_compare = len(everyone)
        self.n_bought = len(everyone)
        self.race_ended = 0
        self.race_capped = False
        # the cut-off
        self._chosen_cutoff = self._choose_cutoff()
        self.cutoff = math.inf
        if not self.races:
            self.cutoff = float(self.deadlines.max()) if self._chosen_cutoff is None else self._chosen_cutoff
        # the prior
        self.noise, self.sigma = 1.0, np.ones(self.n_contexts)
        self.doubt, self.mean_square = 1.0, 0.0  # the noise as it may be while few answers tell; of rewards
        self.noiseless = False  # answers differ by no more than rounding
        self.spread = math.nan  # omega^2, once rewards have given a scale
        # what theta_j is thought to be before its own data, as mean and precision; without features cell by cell
        k = self.n_features
        self.prior_mean = np.zeros((self.n_contexts, k if k else self.n_arms))
        one = np.eye(k) if k else np.ones(self.n_arms)
        self.prior_precision = np.array([options.penalty * one] * self.n_contexts)
        # where features may be wrong: variances of deviations and of effects, and the effects as other contexts know
        # them, which hold from the next calibration on; and what holds now, in units of the noise
        self.deviates = options.prior == "cells" and k > 0
        cells = (self.n_contexts, self.n_arms)
        self.reach = np.ones(self.n_arms)  # how large deviations of an arm are, relative to others
        self.deviation = self.effect_spread = math.nan
        self.effect, self.effect_variance = np.zeros(cells), np.zeros(cells)
        self.noisiness, self.prior_effect = np.ones(cells), np.zeros(cells)
        self.kappa = np.full(cells, FIRST_DEVIATION if self.deviates else 0.0)
        # silent feedback, learned as it comes: trials as they were last counted, and as they last entered V
        self.trials, self.entered_trials = np.zeros(cells), np.zeros(cells)
        # the start
        self.start_open = options.start_share > 0.0 and not self.races
        self.enough = np.full(self.n_arms, max(FIRST_TRIES, options.start_tries))
        # who has to be valued anew, who had no arm of any worth, and for how many to come everybody was valued
        self.stale, self.worthless = set(range(self.n_contexts)), set[int]()
        self.to_come, self.answers = np.zeros(self.n_contexts), np.zeros(self.n_contexts)  # the latter of the control
        # what the norms that count open decisions stand for: their part in V, and in what cells add to it
        self.pending_weight, self.pending_seen = np.zeros(cells), np.zeros(cells)
        self.stretched = np.ones(cells)  # of the bonus, since stock was taken
        self.pending_precision = self.prior_precision.copy()
        self.draw = 0  # of Thompson sampling, in this round
        self._worked_out: dict[object, object] | None = None  # while a decision is made; see `_once`
        self.settled_thin: dict[int, float] = {}
        self.prices: dict[int, float] = {}  # of a unit of budget, by depth
        self.last_caps = np.zeros(len(problem.reserves) + 1)  # of the last arrival
        # what was last read
        self.tau = np.ones((self.n_contexts, self.n_arms))
        self.tau_error = np.zeros((self.n_contexts, self.n_arms))
        self.thinning = np.ones((self.n_contexts, self.n_arms))
        self.splits = options.outcome_split is not None and self.learner == "returned"
        self.oldest_answer = min(float(self.deadlines.max()), float(self.ages[-1]))
        self.outcome_weights = np.ones((2, self.n_arms, self.ages.size + 1))  # by kind, arm and grid ages passed
        self.lost_rounds = 0
        self.watches: list[tuple[float, int]] = []  # when the curves were brought up to date, after which reading
        self.read_at, self.last_reading = 0, 0
        if not self.races:
            self._read(seen=0, clock=0)

    def _age_grid(self) -> Floats:
        """Geometric up to the last deadline, and all others.

        Where not all contexts have a deadline, up to the given cut-off or a quarter of the horizon.
        """
        finite = self.deadlines[np.isfinite(self.deadlines)]
        cutoff = self.options.cutoff
        if finite.size == self.n_contexts:
            last = float(finite.max())
        elif cutoff is None or isinstance(cutoff, str):
            last = max(4.0, (self.problem.until or self.problem.horizon) / 4)
        else:
            last = cutoff
        ages = np.geomspace(0.01 * last, last, CURVE_POINTS)
        ages[-1] = last
        return np.array(sorted({*ages.tolist(), *finite.tolist()}))

    def _choose_cutoff(self) -> float | None:
        """Where the race does not find it."""
        cutoff = self.options.cutoff
        if cutoff == "none":
            return math.inf
        if cutoff == "adaptive":
            return float(self.deadlines.max()) if self.silent else float(self.ages[-1])
        assert not isinstance(cutoff, str)
        return cutoff

    # --- what happened ---------------------------------------------------------------------------------------------

    @property
    def spent(self) -> float:
        return sum(self._charges())

    def _charges(self) -> list[float]:
        """What every decision takes from the budget, as far as is known by now."""
        costs = self.list_costs[self.contexts, self.arms]
        costs[self.refunded_at <= self.now] = 0.0
        charges: list[float] = costs.tolist()
        return charges

    @property
    def budget_left(self) -> float:
        left = self.problem.budget
        for cost in self._charges():
            left -= cost
        return left

    def _can_pay(self, costs: Iterable[float]) -> dict[float, bool]:
        """In decimals, as people mean them."""
        with localcontext(prec=60):
            left = Decimal(repr(self.problem.budget))
            for cost, times in Counter(self._charges()).items():
                left -= times * Decimal(repr(cost))
            if self.bills is not None:
                left += Decimal(self.bills.credit())
            return {cost: Decimal(repr(cost)) <= left for cost in costs}

    def note(
        self, round_: int, context: int, arm: int, reward: float, delay: float, *, refunded_at: float = math.inf
    ) -> None:
        """A decision was made; its outcome is written down here, and looked at when its time has come."""
        before = self._pending_now()
        self.refunded_at = np.append(self.refunded_at, refunded_at)
        self.made = np.append(self.made, self._clock(round_))
        self.contexts = np.append(self.contexts, context)
        self.arms = np.append(self.arms, arm)
        self.in_race = np.append(self.in_race, bool(self.racing) and arm != self.control)
        self.rewards = np.append(self.rewards, reward)
        self.true_delays = np.append(self.true_delays, delay)
        self.delays = np.append(self.delays, math.inf if self.silent and reward == 0.0 else delay)
        self.heard = np.append(self.heard, 0.0)
        self.expected = np.append(self.expected, min(self.tau[context, arm], 1.0))
        self.decided_at_reading = np.append(self.decided_at_reading, self.last_reading)
        self.learned_at_reading = np.append(self.learned_at_reading, math.nan)
        added, there = float(self.expected[-1]), float(before[context, arm])
        if self.deviates:
            added = self._of_line(context, arm, there + added) - self._of_line(context, arm, there)
        self.pending_weight[context, arm] += added
        self.pending_seen[context, arm] = self._pending_now()[context, arm]
        self.stale.add(context)
        if self.bills is not None:
            self.bills.note()
        if self.learner == "thinned":
            i = self.made.size - 1
            self.learned.append(Lesson(i, context, arm, 0.0, 1.0, self.last_reading, pull=True, answer=False))
        if self.in_race[-1]:
            self.pulls_to_compare -= 1

    def _deliver(self, now: int) -> None:
        """The answers of this round, in the order of their decisions."""
        came = self.made + self.delays
        for i in np.flatnonzero((came > self._clock(now - 1)) & (came <= self._clock(now))).tolist():
            if self.delays[i] > self.cutoff:
                continue
            if self.splits and self.delays[i] > self.oldest_answer:
                continue
            context, arm, reward = int(self.contexts[i]), int(self.arms[i]), float(self.rewards[i])
            if self.learner == "early" and self.delays[i] > self.deadlines[context]:
                continue
            self.heard[i] = reward
            self.stale.add(context)
            if self.learner == "returned":
                self.learned_at_reading[i] = self.last_reading
                self._learn(i, self._outcome_weight(i, float(self.delays[i])))
            elif self.learner in ("thinned", "early"):
                self.learned.append(Lesson(i, context, arm, reward, 1.0, self.last_reading, pull=False, answer=True))
                if self.learner == "early":
                    self.n_learned += 1
                    self._count_answered(context, arm)

    def _settle(self, now: float) -> None:
        """Decisions that are older than the cut-off leave it; `scaled` then knows their thinned reward."""
        while self.settled < self.made.size and now - self.made[self.settled] > self.cutoff:
            i = self.settled
            was_learned = self.learned_at_reading[i]
            if self.learner == "scaled":
                self._learn(i, 1.0)
                self.learned_at_reading[i] = self.last_reading
                self.settled_thin[i] = float(self.thinning[self.contexts[i], self.arms[i]])
                self.stale.add(int(self.contexts[i]))
            elif self.learner == "early":
                self.learned_at_reading[i] = self.last_reading  # a whole trial, for those who count open decisions
            leaves_norm = self.options.pending == "expected" and self.n_features == 0 and math.isnan(was_learned)
            if leaves_norm or "window" in self.options.printed:
                self.stale.add(int(self.contexts[i]))
            self.settled += 1

    def _tick(self, now: int) -> None:
        clock = self._clock(now)
        self._settle(clock)
        if self.forecast is not None and self.times is not None:
            self.horizon = self.forecast.horizon(self.times[: now - 1], clock)
        if self.n_learned >= FEWEST_ANSWERS and (now - 1 >= self.read_at or self.n_learned >= self.calibrate_at):
            self.stale |= set(range(self.n_contexts)) if self.floor != self.problem.return_at_least else set()
            self.floor = self.problem.return_at_least
        self._follow_prior()
        estimates = self.options.return_probability == "estimated"
        watches = estimates or (self.races and self.options.censoring == "kaplan_meier")
        seen = now - 1  # arrivals before this one
        is_due = seen >= self.read_at
        if is_due and watches:
            self._reweigh(clock)
            self.watches.append((clock, self.last_reading))
        reads = estimates or self.until_end or self.options.half_life is not None
        if self.race_ended == now or (is_due and reads and not self.racing):
            self._read(seen=seen, clock=clock)
        elif is_due:
            self.read_at = (seen // REFRESH_ROUNDS + 1) * REFRESH_ROUNDS

    def _kept(self, at_reading: Floats | Ints) -> Floats:
        """How much still counts of what was entered after the given reading: half after every half-life."""
        if self.options.half_life is None:
            return np.ones(at_reading.shape)
        return np.asarray(0.5 ** ((self.last_reading - at_reading) / self.options.half_life))

    # --- return curves ---------------------------------------------------------------------------------------------

    def _counts(self) -> tuple[Floats, Floats]:
        """(J, A, ages) decisions that entered an interval open and whose fate there is known; those that returned."""
        at_risk, returned = (np.zeros((self.n_contexts, self.n_arms, self.ages.size)) for _ in range(2))
        if not self.watches:
            return at_risk, returned
        clocks, readings = (np.array(column) for column in zip(*self.watches, strict=True))
        start = -math.inf
        for g, end in enumerate(self.ages.tolist()):
            passed = clocks[:, None] - self.made[None, :] > end
            counted = passed.any(axis=0) & (self.delays > start)
            kept = self._kept(readings[passed.argmax(axis=0)])
            at_risk[:, :, g] = self._in_cells(self.contexts, self.arms, np.where(counted, kept, 0.0))
            returned[:, :, g] = self._in_cells(
                self.contexts, self.arms, np.where(counted & (self.delays <= end), kept, 0.0)
            )
            start = end
        return at_risk, returned

    def _read(self, *, seen: int, clock: float) -> None:
        """Forget, and read the return probabilities and what follows from them."""
        before, self.last_reading = self.last_reading, seen
        self.entered_trials = self.entered_trials * self._kept(np.array(before))
        wait = REFRESH_ROUNDS
        if self.by_context:
            wait = max(wait, min(seen // REFRESH_SHARE, REFRESH_MOST))
            if self.until_end and self.horizon - seen < 4 * REFRESH_MOST:
                wait = REFRESH_ROUNDS
        self.read_at = (seen // wait + 1) * wait
        how = self.options.return_probability
        if how == "estimated" and self.learner == "early":
            self._read_trials(seen, clock)
        elif how == "estimated" and self.silent:
            self._fit_factors()
        elif how == "estimated":
            self._read_estimates(seen, clock)
        elif how == "oracle":
            self._read_truth(seen, clock)
        if self.bills is not None:
            self.bills.read(clock)
        if self.splits:
            self._weigh_outcomes()
        if self.learner in ("scaled", "early") or self.splits:
            self._rethin()
        self._renew()

    def _clock(self, round_: int) -> float:
        """What it shows when somebody arrives."""
        if self.times is None:
            return float(round_)
        return float(self.times[round_ - 1]) if round_ > 0 else -math.inf

    def _heard(self, came: float) -> float:
        """The clock of the first arrival by whom an answer was there: those between two are told together."""
        if self.times is None:
            return came
        position = int(np.searchsorted(self.times, came))
        return float(self.times[position]) if position < self.times.size else math.inf

    def _clock_left(self, seen: int, clock: float) -> float:
        if self.problem.until is not None:
            return max(0.0, self.problem.until - clock)
        return (self.horizon - seen) * (clock / seen)

    def _limits(self, seen: int, clock: float) -> Floats:
        """By which age an answer has to come, context by context."""
        limits = self.deadlines.copy()
        limits[np.isinf(limits) | ("returns" in self.options.printed)] = self.cutoff
        if self.until_end and seen > 0:
            is_old = clock >= 0.1 * limits  # before, the pace of arrivals is not known
            limits = np.where(is_old, np.minimum(limits, self._clock_left(seen, clock)), limits)
        return limits

    def _read_truth(self, seen: int, clock: float) -> None:
        last = min(math.ceil(self.problem.until or self.problem.horizon), ORACLE_AGES)
        limits = self._limits(seen, clock)
        for j, a in itertools.product(range(self.n_contexts), range(self.n_arms)):
            law = self._true_laws[min(j, len(self._true_laws) - 1)][a]
            laws = (law.above, law.below) if isinstance(law, ByOutcome) else (law,)

            def by(age: float, laws: Sequence[Law] = laws) -> float:
                whole = float(math.floor(min(age, last)))
                if whole < 1.0:  # an answer takes at least one round
                    return 0.0
                return sum(float(one.return_probability(whole)) for one in laws) / len(laws)

            self.tau[j, a] = by(float(limits[j]))
            if self.learner == "scaled":
                self.thinning[j, a] = by(self.cutoff)

    def _read_estimates(self, seen: int, clock: float) -> None:
        at_risk, returned = self._counts()
        of_arm, came = at_risk.sum(axis=0), returned.sum(axis=0)  # (A, ages)
        if self.by_context:
            of_all, before = np.zeros(self.ages.size), 1.0  # posterior means; nobody is silent at first
            for g, (n, k) in enumerate(zip(of_arm.sum(axis=0), came.sum(axis=0), strict=True)):
                of_all[g] = before = (AGE_PRIOR * before + k) / (AGE_PRIOR + n)
            hazard = (ARM_PRIOR * of_all + came) / (ARM_PRIOR + of_arm)
            borrowed = self._concentration(at_risk, returned)
            hazards = (returned + borrowed * hazard) / (at_risk + borrowed)
            known = np.minimum(at_risk[:, :, 0] + borrowed, of_arm[None, :, 0])
        else:
            hazard = _hazards(of_arm, came, np.ones(self.ages.size))
            hazards = np.array([hazard] * self.n_contexts)
            known = np.array([of_arm[:, 0]] * self.n_contexts)
        knots = np.append(0.0, self.ages)

        def by(hazards: Floats, age: float) -> float:
            return 1.0 - float(np.interp(age, knots, np.append(1.0, np.cumprod(1.0 - hazards))))

        arms = range(self.n_arms)
        if self.options.cutoff == "adaptive":
            come = [sum(float(of_arm[a, 0]) * by(hazard[a], age) for a in arms) for age in self.ages.tolist()]
            if come[-1] > 0.0:
                self.cutoff = next(
                    age
                    for age, so_far in zip(self.ages.tolist(), come, strict=True)
                    if so_far >= CUTOFF_SHARE * come[-1]
                )
        if self.until_end:
            waited, weight = 0.0, 0.0
            in_time = [0.0, *(age for age in self.ages.tolist() if age <= self.deadlines.max())]
            for a in arms:
                for start, end in itertools.pairwise(in_time):
                    waited += float(of_arm[a, 0]) * (by(hazard[a], end) - by(hazard[a], start)) * 0.5 * (start + end)
                weight += float(of_arm[a, 0]) * by(hazard[a], in_time[-1])
            if weight > 0.0 and clock > 0:
                self.lost_rounds = math.floor(waited / weight * seen / clock)
        limits = self._limits(seen, clock)
        for j in range(self.n_contexts):
            tau = np.array([by(hazards[j, a], float(limits[j])) for a in arms])
            error = np.sqrt((tau * (1.0 - tau) + 1.0 / (known[j] + 1.0)) / (known[j] + 1.0))
            if self.learner == "scaled":
                self.thinning[j] = [by(hazards[j, a], self.cutoff) for a in arms]
            self.tau[j], self.tau_error[j] = tau, error

    def _concentration(self, at_risk: Floats, returned: Floats) -> float:
        """How many decisions of its arm a context borrows, by how much more than binomially its counts scatter."""
        n, k = at_risk.sum(axis=0), returned.sum(axis=0)
        excess = possible = 0.0
        for a, g in zip(*np.nonzero((k > 0.0) & (k != n)), strict=True):
            h = float(k[a, g] / n[a, g])
            mine, came = at_risk[:, a, g], returned[:, a, g]
            pairs = mine * np.maximum(mine - 1.0, 0.0)
            votes = np.minimum(1.0, MOST_VOTES * (MOST_VOTES - 1.0) / np.maximum(pairs, 1.0))
            excess += float((votes * ((came - mine * h) ** 2 - mine * h * (1.0 - h) * (1.0 - mine / n[a, g]))).sum())
            possible += float((votes * pairs * h * (1.0 - h)).sum())
        if excess <= 0.0 or possible <= 0.0:
            return 1e9
        return min(max(possible / excess - 1.0, 1.0), 1e9)

    def _fit_factors(self) -> None:
        """Silent feedback: by which factor an arm falls short of what the learner thinks it brings."""
        count, total, _ = self._tally()
        mean = np.array([self._posterior(j)[0] for j in range(self.n_contexts)])
        prior = 1.0 / FACTOR_PRIOR_SD**2
        top = prior + (total * mean).sum(axis=0) / self.noise
        bottom = prior + (count * mean * mean).sum(axis=0) / self.noise
        self.tau[:] = np.clip(top / bottom, 0.01, 2.0)
        self.tau_error[:] = np.sqrt(1.0 / bottom)
        if self.learner == "scaled":
            self.thinning[:] = self.tau

    # --- silent feedback, learned as it comes -------------------------------------------------------------------------

    def _passages(self) -> tuple[Flags, Floats]:
        """(decisions, 1 + ages) which ages a decision has passed, and how much of that still counts.

        First of all it was made.
        """
        passed = np.zeros((self.made.size, 1 + self.ages.size), dtype=np.bool_)
        kept = np.zeros(passed.shape)
        passed[:, 0], kept[:, 0] = True, self._kept(self.decided_at_reading)
        if self.watches:
            clocks, readings = (np.array(column) for column in zip(*self.watches, strict=True))
            for g, age in enumerate(self.ages.tolist(), start=1):
                so_far = clocks[:, None] - self.made[None, :] > age
                passed[:, g] = so_far.any(axis=0)
                kept[:, g] = self._kept(readings[so_far.argmax(axis=0)])
        return passed, np.where(passed, kept, 0.0)

    def _read_trials(self, seen: int, clock: float) -> None:
        """A decision of age x is F(x) / F(R) of a trial, for F the law of the delays of answers, and R the deadline.

        F in reversed time: of the answers by g of those who are older, the share that came since the age before.
        """
        passed, kept = self._passages()
        is_answer = self.heard != 0.0
        n_ages = self.ages.size
        by, inside = np.zeros((self.n_arms, n_ages)), np.zeros((self.n_arms, n_ages))
        for g, age in enumerate(self.ages.tolist()):
            tells = is_answer & (age <= self.deadlines[self.contexts])  # later answers would not have been taken
            came = np.where(tells & passed[:, g + 1] & (self.delays <= age), kept[:, g + 1], 0.0)
            late = np.where(self.delays > (self.ages[g - 1] if g > 0 else -math.inf), came, 0.0)
            by[:, g] = np.bincount(self.arms, weights=came, minlength=self.n_arms)
            inside[:, g] = np.bincount(self.arms, weights=late, minlength=self.n_arms)
        even = np.append(1.0, 1.0 - self.ages[:-1] / self.ages[1:])
        of_all = (inside.sum(axis=0) + EVEN_ANSWERS * even) / (by.sum(axis=0) + EVEN_ANSWERS)
        hazard = (inside + ARM_ANSWERS * of_all) / (by + ARM_ANSWERS)
        shares = np.array([[float(np.prod(1.0 - own[g + 1 :])) for g in range(n_ages)] for own in hazard])
        knots = np.append(0.0, self.ages)
        limits = self._limits(seen, clock)
        for j, a in itertools.product(range(self.n_contexts), range(self.n_arms)):
            deadline = min(float(self.deadlines[j]), float(self.ages[-1]))
            at_deadline, at_limit = np.interp([deadline, min(limits[j], deadline)], knots, np.append(0.0, shares[a]))
            so_far = np.append(0.0, np.minimum(shares[a] / at_deadline, 1.0))
            worth = np.append((so_far[:-1] + so_far[1:]) / 2, 1.0)  # by how many ages it has passed
            mine = (self.contexts == j) & (self.arms == a)
            exposed = float((kept[mine] * np.diff(worth, prepend=0.0)).sum())
            self.trials[j, a] = max(exposed, self._answered(j, a))
            self.tau[j, a] = min(at_limit / at_deadline, 1.0)
        self.tau_error[:] = 0.0
        if self.options.until_end and clock > 0:
            middle = (knots[:-1] + knots[1:]) / 2
            waited = (np.diff(shares, prepend=0.0, axis=1) * middle).sum(axis=1)
            answers = by.max(axis=1)
            mean = float((answers * waited).sum() / answers.sum()) if answers.any() else 0.0
            self.lost_rounds = math.floor(mean * seen / clock)

    def _answered(self, context: int, arm: int) -> float:
        """How many answers a cell has had, at least: (sum of rewards)^2 / sum of squares, by Cauchy and Schwarz."""
        rewards = [
            (lesson.reward, lesson.at_reading)
            for lesson in self.learned
            if (lesson.context, lesson.arm) == (context, arm)
        ]
        r, at = (np.array(column) for column in zip(*rewards, strict=True)) if rewards else (np.zeros(0), np.zeros(0))
        kept = self._kept(at)
        square = float((kept * r * r).sum())
        return float((kept * r).sum()) ** 2 / square if square > 0.0 else 0.0

    def _count_answered(self, context: int, arm: int) -> None:
        """An answered decision is a whole trial: there are no fewer of these than answers."""
        more = max(0.0, self._answered(context, arm) - float(self.trials[context, arm]))
        self.trials[context, arm] += more
        self.entered_trials[context, arm] += more
        self._known_sums = {}

    # --- outcomes that return at different speeds --------------------------------------------------------------------

    def _is_high(self) -> Flags:
        assert self.options.outcome_split is not None
        return np.asarray(self.rewards > self.options.outcome_split)

    def _weigh_outcomes(self) -> None:
        """[F(x) / F(R)] / [F_c(x) / F_c(R)]: products over intervals between x and R, from decisions past their end.

        Over those, the share of answers by g that came inside its interval is the hazard in reversed time.
        """
        clock = self.watches[-1][0] if self.watches else 0
        old, high = clock - self.made, self._is_high()
        last = max(g for g in range(self.ages.size) if g == 0 or self.ages[g] <= self.oldest_answer)
        self.outcome_weights[:] = 1.0
        for a in range(self.n_arms):
            stays = np.ones((3, self.ages.size))  # 1 - hazard: of both kinds, of low ones, of high ones
            for g in range(1, self.ages.size):
                by = (self.arms == a) & (old > self.ages[g]) & (self.delays <= self.ages[g])
                inside = by & (self.delays > self.ages[g - 1])
                hazard = float(inside.sum() / by.sum()) if by.any() else 0.0
                stays[0, g] -= hazard
                for kind, mine in ((1, ~high), (2, high)):
                    stays[kind, g] -= float(
                        ((inside & mine).sum() + PRIOR_ANSWERS * hazard) / ((by & mine).sum() + PRIOR_ANSWERS)
                    )
            for passed in range(last + 1):
                both, *kinds = (float(row[max(passed, 1) : last + 1].prod()) for row in stays)
                for kind, own in enumerate(kinds):
                    if both != own:
                        heavy = both / own if own > 0.0 else math.inf
                        self.outcome_weights[kind, a, passed] = min(max(heavy, 1.0 / HEAVIEST), HEAVIEST)

    def _outcome_weight(self, i: int, age: float) -> float:
        """Of the answer of a decision that is so old."""
        if not self.splits:
            return 1.0
        passed = int((self.ages <= min(age, self.cutoff)).sum())
        weights = self.outcome_weights[int(self._is_high()[i]), self.arms[i]]
        is_young = age < self.cutoff and passed < self.ages.size  # half way to the next age, until that is passed
        return float((weights[passed] + weights[passed + 1]) / 2 if is_young else weights[passed])

    def _reweigh(self, now: float) -> None:
        """Answers of decisions that have passed another age since the last time; V and G follow when they are built."""
        if not self.splits:
            return
        before = self.watches[-1][0] if self.watches else -math.inf
        for at, lesson in enumerate(self.learned):
            i = lesson.decision
            made, answer = float(self.made[i]), float(self.delays[i])
            if any(age >= answer and before - made <= age < now - made for age in self.ages.tolist()):
                self.learned[at] = dataclasses.replace(lesson, weight=self._outcome_weight(i, now - made))

    # --- stage 1 ---------------------------------------------------------------------------------------------------

    def _delay_sample(self, arm: int, now: float) -> list[float]:
        """The delays that the race goes by, oldest first."""
        mine = np.flatnonzero(self.arms == arm).tolist()
        if self.options.censoring == "instant":  # even where feedback is silent
            return [float(self.true_delays[i]) for i in mine if self.true_delays[i] < math.inf]
        if self.options.censoring == "min_age":
            return [min(float(self.delays[i]), float(now - self.made[i])) for i in mine]
        came = sorted((self._heard(float(self.made[i] + self.delays[i])), i) for i in mine)
        return [float(self.delays[i]) for when, i in came if when <= now]

    def _baskets(self, n: int) -> int:
        enough = math.exp(1 / 8) / DELTA
        if "baskets" in self.options.printed:
            return max(1, min(n, math.floor(8 * math.log(min(enough, n / 2))))) if n > 2 else 1
        return max(1, math.floor(min(8 * math.log(enough), n / 2)))

    def _estimate(self, arm: int, now: float) -> float:
        if self.options.censoring == "kaplan_meier":
            at_risk, returned = (counts.sum(axis=0)[arm] for counts in self._counts())
            if at_risk[0] == 0.0:
                return math.inf
            survival = np.cumprod(1.0 - _hazards(at_risk, returned, np.ones(self.ages.size)))
            return float(np.trapezoid(np.append(1.0, survival), np.append(0.0, self.ages)))
        sample = self._delay_sample(arm, now)
        if not sample:
            return math.inf
        h = self._baskets(len(sample))
        size = len(sample) // h
        return float(np.median([sum(sample[b * size : (b + 1) * size]) / size for b in range(h)]))

    def _bounds(self, arm: int, now: float) -> tuple[float, float]:
        estimate = self._estimate(arm, now)
        n = len(self._delay_sample(arm, now))
        if n < self.options.min_answers or estimate == math.inf:
            return -math.inf, math.inf
        log = math.log(16 / (1 - max(self.problem.budget, 2.0) ** -TAIL_EXPONENT))
        width = math.sqrt(2 * log / n) + 2 * estimate * n**-TAIL_EXPONENT
        return estimate - width, estimate + width

    def _compare(self, now: float) -> None:
        """Acceptances and rejections, in the order of the arms, over those still racing."""
        bounds = {a: self._bounds(a, now) for a in self.racing}
        for a in sorted(self.racing):
            missing = self.n_accept - len(self.accepted)
            if missing == 0:
                return
            rivals = self.racing - {a}
            slower = {b for b in rivals if bounds[a][1] < bounds[b][0]}
            faster = {b for b in rivals if bounds[a][0] > bounds[b][1]}
            if "acceptance" in self.options.printed:
                accepts, rejects = len(faster) > missing, False
            else:
                accepts, rejects = len(slower) >= len(self.racing) - missing, len(faster) >= missing
            if accepts:
                self.accepted |= {a}
            if accepts or rejects:
                self.racing -= {a}

    def _race(self, now: int) -> None:
        """Before a decision of stage 1: compare after a full pass, stop at the cap, end when A' are accepted."""
        clock = self._clock(now)
        if self.pulls_to_compare == 0:
            self._compare(clock)
            self.pulls_to_compare = len(self.racing)
        if len(self.accepted) < self.n_accept:
            dearest = max(float(self.list_costs[:, a].max()) for a in self.racing)
            if self.spent + dearest > self.options.race_budget_share * self.problem.budget:
                self.race_capped = True
                by_estimate = sorted(self.racing, key=lambda a: (self._estimate(a, clock), a))
                self.accepted |= set(by_estimate[: self.n_accept - len(self.accepted)])
        if len(self.accepted) >= self.n_accept:
            self.racing = frozenset()
            self.race_ended = now
            self.cutoff = self._found_cutoff(clock)

    def _found_cutoff(self, now: float) -> float:
        over = set(range(self.n_arms)) - {self.control} if "cutoff" in self.options.printed else self.accepted
        upper = [self._bounds(a, now)[1] for a in over]
        cutoff = max((u for u in upper if u < math.inf), default=math.inf)
        if self._chosen_cutoff is not None:
            cutoff = self._chosen_cutoff
        elif cutoff == math.inf or not np.isfinite(self.deadlines).all():
            cutoff = min(cutoff, float(self.ages[-1]))  # nobody is watched for longer
        return max(1.0, cutoff)

    def _next_racer(self, allowed: Sequence[int]) -> int | None:
        pulls = {a: int((self.arms == a).sum()) for a in self.racing & set(allowed)}
        return min(pulls, key=lambda a: (pulls[a], a)) if pulls else None

    # --- stage 2, learning -----------------------------------------------------------------------------------------

    def _learn(self, i: int, weight: float) -> None:
        """One observation, thinned for `scaled`."""
        context, arm = int(self.contexts[i]), int(self.arms[i])
        self.learned.append(
            Lesson(
                decision=i,
                context=context,
                arm=arm,
                reward=float(self.heard[i]),
                thin=float(self.thinning[context, arm]),
                at_reading=self.last_reading,
                pull=True,
                answer=True,
                weight=weight,
                entered=weight,
            )
        )
        self.n_learned += 1

    def _follow_prior(self) -> None:
        """The prior follows what has been learned, now and then."""
        if self.options.prior != "fixed" and self.n_learned >= self.calibrate_at:
            self.calibrate_at = self.n_learned + max(10, min(self.n_learned // 10, 2_000))
            if self.options.prior == "noise":
                self._measure_noise()
            else:
                self._calibrate()
            self._renew()

    def _rethin(self) -> None:
        """The share that returns has changed, and with it the features of `scaled`; or the weights of outcomes have."""
        if self.options.prior in ("shared", "cells"):
            self._calibrate()
        else:
            self._thin_again()

    def _thin_again(self) -> None:
        self._times_thinned += 1
        self.entered_trials = self.trials.copy()
        thinning = self.thinning.tolist()
        self.learned = [
            lesson
            if lesson.thin == thinning[lesson.context][lesson.arm] and lesson.entered == lesson.weight
            else dataclasses.replace(lesson, thin=thinning[lesson.context][lesson.arm], entered=lesson.weight)
            for lesson in self.learned
        ]

    def _sum(self, amounts: Sequence[float]) -> Floats:
        """(J, A) of amounts per lesson, as far as they still count."""
        kept = self._kept(np.array([lesson.at_reading for lesson in self.learned], dtype=np.int64))
        contexts = np.array([lesson.context for lesson in self.learned], dtype=np.int64)
        arms = np.array([lesson.arm for lesson in self.learned], dtype=np.int64)
        return self._in_cells(contexts, arms, kept * np.array(amounts, dtype=np.float64))

    def _in_cells(self, contexts: Ints, arms: Ints, amounts: Floats) -> Floats:
        n_cells = self.n_contexts * self.n_arms
        total = np.bincount(contexts * self.n_arms + arms, weights=amounts, minlength=n_cells)
        return np.asarray(total.reshape(self.n_contexts, self.n_arms), dtype=np.float64)

    def _tally(self) -> tuple[Floats, Floats, Floats]:
        """(J, A) observations, their rewards and the squares of those; `thinned` has none, only pulls and answers."""
        if self.learner == "early":
            moments = [self._sum([lesson.reward**power for lesson in self.learned]) for power in (1, 2)]
            return self.trials, moments[0], moments[1]
        counts = [lesson.weight if lesson.pull and lesson.answer else 0.0 for lesson in self.learned]
        rewards = [lesson.reward for lesson in self.learned]
        total = [n * r for n, r in zip(counts, rewards, strict=True)]
        return self._sum(counts), self._sum(total), self._sum([x * r for x, r in zip(total, rewards, strict=True)])

    def _measure_noise(self) -> float:
        """The variance inside cells; returns the mean square of rewards."""
        count, total, square = self._tally()
        total, square = np.where(count > 0.0, total, 0.0), np.where(count > 0.0, square, 0.0)
        n = float(count.sum())
        if square.sum() == 0.0:
            return 0.0
        inside = np.maximum(0.0, square - np.divide(total**2, count, out=np.zeros_like(total), where=count > 0.0))
        degrees = np.maximum(0.0, count - 1.0)
        second_moment = float(square.sum()) / n
        overall = max(second_moment - (float(total.sum()) / n) ** 2, 0.0)
        noise = (float(inside.sum()) + overall) / (float(degrees.sum()) + 1.0)
        self.doubt = (float(inside.sum()) + second_moment) / (float(degrees.sum()) + 1.0)
        is_alike = noise < NOISE_FLOOR * second_moment  # answers differ by no more than rounding
        doubts = self.options.prior == "shared" and self.n_features > 0
        self.noise = max(noise, self.doubt if is_alike and doubts else NOISE_FLOOR * second_moment)
        self.noiseless = is_alike and not doubts
        self.mean_square = second_moment
        own, own_degrees = inside.sum(axis=1), degrees.sum(axis=1)
        self.sigma = np.sqrt((CONTEXT_DEGREES * self.noise + own) / (CONTEXT_DEGREES + own_degrees))
        return second_moment

    def _calibrate(self) -> None:
        """Empirical Bayes: measure the noise, then what each context may borrow from the others.

        theta_j ~ N(mu, omega^2 I) and mu ~ N(0, s^2 I), or arm by arm without features. omega^2 for the next time is
        the mean square of theta_j - mu as far as all data tell, with one observation of SPREAD_GUESS s^2.
        """
        second_moment = self._measure_noise()
        estimate = np.array([self._posterior(j)[0] for j in range(self.n_contexts)])
        self._thin_again()
        if second_moment == 0.0:
            return
        of_means = self._scale_of_means(second_moment) if self.options.prior == "cells" else second_moment
        if self.deviates:
            self._set_cells(estimate, SPREAD_GUESS * of_means)
        weight, target = self._line_sums()
        if self.n_features > 0:
            size = float((self.features**2).sum(axis=1).mean())
            groups = [Group(list(range(self.n_arms)), self.features, np.zeros(self.n_features))]
        else:
            size = 1.0
            overall = float(target.sum() / weight.sum()) if weight.sum() > 0.0 else 0.0
            groups = [Group([a], np.ones((1, 1)), np.array([overall])) for a in range(self.n_arms)]
        scale = of_means / (size if size > 0.0 else 1.0)
        if math.isnan(self.spread):
            self.spread = SPREAD_GUESS * scale
        self.spread = max(self.spread, SPREAD_FLOOR * scale)
        squares, condition = 0.0, 1.0
        for group in groups:
            hierarchy = Hierarchy(group, weight, target, noise=self.noise, spread=self.spread, scale=scale)
            squares += hierarchy.squares()
            condition = max(condition, hierarchy.condition)
            for j in range(self.n_contexts):
                mean, covariance = hierarchy.without(j)
                precision = self.noise * inverse_of(covariance)
                if self.n_features > 0:
                    self.prior_mean[j], self.prior_precision[j] = mean, precision
                else:
                    self.prior_mean[j, group.arms], self.prior_precision[j, group.arms] = mean, precision[0]
        n_deviations = self.n_contexts * (self.n_features or self.n_arms)
        self.spread = (SPREAD_GUESS * scale + squares) / (n_deviations + 1)
        if self.options.prior == "cells":  # no variance of means is larger than rewards are
            self.spread = min(self.spread, second_moment / (size if size > 0.0 else 1.0))
        self._inherited = max(condition, REMEMBERED * self._inherited)
        if self.deviates:
            self._follow_residuals(SPREAD_GUESS * of_means)

    # --- where features may be wrong ---------------------------------------------------------------------------------

    def _scale_of_means(self, second_moment: float) -> float:
        """Twice the means so far, squared: the mean square of rewards less noise, and what noise leaves in means."""
        n = float(self._tally()[0].sum())
        noise = min(self.noise, second_moment)
        unknown = noise * min(1.0, self.n_contexts * self.n_arms / n)
        return min(second_moment, 4.0 * (second_moment - noise + unknown))

    def _set_cells(self, estimate: Floats, guess: float) -> None:
        """phi and kappa of every cell, with the variances and effects that the last calibration has left."""
        if math.isnan(self.deviation):
            self.deviation = self.effect_spread = guess
            self.effect_variance[:] = guess
        count, total, square = self._tally()
        success = float(square.sum() / total.sum()) if total.sum() > 0.0 else 0.0
        is_binary = success > 0.0 and total.sum() < count.sum() * success * (1.0 - ALIKE)
        if is_binary and (np.abs(square - success * total) <= ALIKE * square).all():
            # as many answers as show four of the rarer outcome at a rate speak for it: of an arm at the common rate, of
            # a cell at that of its arm
            def toward(rate: Floats, y: Floats, n: Floats) -> Floats:
                weight = 4.0 * success / np.minimum(rate, success - rate)
                return (y + weight * rate) / (n + weight)

            of_arm = toward(total.sum() / count.sum(), total.sum(axis=0), count.sum(axis=0))
            mean = toward(of_arm, count * np.clip(estimate, 0.0, success), count)
            self.noisiness = mean * (success - mean) / self.noise
            self.sigma = np.full(self.n_contexts, math.sqrt(self.noise))
        else:
            self.noisiness = np.ones((self.n_contexts, self.n_arms))
        # deviations of an arm are as large as what it brings per answer; one average arm more stands behind each
        answers = count.sum(axis=0)
        is_tried = answers > 0.0
        tried = np.where(is_tried, answers, 1.0)
        size = (total.sum(axis=0) / tried) ** 2 + self.noise / tried
        size = np.where(is_tried, size / size[is_tried].mean(), 1.0)
        self.reach = np.sqrt((size + REACH_PRIOR) / (1.0 + REACH_PRIOR))
        self.kappa = (self.deviation * self.reach**2 + self.effect_variance) / self.noise
        self.prior_effect = self.effect.copy()

    def _follow_residuals(self, guess: float) -> None:
        """One step of Fisher scoring for either variance, and the effects as all other contexts know them.

        A residual of a cell has the variance noise * error * rest, where the line has not learned of it noise * error /
        rest, for error = phi / w + kappa and rest = 1 - the leverage of the cell.
        """
        weight, target = self._sums()
        line, width = (np.array(rows) for rows in zip(*map(self._line, range(self.n_contexts)), strict=True))
        has_data = weight > 0.0
        w = np.where(has_data, weight, 1.0)
        error = self.noisiness / w + self.kappa
        rest = 1.0 - np.minimum(width**2 / error, MOST_LEVERAGE)
        away = target / w - line
        square = self.reach**2
        information = np.where(has_data, (rest * square / error) ** 2, 0.0).sum()
        score = np.where(has_data, square / error * (away**2 / (self.noise * error) - rest), 0.0).sum()
        self.deviation = self._scored(self.deviation, guess, float(score), float(information))
        # Backfitting: a cell without the line and without its deviation is the effect of its arm, with an error of the
        # answers, of the deviation and of the line.
        of_cell = np.maximum(error - self.effect_variance / self.noise, self.noisiness / w)
        precision = np.where(has_data, 1.0 / (of_cell + width**2), 0.0)
        says = precision * (target / w - (line - self.prior_effect))
        known = precision.sum(axis=0)
        spread = np.full(self.n_arms, self.effect_spread / self.noise)
        is_known = known > 0.0
        of_arm = spread + np.divide(1.0, known, out=np.zeros(self.n_arms), where=is_known)
        mean = np.divide(says.sum(axis=0), known, out=np.zeros(self.n_arms), where=is_known)
        score = np.where(is_known, (mean**2 / (self.noise * of_arm) - 1.0) / of_arm, 0.0).sum()
        information = np.where(is_known, 1.0 / of_arm**2, 0.0).sum()
        self.effect_spread = self._scored(self.effect_spread, guess, float(score), float(information))
        for j in range(self.n_contexts):
            others = np.arange(self.n_contexts) != j
            share = spread / (1.0 + spread * precision[others].sum(axis=0))
            self.effect[j] = share * says[others].sum(axis=0)
            self.effect_variance[j] = self.noise * share

    def _scored(self, variance: float, guess: float, score: float, information: float) -> float:
        """With one observation of the size of the guess more; its mean given that it is not below 0."""
        now, first = variance / self.noise, guess / self.noise
        information += 1.0 / first**2
        score += (first - now) / first**2
        error = math.sqrt(2.0 / information)
        z = max((now + score / information) / error, LEAST_Z)
        return min(self.noise * error * float(z + stats.norm.pdf(z) / stats.norm.cdf(z)), self.mean_square)

    def _of_line(self, context: int, arm: int, weight: float) -> float:
        """With which weight so many answers of a cell count for the line."""
        return float(weight / (self.noisiness[context, arm] + self.kappa[context, arm] * weight))

    def _line_sums(self) -> tuple[Floats, Floats]:
        """(J, A) weights in V and targets in G: y is the line and the effect, with an error of phi / w + kappa."""
        weight, target = self._sums()
        if not self.deviates:
            return weight, target
        per_noise = 1.0 / (self.noisiness + self.kappa * weight)
        return weight * per_noise, (target - weight * self.prior_effect) * per_noise

    def _line(self, context: int) -> tuple[Floats, Floats]:
        """<theta, f_a> with the effect of the arm, and ||f_a|| in the norm of V^-1."""
        theta, inverse = self._theta(context)
        return self.features @ theta + self.prior_effect[context], self._norm(inverse)

    def _with_deviations(self, context: int, weight: Floats, norm: Floats) -> tuple[Floats, Floats]:
        """How much of the line is kept in a cell with so many answers, and the norm of the cell."""
        noisiness, kappa = self.noisiness[context], self.kappa[context]
        keep = noisiness / (noisiness + kappa * weight)
        return keep, np.sqrt(keep**2 * norm**2 + keep * kappa)

    # --- what is known of rewards ------------------------------------------------------------------------------------

    def _once(self, what: object, work: Callable[[], T]) -> T:
        """While one decision is made, nothing is learned: what several steps of it ask for is worked out once."""
        if self._worked_out is None:
            return work()
        if what not in self._worked_out:
            self._worked_out[what] = work()
        return self._worked_out[what]  # type: ignore[return-value]

    def _sums(self) -> tuple[Floats, Floats]:
        """(J, A) weights in V and targets in G."""
        state = (len(self.learned), self._times_thinned, self.last_reading)
        if state not in self._known_sums:
            weight = self._sum([lesson.entered * lesson.thin**2 * lesson.pull for lesson in self.learned])
            weight = self.entered_trials if self.learner == "early" else weight
            target = self._sum(
                [lesson.entered * lesson.thin * lesson.reward * lesson.answer for lesson in self.learned]
            )
            self._known_sums = {state: (weight, target)}
        return self._known_sums[state]

    def _theta(self, context: int) -> tuple[Floats, Floats]:
        """The posterior mean of theta, and V^-1; V = Lambda + sum f f^T, G = Lambda mu + sum r f."""
        weight, target = (sums[context] for sums in self._line_sums())
        mean, v = self.prior_mean[context], self._v(context)
        away = self.features.T @ (target - weight * (self.features @ mean))
        inverse = inverse_of(v)
        return mean + inverse @ away, inverse

    def _v(self, context: int) -> Floats:
        weight, _ = self._line_sums()
        v = self.prior_precision[context] + (self.features.T * weight[context]) @ self.features
        self._condition = max(self._condition, condition_of(v))
        return np.asarray(v)

    def _posterior(self, context: int) -> tuple[Floats, Floats]:
        """<theta, f_a> and ||f_a|| in the norm of V^-1; without features, each cell by itself."""
        return self._once(("posterior", context), lambda: self._posterior_now(context))

    def _posterior_now(self, context: int) -> tuple[Floats, Floats]:
        weight, target = (sums[context] for sums in self._sums())
        priors = self.prior_precision, self.prior_mean, self.noisiness, self.kappa, self.prior_effect
        given = b"".join(one.tobytes() for one in (weight, target, *(prior[context] for prior in priors)))
        if context not in self._known_posteriors or self._known_posteriors[context][0] != given:
            worst, self._condition = self._condition, 1.0
            posterior = self._posterior_from(context, weight, target)
            self._known_posteriors[context] = given, posterior, self._condition
            self._condition = worst
        _, posterior, condition = self._known_posteriors[context]
        self._condition = max(self._condition, condition)
        return posterior

    def _posterior_from(self, context: int, weight: Floats, target: Floats) -> tuple[Floats, Floats]:
        if self.n_features > 0:
            line, width = self._line(context)
            keep, norm = self._with_deviations(context, weight, width)
            own = self.kappa[context] / (self.noisiness[context] + self.kappa[context] * weight) * target
            return keep * line + own, norm
        prior, mean = self.prior_precision[context], self.prior_mean[context]
        return (target + prior * mean) / (weight + prior), np.sqrt(1.0 / (weight + prior))

    def _norm(self, inverse: Floats) -> Floats:
        square = np.einsum("ai,ij,aj->a", self.features, inverse, self.features)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    def _pending_now(self) -> Floats:
        """(J, A) decisions, those that are open as far as they are expected to be answered.

        `returned` knows in the end who was: an answer counts like any other, and who left the cut-off without one not.
        """
        counted = self.expected * self._kept(self.decided_at_reading)
        if self.learner != "thinned":
            is_learned = ~np.isnan(self.learned_at_reading)
            counted[: self.settled] = 0.0
            counted[is_learned] = self._kept(self.learned_at_reading[is_learned])
            for i, thin in self.settled_thin.items():  # `scaled`: with what they entered V
                counted[i] *= thin * thin
        return self._in_cells(self.contexts, self.arms, counted)

    def _renew(self) -> None:
        """What became of open decisions enters the norms only now; new ones did at once. All are valued anew."""
        self.pending_seen = self._pending_now()
        error = self.noisiness + self.kappa * self.pending_seen if self.deviates else 1.0
        self.pending_weight = self.pending_seen / error
        self.pending_precision = self.prior_precision.copy()
        self.stale = set(range(self.n_contexts))
        for j in range(self.n_contexts):
            # what is not known of the reward or of the return, whichever is more, each in units of its noise: that of a
            # chance is one half at most
            unknown = np.maximum(self._width(j), self.tau_error[j] / 0.5)
            self.stretched[j] = self._stretch(self._expected_of(j), unknown * self._still_for(j))
        self._plan_start()

    def _width(self, context: int) -> Floats:
        """The norms that the bonus takes."""
        if self.options.pending != "expected":
            return self._posterior(context)[1]
        return self._once(("expected norm", context), lambda: self._expected_norm(context))

    def _expected_norm(self, context: int) -> Floats:
        """The norm as if every open decision were answered with the probability of its return."""
        if self.n_features == 0:  # a cell is worked out whenever anything happens to it
            pending = self._once("pending", self._pending_now)
            return np.asarray(np.sqrt(1.0 / (pending[context] + self.prior_precision[context])))
        v = self.pending_precision[context] + (self.features.T * self.pending_weight[context]) @ self.features
        norm = self._norm(inverse_of(v))
        return self._with_deviations(context, self.pending_seen[context], norm)[1]

    def _sample(self, context: int, now: int) -> Floats:
        """<x, f_a> for an x ~ N(0, V^-1)."""
        n = self.n_features + (self.n_arms if self.deviates or self.n_features == 0 else 0)
        drawn = normals(self.seed, self.run, now, n, self.draw)
        if self.n_features == 0:
            return self._posterior(context)[1] * drawn
        # V^-1 = L L^T with L lower means V = U U^T with U = L^-T upper: the factor of V from its last row up
        upper = np.linalg.cholesky(self._v(context)[::-1, ::-1])[::-1, ::-1]
        of_line = np.asarray(self.features @ np.linalg.solve(upper.T, drawn[: self.n_features]))
        if not self.deviates:
            return of_line
        keep, _ = self._with_deviations(context, self._sums()[0][context], np.zeros(self.n_arms))
        return keep * of_line + np.sqrt(keep * self.kappa[context]) * drawn[self.n_features :]

    def _expected_of(self, context: int) -> float:
        """How many of this context, over the whole campaign."""
        return float(self._shares()[context]) * self.horizon

    def _still_for(self, context: int) -> Floats:
        """The root of the share of all who are expected whom each arm can still be for."""
        if not self._stretches:
            return np.ones(self.n_arms)
        costs = self.costs[context]
        left = max(self.budget_left + self._refunds(), 0.0)
        paid = np.divide(left, costs, out=np.full(self.n_arms, np.inf), where=costs > 0.0)
        return np.asarray(np.sqrt(np.minimum(max(self.horizon - len(self.arrivals), 0), paid) / self.horizon))

    def _stretch(self, n: float, norm: Floats) -> Floats:
        """Of the bonus of arms that are known as well as these norms say, for n of a context; in units of the noise as
        it may be while few answers tell.
        """
        if not self._stretches:
            return np.ones(norm.shape)
        return np.asarray(np.sqrt(np.log1p(n * norm**2 * self.noise / self.doubt / 2.3)))

    @property
    def _stretches(self) -> bool:
        """Whether the bonus is by how many are expected."""
        return self.options.bonus == "to_come" and "bonus" not in self.options.printed

    def _bonus(self, context: int, now: int, norm: Floats) -> float:
        """`norm` is of the answers alone: the bias is of rewards that are missing there."""
        options = self.options
        k, penalty = self.n_features, options.penalty
        mine = self.contexts == context
        printed = "bonus" in options.printed
        if self._stretches:
            return options.exploration * float(self.sigma[context])
        if options.bonus == "calibrated" and not printed:
            return options.exploration * float(self.sigma[context]) * math.sqrt(math.log(math.e + int(mine.sum())))
        n = now if printed else int(mine.sum())
        confidence = penalty if printed else options.delta
        growth = k * math.log((k * penalty + n) / (k * penalty)) if k else 0.0
        inside = 2 * math.log(1 / confidence) + growth
        f_t = math.sqrt(penalty) + math.sqrt(max(0.0, inside))
        waits_for_ever = options.screening == "none" and options.cutoff is None and np.isinf(self.deadlines).any()
        with_bias = "window" in options.printed or (options.learner == "thinned" and not waits_for_ever)
        inside_cutoff = mine & (np.arange(mine.size) >= self.settled)
        bias = float(norm[self.arms[inside_cutoff]].sum()) if with_bias else 0.0
        return options.exploration * (2 * f_t + bias)

    def _values(self, context: int, now: int, arms: Sequence[int], *, sampled: bool, special: bool) -> Floats:
        """weight * tau * index of the given arms; -inf for the others, and for all but one where the index chooses.

        `sampled`: for the one who is here, where Thompson sampling draws; all others are valued at their means.
        `special`: worked out now; everybody else is as when something was last new of them.
        """
        values, mean, norm = self._valued(context, now, arms, sampled=sampled, special=special)
        if self._doubts and self.mean_square > 0.0 and not self._thinks_well(context, arms, mean):
            return self._reconsidered(context, values, arms, mean, norm)
        return values

    def _valued(
        self, context: int, now: int, arms: Sequence[int], *, sampled: bool, special: bool
    ) -> tuple[Floats, Floats, Floats]:
        """The index; whoever is not drawn for is as in the last draw, and as when looked at a moment ago."""
        is_drawn = sampled and self.options.sampling == "thompson"
        what = "index", context, tuple(arms), special, self.draw if is_drawn else None
        return self._once(what, lambda: self._index(context, now, arms, sampled=sampled, special=special))

    def _index(
        self, context: int, now: int, arms: Sequence[int], *, sampled: bool, special: bool
    ) -> tuple[Floats, Floats, Floats]:
        """The values, before anybody thinks again; the mean and the norm of the answers."""
        mean, norm = self._posterior(context)
        to_come = self._expected_of(context) if special else float(self.to_come[context])
        if self.options.sampling != "thompson":
            scale = self._bonus(context, now, norm)
            extra = scale * self._width(context) * self.stretched[context]
        elif sampled:
            extra = self.options.exploration * self.sigma[context] * self._sample(context, now)
        else:
            extra = np.zeros(self.n_arms)
        index = mean + extra
        tau, weight = self.tau[context], self.problem.contexts[context].weight
        worth = weight * tau * index
        if self._stretches and self.options.sampling == "optimism":
            low, high = self.problem.reward_range  # what is declared bounds means
            bonus = np.hypot(tau * extra, self._of_return(context, self.stretched[context]) * np.maximum(mean, 0.0))
            worth = weight * (tau * np.clip(mean, low, high) + bonus)
        if self.options.sampling == "oracle":
            assert self._true_values is not None
            n_phases = self._true_values.shape[0]
            phase = min((now - 1) // math.ceil(self.problem.expected_rounds / n_phases), n_phases - 1)
            worth = self._true_values[phase, context]
        nothing = self._nothing(context, mean)
        if self.options.sampling != "oracle":  # what is true is told as what it is beyond nothing
            answers = self._answers(context) if special else float(self.answers[context])
            worth = self._beyond(worth, nothing, context, extra, to_come=to_come, answers=answers)
        values = np.full(self.n_arms, -math.inf)
        values[list(arms)] = worth[list(arms)]
        self._margin = min(self._margin, gap(values.tolist()))
        if "choice" in self.options.printed and arms:
            best = max(arms, key=lambda a: (index[a], -a))
            self._margin = min(self._margin, gap(index[list(arms)].tolist()))
            values[[a for a in range(self.n_arms) if a != best]] = -math.inf
        return values, mean, norm

    def _of_return(self, context: int, stretch: Floats) -> Floats:
        """By how much tau may be larger: as many of its standard errors as the bonus has of rewards, and at most 1."""
        more = self.options.exploration * stretch * self.tau_error[context]
        return np.asarray(np.minimum(more, 1.0 - self.tau[context]))

    def _thinks_well(self, context: int, arms: Sequence[int], mean: Floats) -> bool:
        """Whether some arm is thought to bring more than skipping, before its bonus."""
        worth, nothing = self.problem.contexts[context].weight * self.tau[context], self._nothing(context, mean)
        thought = [float(worth[a] * mean[a]) - nothing for a in arms]
        self._margin = min([self._margin, *map(abs, thought)])
        return any(one > 0.0 for one in thought)

    @property
    def _doubts(self) -> bool:
        """Whether what is thought to be worthless is looked at once more."""
        options = self.options
        is_unsure = options.bonus in ("calibrated", "to_come") and "bonus" not in options.printed
        return is_unsure and options.sampling not in ("thompson", "oracle") and options.pacing == "lp"

    def _value_anew(self, context: int, now: int) -> None:
        """Those of whom something is new; and who had nothing of worth whenever one of them is here."""
        if context in self.worthless:
            self.stale.add(context)
        goes_by_then = self._stretches or self.control is not None
        for j in sorted(self.stale) if goes_by_then else ():
            self.to_come[j], self.answers[j] = self._expected_of(j), self._answers(j)
        for j in self.stale:
            arms = sorted(self.accepted)
            values, mean, _ = self._valued(j, now, arms, sampled=False, special=False)
            steps, _ = hull(values, self.costs[j], [a for a in arms if values[a] > -math.inf], j)
            is_good = self.mean_square == 0.0 or self._thinks_well(j, arms, mean)
            if self._doubts and not (is_good and any(edge.slope >= self.floor for edge in steps)):
                self.worthless.add(j)
            else:
                self.worthless.discard(j)
        self.stale.clear()

    def _nothing(self, context: int, mean: Floats) -> float:
        """What skipping is worth in this context."""
        weight, baseline = self.problem.contexts[context].weight, self.problem.baseline
        if self.control is not None:
            return float(weight * self.tau[context, self.control] * mean[self.control])
        is_known = any(lesson.context == context for lesson in self.learned)  # else nothing can be compared with it
        is_known = is_known or bool(self.entered_trials[context].any())
        return float(weight * baseline[context]) if baseline is not None and is_known else 0.0  # type: ignore[operator]

    def _beyond(
        self, worth: Floats, nothing: float, context: int, extra: Floats, *, to_come: float, answers: float
    ) -> Floats:
        """What arms bring beyond skipping; less than nothing where the control may bring more than they may."""
        if self.control is None:
            return worth - nothing
        c, weight = self.control, self.problem.contexts[context].weight
        if self.options.sampling == "thompson":
            return np.asarray(worth - nothing - weight * self.tau[context, c] * extra[c])
        if self.options.prior == "cells" and self.mean_square == 0.0 and answers > 0.0:
            return worth - nothing  # before any reward, arms without features share all that is known with the control
        mean, norm = self._posterior(context)
        width = max(float(self._width(context)[c]), 1.0 / math.sqrt(1.0 + answers))
        stretch = float(self._stretch(to_come, np.array([width]))[0])
        own = self._bonus(context, self.now, norm) * stretch * width * self.tau[context, c]
        more = float(self._of_return(context, np.full(self.n_arms, stretch))[c]) if self._stretches else 0.0
        benefit = weight * math.hypot(own, more * max(float(mean[c]), 0.0))
        uplift = worth - nothing
        return np.where(uplift <= benefit, uplift - benefit, uplift)

    def _answers(self, context: int) -> float:
        """Of the control, those that are expected included."""
        known = self._pending_now() if self.options.pending == "expected" else self._sums()[0]
        return 0.0 if self.control is None else float(known[context, self.control])

    def _reconsidered(self, context: int, values: Floats, arms: Sequence[int], mean: Floats, norm: Floats) -> Floats:
        """No arm is thought to bring anything: the answers alone, with a noise that they may be too few to show.

        Before any of them, arms are around what skipping brings, as far as rewards are. The doubt grows with all who
        have arrived, and is no larger than those who are still to come are worth. It adds nothing to the index.
        """
        size = (self.features**2).sum(axis=1) if self.n_features else np.ones(self.n_arms)
        before = self.mean_square * (size / size.mean() if size.any() else np.ones(self.n_arms))
        precision = np.divide(1.0, before, out=np.full(self.n_arms, math.inf), where=before > 0.0)
        error = self.doubt * norm**2
        variance = 1.0 / (precision + 1.0 / error)
        n, last, horizon = self.arrivals.count(context), self.last_round[context], self.horizon
        to_come = n * (horizon - last) / last if last > 0 else float(horizon)
        doubts = np.minimum(math.log(math.e + n), np.log1p(to_come * norm**2))
        worth = self.problem.contexts[context].weight * self.tau[context]
        hope = variance / error * (worth * mean - self._nothing(context, mean))
        hope = hope + worth * self.options.exploration * np.sqrt(doubts * variance)
        self._margin = min([self._margin, *(abs(float(hope[a])) for a in arms)])
        hopeful = [a for a in arms if hope[a] > 0.0]
        found = np.full(self.n_arms, -math.inf)
        if not hopeful:
            return found
        highest = max(hopeful, key=lambda a: (hope[a], -a))
        valued = [a for a in hopeful if values[a] > -math.inf]
        if valued:
            best = float(values[valued].max())
            found[valued] = values[valued] - best + (hope[highest] if best <= 0.0 else min(best, hope[highest]))
        else:
            found[highest] = hope[highest]
        return found

    # --- stage 2, what is certain ------------------------------------------------------------------------------------

    def certified(self) -> tuple[dict[tuple[int, int], Ruling], float]:
        """Arms that, at every price that is possible, bring less at best than another one at worst; how near a tie was.

        As of now, after all arrivals so far.
        """
        seen, clock = len(self.arrivals), self._clock(len(self.arrivals))
        options, arms = self.options, sorted(self.accepted)
        found: dict[tuple[int, int], Ruling] = {}
        estimates = options.return_probability == "estimated" and (not self.silent or self.learner == "early")
        if options.prior == "fixed" or self.n_learned < FEWEST_ANSWERS:
            return found, math.inf
        if estimates and self._watched_to_the_end() < FEWEST_ANSWERS:
            return found, math.inf
        longest = float(self.deadlines.max())
        if self.until_end and longest < math.inf and self._clock_left(seen, clock) < longest:
            return found, math.inf
        certain = math.sqrt(2.0 * math.log(self.n_contexts * self.n_arms / options.delta))
        worth, width = np.zeros((self.n_contexts, self.n_arms)), np.zeros((self.n_contexts, self.n_arms))
        for j in range(self.n_contexts):
            mean, norm = self._posterior(j)
            stretched = self._bonus(j, seen, norm) * self._stretch(self._expected_of(j), norm)
            of_reward = np.maximum(certain * float(self.sigma[j]), stretched)
            weight = self.problem.contexts[j].weight
            bounded = np.clip(mean, *self.problem.reward_range)
            worth[j] = weight * self.tau[j] * bounded - self._nothing(j, mean)
            width[j] = weight * np.hypot(of_reward * self.tau[j] * norm, certain * self.tau_error[j] * bounded)
        today = np.array([self.prices.get(d, 0.0) for d in range(self.last_caps.size)])
        low, high = today, today
        is_open = self.bills is not None or any(np.unique(row).size > 1 for row in self.costs)
        if arms and options.pacing == "lp" and is_open:
            low, high = self._price_range(worth[:, arms] - width[:, arms], worth[:, arms] + width[:, arms], arms, seen)
            low, high = np.minimum(low, today), np.maximum(high, today)
        margin = math.inf
        for j in range(self.n_contexts):
            depth = self.depths[j]
            price, ends = float(today[depth]), (float(low[depth]), float(high[depth]))
            for a in arms:
                leads = {b: min(self._lead(j, worth[j], width[j], a, b, end) for end in ends) for b in arms}
                margin = min([margin, *(abs(lead) for lead in leads.values())])
                rival = max(leads, key=lambda b: (leads[b], -self.costs[j, b], -b))
                if leads[rival] > 0.0:
                    at_most = float(worth[j, a] - price * self.costs[j, a] + width[j, a])
                    at_least = float(worth[j, rival] - price * self.costs[j, rival] - width[j, rival])
                    found[j, a] = Ruling(seen, rival, at_most, at_least, price, *ends)
        return found, margin

    def _lead(self, context: int, worth: Floats, width: Floats, arm: int, rival: int, price: float) -> float:
        """By how much a rival at its worst is better than an arm at its best, beyond rounding."""
        at_most = float(worth[arm] - price * self.costs[context, arm] + width[arm])
        at_least = float(worth[rival] - price * self.costs[context, rival] - width[rival])
        return at_least - at_most - ALIKE * (abs(at_most) + abs(at_least))

    def _price_range(self, lower: Floats, upper: Floats, arms: list[int], seen: int) -> tuple[Floats, Floats]:
        """By depth, the lowest and the highest price of budget that values within bounds allow.

        Prices are those of a grid: at each of them, whatever may be best somewhere costs between so much and so much.
        """
        costs = self.costs[:, arms]
        slopes = np.divide(upper, costs, out=np.zeros(upper.shape), where=costs > 0.0)
        prices = max(0.0, float(slopes.max())) * np.arange(PRICES + 1) / PRICES
        worst, best = (bound[None] - prices[:, None, None] * costs for bound in (lower, upper))
        to_beat = np.maximum(worst.max(axis=2), 0.0)
        may_win = best >= to_beat[:, :, None]
        least = np.where(to_beat > 0.0, np.where(may_win, costs, math.inf).min(axis=2), 0.0)
        most = np.where(may_win, costs, 0.0).max(axis=2)
        shares = self._shares()
        if self.problem.shares is None:  # without smoothing
            shares = np.bincount(self.arrivals, minlength=self.n_contexts) / max(1, len(self.arrivals))
        small, large = self._cap_range(seen)
        low, high = np.zeros(small.size), np.zeros(small.size)
        depths = np.array(self.depths)
        own_least, own_most = (
            [(s * shares)[:, depths == d].sum(axis=1) for d in range(small.size)] for s in (least, most)
        )
        below_least = below_most = np.zeros(prices.size)
        for d in reversed(range(small.size)):
            spends_least, spends_most = own_least[d] + below_least, own_most[d] + below_most
            too_low, too_high = spends_least > large[d] * (1 + ALIKE), spends_most < small[d] * (1 - ALIKE)
            low[d] = prices[too_low][-1] if too_low[0] else 0.0
            high[d] = (prices[too_high][0] if too_high.any() else prices[-1]) if not too_high[0] else 0.0
            below_least, below_most = np.minimum(spends_least, small[d]), np.minimum(spends_most, large[d])
        return np.maximum.accumulate(low), np.maximum.accumulate(high)

    def _cap_range(self, seen: int) -> tuple[Floats, Floats]:
        """Between what may be spent per round by depth: on the whole, today and until the next reading."""
        problem, shares, dearest = self.problem, self._shares(), float(self.costs.max())
        certain = math.log(2.0 * self.n_contexts * self.n_arms / self.options.delta)

        def by_chance(n: float, mean: float) -> float:
            """Bernstein: n costs of at most the dearest, with this mean."""
            variance = min(mean, dearest / 2) * (dearest - min(mean, dearest / 2))
            jump = dearest * certain / 3
            return jump + math.sqrt(jump**2 + 2 * n * variance * certain)

        rounds_left = self.budget_left / self.last_caps[0] if self.last_caps[0] > 0.0 else 0.0
        wait = self.read_at - seen
        small, large = np.zeros(self.last_caps.size), np.zeros(self.last_caps.size)
        whole = problem.budget / self.horizon
        for d, today in enumerate(self.last_caps.tolist()):
            if d > 0:
                reserved = problem.budget * sum(share for _, share in problem.reserves[-d:]) / self.horizon
                above = sum(float(shares[j]) for j in range(self.n_contexts) if self.depths[j] < d)
                whole = min(whole, problem.budget / self.horizon - min(reserved, above * dearest))
            moved = by_chance(wait, today) / (rounds_left - wait) if rounds_left > wait else math.inf
            small[d], large[d] = max(0.0, min(today - moved, whole)), max(today + moved, whole)
        off = 0.0
        for d in reversed(range(small.size)) if problem.shares is None else ():
            off += by_chance(len(self.arrivals), float(large[d])) / max(1, len(self.arrivals))
            small[d], large[d] = max(0.0, small[d] - off), large[d] + off
        return small, large

    def _watched_to_the_end(self) -> int:
        """How many decisions were older than the longest deadline when the curves were last brought up to date."""
        end = min(float(self.ages[self.ages >= min(self.deadlines.max(), self.ages[-1])][0]), float(self.ages[-1]))
        return int((self.watches[-1][0] - self.made > end).sum()) if self.watches else 0

    @property
    def arms_in_play(self) -> int:
        """The race still has them all."""
        return self.n_arms if self.racing else len(self.accepted)

    def _playable(self, allowed: Sequence[int]) -> list[int]:
        """By the one who is here."""
        return sorted(self.accepted & set(allowed)) if len(allowed) < self.n_bought else sorted(self.accepted)

    # --- stage 2, the start ----------------------------------------------------------------------------------------

    def _plan_start(self) -> None:
        """How many tries of an arm are enough: twice the error of its mean is then what its cost has to bring."""
        if not self.start_open or self.mean_square == 0.0:
            return
        count, total, _ = self._tally()
        paid = float((count * self.costs).sum())
        worth = self.costs.mean(axis=0) * (abs(float(total.sum())) / paid if paid > 0.0 else 0.0)
        with np.errstate(divide="ignore"):
            self.enough = np.maximum(4.0 * self.doubt / worth**2, self.options.start_tries)

    def _first_try(self, context: int, allowed: Sequence[int]) -> int | None:
        """The arm that is tried, if any is: of those with the fewest tries the one with the fewest here."""
        if not self.start_open:
            return None
        arms = sorted(self.accepted)
        of_each = float(self.costs.mean(axis=0)[arms].sum())
        affordable = math.floor(self.options.start_share * self.problem.budget / of_each) if of_each > 0.0 else 0
        tries = np.bincount(self.arms, minlength=self.n_arms)
        found = [abs(float(tries[a] - self.enough[a])) for a in arms if self.enough[a] != self.options.start_tries]
        self._margin = min(self._margin, *found, math.inf)
        wanting = [a for a in arms if tries[a] < min(float(self.enough[a]), affordable)]
        if not wanting and self.mean_square > 0.0:
            self.start_open = False
        here = (self._pending_now() if self.options.pending == "expected" else self._sums()[0])[context]
        fewest = [a for a in wanting if a in allowed]
        fewest = [a for a in fewest if tries[a] == tries[fewest].min()]
        self._margin = min(self._margin, gap(here[fewest].tolist()))
        return min(fewest, key=lambda a: (here[a], a)) if fewest else None

    # --- stage 2, allocation ---------------------------------------------------------------------------------------

    def _rate(self, now: int) -> float:
        left, horizon = self.budget_left + self._refunds(), self.horizon
        if "rate" in self.options.printed:
            return left / (self.problem.budget if self.options.pacing == "coin" else now)
        if self.options.rate == "period" and self.problem.until is not None:
            clock, until = self._clock(now), self.problem.until
            length = until / self.options.periods
            ends = min(until, (math.floor(clock / length) + 1) * length)
            part = (ends - clock) / (until - clock) if clock < until else 1.0
            return max(0.0, left - self.problem.budget * (1.0 - ends / until)) / max(1.0, part * (horizon - now + 1))
        if self.options.rate == "period":
            rounds = max(1, math.ceil(horizon / self.options.periods))
            end = min(horizon, math.ceil(now / rounds) * rounds)
            for_later = self.problem.budget * (1.0 - end / horizon)
            return max(0.0, left - for_later) / (end - now + 1)
        lost = self.lost_rounds if self.until_end else 0
        return left / max(1, horizon - now + 1 - lost)

    def _refunds(self) -> float:
        return 0.0 if self.bills is None else self.bills.refunds()

    def _caps(self, now: int) -> Floats:
        """What contexts of each depth and more may spend together per round.

        Kept back from those of depth d and more is what is reserved for the others and not spent by them yet, but no
        more than those could spend at most.
        """
        problem, rate = self.problem, self._rate(now)
        caps = [rate]
        if not problem.reserves:
            return np.array(caps)
        charges, shares = np.array(self._charges()), self._shares()
        spent = [float(charges[self.contexts == j].sum()) for j in range(self.n_contexts)]
        for d in range(1, len(problem.reserves) + 1):
            above = [j for j in range(self.n_contexts) if self.depths[j] < d]
            reserved = problem.budget * sum(share for _, share in problem.reserves[-d:])
            unspent = max(0.0, reserved - sum(spent[j] for j in above))
            dearest = sum(float(shares[j] * self.costs[j].max()) for j in above)
            usable = dearest * (self.horizon - now + 1)
            left = problem.budget - float(charges.sum()) + self._refunds()
            caps.append(min(caps[-1], rate * max(0.0, 1.0 - min(unspent, usable) / left)))
        return np.array(caps)

    def _flip(self, probability: float, now: int) -> bool:
        if probability >= 1.0:
            return True
        if probability <= 0.0:
            return False
        draw = coin(self.seed, self.run, now)
        self._margin = min(self._margin, abs(draw - probability))
        return draw < probability

    def _shares(self) -> Floats:
        if self.problem.shares is not None:
            return self.problem.shares
        counts = np.bincount(self.arrivals, minlength=self.n_contexts)
        return np.asarray((counts + 1.0) / (len(self.arrivals) + self.n_contexts))

    def _allocate(self, context: int, allowed: Sequence[int], now: int) -> Toss:
        """LP_m: all edges of all contexts, steepest first, bought until the caps are used."""
        shares, floor = self._shares(), self.floor
        edges: list[Edge] = []
        self._value_anew(context, now)
        for j in range(self.n_contexts):
            arms = self._playable(allowed) if j == context else sorted(self.accepted)
            is_special = j == context and len(allowed) < self.n_bought
            values = self._values(j, now, arms, sampled=j == context, special=is_special)
            steps, margin = hull(values, self.costs[j], [a for a in arms if values[a] > -math.inf], j)
            edges.extend(edge for edge in steps if edge.slope >= floor)
            self._margin = min([self._margin, margin, *(abs(edge.slope - floor) for edge in steps if floor > 0.0)])
        self._margin = min(self._margin, gap(edge.slope for edge in edges))
        edges.sort(key=lambda edge: (-edge.slope, edge.context))
        slack, own_depth = self._once("caps", lambda: self._caps(now)).copy(), self.depths[context]
        self.last_caps = slack.copy()
        self.prices[own_depth] = floor
        current: int | None = None
        for edge in edges:
            depth = self.depths[edge.context]
            left = float(slack[: depth + 1].min())
            needed = float(shares[edge.context]) * edge.cost
            self._margin = min(self._margin, abs(needed - left) / left if left > 0.0 else math.inf)
            if edge.context == context and needed >= left and needed > 0.0:
                self.prices[own_depth] = edge.slope
                part = max(left / needed, 0.0)
                return Toss(edge.arm, current, 1.0 if part > WHOLE else part)
            bought = min(needed, left)
            slack[: depth + 1] -= bought
            if edge.context == context:
                current = edge.arm
            elif bought > 0.0 and slack[: own_depth + 1].min() <= 0.0:  # nothing is left for this context either
                self.prices[own_depth] = edge.slope
                return Toss(current, current, 1.0)
        return Toss(current, current, 1.0)

    def _best(self, context: int, allowed: Sequence[int], now: int) -> Toss:
        arms = self._playable(allowed)
        values = self._values(context, now, arms, sampled=True, special=True)
        playable = [a for a in arms if values[a] > -math.inf]
        if not playable:
            return Toss(None, None, 1.0)
        best = max(playable, key=lambda a: (values[a], -a))
        return Toss(best, None, 1.0 if self.options.pacing == "greedy" else min(1.0, self._rate(now)))

    def _odds(self, context: int, allowed: Sequence[int], now: int) -> dict[int | None, float]:
        """What the policy does, with which probability; with Thompson sampling, what its draws say together."""
        plan = self._allocate if self.options.pacing == "lp" else self._best
        n_draws = DRAWS if self.options.sampling == "thompson" else 1
        odds: dict[int | None, float] = {}
        prices = []
        self._worked_out = {}
        for self.draw in range(n_draws):
            toss = plan(context, allowed, now)
            prices.append(self.prices.get(self.depths[context], 0.0))
            for arm, part in ((toss.arm, toss.probability), (toss.otherwise, 1.0 - toss.probability)):
                odds[arm] = odds.get(arm, 0.0) + part / n_draws
        self._worked_out = None
        if self.options.pacing == "lp":
            self.prices[self.depths[context]] = sum(prices) / n_draws
        return {arm: part for arm, part in odds.items() if part > 0.0}

    def _one_of(self, context: int, odds: dict[int | None, float], now: int) -> int | None:
        """By the coin: the upper of two where the LP tosses it, and among draws arms in their order, then none."""
        order = sorted(odds, key=lambda arm: self.n_arms if arm is None else arm)
        if self.options.sampling != "thompson" and None not in odds:  # from the dearer of two to the cheaper
            order = sorted(odds, key=lambda arm: -float(self.costs[context, arm or 0]))
        reached = 0.0
        for arm in order:
            reached += odds[arm]
            if reached > WHOLE or self._flip(reached, now):
                return arm
        return order[-1]

    def _tried(
        self, context: int, odds: dict[int | None, float], arm: int | None, allowed: Sequence[int], now: int
    ) -> Wish:
        """With a small probability one of all options, each as likely; else what the policy wants."""
        share = self.options.explore
        if share > 0.0:
            options = [*allowed, None]
            mean_cost = sum(float(self.costs[context, a]) for a in allowed) / len(options)
            share = min(share, self._rate(now) / mean_cost if mean_cost > 0.0 else 1.0)
            odds = {one: (1.0 - share) * odds.get(one, 0.0) + share / len(options) for one in options}
            words = Philox(
                counter=np.array([now - 1, COIN, 1, 0], dtype=np.uint64),
                key=np.array([self.seed, self.run], dtype=np.uint64),
            ).random_raw(2)
            toss, which = (float(int(word) >> 11) * 2.0**-53 for word in words)
            self._margin = min(self._margin, abs(toss - share))
            if toss < share:
                arm = options[int(which * len(options))]
        return Wish(arm, self._margin, odds=odds)

    # --- one arrival -----------------------------------------------------------------------------------------------

    def decide(self, now: int, context: int, available: Sequence[int]) -> Wish:
        """Which arm this round, if any."""
        self.now = now
        self._deliver(now)
        if self.racing:
            self._race(now)
        self._tick(now)
        self._margin, self._condition = math.inf, 1.0
        self.arrivals.append(context)
        self.now = now
        costs = self.list_costs[context].tolist()
        can_pay = self._can_pay(costs)
        allowed = [a for a in available if can_pay[costs[a]] and a != self.control]
        if not allowed or now > self.horizon:
            return Wish(None, math.inf, odds={None: 1.0})
        if self.racing:
            self._margin = math.inf
            racer = self._next_racer(allowed)
            return self._tried(context, {racer: 1.0}, racer, allowed, now)
        first = self._first_try(context, allowed)
        if first is not None:
            cost, rate = float(self.costs[context, first]), self._rate(now)
            part = 1.0 if cost <= rate else rate / cost
            odds: dict[int | None, float] = {first: part, None: 1.0 - part} if part < 1.0 else {first: 1.0}
        else:
            self.last_round[context] = now
            odds = self._odds(context, allowed, now)
        wish = self._tried(context, odds, self._one_of(context, odds, now), allowed, now)
        # while one or two rewards are all that is known of the noise, lambda is tiny and V all but singular
        rounding = max(ROUNDING * self._condition, INHERITED * self._inherited)
        return dataclasses.replace(wish, near=max(NEAR, rounding))


@dataclass(frozen=True)
class Agreement:
    """How a run of the engine and the twin went."""

    rounds: int
    decisions: int
    near_ties: int  # rounds in which they differed, and rounding alone can be the reason
    ill_conditioned: int  # the same, where V was all but singular and rounding is larger than usual
    noiseless: int  # the same, while answers say nothing of the noise: what tells arms apart is then all rounding


def follow(options: PolicyOptions, scenario: Scenario, outcome: Outcome, *, seed: int) -> Agreement:
    """Go through a run of the engine; the twin, knowing the same past, must want the same in every round.

    Where both scores agree to 1e-9 rounding may decide either way: that round is counted, and the engine's choice kept.
    """
    problem = scenario.problem
    truth = make_truth(scenario, seed=seed, run=outcome.run)
    tape = new_tape(truth.world, truth.rounds)
    WORLD["record"](Block(tape), truth.block, seed, outcome.run, 1)
    twin = Twin(
        options,
        problem,
        features=truth.features,
        delays=scenario.delays,
        seed=seed,
        run=outcome.run,
        true_values=truth.counted,
        times=None if scenario.arrivals is None else truth.times,
        day=None if scenario.arrivals is None else scenario.arrivals.day,
    )
    log = outcome.log
    assert log is not None
    chosen = {int(round_): i for i, round_ in enumerate(log.round)}
    assert len(chosen) == log.round.size, "two decisions in one round"
    near_ties = ill_conditioned = noiseless = 0
    delays = Delays(tape.delay)
    course = dict(zip(outcome.rounds.tolist(), outcome.course.tolist(), strict=True))
    for round_ in range(1, truth.rounds + 1):
        context = int(tape.context[round_ - 1])
        there = tape.available[round_ - 1] if tape.available.shape[1] else np.ones(problem.n_arms)
        wish = twin.decide(round_, context, np.flatnonzero(there).tolist())
        if round_ in course:
            cutoff, arms_in_play = course[round_]
            assert cutoff == twin.cutoff or math.isclose(cutoff, twin.cutoff, rel_tol=1e-12), f"round {round_}"
            assert arms_in_play == twin.arms_in_play, f"round {round_}"
        at = chosen.get(round_)
        arm = None if at is None else int(log.arm[at])
        if arm is not None and arm == problem.control:
            arm = None  # a skip
        else:
            assert arm is not None or problem.control is None, f"round {round_}: whoever is skipped gets the control"
        if outcome.arrivals is not None:
            told, ours = float(outcome.arrivals.probability[round_ - 1]), wish.odds.get(arm, 0.0)
            assert int(outcome.arrivals.arm[round_ - 1]) == (-1 if arm is None else arm)
            assert math.isclose(told, ours, rel_tol=1e-6) or wish.margin < wish.near, f"round {round_}: {told} {ours}"
        if wish.arm != arm:
            assert wish.margin < wish.near, (
                f"round {round_}, context {context}: engine {arm}, twin {wish.arm} (margin {wish.margin:.2g}); "
                f"race ended {twin.race_ended}, accepted {sorted(twin.accepted)}, cut-off {twin.cutoff}"
            )
            near_ties += wish.margin < NEAR and not twin.noiseless
            ill_conditioned += wish.margin >= NEAR and not twin.noiseless
            noiseless += twin.noiseless
        if at is not None:
            arm = int(log.arm[at])
            noise = float(tape.noise[round_ - 1])
            assert scenario.rows is None or noise == tape.delay[round_ - 1]  # one draw picks both
            phase = min((round_ - 1) // math.ceil(problem.expected_rounds / scenario.phases), scenario.phases - 1)
            mean = float(truth.world.means[phase, context, arm])
            reward, delay = _drawn(scenario, mean, context, arm, noise, delays.at(round_))
            assert log.context[at] == context
            assert math.isclose(log.reward[at], reward, rel_tol=1e-12, abs_tol=1e-12)
            assert log.delay[at] == delay
            payment = float(tape.payment[round_ - 1]) if tape.payment.size else 0.0
            refunded_at = _refunded_at(scenario, round_, context, arm, reward, delay, payment)
            twin.note(round_, context, arm, float(log.reward[at]), float(log.delay[at]), refunded_at=refunded_at)
    _same_ending(twin, outcome)
    return Agreement(
        rounds=truth.rounds,
        decisions=log.round.size,
        near_ties=near_ties,
        ill_conditioned=ill_conditioned,
        noiseless=noiseless,
    )


class Delays:
    """Of every law, as the draws of a tape say: all rounds at once, when a law is first asked for."""

    def __init__(self, uniforms: Floats) -> None:
        self.uniforms, self._known = uniforms, dict[Law, list[float]]()

    def at(self, round_: int) -> Callable[[Law], float]:
        return lambda law: self._of(law)[round_ - 1]

    def _of(self, law: Law) -> list[float]:
        if law not in self._known:
            self._known[law] = law.sample(self.uniforms).tolist()
        return self._known[law]


def _drawn(
    scenario: Scenario, mean: float, context: int, arm: int, noise: float, delay_of: Callable[[Law], float]
) -> tuple[float, float]:
    """The reward and delay that the tape holds for a decision."""
    if scenario.rows is not None:
        cell = scenario.rows.cell(context, arm)
        reward, delay = cell[min(math.floor(noise * len(cell)), len(cell) - 1)].tolist()
        return reward, max(1.0, float(np.ceil(delay)))
    reward = mean
    if scenario.noise == "gaussian":
        reward = mean + scenario.noise_sd * noise
    elif scenario.noise == "bernoulli":
        reward = float(noise < mean)
    elif scenario.noise == "poisson":
        reward = max(0.0, float(stats.poisson.ppf(noise, mean)))
    law = scenario.delays[min(context, len(scenario.delays) - 1)][arm]
    delay = delay_of(law.given(reward) if isinstance(law, ByOutcome) else law)
    return reward, max(1.0, float(np.ceil(delay)))


def _refunded_at(
    scenario: Scenario, round_: int, context: int, arm: int, reward: float, delay: float, payment: float
) -> float:
    """The round in which what was reserved comes back; infinite where it is paid."""
    if scenario.paid == "always":
        return math.inf
    deadline = float(scenario.problem.deadlines[context])
    if delay > deadline or (reward == 0.0 and scenario.problem.feedback == "silent"):
        return round_ + math.floor(deadline) + 1 if math.isfinite(deadline) else math.inf
    is_paid = reward > 0.0 if isinstance(scenario.paid, str) else payment < scenario.paid[context][arm]
    return math.inf if is_paid else round_ + delay


def _same_ending(twin: Twin, outcome: Outcome) -> None:
    names = twin.problem.arm_names
    assert outcome.accepted == tuple(names[a] for a in sorted(twin.accepted))
    assert outcome.race_rounds == int(twin.in_race.sum())
    assert outcome.race_ended == twin.race_ended
    assert outcome.race_capped == twin.race_capped
    reserved = twin.list_costs[twin.contexts, twin.arms]
    assert math.isclose(outcome.race_spend, sum(reserved[twin.in_race].tolist()), abs_tol=1e-9)
    assert outcome.cutoff == twin.cutoff or math.isclose(outcome.cutoff, twin.cutoff, rel_tol=1e-12)
    twin.now = twin.problem.horizon
    if twin.problem.paid == "always":
        assert math.isclose(outcome.spend, twin.problem.budget - twin.budget_left, rel_tol=1e-12)
    else:  # as it turns out
        paid = np.isinf(twin.refunded_at)
        assert math.isclose(outcome.spend, reserved[paid].sum(), rel_tol=1e-12)
    assert outcome.spend <= twin.problem.budget or twin.problem.reserve < 1.0
    rulings, margin = twin.certified()
    if margin >= NEAR:
        contexts = twin.problem.context_names
        ours = {(contexts[j], names[a]): ruling for (j, a), ruling in rulings.items()}
        assert {(one.context, one.arm) for one in outcome.certificates} == set(ours)
        for one in outcome.certificates:
            ruling = ours[one.context, one.arm]
            assert (one.round, one.rival) == (ruling.round, names[ruling.rival])
            # with the rounding of the first priors, which rest on a single answer
            theirs = np.array([one.at_most, one.at_least, one.price])
            assert np.abs(theirs - [ruling.at_most, ruling.at_least, ruling.price]).max() < 3e-5 * np.abs(theirs).sum()
            for engine, own in ((one.price_low, ruling.price_low), (one.price_high, ruling.price_high)):
                assert math.isclose(engine, own, rel_tol=3e-4, abs_tol=3e-5), (one, ruling)
