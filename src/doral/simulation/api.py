"""`doral.simulate`: policies x scenarios x runs, in parallel, the same numbers whatever the number of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral._kernel import Block
from doral.engine.blueprint import MAX_SEED
from doral.engine.compose import check_size
from doral.engine.options import PolicyOptions
from doral.errors import DoralError, InvalidValue
from doral.prediction.external import External
from doral.simulation.external_player import ExternalPlayer
from doral.simulation.named import named_policy
from doral.simulation.outcome import Outcome
from doral.simulation.players import CompiledPlayer, Player
from doral.simulation.python_player import PythonPlayer
from doral.simulation.python_policy import PolicyMaker
from doral.simulation.result import SimulationResult
from doral.simulation.rivals.catalogue import Rival
from doral.simulation.scenario import Scenario
from doral.simulation.scenarios.catalogue import scenario as scenario_by_name
from doral.simulation.tape import CHUNK_ROUNDS, WORLD, new_tape
from doral.simulation.true_returns import oracle_table
from doral.simulation.world import Truth, make_truth

MadePolicy: TypeAlias = PolicyOptions | External | PolicyMaker
AnyPolicy: TypeAlias = str | MadePolicy
MAX_RUNS = 10**6
MAX_JOBS = 1024


def play_run(
    policies: Sequence[MadePolicy],
    scenario: Scenario,
    *,
    seed: int,
    run: int,
    keep_decisions: bool,
    keep_arrivals: bool = False,
) -> list[Outcome]:
    """One run: all policies on one tape, made chunk by chunk."""
    truth = make_truth(scenario, seed=seed, run=run)
    if scenario.speed is not None:
        _check_curves(policies)
    needs_oracle = any(isinstance(one, PolicyOptions) and one.return_probability == "oracle" for one in policies)
    oracle = scenario.once(oracle_table) if needs_oracle else None

    players = [
        make_player(one, scenario, truth, seed=seed, run=run, oracle=oracle, keep_arrivals=keep_arrivals)
        for one in policies
    ]
    horizon = truth.rounds
    tape = new_tape(truth.world, min(CHUNK_ROUNDS, horizon))
    for first_round in range(1, horizon + 1, CHUNK_ROUNDS):
        rounds = min(CHUNK_ROUNDS, horizon - first_round + 1)
        if rounds < tape.context.size:
            tape = new_tape(truth.world, rounds)
        WORLD["record"](Block(tape), truth.block, seed, run, first_round)
        for player in players:
            player.play(tape, first_round)
    return [player.outcome(keep_decisions=keep_decisions) for player in players]


def make_player(
    one: MadePolicy,
    scenario: Scenario,
    truth: Truth,
    *,
    seed: int,
    run: int,
    oracle: Floats | None = None,
    keep_arrivals: bool = False,
) -> Player:
    """Whoever plays this policy; one that cannot play this scenario says so here."""
    if isinstance(one, PolicyOptions):
        return CompiledPlayer(one, scenario, truth, seed=seed, run=run, oracle=oracle, keep_arrivals=keep_arrivals)
    if isinstance(one, External):
        return ExternalPlayer(one, scenario, truth, seed=seed, run=run, keep_arrivals=keep_arrivals)
    return PythonPlayer(one, policy_name(one), scenario, truth, seed=seed, run=run, keep_arrivals=keep_arrivals)


def _check_curves(policies: Sequence[MadePolicy]) -> None:
    for one in policies:
        if isinstance(one, PolicyOptions) and one.return_probability == "oracle":
            remedy = "is one curve for everybody, and people differ in speed; choose estimated or one"
            raise InvalidValue(f"return_probability of {one.name}", "oracle", remedy)


def _played(
    policies: Sequence[MadePolicy],
    tasks: Iterable[tuple[Scenario, int]],
    *,
    seed: int,
    keep_decisions: bool,
    keep_arrivals: bool,
    n_jobs: int,
) -> Iterator[list[Outcome]]:
    """The runs in the order of the tasks, one after the other or several at a time."""
    kept = {"keep_decisions": keep_decisions, "keep_arrivals": keep_arrivals}
    if n_jobs == 1:
        for scenario, run in tasks:
            yield play_run(policies, scenario, seed=seed, run=run, **kept)
        return
    import joblib  # here: a single worker does not wait for it, nor for its bookkeeping in every run

    # Compiled loops release the interpreter, so threads are enough; Python policies need processes.
    compiled = all(isinstance(one, PolicyOptions) for one in policies)
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads" if compiled else "processes", return_as="generator")
    yield from parallel(
        joblib.delayed(play_run)(policies, scenario, seed=seed, run=run, **kept) for scenario, run in tasks
    )


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
    except Exception as error:  # whatever a foreign object or generator raises
        raise InvalidValue(field, given, remedy) from error


def _policy(one: object) -> MadePolicy:
    if isinstance(one, str):
        return named_policy(one)
    if isinstance(one, PolicyOptions | External) or callable(one):
        return one
    raise InvalidValue("policy", one, "must be a name, doral.policy(...), or a class with decide and observe")


def _scenario(one: object) -> Scenario:
    if isinstance(one, str):
        return scenario_by_name(one)
    if isinstance(one, Scenario):
        return one
    raise InvalidValue("scenario", one, "must be a name or a doral.Scenario")


def _scenarios(given: str | Scenario | Iterable[str | Scenario]) -> list[Scenario]:
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
    keep_arrivals: bool = False,
    on_run: Callable[[], None] | None = None,
) -> SimulationResult:
    """Let policies play scenarios. In each run, all of them play the same draws, so differences are paired.

    `n_jobs` counts parallel workers as scikit-learn does (-1: all cores); results do not depend on it. `first_run`
    continues an earlier experiment: runs 50..99 of a seed are the same whether or not 0..49 were played.
    `keep_decisions` keeps every decision for `.decisions()`, `keep_arrivals` everybody who arrived, served or not, with
    the probability of what was done, for `.arrivals()`. `on_run` is called after each finished run.
    """
    chosen, places = made_policies(policies), _scenarios(scenario)
    runs = _check.whole_number("runs", runs, at_least=1, at_most=MAX_RUNS)
    first_run = _check.whole_number("first_run", first_run, at_least=0, at_most=MAX_RUNS)
    seed = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    n_jobs = checked_jobs(n_jobs)
    if not isinstance(keep_decisions, bool | np.bool_):
        raise InvalidValue("keep_decisions", keep_decisions, "must be True or False")
    if not isinstance(keep_arrivals, bool | np.bool_):
        raise InvalidValue("keep_arrivals", keep_arrivals, "must be True or False")
    if on_run is not None and not callable(on_run):
        raise InvalidValue("on_run", on_run, "must be a function without arguments, or None")
    for place in places:
        for one in chosen:
            if isinstance(one, PolicyOptions):
                check_size(policy=one, problem=place.problem)
            elif isinstance(one, External):
                check_size(policy=one.options, problem=one.problem_of(place.problem))
    outcomes: list[Outcome] = []
    tasks = ((place, run) for place in places for run in range(first_run, first_run + runs))
    kept = {"keep_decisions": bool(keep_decisions or keep_arrivals), "keep_arrivals": bool(keep_arrivals)}
    for played in _played(chosen, tasks, seed=seed, n_jobs=n_jobs, **kept):
        outcomes.extend(played)
        if on_run is not None:
            on_run()
    return SimulationResult(outcomes=tuple(outcomes), seed=seed)
