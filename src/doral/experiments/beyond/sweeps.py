"""Why the settings of `doral-otf` are what they are: small sweeps, each with the question that it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from doral.engine.options import PolicyOptions
from doral.engine.options import make_policy as policy
from doral.experiments.beyond.altered_scenarios import (
    FIRSTS,
    with_end_and_horizon,
    with_first,
    with_horizon_and_budget,
    with_noise,
    with_rewards_times,
)
from doral.experiments.beyond.names import DIVERSE_PARETO, PAPER_SCENARIOS, REFERENCE, short_name
from doral.simulation.catalogue.lookup import SCENARIOS
from doral.simulation.scenario.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of a line: a policy on a scenario. Points of different panels have axes of their own."""

    x: str
    line: str
    scenario: Scenario
    policy: PolicyOptions
    panel: str = ""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A question about one setting, and the points that answer it."""

    name: str
    question: str
    x_label: str
    points: tuple[Point, ...]
    default: str | None = None
    """The x of the default, where x is the setting."""
    is_ordered: bool = True
    """Whether neighbours on the axis are neighbours in the matter, so that a line may join them."""


def _otf(**words: Any) -> PolicyOptions:
    return policy(REFERENCE, **words)


def _over_values(word: str, values: Iterable[Any], scenarios: Iterable[str]) -> tuple[Point, ...]:
    """One word of the policy over its values; a line per scenario."""
    return tuple(
        Point(
            x="none" if value is None else f"{value:,g}",
            line=short_name(name),
            scenario=SCENARIOS[name],
            policy=_otf(**{word: value}),
        )
        for name in scenarios
        for value in values
    )


def _over_named(lines: dict[str, dict[str, Any]], panels: dict[str, Iterable[str]]) -> tuple[Point, ...]:
    """Scenarios along the axis, in panels; a line per choice of words."""
    return tuple(
        Point(x=short_name(name), line=line, scenario=SCENARIOS[name], policy=_otf(**words), panel=panel)
        for panel, names in panels.items()
        for name in names
        for line, words in lines.items()
    )


def _over_altered(
    lines: dict[str, dict[str, Any]], values: Iterable[Any], make: Callable[[Any], Scenario]
) -> tuple[Point, ...]:
    """The scenario changes along the axis; a line per choice of words."""
    return tuple(
        Point(x=f"{value:,g}", line=line, scenario=make(value), policy=_otf(**words))
        for value in values
        for line, words in lines.items()
    )


_BONUSES: dict[str, dict[str, Any]] = {
    "to_come (the default)": {},
    "calibrated": {"bonus": "calibrated"},
    "corrected, as in DORAL": {"bonus": "corrected"},
}
_OUTCOMES: dict[str, dict[str, Any]] = {"not told apart (the default)": {}, "told apart": {"outcome_split": 0.5}}
_HORIZONS = (2_500, 5_000, 10_000, 20_000, 40_000, 85_000)

SWEEPS = (
    Sweep(
        name="race",
        question="Is it worth racing first?",
        x_label="horizon T, rounds",
        points=_over_altered(
            {"no race (the default)": {}, "a race first": {"screening": "race"}}, _HORIZONS, with_horizon_and_budget
        ),
    ),
    Sweep(
        name="prior",
        question="What is a prior that contexts share worth, and one in which cells deviate?",
        x_label="scenario",
        is_ordered=False,
        points=_over_named(
            {
                "cells (the default)": {},
                "shared: features are right": {"prior": "shared"},
                "noise: each theta for itself": {"prior": "noise"},
            },
            {
                "features help": ("stress/short", "stress/silent", "stress/many-arms"),
                "they do not": ("stress/wrong-features", "stress/no-features", "stress/tiny"),
            },
        ),
    ),
    Sweep(
        name="scale",
        question="Do decisions depend on the unit of the rewards?",
        x_label="rewards and noise are multiplied by",
        points=_over_altered(_BONUSES, (0.01, 0.1, 1, 10, 100), with_rewards_times),
    ),
    Sweep(
        name="noise",
        question="Does the bonus fit the noise?",
        x_label="standard deviation of the noise (rewards: 1.25 on average)",
        points=_over_altered(_BONUSES, (0, 0.03, 0.1, 0.3, 1), with_noise),
    ),
    Sweep(
        name="exploration",
        question="How much depends on the scale of the bonus?",
        x_label="exploration",
        points=_over_values(
            "exploration",
            (0.25, 0.5, 1, 2, 4),
            (DIVERSE_PARETO, "stress/costs", "stress/silent", "stress/short", "stress/many-arms"),
        ),
        default="1",
    ),
    Sweep(
        name="bonus",
        question="What is it worth to explore by how many it is for?",
        x_label="scenario",
        is_ordered=False,
        points=_over_named(
            {"to_come (the default)": {}, "calibrated: it grows with time": {"bonus": "calibrated"}},
            {
                "long": (DIVERSE_PARETO, "stress/costs", "stress/many-arms"),
                "short, or rare": ("stress/tiny", "stress/short", "stress/dear-is-right", "stress/rare"),
            },
        ),
    ),
    Sweep(
        name="start",
        question="What are planned first tries worth?",
        x_label="start_share, of the budget",
        points=_over_values(
            "start_share",
            (0, 0.01, 0.02, 0.05, 0.1, 0.2),
            (DIVERSE_PARETO, "stress/tiny", "stress/dear-is-right", "stress/no-features", "stress/rare"),
        ),
        default="0",
    ),
    Sweep(
        name="silence",
        question="Where feedback is silent: what is it worth to count answers as they come?",
        x_label="scenario",
        is_ordered=False,
        points=_over_named(
            {
                "as they come (the default)": {},
                "at the deadline": {"learner": "scaled"},
                "silence is a missing answer": {"learner": "returned"},
            },
            {"": ("stress/silent", "stress/silent-slow", "stress/rare")},
        ),
    ),
    Sweep(
        name="cost",
        question="What is it worth to learn what is paid?",
        x_label="scenario",
        is_ordered=False,
        points=_over_named(
            {"learned (the default)": {}, "list prices": {"cost": "list"}},
            {"paid on answer": ("stress/pay-on-success",), "paid always": ("stress/costs", "stress/dear-is-right")},
        ),
    ),
    Sweep(
        name="explore",
        question="What does a log cost that others can learn from?",
        x_label="explore, share of the arrivals",
        points=_over_values(
            "explore",
            (0, 0.01, 0.02, 0.05, 0.1),
            (DIVERSE_PARETO, "stress/costs", "stress/tiny", "stress/silent"),
        ),
        default="0",
    ),
    Sweep(
        name="pending",
        question="Should open decisions count?",
        x_label="horizon T, rounds",
        points=_over_altered(
            {"as expected (the default)": {}, "ignored": {"pending": "ignored"}}, _HORIZONS, with_horizon_and_budget
        ),
    ),
    Sweep(
        name="curves",
        question="What do return curves by context cost, and what do they win?",
        x_label="scenario",
        is_ordered=False,
        points=_over_named(
            {"by context (the default)": {}, "by arm": {"curves_by": "arm"}},
            {"delays by arm": PAPER_SCENARIOS, "delays by context": ("stress/context-delays",)},
        ),
    ),
    Sweep(
        name="end",
        question="Where only answers by the end count: what is it worth to foresee it?",
        x_label="horizon T, rounds",
        points=_over_altered(
            {"foreseen (the default)": {}, "not foreseen": {"until_end": False}}, _HORIZONS, with_end_and_horizon
        ),
    ),
    Sweep(
        name="outcomes",
        question="Where positive answers return sooner: are the others missed?",
        x_label="what returns first",
        is_ordered=False,
        points=tuple(
            Point(x=first, line=line, scenario=with_first(first), policy=_otf(**words))
            for first in FIRSTS
            for line, words in _OUTCOMES.items()
        ),
    ),
    Sweep(
        name="half_life",
        question="How quickly to forget?",
        x_label="half_life, rounds",
        points=_over_values(
            "half_life", (None, 40_000, 20_000, 10_000, 5_000, 2_500), ("stress/drift", "stress/never-30")
        ),
        default="none",
    ),
)
