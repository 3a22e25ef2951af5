"""Rivals in plain Python: `a/b`, `explore-then-lp`, `beta-ts-lp`, `status-quo`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.errors import InvalidValue
from doral.numerics.elementary import exp
from doral.prediction.python_policy import Answer, Arrival
from doral.problem import MAX_ARMS, MAX_CONTEXTS, Problem
from doral.simulation.rivals.trials import Plan, Settings, Trials, Uniform, list_costs, spread_evenly


@dataclass(frozen=True, kw_only=True)
class ABSettings(Settings):
    """`explore`: the share of the horizon that the test takes."""

    explore: float = 0.2


class AB:
    """Uniform over the arms, then the arm that has earned the most per decision of the test, at list prices.

    Late answers to decisions of the test still count. Of arms that cost differently the winner is the one that earns
    most when a coin spreads the budget over all arrivals. Where the problem has a baseline, what counts is what an arm
    earns beyond it, and nothing is done where that is none.
    """

    def __init__(self, problem: Problem, seed: int, settings: ABSettings) -> None:
        self._draws = np.random.default_rng(seed)
        self._uniform = Uniform(problem, self._draws)
        self._last_test = int(settings.explore * problem.expected_rounds)
        self._costs = list_costs(problem)
        self._deadlines: list[float] = problem.deadlines.tolist()
        self._tried = np.zeros((problem.n_contexts, problem.n_arms))
        self._earned = np.zeros_like(self._tried)
        self._per_decision: dict[int, list[float]] = {}  # by context, until an answer changes it
        self._problem, self._asks_for_uplift = problem, problem.baseline is not None

    def decide(self, arrival: Arrival) -> int | None:
        if arrival.round <= self._last_test:
            arm = self._uniform.choose(arrival)
            given = self._problem.control if arm is None else arm
            if given is not None:
                self._tried[arrival.context, given] += 1.0
                self._per_decision.pop(arrival.context, None)
            return arm
        if not arrival.available:
            return None
        earned, costs = self._earned_in(arrival.context), self._costs[arrival.context]
        best, most, chance = -1, -math.inf, 0.0
        for arm in arrival.available:  # in plain numbers: it is asked in every round
            affordable = spread_evenly(arrival, costs[arm])
            if (value := earned[arm] * affordable) > most:
                best, most, chance = arm, value, affordable
        is_played = self._draws.random() < chance and not (self._asks_for_uplift and earned[best] <= 0.0)
        return best if is_played else None

    def _earned_in(self, context: int) -> list[float]:
        if context not in self._per_decision:
            self._per_decision[context] = self._uplifts(context).tolist()
        return self._per_decision[context]

    def _uplifts(self, context: int) -> Floats:
        """What each arm has earned per decision of the test, beyond what was or would have been earned by skipping."""
        earned = self._earned[context] / np.maximum(self._tried[context], 1.0)
        if self._problem.control is not None:
            return np.asarray(earned - earned[self._problem.control])
        known = self._problem.baseline
        return earned if known is None or isinstance(known, str) else np.asarray(earned - known[context])

    def observe(self, answer: Answer) -> None:
        if answer.decided <= self._last_test and answer.delay <= self._deadlines[answer.context]:
            self._earned[answer.context, answer.arm] += answer.reward
            self._per_decision.pop(answer.context, None)


@dataclass(frozen=True, kw_only=True)
class ExploreThenLPSettings(Settings):
    """`explore`: the share of the horizon, and so of the budget, that goes to exploration."""

    explore: float = 0.1


class ExploreThenLP:
    """Means of cells follow the answers; a cell without any has the mean of all."""

    def __init__(self, problem: Problem, seed: int, settings: ExploreThenLPSettings) -> None:
        self._draws = np.random.default_rng(seed)
        self._uniform = Uniform(problem, self._draws)
        self._last_exploring = int(settings.explore * problem.expected_rounds)
        self._weights: Floats = problem.weights[:, None]
        self._trials, self._plan = Trials(problem), Plan(problem)

    def decide(self, arrival: Arrival) -> int | None:
        is_due = self._plan.is_due(arrival)  # who arrives is counted while exploring, too
        if arrival.round <= self._last_exploring:
            arm = self._uniform.choose(arrival)
        else:
            if is_due:
                self._plan.make(self._values(arrival.time), self._trials.costs(arrival.time), arrival)
            arm = self._plan.choose(arrival, self._draws.random())
        self._trials.decide(arrival.time, arrival.context, arm)
        return arm

    def observe(self, answer: Answer) -> None:
        self._trials.observe(answer)

    def _values(self, now: float) -> Floats:
        """What a decision has brought, with the mean of all as one more decision; all alike while nothing has come."""
        earned, tried = self._trials.rewards, self._trials.exposure(now)
        if not earned.any():
            return self._weights * self._draws.random(tried.shape)
        of_all = earned.sum() / max(1.0, float(tried.sum()))
        values: Floats = self._weights * (earned + of_all) / (tried + 1.0)
        return values


_SWEEPS = 4  # of Newton's steps, from where the last fit ended
_LONGEST_STEP = 1.0
_PRECISION = 1.0  # of the prior of an effect, in logits
_FIRST_SPREAD = 0.1  # of cells around the main effects, as a share of p (1 - p), before anything is known
_STRENGTHS = (1.0, 1e4)  # of the prior of a cell, in trials


class MainEffects:
    """logit p_ja = mu + alpha_j + beta_a, and a Beta prior around it whose strength is learned from the cells.

    Cells scatter around the main effects by more than chance: the excess of Pearson's statistic over its degrees of
    freedom gives the correlation 1 / (strength + 1) within a cell, as in the beta-binomial law. It is taken one
    standard deviation too high: to believe in the main effects while cells differ is the dearer mistake.
    """

    def __init__(self, n_contexts: int, n_arms: int) -> None:
        self._level = 0.0
        self._contexts = np.zeros((n_contexts, 1))
        self._arms = np.zeros((1, n_arms))
        self._contexts_variance, self._arms_variance = np.ones((n_contexts, 1)), np.ones((1, n_arms))
        self.strength = 1.0 / _FIRST_SPREAD - 1.0
        self.rates = np.full((n_contexts, n_arms), 0.5)

    def fit(self, successes: Floats, trials: Floats) -> None:
        """Go on from the last fit."""
        for _ in range(_SWEEPS):
            missing, weight = self._residual(successes, trials)
            self._level += float(_step(missing.sum() + 0.5 - self._mean_rate(), weight.sum() + 0.25))
            missing, weight = self._residual(successes, trials)
            self._contexts += _step(
                missing.sum(axis=1, keepdims=True) - _PRECISION * self._contexts,
                weight.sum(axis=1, keepdims=True) + _PRECISION,
            )
            missing, weight = self._residual(successes, trials)
            self._arms += _step(
                missing.sum(axis=0, keepdims=True) - _PRECISION * self._arms,
                weight.sum(axis=0, keepdims=True) + _PRECISION,
            )
        missing, weight = self._residual(successes, trials)
        self._contexts_variance = 1.0 / (weight.sum(axis=1, keepdims=True) + _PRECISION)
        self._arms_variance = 1.0 / (weight.sum(axis=0, keepdims=True) + _PRECISION)
        # What a cell has not decided itself about the effects that it is measured by: 1 less its leverage.
        free = (1.0 - weight * self._contexts_variance) * (1.0 - weight * self._arms_variance)
        scatter = np.divide(missing**2, weight, out=np.zeros_like(weight), where=weight > 0.0).sum()
        degrees = float(free.sum())
        chance = max(1.0, np.sqrt(2.0 * degrees))
        excess = max(0.0, float(scatter) - degrees) + chance
        spread = excess / (float((free * np.maximum(trials - 1.0, 0.0)).sum()) + chance / _FIRST_SPREAD)
        low, high = _STRENGTHS
        self.strength = min(max(1.0 / min(spread, 1.0) - 1.0, low), high)

    def draw(self, draws: np.random.Generator, width: float) -> Floats:
        """Rates with each effect drawn around its estimate, as far as it is unknown."""
        contexts, arms = (
            width * draws.standard_normal(unknown.shape) * np.sqrt(unknown)
            for unknown in (self._contexts_variance, self._arms_variance)
        )
        return _expit(self._level + self._contexts + contexts + self._arms + arms)

    def _mean_rate(self) -> float:
        return float(_expit(np.array(self._level)))

    def _residual(self, successes: Floats, trials: Floats) -> tuple[Floats, Floats]:
        """What the rates leave unexplained, and its variance if chance is all there is."""
        self.rates = _expit(self._level + self._contexts + self._arms)
        return successes - trials * self.rates, trials * self.rates * (1.0 - self.rates)


def _expit(logits: Floats) -> Floats:
    rates: Floats = 1.0 / (1.0 + exp(-logits))
    return rates


def _step(gradient: Floats, curvature: Floats) -> Floats:
    step: Floats = np.clip(gradient / curvature, -_LONGEST_STEP, _LONGEST_STEP)
    return step


_BELIEF_IN_RETURNS = 10.0  # decisions for which the return rate of an arm stands in that of each of its contexts
_LEAST_DISPERSION = 1e-4


@dataclass(frozen=True, kw_only=True)
class BetaTSLPSettings(Settings):
    """`explore`: the share of the budget that is spent uniformly; `width` of draws around the mean: 1 is Thompson's."""

    explore: float = 0.02
    width: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.finite_number("width", self.width, at_least=0)


class BetaTSLP:
    """A Beta posterior per context and arm.

    With silent feedback, it is about what comes in time per decision, and an open decision is a fraction of a trial.
    With explicit feedback, it is about answers, and times the chance of one in time. Rewards are scaled into [0, 1]
    by the range seen; where they scatter less than zeros and ones would, a trial counts for as many as it is worth.
    """

    def __init__(self, problem: Problem, seed: int, settings: BetaTSLPSettings) -> None:
        self._draws = np.random.default_rng(seed)
        self._uniform = Uniform(problem, self._draws)
        self._explore, self._width = settings.explore, settings.width
        self._is_silent = problem.feedback == "silent"
        self._weights: Floats = problem.weights[:, None]
        self._trials, self._plan = Trials(problem), Plan(problem)
        self._prior = MainEffects(problem.n_contexts, problem.n_arms)

    def decide(self, arrival: Arrival) -> int | None:
        if self._plan.is_due(arrival):
            self._plan.make(self._values(arrival.time), self._trials.costs(arrival.time), arrival)
        arm = self._uniform.choose(arrival, self._explore)
        if arm is None:
            arm = self._plan.choose(arrival, self._draws.random())
        self._trials.decide(arrival.time, arrival.context, arm)
        return arm

    def observe(self, answer: Answer) -> None:
        self._trials.observe(answer)

    def _values(self, now: float) -> Floats:
        """A draw of what a decision is worth."""
        known, exposed = self._trials, self._trials.exposure(now)
        tried = exposed if self._is_silent else known.answers
        low, size = known.lowest, (known.highest - known.lowest) or 1.0
        successes = np.clip((known.rewards - low * tried) / size, 0.0, tried)
        scale = _dispersion(known.squares, known.rewards, tried, successes, size)
        successes, tried = successes / scale, tried / scale
        self._prior.fit(successes, tried)
        rates, strength = self._prior.draw(self._draws, self._width), self._prior.strength
        yes = strength * rates + successes
        no = strength * (1.0 - rates) + tried - successes
        mean = yes / (yes + no)
        drawn = low + size * (mean + self._width * (self._draws.beta(yes, no) - mean))
        chance = 1.0 if self._is_silent else _return_chance(known.answers, exposed)
        values: Floats = self._weights * chance * drawn
        return values


def _dispersion(squares: Floats, sums: Floats, tried: Floats, successes: Floats, size: float) -> float:
    """The variance within cells over that of zeros and ones with the same means: 1 for those, less for others."""
    some = np.maximum(tried, 1e-12)
    within = float(np.maximum(squares - sums**2 / some, 0.0).sum()) / size**2
    binary = float((successes * (1.0 - successes / some)).sum())
    return min(1.0, max((within + 1.0) / (binary + 1.0), _LEAST_DISPERSION))


def _return_chance(answers: Floats, exposed: Floats) -> Floats:
    """The chance of an answer in time: that of the cell, shrunk to the arm's, and this to that of all."""
    of_all = (answers.sum() + 1.0) / (exposed.sum() + 1.0)
    of_arm = (answers.sum(axis=0) + of_all * _BELIEF_IN_RETURNS) / (exposed.sum(axis=0) + _BELIEF_IN_RETURNS)
    return np.minimum(1.0, (answers + of_arm * _BELIEF_IN_RETURNS) / (exposed + _BELIEF_IN_RETURNS))


_ROUNDING = 1e-9  # by which chances may exceed 1 in sum


@dataclass(frozen=True, kw_only=True)
class StatusQuoSettings(Settings):
    """What is done: `shares` or `chances`; with neither, all arms alike, as long as the budget lasts.

    `shares`: how often each arm is used, in the order of the problem; a coin makes the budget last. `chances`: by
    context, with which chance each arm is given to an arrival, as a log has it; the rest get nothing, and nothing
    paces it.
    """

    shares: tuple[float, ...] | None = None
    chances: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        if self.shares is not None and self.chances is not None:
            raise InvalidValue("chances", self.chances, "give shares of arms or chances by context, not both")
        if self.shares is not None:
            shares = _numbers("shares", self.shares)
            if sum(shares) <= 0.0:
                raise InvalidValue("shares", self.shares, "at least one must be above 0")
            object.__setattr__(self, "shares", shares)
        if self.chances is not None:
            rows = _check.items("chances", self.chances, what="rows of chances, one per context", at_most=MAX_CONTEXTS)
            table = tuple(_numbers("chances", row) for row in rows)
            for row in table:
                if sum(row) > 1.0 + _ROUNDING:
                    raise InvalidValue("chances", row, "must sum to at most 1 in every context")
            object.__setattr__(self, "chances", table)


def _numbers(field: str, given: object) -> tuple[float, ...]:
    some = _check.items(field, given, what="numbers", at_most=MAX_ARMS)
    return tuple(_check.finite_number(field, each, at_least=0) for each in some)


class StatusQuo:
    """An arm drawn by its share among those that can be had, by a coin that makes the budget last at list prices.

    Or by its chance in the context, if it can be had.
    """

    def __init__(self, problem: Problem, seed: int, settings: StatusQuoSettings) -> None:
        shares = settings.shares if settings.shares is not None else (1.0,) * problem.n_arms
        if len(shares) != problem.n_arms:
            raise InvalidValue("number of shares", len(shares), f"must be one per arm, {problem.n_arms}")
        self._chances = settings.chances
        if self._chances is not None:
            sizes = (len(self._chances), *{len(row) for row in self._chances})
            if sizes != (problem.n_contexts, problem.n_arms):
                remedy = f"must be {problem.n_contexts} rows, one per context, of {problem.n_arms}, one per arm"
                raise InvalidValue("shape of chances", sizes, remedy)
        self._shares, self._costs = shares, list_costs(problem)
        self._draws = np.random.default_rng(seed)

    def decide(self, arrival: Arrival) -> int | None:
        if self._chances is not None:
            return self._by_chance(self._chances[arrival.context], arrival)
        total = sum(self._shares[arm] for arm in arrival.available)
        if total <= 0.0:
            return None
        costs = self._costs[arrival.context]
        mean_cost = sum(self._shares[arm] * costs[arm] for arm in arrival.available) / total
        coin, chance = self._draws.random(), spread_evenly(arrival, mean_cost)
        if coin >= chance:
            return None
        left = total * coin / chance  # what is below the chance is uniform again
        for arm in arrival.available:
            left -= self._shares[arm]
            if left < 0.0:
                return arm
        return arrival.available[-1]

    def _by_chance(self, chances: tuple[float, ...], arrival: Arrival) -> int | None:
        left = self._draws.random()
        for arm, chance in enumerate(chances):
            left -= chance
            if left < 0.0:
                return arm if arm in arrival.available else None
        return None

    def observe(self, answer: Answer) -> None:
        """Nothing is learned."""
