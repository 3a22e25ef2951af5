"""Policies play the truths that a log leaves possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from doral._arrays import Floats
from doral.engine.options import PolicyOptions
from doral.engine.setup import check_size
from doral.errors import DoralError
from doral.evaluation.targets import STATUS_QUO
from doral.simulation.api import MadePolicy, make_player, play_run, policy_name
from doral.simulation.scenario.from_log import LoggedWorld
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.workers.tasks import run_work, spread
from doral.simulation.world.returns import expected_payments
from doral.simulation.world.truth import Truth, make_truth

# A policy in Python takes a second for some 50,000 arrivals: it plays fewer truths, and fewer still of many arrivals.
PYTHON_ROUNDS, FEWEST_TRUTHS, MOST_TRUTHS = 1_200_000, 4, 20


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
    seed: int,
    n_jobs: int = 1,
    on_truth: Callable[[], None] = lambda: None,
) -> tuple[dict[str, list[Played | None]], tuple[Refused, ...]]:
    """By policy, what it earns in every truth; None where it did not play.

    `chances` (J, A) are what was done, the status quo. It is not simulated: what chances are worth is a sum.
    """
    slow = min(world.truths.n, MOST_TRUTHS, max(FEWEST_TRUTHS, int(PYTHON_ROUNDS / world.asked.arrivals)))
    able, refused = _able(world, policies)
    fast = tuple(i for i, one in enumerate(able) if isinstance(one, PolicyOptions))
    tasks = [tuple(range(len(able))) if i < slow else fast for i in range(world.truths.n)]
    found: dict[str, list[Played | None]] = {name: [] for name in (STATUS_QUO, *map(policy_name, able))}
    for played in _in_parallel(_Shared(world, able, chances, seed), tasks, n_jobs=n_jobs):
        for name, entries in found.items():
            entries.append(played.get(name))
        on_truth()
    return found, refused


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
    world, able, chances, seed = shared
    number, chosen = truth_and_policies
    policies = [able[i] for i in chosen]
    scenario = world.possible(number)
    truth = make_truth(scenario, seed=seed, run=number)
    found = {STATUS_QUO: _as_it_was(scenario, truth, chances)}
    if policies:
        for one in play_run(policies, scenario, seed=seed, run=number, keep_decisions=False):
            found[one.policy] = Played(one.expected, one.spend, one.oracle)
    return found


def _as_it_was(scenario: Scenario, truth: Truth, chances: Floats) -> Played:
    """What the chances of each arm are worth, for as many of each context as come in this run."""
    problem = scenario.problem
    given = truth.arrived[:, None] * chances
    paid = expected_payments(scenario, truth.world.means)
    costs = problem.costs_by_context * (1.0 if paid is None else paid[0])
    n_bought = chances.shape[1]  # of doing nothing nothing is bought, and it is worth nothing beyond itself
    worth = float((given * truth.counted[0, :, :n_bought]).sum())
    return Played(worth, float((given * costs[:, :n_bought]).sum()), truth.oracle)
