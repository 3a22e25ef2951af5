"""True return probabilities, expected rewards and payments, and the oracle.

The oracle is the largest expected reward of a policy that knows the true means and delays; regret is measured to it. It
is the value of LP_m with the true values. Where arms are missing at random, LP_m has a term for every set of arms; its
dual has one price, and at a price the best available arm of a context is found by sorting. Where people are a sample of
a law, the value is an estimate: by the dual it is the price times the rate plus a mean over people, so its standard
error is that of this mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.delays import AnyLaw, ByOutcome, Law
from doral.numerics.elementary import expm1, log1p, weighted_sum
from doral.pacing import Pacer, solve
from doral.problem import Problem, reserve_depths
from doral.simulation.scenario.people import Drawn
from doral.simulation.scenario.rows import paid_shares, returned_rewards
from doral.simulation.scenario.scenario import Scenario

ORACLE_AGES = 16_384  # rounds: a known return probability is tabulated up to here, and constant beyond


def law_above(law: AnyLaw) -> Law:
    """The law of rewards above its threshold."""
    return law.above if isinstance(law, ByOutcome) else law


def law_below(law: AnyLaw) -> Law:
    """The law of rewards at or below its threshold."""
    return law.below if isinstance(law, ByOutcome) else law


def thresholds(scenario: Scenario) -> Floats:
    """(1 or J, A) what parts the rewards of the two laws; 0 where there is only one."""
    return np.array(
        [[law.threshold if isinstance(law, ByOutcome) else 0.0 for law in laws] for laws in scenario.delays]
    )


class DeadlineChances(NamedTuple):
    """Chances that an answer comes within the deadline, by context (or 1 row for all) and arm."""

    above: Floats  # of a reward above the threshold
    below: Floats  # of another; the same where the law does not depend on the reward
    threshold: Floats
    by_outcome: Flags  # where it does


def _deadline_chances(scenario: Scenario) -> DeadlineChances:
    return DeadlineChances(
        above=_by_deadline(scenario, law_above),
        below=_by_deadline(scenario, law_below),
        threshold=thresholds(scenario),
        by_outcome=np.array([[isinstance(law, ByOutcome) for law in laws] for laws in scenario.delays]),
    )


def _by_deadline(scenario: Scenario, pick: Callable[[AnyLaw], Law]) -> Floats:
    """(1 or J, A). A law is asked once for each deadline, however many contexts and arms share it."""
    deadlines: list[float] = scenario.problem.deadlines.tolist()
    rows = scenario.delays
    if len(rows) == 1 and len(set(deadlines)) == 1:
        deadlines = deadlines[:1]  # one context speaks for all
    elif len(rows) == 1:
        rows = rows * len(deadlines)
    known: dict[tuple[int, float], float] = {}

    def chance(law: Law, deadline: float) -> float:
        key = (id(law), deadline)
        if key not in known:
            known[key] = returned_by(law, deadline)
        return known[key]

    return np.array(
        [[chance(pick(law), deadline) for law in laws] for laws, deadline in zip(rows, deadlines, strict=True)]
    )


def returned_by(law: Law, age: float) -> float:
    """The chance that an answer is there at this age, where answers come after whole rounds, at least one."""
    if age < 1.0:
        return 0.0
    return float(law.return_probability(age if math.isinf(age) else float(math.floor(age))))


def _chances_of(scenario: Scenario, people: Drawn | None) -> DeadlineChances:
    """By context, or by person where those differ."""
    chances = scenario.once(_deadline_chances)
    if people is None or (len(chances.above) == 1 and people.speed.size == 0):
        return chances

    def of_person(by_context: Floats) -> Floats:
        found = by_context[np.minimum(people.classes, len(by_context) - 1)]
        return found if people.speed.size == 0 else -expm1(people.speed[:, None] * log1p(-found))

    return DeadlineChances(
        above=of_person(chances.above),
        below=of_person(chances.below),
        threshold=chances.threshold[np.minimum(people.classes, len(chances.threshold) - 1)],
        by_outcome=chances.by_outcome[np.minimum(people.classes, len(chances.by_outcome) - 1)],
    )


def expected_worth(scenario: Scenario, means: Floats, people: Drawn | None = None) -> Floats:
    """(phases, J or N, A) expected worth of what returns in time: E[reward * 1{by the deadline}], times the weight."""
    if scenario.rows is not None:
        return scenario.problem.weights[:, None] * scenario.once(_returned)[None]
    chances = _chances_of(scenario, people)
    counted = means * chances.above
    if chances.by_outcome.any():
        counted = np.where(chances.by_outcome, _counted_by_outcome(scenario, means, chances), counted)
    weights = scenario.problem.weights
    return (weights if people is None else weights[people.classes])[:, None] * counted


def _returned(scenario: Scenario) -> Floats:
    """(J, A) what observed rows bring in time."""
    assert scenario.rows is not None
    return returned_rewards(scenario.rows, scenario.problem.deadlines)


def _paid(scenario: Scenario) -> Floats:
    """(J, A) what is paid for them, of their list prices."""
    assert scenario.rows is not None
    return paid_shares(scenario.rows, scenario.problem, scenario.paid)


def _counted_by_outcome(scenario: Scenario, means: Floats, chances: DeadlineChances) -> Floats:
    """E[reward * 1{it returns within the deadline}] where the delay depends on the reward."""
    from scipy.special import ndtr, pdtr  # here: most scenarios need no SciPy, and it takes long to start

    sd, gap = scenario.noise_sd, means - chances.threshold
    if scenario.noise == "bernoulli":
        return means * np.where(chances.threshold < 1.0, chances.above, chances.below)
    if scenario.noise == "none" or (scenario.noise == "gaussian" and sd == 0.0):
        return means * np.where(gap > 0.0, chances.above, chances.below)
    if scenario.noise == "poisson":  # E[r 1{r > n}] = mean * P(r >= n) for whole n, and all of it for those below 0
        whole = np.floor(chances.threshold)
        counts = means * np.where(whole >= 1.0, 1.0 - pdtr(np.maximum(whole - 1.0, 0.0), means), 1.0)
        return np.asarray(counts * chances.above + (means - counts) * chances.below)
    # E[r 1{r > threshold}] of a normal r
    z = gap / sd
    bells = [math.exp(-0.5 * each**2) for each in z.ravel().tolist()]
    density = np.array(bells).reshape(z.shape) / math.sqrt(2.0 * math.pi)
    upper = means * ndtr(z) + sd * density
    worth: Floats = upper * chances.above + (means - upper) * chances.below
    return worth


def true_return_table(scenario: Scenario) -> Floats:
    """True return probabilities (1 or J, A, ages) for policies to which they are given; outcomes weigh equally."""
    longest = math.ceil(scenario.problem.until or scenario.problem.horizon)
    ages = np.arange(min(longest, ORACLE_AGES) + 1, dtype=np.float64)

    def curve(law: AnyLaw) -> Floats:
        if isinstance(law, ByOutcome):
            return 0.5 * (curve(law.above) + curve(law.below))
        chances = np.asarray(law.return_probability(ages))
        chances[0] = 0.0  # an answer takes at least one round
        return chances

    return np.array([[curve(law) for law in laws] for laws in scenario.delays])


def expected_payments(scenario: Scenario, means: Floats, people: Drawn | None = None) -> Floats | None:
    """(phases, J or N, A) the share of its list price that a decision costs on average; None where it is all of it."""
    if scenario.paid == "always":
        return None
    if scenario.rows is not None:
        return scenario.once(_paid)[None]
    chances, silent = _chances_of(scenario, people), scenario.problem.feedback == "silent"
    on_success = scenario.paid == "on_success"
    if scenario.noise == "bernoulli":  # rewards are 1 or 0
        of_one = np.where(chances.threshold < 1.0, chances.above, chances.below)
        of_none = np.where(chances.threshold < 0.0, chances.above, chances.below)
        heard = means * of_one + (0.0 if on_success or silent else 1.0) * (1.0 - means) * of_none
    else:
        above_threshold = _chance_above(scenario, means, chances.threshold)
        above_none = _chance_above(scenario, means, 0.0)
        heard = above_threshold * chances.above + (1.0 - above_threshold) * chances.below
        if on_success or (silent and scenario.noise == "poisson"):
            upper = np.minimum(above_threshold, above_none)  # above both
            heard = upper * chances.above + (above_none - upper) * chances.below
        elif silent and (scenario.noise == "none" or scenario.noise_sd == 0.0):  # else a reward is never 0
            heard = np.where(means != 0.0, heard, 0.0)
    return heard if on_success else heard * (np.array(scenario.paid) if people is None else people.paid)


def _chance_above(scenario: Scenario, means: Floats, level: Floats | float) -> Floats:
    """That a reward is above a level."""
    if scenario.noise == "poisson":
        from scipy.special import pdtr

        counts: Floats = 1.0 - np.where(np.asarray(level) < 0.0, 0.0, pdtr(np.maximum(np.floor(level), 0.0), means))
        return counts
    if scenario.noise == "none" or scenario.noise_sd == 0.0:
        return np.where(means > level, 1.0, 0.0)
    from scipy.special import ndtr

    chance: Floats = ndtr((means - level) / scenario.noise_sd)
    return chance


JACKKNIFE_GROUPS = 20  # for the standard error where reserves make several prices
_STEPS = 100  # of the search for a price
_TIGHT = 1e-9


class Oracle(NamedTuple):
    """The expected reward over a run, and its standard error."""

    reward: float
    error: float = 0.0  # 0 where people are given, or contexts alone


class _Lp(NamedTuple):
    """LP_m. Rows are contexts or people, phase after phase; columns are the arms that the budget is for."""

    values: Floats
    costs: Floats  # (1 or rows, arms)
    shares: Floats
    depths: Ints
    rate: float


def oracle_of_contexts(
    scenario: Scenario, counted: Floats, rounds: int, paid: Floats | None = None, shares: Floats | None = None
) -> Oracle:
    """Return the oracle's reward over `rounds`, from expected rewards in time (phases, J, A).

    Args:
        scenario: Where contexts arrive.
        counted: Expected worth of what returns within the deadline.
        rounds: How many arrive. Where the end is a date, the oracle knows this number.
        paid: (phases, J, A) expected share of the list price; None: all of it.
        shares: (J,) how often each context arrives in this run, where a calendar says so.
    """
    problem = scenario.problem
    values = counted.reshape(-1, problem.n_arms)  # the oracle knows all phases: they are more contexts
    bought = scenario.once(bought_arms)
    shares = scenario.once(_phase_shares) if shares is None else shares
    if scenario.availability is None and paid is None:
        pacer = scenario.once(_pacer) if problem.until is None else _pacer_at(scenario, problem.budget / rounds, shares)
        return Oracle(pacer.solve(values[:, bought]).value * rounds)
    lp = _Lp(
        values=values[:, bought],
        costs=_costs(scenario) * (1.0 if paid is None else paid.reshape(values.shape)[:, bought]),
        shares=shares,
        depths=np.tile(reserve_depths(problem), scenario.phases),
        rate=problem.budget / rounds,
    )
    return Oracle(_solved(scenario, lp)[0] * rounds)


def oracle_of_people(scenario: Scenario, people: Drawn, counted: Floats, rounds: int, paid: Floats | None) -> Oracle:
    """Return the oracle's reward over `rounds`, from expected rewards in time (phases, N, A) by person."""
    problem, (phases, n, n_arms) = scenario.problem, counted.shape
    bought = scenario.once(bought_arms)
    costs = problem.costs_by_context[:, bought]
    if len(costs) > 1:
        costs = np.tile(costs[people.classes], (phases, 1))
    if paid is not None:
        costs = costs * np.broadcast_to(paid, counted.shape).reshape(-1, n_arms)[:, bought]
    shares = people.shares / phases if len(people.shares) else np.full((phases, n), 1.0 / (phases * n))
    lp = _Lp(
        values=np.ascontiguousarray(counted.reshape(-1, n_arms)[:, bought]),
        costs=costs,
        shares=shares.ravel(),
        depths=np.tile(reserve_depths(problem)[people.classes], phases),
        rate=problem.budget / rounds,
    )
    value, terms = _solved(scenario, lp)
    error = 0.0
    if people.is_sample:
        error = _jackknife_error(scenario, lp, phases) if problem.reserves else _error(terms, shares)
    return Oracle(value * rounds, error * rounds)


def bought_arms(scenario: Scenario) -> Ints:
    """Return the numbers of the arms that the budget is for: all but the control."""
    return np.array([arm for arm in range(scenario.problem.n_arms) if arm != scenario.problem.control], dtype=np.int64)


def reserve_caps(problem: Problem, costs: Floats, shares: Floats, depths: Ints, rate: float) -> Floats:
    """Return the spend per round that each tier and those below may reach.

    Lower tiers cannot take what is reserved for higher ones, as far as those can use it.
    """
    caps, kept = [rate], 0.0
    for d, (_, share) in enumerate(reversed(problem.reserves), start=1):
        kept += share * rate
        above = depths < d
        dearest = costs.max() if len(costs) == 1 else costs.max(axis=1)[above]
        usable = float(shares[above].sum() * dearest) if len(costs) == 1 else weighted_sum(shares[above], dearest)
        caps.append(min(caps[-1], rate - min(kept, usable)))
    return np.array(caps)


def _costs(scenario: Scenario) -> Floats:
    """Return the list prices (1 or phases * J, arms that are bought)."""
    costs = scenario.problem.costs_by_context[:, scenario.once(bought_arms)]
    return costs if len(costs) == 1 else np.tile(costs, (scenario.phases, 1))


def _phase_shares(scenario: Scenario) -> Floats:
    return np.tile(scenario.true_shares / scenario.phases, scenario.phases)


def _pacer(scenario: Scenario) -> Pacer:
    return _pacer_at(scenario, scenario.problem.rate, scenario.once(_phase_shares))


def _pacer_at(scenario: Scenario, rate: float, shares: Floats) -> Pacer:
    problem, costs = scenario.problem, _costs(scenario)
    depths = np.tile(reserve_depths(problem), scenario.phases)
    caps = reserve_caps(problem, costs, shares, depths, rate)
    return Pacer(costs=costs, shares=shares, rate=rate, caps=caps, depths=depths, floor=problem.return_at_least)


def _solved(scenario: Scenario, lp: _Lp) -> tuple[float, Floats]:
    """Return the value of LP_m per round, and by row what it adds beyond the shadow price."""
    problem = scenario.problem
    if scenario.availability is not None:
        available = np.array(scenario.availability)[scenario.once(bought_arms)]
        return availability_dual(lp.values, lp.costs, lp.shares, lp.rate, available, problem.return_at_least)
    found = solve(
        values=lp.values,
        costs=lp.costs,
        shares=lp.shares,
        rate=lp.rate,
        caps=reserve_caps(problem, lp.costs, lp.shares, lp.depths, lp.rate),
        depths=lp.depths,
        floor=problem.return_at_least,
    )
    spend = weighted_sum(lp.shares, (found.play * lp.costs).sum(axis=1))
    price = found.price if spend >= lp.rate * (1.0 - _TIGHT) else 0.0
    terms: Floats = (found.play * (lp.values - price * lp.costs)).sum(axis=1)
    return found.value, terms


def availability_dual(
    values: Floats, costs: Floats, shares: Floats, rate: float, available: Floats, floor: float = 0.0
) -> tuple[float, Floats]:
    """Return the value per round of LP_m over random sets of arms, and its terms by row beyond the shadow price.

    Spend falls as the price rises; the price at which it equals the rate minimises the dual. A unit of budget that
    brings less than `floor` is not spent.

    Args:
        values: (rows, arms) expected worth of a use.
        costs: (1 or rows, arms).
        shares: (rows,) of arrivals.
        rate: Budget per round.
        available: (arms,) probability that an arm can be had.
        floor: Least return of a unit of budget.
    """

    def taken(price: float, of: Floats) -> Floats:
        worth = values - price * costs
        best_first = np.argsort(-worth, axis=1)
        worth, chance = np.take_along_axis(worth, best_first, axis=1), available[best_first]
        missing = np.ones_like(worth)  # probability that every better arm is missing
        np.cumprod(1.0 - chance[:, :-1], axis=1, out=missing[:, 1:])
        of = np.take_along_axis(np.broadcast_to(of, worth.shape), best_first, axis=1)
        total: Floats = np.where(worth > 0.0, missing * chance * of, 0.0).sum(axis=1)
        return total

    def spend(price: float) -> float:
        return weighted_sum(shares, taken(price, costs))

    if spend(floor) <= rate:
        terms = taken(floor, values)
        return weighted_sum(shares, terms), terms
    per_cost = np.divide(values, costs, out=np.zeros(values.shape), where=costs > 0.0)
    low, high = floor, float(per_cost.max())
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if spend(middle) > rate:
            low = middle
        else:
            high = middle
    terms = taken(high, values - high * costs)
    return high * rate + weighted_sum(shares, terms), terms


def _error(terms: Floats, shares: Floats) -> float:
    """Return the standard error of a weighted mean over people, each of which may arrive in every phase."""
    phases, n = shares.shape
    weights, by_phase = shares * phases, terms.reshape(phases, n)
    per_person = weights * (by_phase - (weights * by_phase).sum(axis=1, keepdims=True))
    return math.sqrt(float((per_person.mean(axis=0) ** 2).sum()))


def _jackknife_error(scenario: Scenario, lp: _Lp, phases: int) -> float:
    """Return the standard error by the grouped jackknife."""
    n = lp.shares.size // phases
    groups = min(JACKKNIFE_GROUPS, n)
    values = []
    for group in range(groups):
        rows = np.flatnonzero(np.arange(n) % groups != group)
        chosen = (np.arange(phases)[:, None] * n + rows).ravel()
        shares = lp.shares[chosen]
        costs = lp.costs if len(lp.costs) == 1 else lp.costs[chosen]
        own = lp._replace(values=lp.values[chosen], costs=costs, shares=shares / shares.sum(), depths=lp.depths[chosen])
        values.append(_solved(scenario, own)[0])
    return float(np.std(values) * math.sqrt(groups - 1.0))
