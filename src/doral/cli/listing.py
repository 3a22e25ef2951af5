"""`doral scenarios` and `doral policies`: what there is, a line each, made from the things themselves."""

from __future__ import annotations

from doral.cli import terminal
from doral.engine.presets import POLICY_NAMES, policy
from doral.pages.numbers import number
from doral.simulation.rivals.catalogue import AT_LIST_PRICES, RIVALS
from doral.simulation.scenario import Scenario
from doral.simulation.scenarios.catalogue import SCENARIOS


def show_scenarios() -> None:
    """All scenarios."""
    rows = []
    for name, one in SCENARIOS.items():
        problem = one.problem
        deadline = "none" if problem.deadline is None else number(problem.deadline)
        sizes = [
            str(problem.n_arms),
            f"{problem.n_traits} features" if problem.person else str(problem.n_contexts),
            number(problem.budget),
            number(problem.expected_rounds),
            deadline,
        ]
        rows.append([name, *sizes, _delays(one)])
    heads = ["scenario", "arms", "contexts", "budget", "horizon", "deadline", "delays"]
    terminal.show_table(heads, rows, numbers=range(1, 6))


def _delays(scenario: Scenario) -> str:
    laws = list(dict.fromkeys(law for row in scenario.delays for law in row))
    kinds = ", ".join(dict.fromkeys(type(law).__name__ for law in laws))
    return f"{kinds}, {len(laws)} different" if len(laws) > 1 else kinds


def show_policies() -> None:
    """All policies, by their pieces."""
    rows = []
    for name in POLICY_NAMES:
        one = policy(name)
        rows.append([name, one.screening, one.learner, one.return_probability, one.pacing])
    rows += [[name, f"in Python, without features{_prices(name)}", "", "", ""] for name in RIVALS]
    terminal.show_table(["policy", "screening", "learner", "return probability", "pacing"], rows)


def _prices(rival: str) -> str:
    """Said where a rival does not learn what is paid."""
    return ", at list prices" if rival in AT_LIST_PRICES else ""
