"""The policy once more, slow and obvious: the oracle of the compiled engine.

Written from the formulas, not from the engine: every round starts from the list of all decisions ever made and works
everything out anew. Shares no code with the policies, the race, the pacing or the estimators. `follow` lets it look
over the engine's shoulder: same tape, same past, and in every round both must want the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Philox

from doral._arrays import Flags, Floats
from doral.delays import AnyLaw, ByOutcome
from doral.environments.scenario import Scenario
from doral.environments.tape import new_tape, record
from doral.environments.world import make_truth
from doral.policies.options import PolicyOptions
from doral.problem import Problem
from doral.simulation.outcome import Outcome

REFRESH_ROUNDS = 32  # return curves are read in rounds 1, 33, 65, ...
COIN = 3  # the purpose of the policy's own draws
WHOLE = 1.0 - 1e-12  # a larger part of an edge is all of it
NEAR = 1e-9  # decisions whose scores are nearer than this may differ by rounding


def coin(seed: int, run: int, round_: int) -> float:
    """The policy's draw, from NumPy's own generator, which steps its counter before the first block."""
    counter = np.array([round_ - 1, COIN, 0, 0], dtype=np.uint64)
    words = Philox(counter=counter, key=np.array([seed, run], dtype=np.uint64)).random_raw(1)
    return float(int(words[0]) >> 11) * 2.0**-53


def gap(numbers: Iterable[float]) -> float:
    """The smallest distance between any two, relative where they are large."""
    ordered = sorted(number for number in numbers if math.isfinite(number))
    return min(((b - a) / max(1.0, abs(b)) for a, b in itertools.pairwise(ordered)), default=math.inf)


def _last_reading(now: int) -> int:
    return 1 + (now - 1) // REFRESH_ROUNDS * REFRESH_ROUNDS


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
    candidates = list(arms)
    margin = min((abs(float(values[a])) for a in candidates), default=math.inf)
    while True:
        better = [a for a in candidates if values[a] > value and costs[a] > cost]
        if not better:
            return edges, margin
        slopes = {a: float((values[a] - value) / (costs[a] - cost)) for a in better}
        margin = min(margin, gap(slopes.values()))
        steepest = max(slopes.values())
        # of equally steep ones the farthest: those between are on the line; of equal arms the first
        best = max((a for a in better if slopes[a] == steepest), key=lambda a: (costs[a], -a))
        edges.append(Edge(slopes[best], float(costs[best] - cost), context, best))
        cost, value = float(costs[best]), float(values[best])


@dataclass(frozen=True)
class Wish:
    """What the twin wants in one round: an arm or None, and how near it was to wanting something else."""

    arm: int | None
    margin: float


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
    ) -> None:
        self.options, self.problem, self.features, self.seed, self.run = options, problem, features, seed, run
        self.costs = problem.costs
        self._true_delays = delays  # looked at by `oracle` and `instant` only
        self.n_arms, self.n_contexts = problem.n_arms, problem.n_contexts
        # one entry per decision ever made
        self.rounds = np.zeros(0, dtype=np.int64)
        self.contexts = np.zeros(0, dtype=np.int64)
        self.arms = np.zeros(0, dtype=np.int64)
        self.in_race = np.zeros(0, dtype=np.bool_)
        self.rewards = np.zeros(0)
        self.delays = np.zeros(0)  # used only once they have passed, except by `instant`
        self.arrivals: list[int] = []
        self._margin = math.inf  # of the decision being made
        # the race
        self.races = options.screening == "race"
        everyone = frozenset(range(self.n_arms))
        self.racing = everyone if self.races else frozenset()
        self.accepted = frozenset() if self.races else everyone
        self.n_accept = options.accepted_of(self.n_arms)
        self.pulls_to_compare = self.n_arms
        self.race_ended = 0
        self.race_capped = False
        if self.races:
            self.cutoff = math.inf
        else:
            self.cutoff = options.cutoff if options.cutoff is not None else float(problem.deadline or math.nan)
        # the grid of the return curves
        if problem.deadline is not None:
            last = problem.deadline
        else:
            last = options.cutoff if options.cutoff is not None else max(4.0, problem.horizon / 4)
        self.ages = np.geomspace(0.01 * last, last, options.curve_points)
        self.ages[-1] = last
        self._read: dict[tuple[int, int], Floats] = {}  # a curve depends on the round of its reading, not on later ones

    # --- what happened ---------------------------------------------------------------------------------------------

    @property
    def spent(self) -> float:
        return sum(self.costs[self.arms].tolist())

    @property
    def budget_left(self) -> float:
        left = self.problem.budget
        for cost in self.costs[self.arms].tolist():
            left -= cost
        return left

    def note(self, round_: int, context: int, arm: int, reward: float, delay: float) -> None:
        """A decision was made; its outcome is written down here, and looked at when its time has come."""
        self.rounds = np.append(self.rounds, round_)
        self.contexts = np.append(self.contexts, context)
        self.arms = np.append(self.arms, arm)
        self.in_race = np.append(self.in_race, bool(self.racing))
        self.rewards = np.append(self.rewards, reward)
        self.delays = np.append(self.delays, delay)
        if self.racing:
            self.pulls_to_compare -= 1

    def _answered(self, now: int) -> Flags:
        return np.asarray(self.rounds + self.delays <= now)

    # --- return curves ---------------------------------------------------------------------------------------------

    def _survival(self, arm: int, now: int) -> Floats:
        """Kaplan-Meier at age 0 and at each age of the grid, by counting decisions whose fate there is known."""
        read_at = _last_reading(now)
        if (arm, read_at) in self._read:
            return self._read[arm, read_at]
        mine = self.arms == arm
        curve = [1.0]
        start = -math.inf
        for end in self.ages.tolist():
            entered = mine & (read_at - self.rounds > end) & (self.delays > start)
            at_risk = int(entered.sum())
            returned = int((entered & (self.delays <= end)).sum())
            # where nobody has been watched for so long: optimistic, all return
            curve.append(curve[-1] * (1.0 - returned / at_risk) if at_risk else 0.0)
            start = end
        self._read[arm, read_at] = np.array(curve)
        return self._read[arm, read_at]

    def _return_probability(self, context: int, arm: int, age: float, now: int) -> float:
        how = self.options.return_probability
        if how == "one":
            return 1.0
        if how == "oracle":
            law = self._true_delays[min(context, len(self._true_delays) - 1)][arm]
            whole = float(min(math.floor(age), self.problem.horizon))
            laws = (law.above, law.below) if isinstance(law, ByOutcome) else (law,)
            return sum(one.return_probability(whole) for one in laws) / len(laws)
        return 1.0 - float(np.interp(age, np.append(0.0, self.ages), self._survival(arm, now)))

    def _tau(self, now: int) -> Floats:
        deadline = self.problem.deadline
        by = self.cutoff if deadline is None or self.options.return_by == "cutoff" else deadline
        return self._tau_by(by, now)

    def _thinning(self, now: int) -> Floats:
        """The share of rewards that return within the cut-off: by it, `scaled` shrinks the features."""
        if self.options.learner == "scaled":
            return self._tau_by(self.cutoff, now)
        return np.ones((self.n_contexts, self.n_arms))

    def _tau_by(self, age: float, now: int) -> Floats:
        if self.options.return_probability == "estimated":  # the same for all contexts
            row = [self._return_probability(0, a, age, now) for a in range(self.n_arms)]
            return np.array([row] * self.n_contexts)
        return np.array(
            [[self._return_probability(j, a, age, now) for a in range(self.n_arms)] for j in range(self.n_contexts)]
        )

    # --- stage 1 ---------------------------------------------------------------------------------------------------

    def _delay_sample(self, arm: int, now: int) -> list[float]:
        """The delays that the race goes by, oldest first."""
        mine = np.flatnonzero(self.arms == arm).tolist()
        if self.options.censoring == "instant":
            return [float(self.delays[i]) for i in mine if self.delays[i] < math.inf]
        if self.options.censoring == "min_age":
            return [min(float(self.delays[i]), float(now - self.rounds[i])) for i in mine]
        came = sorted((float(self.rounds[i] + self.delays[i]), i) for i in mine)
        return [float(self.delays[i]) for when, i in came if when <= now]

    def _baskets(self, n: int) -> int:
        enough = math.exp(1 / 8) / self.options.race_delta
        if self.options.baskets == "printed":
            return max(1, min(n, math.floor(8 * math.log(min(enough, n / 2))))) if n > 2 else 1
        return max(1, math.floor(min(8 * math.log(enough), n / 2)))

    def _estimate(self, arm: int, now: int) -> float:
        if self.options.censoring == "kaplan_meier":
            survival = self._survival(arm, now)
            if not ((self.arms == arm) & (_last_reading(now) - self.rounds > self.ages[0])).any():
                return math.inf
            return float(np.trapezoid(survival, np.append(0.0, self.ages)))
        sample = self._delay_sample(arm, now)
        if not sample:
            return math.inf
        h = self._baskets(len(sample))
        size = len(sample) // h
        return float(np.median([sum(sample[b * size : (b + 1) * size]) / size for b in range(h)]))

    def _bounds(self, arm: int, now: int) -> tuple[float, float]:
        estimate = self._estimate(arm, now)
        n = len(self._delay_sample(arm, now))
        if n < self.options.min_answers or estimate == math.inf:
            return -math.inf, math.inf
        alpha = self.options.tail_exponent
        log = math.log(16 / (1 - max(self.problem.budget, 2.0) ** -alpha))
        width = math.sqrt(2 * log / n) + 2 * estimate * n ** -min(alpha, 0.5)
        return estimate - width, estimate + width

    def _compare(self, now: int) -> None:
        """Acceptances and rejections, in the order of the arms, over those still racing."""
        bounds = {a: self._bounds(a, now) for a in self.racing}
        for a in sorted(self.racing):
            missing = self.n_accept - len(self.accepted)
            if missing == 0:
                return
            rivals = self.racing - {a}
            slower = {b for b in rivals if bounds[a][1] < bounds[b][0]}
            faster = {b for b in rivals if bounds[a][0] > bounds[b][1]}
            if self.options.acceptance == "printed":
                accepts, rejects = len(faster) > missing, False
            else:
                accepts, rejects = len(slower) >= len(self.racing) - missing, len(faster) >= missing
            if accepts:
                self.accepted |= {a}
            if accepts or rejects:
                self.racing -= {a}

    def _race(self, now: int) -> None:
        """Before a decision of stage 1: compare after a full pass, stop at the cap, end when A' are accepted."""
        if self.pulls_to_compare == 0:
            self._compare(now)
            self.pulls_to_compare = len(self.racing)
        if len(self.accepted) < self.n_accept:
            dearest = max(float(self.costs[a]) for a in self.racing)
            if self.spent + dearest > self.options.race_budget_share * self.problem.budget:
                self.race_capped = True
                by_estimate = sorted(self.racing, key=lambda a: (self._estimate(a, now), a))
                self.accepted |= set(by_estimate[: self.n_accept - len(self.accepted)])
        if len(self.accepted) >= self.n_accept:
            self.racing = frozenset()
            self.race_ended = now
            self.cutoff = self._found_cutoff(now)

    def _found_cutoff(self, now: int) -> float:
        over = range(self.n_arms) if self.options.cutoff_over == "all" else self.accepted
        upper = [self._bounds(a, now)[1] for a in over]
        cutoff = max((u for u in upper if u < math.inf), default=math.inf)
        if self.options.cutoff is not None:
            cutoff = self.options.cutoff
        if cutoff == math.inf or self.problem.deadline is None:
            cutoff = min(cutoff, float(self.ages[-1]))  # nobody is watched for longer
        return max(1.0, cutoff)

    def _next_racer(self, allowed: Sequence[int]) -> int | None:
        pulls = {a: int((self.arms == a).sum()) for a in self.racing & set(allowed)}
        return min(pulls, key=lambda a: (pulls[a], a)) if pulls else None

    # --- stage 2, learning -----------------------------------------------------------------------------------------

    def _ridge(self, context: int, now: int, thinning: Floats) -> tuple[Floats, Floats]:
        """<theta, f_a> and ||f_a|| in the norm of V^-1, from V = lambda I + sum f f^T and G = sum r f."""
        mine = self.contexts == context
        if not self.options.race_trains:
            mine &= ~self.in_race
        # while the race runs there is no cut-off yet, and every answer counts
        in_time = (self.delays <= self.cutoff) | (self.rounds + self.delays <= self.race_ended)
        learned = mine & self._answered(now) & in_time
        scale = np.ones(self.rounds.size)
        if self.options.learner == "returned":
            pulls = learned
        elif self.options.learner == "thinned":
            pulls = mine
        else:  # scaled: pulls whose thinned reward is final
            pulls = mine & (now - self.rounds > self.cutoff)
            learned = learned & pulls
            scale = thinning[self.arms]
        f = self.features[self.arms] * scale[:, None]
        v = self.options.penalty * np.eye(self.features.shape[1]) + f[pulls].T @ f[pulls]
        g = f[learned].T @ self.rewards[learned]
        theta = np.linalg.solve(v, g)
        square = np.einsum("ai,ij,aj->a", self.features, np.linalg.inv(v), self.features)
        return self.features @ theta, np.sqrt(np.maximum(square, 0.0))

    def _bonus(self, context: int, now: int, norm: Floats) -> float:
        options = self.options
        k, penalty = self.features.shape[1], options.penalty
        mine = self.contexts == context
        n = now if options.bonus == "printed" else int(mine.sum())
        confidence = penalty if options.bonus == "printed" else options.delta
        inside = 2 * math.log(1 / confidence) + k * math.log((k * penalty + n) / (k * penalty))
        f_t = math.sqrt(penalty) + math.sqrt(max(0.0, inside))
        with_bias = options.learner == "thinned" if options.window_bias is None else options.window_bias
        bias = float(norm[self.arms[mine & (now - self.rounds <= self.cutoff)]].sum()) if with_bias else 0.0
        return options.exploration * (2 * f_t + bias)

    def _values(self, context: int, now: int, arms: Sequence[int], tau: Floats, thinning: Floats) -> Floats:
        """tau * index of the given arms; -inf for the others, and for all but one where the index alone chooses."""
        mean, norm = self._ridge(context, now, thinning[context])
        index = mean + self._bonus(context, now, norm) * norm
        values = np.full(self.n_arms, -math.inf)
        values[list(arms)] = (tau[context] * index)[list(arms)]
        self._margin = min(self._margin, gap(values.tolist()))
        if self.options.choice == "unweighted" and arms:
            best = max(arms, key=lambda a: (index[a], -a))
            self._margin = min(self._margin, gap(index[list(arms)].tolist()))
            values[[a for a in range(self.n_arms) if a != best]] = -math.inf
        return values

    # --- stage 2, allocation ---------------------------------------------------------------------------------------

    def _rate(self, now: int) -> float:
        left = self.budget_left
        if self.options.rate == "remaining":
            return left / (self.problem.horizon - now + 1)
        return left / (self.problem.budget if self.options.pacing == "coin" else now)

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

    def _allocate(self, context: int, allowed: Sequence[int], now: int) -> int | None:
        """LP_m: all edges of all contexts, steepest first, bought until rho is used."""
        tau, thinning = self._tau(now), self._thinning(now)
        shares = self._shares()
        edges: list[Edge] = []
        for j in range(self.n_contexts):
            arms = sorted(self.accepted & set(allowed)) if j == context else sorted(self.accepted)
            values = self._values(j, now, arms, tau, thinning)
            steps, margin = hull(values, self.costs, [a for a in arms if values[a] > -math.inf], j)
            edges.extend(steps)
            self._margin = min(self._margin, margin)
        self._margin = min(self._margin, gap(edge.slope for edge in edges))
        edges.sort(key=lambda edge: (-edge.slope, edge.context))
        left = self._rate(now)
        current: int | None = None
        for edge in edges:
            needed = float(shares[edge.context]) * edge.cost
            self._margin = min(self._margin, abs(needed - left) / left)
            if needed < left:
                left -= needed
                if edge.context == context:
                    current = edge.arm
                continue
            if edge.context == context:
                part = left / needed
                if self._flip(1.0 if part > WHOLE else part, now):
                    current = edge.arm
            break
        return current

    def _best(self, context: int, allowed: Sequence[int], now: int) -> int | None:
        arms = sorted(self.accepted & set(allowed))
        values = self._values(context, now, arms, self._tau(now), self._thinning(now))
        playable = [a for a in arms if values[a] > -math.inf]
        if not playable:
            return None
        best = max(playable, key=lambda a: (values[a], -a))
        if self.options.pacing == "greedy" or self._flip(min(1.0, self._rate(now)), now):
            return best
        return None

    # --- one arrival -----------------------------------------------------------------------------------------------

    def decide(self, now: int, context: int, available: Sequence[int]) -> Wish:
        """Which arm this round, if any."""
        self._margin = math.inf
        self.arrivals.append(context)
        if self.racing:
            self._race(now)
        left = self.budget_left
        allowed = [a for a in available if self.costs[a] <= left]
        if not allowed:
            return Wish(None, math.inf)
        if self.racing:
            return Wish(self._next_racer(allowed), math.inf)
        if self.options.pacing == "lp":
            arm = self._allocate(context, allowed, now)
        else:
            arm = self._best(context, allowed, now)
        return Wish(arm, self._margin)


@dataclass(frozen=True)
class Agreement:
    """How a run of the engine and the twin went."""

    rounds: int
    decisions: int
    near_ties: int  # rounds in which they differed, and rounding alone can be the reason


def follow(options: PolicyOptions, scenario: Scenario, outcome: Outcome, *, seed: int) -> Agreement:
    """Go through a run of the engine; the twin, knowing the same past, must want the same in every round.

    Where both scores agree to 1e-9 rounding may decide either way: that round is counted, and the engine's choice kept.
    """
    problem = scenario.problem
    truth = make_truth(scenario, seed=seed, run=outcome.run)
    tape = new_tape(truth.world, problem.horizon)
    record(tape, truth.world, np.uint64(seed), np.uint64(outcome.run), 1)
    twin = Twin(options, problem, features=truth.features, delays=scenario.delays, seed=seed, run=outcome.run)
    log = outcome.log
    assert log is not None
    chosen = {int(round_): i for i, round_ in enumerate(log.round)}
    assert len(chosen) == log.round.size, "two decisions in one round"
    near_ties = 0
    for round_ in range(1, problem.horizon + 1):
        context = int(tape.context[round_ - 1])
        there = tape.available[round_ - 1] if tape.available.shape[1] else np.ones(problem.n_arms)
        wish = twin.decide(round_, context, np.flatnonzero(there).tolist())
        at = chosen.get(round_)
        arm = None if at is None else int(log.arm[at])
        if wish.arm != arm:
            assert wish.margin < NEAR, (
                f"round {round_}, context {context}: engine {arm}, twin {wish.arm} (margin {wish.margin:.2g}); "
                f"race ended {twin.race_ended}, accepted {sorted(twin.accepted)}, cut-off {twin.cutoff}"
            )
            near_ties += 1
        if at is not None and arm is not None:
            noise, uniform = float(tape.noise[round_ - 1]), float(tape.delay[round_ - 1])
            reward, delay = _drawn(scenario, float(truth.world.means[0, context, arm]), context, arm, noise, uniform)
            assert log.context[at] == context
            assert math.isclose(log.reward[at], reward, rel_tol=1e-12, abs_tol=1e-12)
            assert log.delay[at] == delay
            twin.note(round_, context, arm, float(log.reward[at]), float(log.delay[at]))
    _same_ending(twin, outcome)
    return Agreement(rounds=problem.horizon, decisions=log.round.size, near_ties=near_ties)


def _drawn(
    scenario: Scenario, mean: float, context: int, arm: int, noise: float, uniform: float
) -> tuple[float, float]:
    """The reward and delay that the tape holds for a decision."""
    reward = mean
    if scenario.noise == "gaussian":
        reward = mean + scenario.noise_sd * noise
    elif scenario.noise == "bernoulli":
        reward = float(noise < mean)
    law = scenario.delays[min(context, len(scenario.delays) - 1)][arm]
    delay = float((law.given(reward) if isinstance(law, ByOutcome) else law).sample([uniform])[0])
    return reward, max(1.0, float(np.ceil(delay)))


def _same_ending(twin: Twin, outcome: Outcome) -> None:
    names = twin.problem.arm_names
    assert outcome.accepted == tuple(names[a] for a in sorted(twin.accepted))
    assert outcome.race_rounds == int(twin.in_race.sum())
    assert outcome.race_ended == twin.race_ended
    assert outcome.race_capped == twin.race_capped
    assert math.isclose(outcome.race_spend, sum(twin.costs[twin.arms[twin.in_race]].tolist()), abs_tol=1e-9)
    assert outcome.cutoff == twin.cutoff or math.isclose(outcome.cutoff, twin.cutoff, rel_tol=1e-12)
    assert outcome.spend == twin.problem.budget - twin.budget_left
    assert twin.budget_left >= 0.0
