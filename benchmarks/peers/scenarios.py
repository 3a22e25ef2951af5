"""Which scenarios are played, and how they are shortened: the same for DORAL and for everybody else."""

from __future__ import annotations

from doral.experiments.kit.batches import shrunk
from doral.simulation.catalogue.lookup import SCENARIOS
from doral.simulation.scenario.scenario import Scenario

GROUPS = ("paper", "stress", "people")
ROUNDS = 2_000  # of a shortened scenario, about
LEAST_DEADLINES = 2  # a scenario keeps at least so many times its deadline: else nobody learns anything
USUAL_ARMS = 10
TIMED = "paper/diverse-pareto"
SEED = 20_000  # of all tapes


def names() -> list[str]:
    """All of `doral scenarios`, in its order by group."""
    return [name for group in GROUPS for name in SCENARIOS if name.startswith(f"{group}/")]


def mixed(places: list[str]) -> list[str]:
    """The paper's first, then in turns from the groups, so that a call that runs out of time has some of each; the
    longest last."""
    groups = [[name for name in places if name.startswith(f"{group}/")] for group in GROUPS]
    length = {name: arriving(shortened(name)) * SCENARIOS[name].problem.n_arms for name in places}
    turns = {name: number / len(group) for group in groups for number, name in enumerate(group)}
    usual = ROUNDS * USUAL_ARMS
    return sorted(places, key=lambda name: (length[name] > 2 * usual, not name.startswith("paper/"), turns[name]))


def shortened(name: str, rounds: int | None = ROUNDS) -> Scenario:
    """With budget and horizon divided; delays and the deadline stay as they are. None: as it is."""
    scenario = SCENARIOS[name]
    if rounds is None:
        return scenario
    problem = scenario.problem
    least = rounds
    if problem.until is None and problem.deadline is not None:
        least = max(rounds, int(LEAST_DEADLINES * problem.deadline))
    return shrunk(scenario, max(1, arriving(scenario) // least))


def arriving(scenario: Scenario) -> int:
    """How many arrive, about."""
    number = getattr(scenario.arrivals, "number", None)
    return int(number) if number is not None else scenario.problem.expected_rounds
