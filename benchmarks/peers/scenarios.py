"""Which scenarios are played, and how they are shortened: the same for DORAL and for everybody else."""

from __future__ import annotations

from doral.experiments.kit.cell import shrunk
from doral.simulation.scenario import Scenario
from doral.simulation.scenarios.catalogue import SCENARIOS

GROUPS = ("paper", "stress", "people")
ROUNDS = 2_000  # of a shortened scenario, about
LEAST_DEADLINES = 2  # a scenario keeps at least so many times its deadline: else nobody learns anything
TIMED = "paper/diverse-pareto"
SEED = 20_000  # of all tapes


def names() -> list[str]:
    """All of `doral scenarios`, in its order by group."""
    return [name for group in GROUPS for name in SCENARIOS if name.startswith(f"{group}/")]


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
