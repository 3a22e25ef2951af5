"""What a result shows of itself: a line, a table for terminals, a card for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from doral.pages.names import short
from doral.pages.notebook import card, note, small_table
from doral.pages.numbers import DASH, count, number, spread
from doral.simulation.results.intervals import FEWEST_RUNS

if TYPE_CHECKING:
    from doral.simulation.results.result import SimulationResult

_MOST_SCENARIOS = 12  # more are for `summary()`
_MOST_POLICIES = 40
TOO_LATE = "rewards came, but none within the deadline: is it in rounds (seconds where the end is a date)?"
_WIDEST_NAME = 28  # letters; with the numbers, a line has 80 of them
_HEADS = ("policy", "reward", "% of best", "paired difference [95%]")


def line(result: SimulationResult) -> str:
    """All there is, in a line."""
    scenarios, policies = result.scenarios, result.policies
    where = f"on {short(scenarios[0], 60)}" if len(scenarios) == 1 else f"on {len(scenarios)} scenarios"
    who = short(", ".join(policies), 60) if len(policies) <= 3 else f"{len(policies)} policies"
    kept = ", decisions kept" if result.outcomes and all(one.arrivals is not None for one in result.outcomes) else ""
    return f"<SimulationResult: {who} {where}, {_runs(result)}, seed {result.seed}{kept}>"


def _runs(result: SimulationResult, scenario: str | None = None) -> str:
    runs = {one.run for one in result.outcomes if scenario in (None, one.scenario)}
    return count(len(runs), "run", "runs")


def text(result: SimulationResult) -> str:
    """A table that fits a terminal of 80 columns."""
    blocks = []
    for scenario in result.scenarios[:_MOST_SCENARIOS]:
        rows = [_HEADS, *((short(name, _WIDEST_NAME), *rest) for name, *rest in _rows(result, scenario))]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADS))]
        lines = [
            "  ".join([f"{row[0]:<{widths[0]}}", *(f"{row[i]:>{widths[i]}}" for i in range(1, len(_HEADS)))]).rstrip()
            for row in rows
        ]
        title = f"{short(scenario, 50)}, {_runs(result, scenario)}, seed {result.seed}"
        blocks.append("\n".join([title, *lines, *_left_out(result, scenario)]))
    notes = _notes(result)
    return "\n\n".join([*blocks, "\n".join(notes)] if notes else blocks)


def html(result: SimulationResult) -> str:
    """The same for notebooks."""
    parts = []
    for scenario in result.scenarios[:_MOST_SCENARIOS]:
        parts += [
            note(f"{scenario}, {_runs(result, scenario)}"),
            small_table(_HEADS, _rows(result, scenario), numbers=(1, 2, 3)),
            *map(note, _left_out(result, scenario)),
        ]
    parts += [note(words) for words in _notes(result)]
    facts = [
        ("policies", short(", ".join(result.policies), 300)),
        ("scenarios", short(", ".join(result.scenarios), 300)),
        ("runs", _runs(result).split()[0]),
        ("seed", str(result.seed)),
    ]
    return card("Result of a simulation", facts, parts=parts)


def _rows(result: SimulationResult, scenario: str) -> list[tuple[str, str, str, str]]:
    """Per policy: its name, reward, percent of the oracle's, and what it earns more than the first."""
    policies, rows = result.policies_in(scenario), []
    for policy in policies[:_MOST_POLICIES]:
        rewards = result.rewards(scenario, policy)
        best = float(np.mean([one.oracle for one in result.of(scenario, policy)]))
        share = f"{number(100.0 * float(rewards.mean()) / best, 1)}%" if best > 0.0 else DASH
        rows.append((policy, number(float(rewards.mean()), 1), share, _paired(result, scenario, policies[0], policy)))
    return rows


def _paired(result: SimulationResult, scenario: str, first: str, policy: str) -> str:
    if policy == first:
        return DASH
    one = result.difference(policy, first, scenario=scenario)
    mean = number(one.mean, 1, signed=True)
    return mean if one.low is None else f"{mean} {spread(one.low, one.high, 1)}"


def _left_out(result: SimulationResult, scenario: str) -> list[str]:
    left = len(result.policies_in(scenario)) - _MOST_POLICIES
    return [f"and {count(left, 'more policy', 'more policies')}: result.summary() has them"] if left > 0 else []


def _notes(result: SimulationResult) -> list[str]:
    notes = ["best: the oracle, which knows what every arm is worth; rewards in time"]
    if len(result.policies) > 1:
        few = "" if len({one.run for one in result.outcomes}) >= FEWEST_RUNS else f"; intervals from {FEWEST_RUNS} runs"
        notes.append(f"paired difference: to the first policy, in the same runs{few}")
    notes += [f"{short(name, 50)}: {TOO_LATE}" for name in result.too_late[:_MOST_SCENARIOS]]
    left = len(result.scenarios) - _MOST_SCENARIOS
    if left > 0:
        notes.append(f"and {count(left, 'more scenario', 'more scenarios')}: result.summary() has them")
    return notes
