"""What each policy would earn: policies play posterior draws of what the log leaves possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.engine.options import PolicyOptions
from doral.engine.setup import check_size
from doral.errors import DoralError
from doral.evaluation.policies import KNOWS_TRUTH, STATUS_QUO
from doral.inference.intervals import LEVEL, Estimate, of_played
from doral.planning.facts import Fact, between, number
from doral.planning.spending import curve_of, order_of
from doral.simulation.api import MadePolicy, make_player, play_run, policy_name
from doral.simulation.scenario.from_log import LoggedWorld
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.workers.tasks import run_work, spread
from doral.simulation.world.oracle import expected_payments
from doral.simulation.world.truth import Truth, make_truth

# A policy in Python takes a second for some 50,000 arrivals: it plays fewer truths, and fewer still of many arrivals.
PYTHON_ROUNDS, FEWEST_TRUTHS, MOST_TRUTHS = 600_000, 4, 20


class Played(NamedTuple):
    """One policy in one truth."""

    worth: float
    spend: float
    best: float  # what the oracle expects to earn


class Refused(NamedTuple):
    """A policy that cannot play this problem, and why."""

    policy: str
    why: str


def earn(
    world: LoggedWorld,
    policies: Sequence[MadePolicy],
    chances: Floats,
    *,
    truths: int,
    seed: int,
    n_jobs: int = 1,
    on_truth: Callable[[], None] = lambda: None,
) -> tuple[dict[str, list[Played | None]], tuple[Refused, ...]]:
    """By policy, what it earns in each of the first `truths` draws; None where it did not play.

    `chances` (J, A) are what was done, the status quo. It is not simulated: what chances are worth is a sum. Nor is the
    oracle: it earns the value of LP_m, which no policy exceeds but by luck.
    """
    ceilings = tuple(policy_name(one) for one in policies if isinstance(one, PolicyOptions) and _is_oracle(one))
    policies = [one for one in policies if policy_name(one) not in ceilings]
    slow = min(truths, MOST_TRUTHS, max(FEWEST_TRUTHS, int(PYTHON_ROUNDS / world.asked.arrivals)))
    able, refused = _able(world, policies)
    fast = tuple(i for i, one in enumerate(able) if isinstance(one, PolicyOptions))
    tasks = [tuple(range(len(able))) if i < slow else fast for i in range(truths)]
    found: dict[str, list[Played | None]] = {name: [] for name in (STATUS_QUO, *ceilings, *map(policy_name, able))}
    for played in _in_parallel(_Shared(world, able, ceilings, chances, seed), tasks, n_jobs=n_jobs):
        for name, entries in found.items():
            entries.append(played.get(name))
        on_truth()
    return found, refused


def _is_oracle(policy: PolicyOptions) -> bool:
    return policy.sampling == "oracle"


def _able(world: LoggedWorld, policies: Sequence[MadePolicy]) -> tuple[list[MadePolicy], tuple[Refused, ...]]:
    """Those that can play it, told before the work and not in the middle of it."""
    able, refused = [], []
    scenario = world.usual()
    truth = make_truth(scenario, seed=0, run=0)
    for one in policies:
        try:
            if isinstance(one, PolicyOptions):
                check_size(policy=one, problem=scenario.problem)
            make_player(one, scenario, truth, seed=0, run=0)
        except DoralError as error:
            refused.append(Refused(policy_name(one), str(error)))
        else:
            able.append(one)
    return able, tuple(refused)


class _Shared(NamedTuple):
    """What all truths need; policies are in it, which may be classes that workers must have."""

    world: LoggedWorld
    policies: Sequence[MadePolicy]
    ceilings: tuple[str, ...]  # names of oracles
    chances: Floats
    seed: int


def _in_parallel(shared: _Shared, tasks: Sequence[tuple[int, ...]], *, n_jobs: int) -> Iterator[dict[str, Played]]:
    """Every truth with the policies that play it, both by number."""
    scenario = shared.world.usual()
    yield from spread(
        _play,
        shared,
        list(enumerate(tasks)),
        works=[run_work([shared.policies[i] for i in task], scenario) for task in tasks],
        n_jobs=n_jobs,
        prefer="processes",
    )


def _play(shared: _Shared, truth_and_policies: tuple[int, tuple[int, ...]]) -> dict[str, Played]:
    world, able, ceilings, chances, seed = shared
    number, chosen = truth_and_policies
    policies = [able[i] for i in chosen]
    scenario = world.possible(number)
    truth = make_truth(scenario, seed=seed, run=number)
    costs = average_costs(scenario, truth)
    found = {STATUS_QUO: play_by_chance(scenario, truth, costs, chances)}
    if ceilings:
        values = truth.counted[0, :, : chances.shape[1]]
        useful = curve_of(order_of(values, costs), values, costs, truth.arrived).spent[-1]
        best = Played(truth.oracle, min(scenario.problem.budget, float(useful)), truth.oracle)
        found.update(dict.fromkeys(ceilings, best))
    if policies:
        for one in play_run(policies, scenario, seed=seed, run=number, keep_decisions=False):
            found[one.policy] = Played(one.expected, one.spend, one.oracle)
    return found


def average_costs(scenario: Scenario, truth: Truth) -> Floats:
    """(J, A) what a decision costs on average in the end, for arms that are bought."""
    problem = scenario.problem
    paid = expected_payments(scenario, truth.world.means)
    costs = problem.costs_by_context * (1.0 if paid is None else paid[0])
    # Of doing nothing nothing is bought, and it is worth nothing beyond itself.
    n_bought = problem.n_arms - (problem.control is not None)
    return np.array(np.broadcast_to(costs, truth.counted.shape[1:])[:, :n_bought])


def play_by_chance(scenario: Scenario, truth: Truth, costs: Floats, chances: Floats) -> Played:
    """What the chances of each arm are worth, for as many of each context as come in this run.

    Where more come than the budget lasts for, all chances are lower by the same factor.
    """
    given = truth.arrived[:, None] * chances
    worth = float((given * truth.counted[0, :, : chances.shape[1]]).sum())
    spend = float((given * costs).sum())
    part = min(1.0, scenario.problem.budget / spend) if spend > 0.0 else 1.0
    return Played(part * worth, part * spend, truth.oracle)


_ROUNDING = 1e-9
MARGIN = 0.01  # of what is earned today: a difference that is not clearly larger changes nothing


@dataclass(frozen=True, kw_only=True)
class Earning(Fact):
    """What a policy earns over the planned horizon, in expectation, with all that comes within the deadline.

    Intervals are those of one more posterior draw (Student, 95%, for as many draws as were played): they hold what the
    log does not tell, and not only the luck of a simulation. Differences are taken draw by draw.
    """

    policy: str
    worth: Estimate
    more: Estimate | None  # than what is done today; None for itself
    is_clear: bool  # `more` is beyond 1% of today's worth at 5%, corrected for all policies that are compared (Holm)
    oracle_share: float | None  # of what the oracle earns
    spend: float  # on average
    truths: int  # posterior draws that it played
    can_run_live: bool  # as a campaign; otherwise it can be simulated only

    @property
    def is_clearly_better(self) -> bool:
        return self.is_clear and self.more is not None and self.more.value > 0.0


@dataclass(frozen=True, kw_only=True)
class Earnings(Fact):
    """All policies, the best first."""

    policies: tuple[Earning, ...]
    status_quo: str
    compared: int  # policies that are compared with what is done today: for so many comparisons is corrected
    arrivals: float  # over the planned horizon, on average
    budget: float
    unit: str  # of the worth, in words: "positives" where successes are all 1, "reward" otherwise
    left_out: tuple[str, ...]  # sentences: policies that cannot play this problem, and why
    _totals: Mapping[str, Floats] = field(repr=False, compare=False)  # by policy and draw; NaN where it did not play

    def of(self, policy: str) -> Earning:
        return next(one for one in self.policies if one.policy == policy)

    @property
    def today(self) -> Earning:
        return self.of(self.status_quo)

    def difference(self, first: str, second: str) -> Estimate:
        """Return how much more the first earns, draw by draw where both played; its value is that of the table."""
        played = ~np.isnan(self._totals[first] - self._totals[second])
        gap = _difference(self._totals[first][played], self._totals[second][played])
        off = self.of(first).worth.value - self.of(second).worth.value - gap.value
        return Estimate(gap.value + off, gap.low + off, gap.high + off)


def earnings_of(
    found: Mapping[str, Sequence[Played | None]],
    *,
    arrivals: float,
    budget: float,
    unit: str,
    left_out: tuple[str, ...] = (),
    live: frozenset[str] = frozenset(),
    is_never_negative: bool = False,
) -> Earnings:
    """Return the earnings from what every policy earned in every draw; `live` names those that can run as campaigns.

    `is_never_negative`: whether totals cannot be below 0, because no reward is.
    """
    totals = {name: np.array([math.nan if one is None else one.worth for one in all_]) for name, all_ in found.items()}
    margin = MARGIN * abs(float(np.nanmean(totals[STATUS_QUO])))
    clear = _clear_differences({name: one - totals[STATUS_QUO] for name, one in totals.items()}, margin)
    made = [_earning(name, found, totals, name in clear, live, is_never_negative) for name in found]
    policies = tuple(sorted(made, key=lambda one: -one.worth.value))
    best = next((one for one in policies if one.policy != KNOWS_TRUTH), policies[0])
    return Earnings(
        policies=policies,
        status_quo=STATUS_QUO,
        compared=len([name for name in found if name not in (STATUS_QUO, KNOWS_TRUTH)]),
        arrivals=arrivals,
        budget=budget,
        unit=unit,
        left_out=left_out,
        sentence=(
            f"{'Apart from the oracle, the' if KNOWS_TRUTH in found else 'The'} largest mean is that of {best.policy}: "
            f"{number(best.worth.value)} {unit} {between(best.worth)}."
        ),
        _totals=totals,
    )


def _clear_differences(gaps: Mapping[str, Floats], margin: float) -> frozenset[str]:
    """Return the policies that differ from today by more than the margin at 5%, over all (Holm's step-down)."""
    from scipy.stats import t

    p_values = []
    for name, gap in gaps.items():
        known = gap[~np.isnan(gap)]
        if name in (STATUS_QUO, KNOWS_TRUTH) or known.size < 2:
            continue
        error = float(known.std(ddof=1)) * math.sqrt(1.0 + 1.0 / known.size)
        beyond = abs(float(known.mean())) - max(margin, _ROUNDING)
        ratio = beyond / error if error > 0.0 else math.copysign(math.inf, beyond)
        p_values.append((min(1.0, 2.0 * float(t.sf(ratio, known.size - 1))), name))
    clear: set[str] = set()
    for rank, (p_value, name) in enumerate(sorted(p_values)):
        if p_value * (len(p_values) - rank) >= 1.0 - LEVEL:
            break
        clear.add(name)
    return frozenset(clear)


def _earning(
    name: str,
    found: Mapping[str, Sequence[Played | None]],
    totals: Mapping[str, Floats],
    is_clear: bool,
    live: frozenset[str],
    is_never_negative: bool,
) -> Earning:
    some = [one for one in found[name] if one is not None]
    played = ~np.isnan(totals[name])
    own = totals[name][played]
    best = float(np.mean([one.best for one in some]))
    worth = of_played(own, is_never_negative=is_never_negative)
    more = None if name == STATUS_QUO else _difference(own, totals[STATUS_QUO][played])
    best_of_all = float(np.mean([one.best for one in found[STATUS_QUO] if one is not None]))
    if not played.all() and best > 0.0:
        # A policy that played some draws keeps its share of what could be had: these may be richer than the others.
        by = best_of_all / best
        worth = Estimate(worth.value * by, worth.low * by, worth.high * by)
        if more is not None:
            off = worth.value - float(totals[STATUS_QUO].mean()) - more.value
            more = Estimate(more.value + off, more.low + off, more.high + off)
    return Earning(
        policy=name,
        worth=worth,
        more=more,
        is_clear=is_clear,
        oracle_share=float(own.mean()) / best if best > 0.0 else None,
        spend=float(np.mean([one.spend for one in some])),
        truths=len(some),
        can_run_live=name in live,
        sentence=_said(name, worth, more, is_clear),
    )


def _difference(first: Floats, second: Floats) -> Estimate:
    """Draw by draw; what only rounding tells apart is the same."""
    gap = first - second
    return of_played(np.where(np.abs(gap) <= _ROUNDING * np.abs(first), 0.0, gap))


def _said(name: str, worth: Estimate, more: Estimate | None, is_clear: bool) -> str:
    said = f"{name} would earn {number(worth.value)} {between(worth)}"
    if more is None:
        return f"{said}: what is done today."
    way = "more" if more.value >= 0.0 else "less"
    clearly = "" if is_clear else ", which is not clearly beyond 1% of that"
    return f"{said}: {number(abs(more.value))} {way} than today {between(more, is_turned=more.value < 0.0)}{clearly}."
