"""True return probabilities: by the deadline, for what a reward is expected to count, and by age."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats
from doral.delays import AnyLaw, ByOutcome, Law
from doral.numerics.elementary import expm1, log1p
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
