"""A scenario in one run, as arrays: its drawn parameters, its laws, and the clairvoyant that knows them all."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from doral._arrays import Floats
from doral._jit import jit
from doral._philox import PARAMETERS, philox, to_uniform
from doral.delays import AnyLaw, ByOutcome, Law
from doral.pacing import solve
from doral.problem import Problem, reserve_depths
from doral.simulation.scenario import Scenario
from doral.simulation.tape import NOISE_BERNOULLI, NOISE_GAUSSIAN, NOISE_NONE, Laws, World

_NOISE = {"none": NOISE_NONE, "gaussian": NOISE_GAUSSIAN, "bernoulli": NOISE_BERNOULLI}
_THETA, _FEATURES = 0, 1  # lanes of the parameter draws
ORACLE_AGES = 16_384  # rounds: a known return probability is tabulated up to here, and constant beyond


@dataclass(frozen=True)
class Truth:
    """One run of a scenario."""

    world: World
    features: Floats  # (A, k)
    counted: Floats  # (phases, J, A) expected worth of what returns within the deadline
    clairvoyant: float  # U*: expected reward of the best policy that knows the truth, over the horizon


@jit
def _fill_uniforms(out: Floats, seed: np.uint64, run: np.uint64, lane: int) -> None:
    for i in range(out.size):
        word, _, _, _ = philox(seed, run, np.uint64(i), np.uint64(PARAMETERS), np.uint64(lane))
        out[i] = to_uniform(word)


def _uniforms(shape: tuple[int, int], seed: int, run: int, lane: int) -> Floats:
    out = np.zeros(shape[0] * shape[1])
    _fill_uniforms(out, np.uint64(seed), np.uint64(run), lane)
    return out.reshape(shape)


def _compiled_laws(scenario: Scenario) -> Laws:
    rows = len(scenario.delays)
    shape = (2, rows, scenario.problem.n_arms)
    kind, start, stop = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    a, b, never = (np.zeros(shape) for _ in range(3))
    threshold = np.zeros(shape[1:])
    tables: list[Floats] = []
    size = 0
    for row, laws in enumerate(scenario.delays):
        for arm, law in enumerate(laws):
            pair = (law.below, law.above) if isinstance(law, ByOutcome) else (law, law)
            threshold[row, arm] = law.threshold if isinstance(law, ByOutcome) else 0.0
            for outcome, one in enumerate(pair):
                code = one.encode()
                at = (outcome, row, arm)
                kind[at], a[at], b[at], never[at] = code.kind, code.a, code.b, code.never
                start[at], stop[at] = size, size + code.values.size
                tables.append(code.values)
                size += code.values.size
    return Laws(kind, a, b, never, start, stop, np.concatenate(tables), threshold)


def _counted(scenario: Scenario, law: AnyLaw, mean: float, deadline: float) -> float:
    """E[reward * 1{it returns within the deadline}]."""
    if isinstance(law, Law):
        return mean * float(law.return_probability(deadline))
    above, below = (float(one.return_probability(deadline)) for one in (law.above, law.below))
    sd, gap = scenario.noise_sd, mean - law.threshold
    if scenario.noise == "bernoulli":
        return mean * (above if law.threshold < 1.0 else below)
    if scenario.noise == "none" or sd == 0.0:
        return mean * (above if gap > 0.0 else below)
    # E[r 1{r > threshold}] of a normal r
    density = math.exp(-0.5 * (gap / sd) ** 2) / math.sqrt(2.0 * math.pi)
    upper = mean * float(ndtr(gap / sd)) + sd * density
    return upper * above + (mean - upper) * below


def _counted_table(scenario: Scenario, means: Floats) -> Floats:
    """(J, A) expected worth of what returns in time."""
    problem = scenario.problem
    laws = scenario.delays * (problem.n_contexts if len(scenario.delays) == 1 else 1)
    counted = [
        [_counted(scenario, law, float(mean), deadline) for law, mean in zip(row, row_means, strict=True)]
        for row, row_means, deadline in zip(laws, means, problem.deadlines.tolist(), strict=True)
    ]
    return problem.weights[:, None] * np.array(counted)


def _means(scenario: Scenario, features: Floats, *, seed: int, run: int) -> Floats:
    """(phases, J, A) expected rewards."""
    n_contexts, n_features = scenario.problem.n_contexts, scenario.problem.n_features
    if scenario.means is not None:
        return np.array([np.roll(np.array(scenario.means), -phase, axis=0) for phase in range(scenario.phases)])
    if scenario.theta is not None:
        theta = np.array([np.roll(np.array(scenario.theta), -phase, axis=0) for phase in range(scenario.phases)])
    else:
        drawn = _uniforms((scenario.phases * n_contexts, n_features), seed, run, _THETA)
        theta = drawn.reshape(scenario.phases, n_contexts, n_features)
    return (theta[:, :, None, :] * features[None, None, :, :]).sum(axis=3)


def clairvoyant_rate(*, values: Floats, costs: Floats, shares: Floats, rate: float, available: Floats | None) -> float:
    """The value of LP_m per round with true values; with random availability, the same LP over available sets.

    With each arm independently available, the LP has a term per set of arms. Its dual does not: it is the minimum over
    one price of a convex function, where a context's best available arm at that price is found by sorting.
    """
    if available is None:
        return solve(values=values, costs=costs, shares=shares, rate=rate).value

    def dual(price: float) -> float:
        total = price * rate
        for share, row in zip(shares, values, strict=True):
            worth = row - price * costs
            missing = 1.0  # probability that every better arm is missing
            for arm in np.argsort(-worth):
                if worth[arm] <= 0.0:
                    break
                total += share * missing * available[arm] * worth[arm]
                missing *= 1.0 - available[arm]
        return total

    low, high = 0.0, float(max(0.0, (values / costs).max()))
    for _ in range(200):  # ternary search on a convex function, to the last bit
        third = (high - low) / 3.0
        if dual(low + third) <= dual(high - third):
            high -= third
        else:
            low += third
    return min(dual(0.0), dual(low), dual(high))


def _rate_with_reserves(problem: Problem, counted: Floats, shares: Floats) -> float:
    """LP_m per round where lower tiers cannot take what is reserved for higher ones, as far as those can use it."""
    n_phases = counted.shape[0]
    depths = np.tile(reserve_depths(problem), n_phases)
    shares = np.tile(shares / n_phases, n_phases)
    caps = [problem.rate]
    kept = 0.0
    for d, (_, share) in enumerate(reversed(problem.reserves), start=1):
        kept += share * problem.rate
        usable = float(shares[depths < d].sum() * problem.costs.max())
        caps.append(min(caps[-1], problem.rate - min(kept, usable)))
    allocation = solve(
        values=counted.reshape(-1, problem.n_arms),
        costs=problem.costs,
        shares=shares,
        rate=problem.rate,
        caps=np.array(caps),
        depths=depths,
    )
    return allocation.value


def make_truth(scenario: Scenario, *, seed: int, run: int) -> Truth:
    """Draw the parameters of one run."""
    problem = scenario.problem
    features = problem.features
    if scenario.features == "drawn":
        features = _uniforms(features.shape, seed, run, _FEATURES)
    means = _means(scenario, features, seed=seed, run=run)
    counted = np.array([_counted_table(scenario, phase) for phase in means])
    available = None if scenario.availability is None else np.array(scenario.availability)
    if problem.reserves:
        best = _rate_with_reserves(problem, counted, scenario.true_shares)
    else:  # phases are just more contexts to somebody who knows them all
        best = clairvoyant_rate(
            values=counted.reshape(-1, problem.n_arms),
            costs=problem.costs,
            shares=np.tile(scenario.true_shares / scenario.phases, scenario.phases),
            rate=problem.rate,
            available=available,
        )
    world = World(
        means=means,
        phase_rounds=math.ceil(problem.horizon / scenario.phases),
        noise=_NOISE[scenario.noise],
        noise_sd=scenario.noise_sd,
        laws=_compiled_laws(scenario),
        cumulative_shares=np.cumsum(scenario.true_shares),
        silent=problem.feedback == "silent",
        available=np.zeros(0) if available is None else available,
    )
    return Truth(world=world, features=features, counted=counted, clairvoyant=best * problem.horizon)


def oracle_table(scenario: Scenario) -> Floats:
    """True return probabilities (1 or J, A, ages) for policies to which they are given; outcomes weigh equally."""
    ages = np.arange(min(scenario.problem.horizon, ORACLE_AGES) + 1, dtype=np.float64)

    def curve(law: AnyLaw) -> Floats:
        if isinstance(law, ByOutcome):
            return 0.5 * (curve(law.above) + curve(law.below))
        return np.asarray(law.return_probability(ages))

    return np.array([[curve(law) for law in laws] for laws in scenario.delays])
