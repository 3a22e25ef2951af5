"""`doral.simulate`: policies x scenarios x runs, in parallel, the same numbers with any number of jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral._progress import Progress
from doral.compiled import Block
from doral.engine.options import PolicyOptions
from doral.engine.setup import MAX_SEED, check_size
from doral.errors import DoralError, InvalidValue
from doral.prediction.external import External
from doral.prediction.python_policy import PolicyMaker
from doral.simulation.catalogue.lookup import named_scenario
from doral.simulation.results.outcome import Outcome
from doral.simulation.results.result import SimulationResult
from doral.simulation.rivals.rival import Rival, named_policy
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.workers.tasks import Prefer, run_work, spread
from doral.simulation.world.oracle import true_return_table
from doral.simulation.world.players import CompiledPlayer, ExternalPlayer, Player, PythonPlayer
from doral.simulation.world.tape import CHUNK_ROUNDS, WORLD, new_tape
from doral.simulation.world.truth import Truth, make_truth

MadePolicy: TypeAlias = PolicyOptions | External | PolicyMaker
AnyPolicy: TypeAlias = str | MadePolicy
MAX_RUNS = 10**6
MAX_JOBS = 1024
_RESULTS = 100  # of a policy in a run, at most, that a task hands back together: each has curves of some 20 kB
_KEPT_ROUNDS = 100_000  # of decisions that are kept, at 80 bytes for each


def play_run(
    policies: Sequence[MadePolicy],
    scenario: Scenario,
    *,
    seed: int,
    run: int,
    keep_decisions: bool,
) -> list[Outcome]:
    """One run: all policies on one tape, made chunk by chunk."""
    truth = make_truth(scenario, seed=seed, run=run)
    if scenario.speed is not None:
        _check_curves(policies)
    needs_returns = any(isinstance(one, PolicyOptions) and one.return_probability == "oracle" for one in policies)
    true_returns = scenario.once(true_return_table) if needs_returns else None

    players = [
        make_player(one, scenario, truth, seed=seed, run=run, true_returns=true_returns, keep_decisions=keep_decisions)
        for one in policies
    ]
    horizon = truth.rounds
    chunk = Block(new_tape(truth.world, min(CHUNK_ROUNDS, horizon)))
    for first_round in range(1, horizon + 1, CHUNK_ROUNDS):
        rounds = min(CHUNK_ROUNDS, horizon - first_round + 1)
        if rounds < chunk.tree.context.size:
            chunk = Block(new_tape(truth.world, rounds))
        WORLD["record"](chunk, truth.block, seed, run, first_round)
        for player in players:
            player.play(chunk.tree, first_round)
    return [player.outcome(keep_decisions=keep_decisions) for player in players]


def make_player(
    one: MadePolicy,
    scenario: Scenario,
    truth: Truth,
    *,
    seed: int,
    run: int,
    true_returns: Floats | None = None,
    keep_decisions: bool = False,
) -> Player:
    """Return the player of a policy; one that cannot play this scenario is refused here."""
    if isinstance(one, PolicyOptions):
        return CompiledPlayer(
            one, scenario, truth, seed=seed, run=run, true_returns=true_returns, keep_decisions=keep_decisions
        )
    if isinstance(one, External):
        return ExternalPlayer(one, scenario, truth, seed=seed, run=run, keep_decisions=keep_decisions)
    return PythonPlayer(one, policy_name(one), scenario, truth, seed=seed, run=run, keep_decisions=keep_decisions)


def _check_curves(policies: Sequence[MadePolicy]) -> None:
    for one in policies:
        if isinstance(one, PolicyOptions) and one.return_probability == "oracle":
            remedy = "is one curve for all, and people differ in speed; choose estimated or one"
            raise InvalidValue(f"return_probability of {one.name}", "oracle", remedy)


class Experiment(NamedTuple):
    """What all runs share, wherever they are played."""

    policies: Sequence[MadePolicy]
    scenarios: Sequence[Scenario]
    seed: int
    keep_decisions: bool = False


def _play_one(experiment: Experiment, which: tuple[int, int]) -> list[Outcome]:
    """The run of a scenario, both by number."""
    policies, scenarios, seed, keep_decisions = experiment
    place, run = which
    return play_run(policies, scenarios[place], seed=seed, run=run, keep_decisions=keep_decisions)


def _played(experiment: Experiment, tasks: Sequence[tuple[int, int]], *, n_jobs: int) -> Iterator[list[Outcome]]:
    """The runs in the order of the tasks, one after the other or several at a time."""
    policies, scenarios = experiment.policies, experiment.scenarios
    works = [run_work(policies, place) for place in scenarios]
    longest = max(place.problem.expected_rounds for place in scenarios)
    many = _RESULTS if not experiment.keep_decisions else max(1, min(_RESULTS, _KEPT_ROUNDS // longest))
    yield from spread(
        _play_one,
        experiment,
        tasks,
        works=[works[place] for place, _ in tasks],
        n_jobs=n_jobs,
        prefer=prefer_for(policies),
        most_pieces=max(1, many // len(policies)),
    )


def prefer_for(policies: Iterable[MadePolicy]) -> Prefer:
    """Compiled loops release the interpreter, so threads are enough; Python policies need processes."""
    return "threads" if all(isinstance(one, PolicyOptions) for one in policies) else "processes"


def policy_name(policy: MadePolicy) -> str:
    """What it is called in results."""
    return (
        policy.name
        if isinstance(policy, PolicyOptions | External | Rival)
        else getattr(policy, "__name__", type(policy).__name__)
    )


def made_policies(given: AnyPolicy | Iterable[AnyPolicy]) -> list[MadePolicy]:
    """Policies from names, options, models and classes."""
    is_one = isinstance(given, str | PolicyOptions | External) or callable(given)
    several = [given] if is_one else _listed("policies", given, "must be a policy or a list of them")
    if not several:
        raise InvalidValue("policies", given, "must name at least one policy")
    made = [_policy(one) for one in several]
    _check.no_duplicates("policies", [policy_name(one) for one in made])
    return made


def _listed(field: str, given: object, remedy: str) -> list[Any]:
    if isinstance(given, Mapping):
        raise InvalidValue(field, given, remedy)
    try:
        return list(given)  # type: ignore[call-overload]
    except DoralError:
        raise
    except Exception as error:  # a foreign object or generator may raise anything
        raise InvalidValue(field, given, remedy) from error


def _policy(one: object) -> MadePolicy:
    if isinstance(one, str):
        return named_policy(one)
    if isinstance(one, PolicyOptions | External) or callable(one):
        return one
    raise InvalidValue("policy", one, "must be a name, doral.policy(...), or a class with decide and observe")


def _scenario(one: object) -> Scenario:
    if isinstance(one, str):
        return named_scenario(one)
    if isinstance(one, Scenario):
        return one
    raise InvalidValue("scenario", one, "must be a name or a doral.Scenario")


def made_scenarios(given: str | Scenario | Iterable[str | Scenario]) -> list[Scenario]:
    is_one = isinstance(given, str | Scenario)
    several = [given] if is_one else _listed("scenario", given, "must be a scenario or a list of them")
    if not several:
        raise InvalidValue("scenario", given, "must name at least one scenario")
    made = [_scenario(one) for one in several]
    _check.no_duplicates("scenario", [one.name for one in made])
    return made


def checked_jobs(n_jobs: object) -> int:
    """How many workers: a number, or -1 for all cores."""
    checked = _check.whole_number("n_jobs", n_jobs, at_least=-1, at_most=MAX_JOBS)
    if checked == 0:
        raise InvalidValue("n_jobs", checked, "must be 1 or more, or -1 for all cores")
    return checked


def simulate(
    policies: AnyPolicy | Iterable[AnyPolicy],
    scenario: str | Scenario | Iterable[str | Scenario],
    *,
    runs: int = 10,
    seed: int = 0,
    n_jobs: int = 1,
    first_run: int = 0,
    keep_decisions: bool = False,
    on_run: Callable[[], None] | None = None,
    progress: bool | None = None,
) -> SimulationResult:
    """Let policies play scenarios. In each run, all of them play the same draws, so differences are paired.

    Args:
        policies: One policy or several: a name ("doral-otf"; `doral policies` lists them), `doral.policy(...)`,
            `doral.rival(...)`, `doral.external(...)`, or a class of your own with `decide` and `observe`. Differences
            are taken to the first.
        scenario: One scenario or several: a name (`doral scenarios` lists them) or a `doral.Scenario`.
        runs: How often each scenario is played, with other draws; intervals come from the spread between runs.
        seed: Of all draws, 0 to 2^53: the same seed gives the same numbers.
        n_jobs: Parallel workers, as scikit-learn counts them (-1: all cores). Results do not depend on it.
        first_run: The number of the first run, to continue an earlier experiment: runs 50 to 99 of a seed are the same
            whether or not 0 to 49 were played.
        keep_decisions: Whether to keep all arrivals, what was done and what came of it, for `.decisions()`;
            about 80 bytes for each, policy and run.
        on_run: Called without arguments after each finished run.
        progress: Whether to show on standard error, in one line, how far it is and how long it will take. None: in a
            terminal or a notebook, if it takes longer than a second and `on_run` is not given. DORAL_PROGRESS=0 in the
            environment turns that off.
    """
    chosen, places = made_policies(policies), made_scenarios(scenario)
    runs = _check.whole_number("runs", runs, at_least=1, at_most=MAX_RUNS)
    first_run = _check.whole_number("first_run", first_run, at_least=0, at_most=MAX_RUNS)
    seed = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    n_jobs = checked_jobs(n_jobs)
    if not isinstance(keep_decisions, bool | np.bool_):
        raise InvalidValue("keep_decisions", keep_decisions, "must be True or False")
    if not isinstance(progress, bool | np.bool_ | None):
        raise InvalidValue("progress", progress, "must be True, False, or None: in a terminal or a notebook")
    if on_run is not None and not callable(on_run):
        raise InvalidValue("on_run", on_run, "must be a function without arguments, or None")
    check_sizes(chosen, places)
    outcomes: list[Outcome] = []
    tasks = [(i, run) for i in range(len(places)) for run in range(first_run, first_run + runs)]
    played = _played(Experiment(chosen, places, seed, bool(keep_decisions)), tasks, n_jobs=n_jobs)
    is_shown = progress if progress is not None or on_run is None else False
    lengths = (float(places[i].problem.expected_rounds) for i, _ in tasks)
    with Progress(
        "simulating", lengths, "runs", is_shown=is_shown, workers=n_jobs if n_jobs > 0 else os.cpu_count() or 1
    ) as shown:
        for found in played:
            outcomes.extend(found)
            shown.advance()
            if on_run is not None:
                on_run()
    return SimulationResult(outcomes=tuple(outcomes), seed=seed)


def check_sizes(policies: Iterable[MadePolicy], scenarios: Iterable[Scenario]) -> None:
    """Before the work: memory that no machine has."""
    for place in scenarios:
        for one in policies:
            if isinstance(one, PolicyOptions):
                check_size(policy=one, problem=place.problem)
            elif isinstance(one, External):
                check_size(policy=one.options, problem=one.problem_of(place.problem))
