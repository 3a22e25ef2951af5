"""Work is cut into tasks of a second or so: overheads are small, and a worker that dies takes little with it."""

from __future__ import annotations

from collections.abc import Sequence

from doral.engine.options import PolicyOptions
from doral.simulation.scenario.scenario import Scenario

# All in rounds of a compiled policy, of which a core plays some two million in a second.
TASK_WORK = 3_000_000.0
RUN_WORK = 1_500.0  # what a run costs before its first round, for each policy
PYTHON_ROUND_WORK = 50.0
TASKS_PER_WORKER = 4  # at least, where there are so many pieces: the last ones are not waited for long


def run_work(policies: Sequence[object], scenario: Scenario) -> float:
    """How much one run of these policies is."""
    rounds = float(scenario.problem.expected_rounds)
    return sum(RUN_WORK + rounds * (1.0 if isinstance(one, PolicyOptions) else PYTHON_ROUND_WORK) for one in policies)


def cut(works: Sequence[float], *, workers: int, most_items: int) -> list[range]:
    """Which pieces of work, by their positions, are one task: neighbours, as many as fit.

    >>> cut([1.0] * 5, workers=1, most_items=2)
    [range(0, 1), range(1, 2), range(2, 3), range(3, 4), range(4, 5)]
    >>> cut([1.0] * 100, workers=2, most_items=10)[:2]
    [range(0, 10), range(10, 20)]
    """
    limit = min(TASK_WORK, sum(works) / (TASKS_PER_WORKER * workers))
    tasks: list[range] = []
    first, work = 0, 0.0
    for i, one in enumerate(works):
        if i > first and (work + one > limit or i - first == most_items):
            tasks.append(range(first, i))
            first, work = i, 0.0
        work += one
    if first < len(works):
        tasks.append(range(first, len(works)))
    return tasks
