"""What a scenario shows of itself: a line, and a card in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from doral._shown_problem import called, problem_in_words
from doral.pages.notebook import card, note, small_table
from doral.simulation.sums import product

if TYPE_CHECKING:
    from doral.simulation.scenario.scenario import Scenario

_MOST_ARMS, _MOST_CONTEXTS = 8, 12  # in a table
_MOST_LAWS = 6


def in_words(scenario: Scenario) -> str:
    """One line."""
    asked = problem_in_words(scenario.problem).removeprefix("<Problem: ").removesuffix(">")
    if _is_guessed(scenario):
        n_contexts = scenario.problem.n_contexts
        asked = asked.replace(f"{n_contexts:,} contexts", f"{n_contexts:,} contexts that come equally often", 1)
    return f"<Scenario {called(scenario.name)!r}: {asked}, {_rewards(scenario)}>"


def scenario_card(scenario: Scenario) -> str:
    """For a notebook."""
    problem = scenario.problem
    facts = [
        ("Asked", problem_in_words(problem).removeprefix("<Problem: ").removesuffix(">")),
        ("Rewards", f"{_rewards(scenario)}, noise {scenario.noise}"),
        ("Delays", _delays(scenario)),
    ]
    if scenario.people is not None:
        facts.append(
            ("People", f"{scenario.population:,}" + (", drawn for each run" if callable(scenario.people) else ""))
        )
    if scenario.availability is not None:
        facts.append(("Available", f"{min(scenario.availability):.0%} to {max(scenario.availability):.0%} of the time"))
    if scenario.paid != "always":
        facts.append(("Paid", scenario.paid.replace("_", " ") if isinstance(scenario.paid, str) else "by chance"))
    if scenario.arrivals is not None:
        facts.append(("Arrivals", repr(scenario.arrivals).strip("<>")))
    if scenario.phases > 1:
        facts.append(("Phases", str(scenario.phases)))
    return card(f"Scenario {called(scenario.name)}", facts, parts=_tables(scenario))


def _tables(scenario: Scenario) -> list[str]:
    """Who comes how often, and what arms bring there, where that is known before."""
    if scenario.people is not None:
        return []
    problem, means = scenario.problem, _known_means(scenario)
    names = problem.arm_names[:_MOST_ARMS] if means is not None else ()
    rows = [
        (
            called(name),
            f"{share:.3g}",
            *(() if means is None else (f"{mean:.3g}" for mean in means[j][: len(names)])),
        )
        for j, (name, share) in enumerate(zip(problem.context_names, scenario.shares, strict=True))
        if j < _MOST_CONTEXTS
    ]
    heads = ("Context", "Share", *(f"Mean of {called(name)}" for name in names))
    parts = [small_table(heads, rows, numbers=range(1, len(heads)))]
    if _is_guessed(scenario):
        parts.append(
            note("The problem learns the shares. Here contexts come equally often; shares=... says otherwise.")
        )
    if problem.n_contexts > _MOST_CONTEXTS or (means is not None and problem.n_arms > _MOST_ARMS):
        parts.append(note(f"The first of {problem.n_contexts:,} contexts and {problem.n_arms:,} arms."))
    return parts


def _known_means(scenario: Scenario) -> np.ndarray | None:
    if scenario.means is not None:
        return np.asarray(scenario.means)
    if scenario.theta is not None and scenario.features == "given":
        return product(np.array(scenario.theta), scenario.problem.features.T)
    return None


def _is_guessed(scenario: Scenario) -> bool:
    """Whether shares are what they are because nobody said them."""
    if scenario.people is not None or scenario.problem.shares is not None or scenario.problem.n_contexts == 1:
        return False
    return len({*scenario.shares}) == 1


def _rewards(scenario: Scenario) -> str:
    if scenario.people is not None:
        return "means by person"
    if scenario.rows is not None:
        return f"{scenario.rows.reward.size:,} observed rows"
    means = _known_means(scenario)
    if means is None:
        return "means drawn for each run"
    return f"means {means.min():.3g} to {means.max():.3g}"


def _delays(scenario: Scenario) -> str:
    if scenario.rows is not None:
        return "as in the rows"
    laws = list(dict.fromkeys(repr(law) for row in scenario.delays for law in row))
    more = len(laws) - _MOST_LAWS
    return "; ".join(laws[:_MOST_LAWS]) + (f"; and {more:,} more" if more > 0 else "")
