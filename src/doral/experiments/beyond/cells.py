"""What is compared, as data: scenarios, variants, sweeps over settings, and how much of it is run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from doral.delays import ByOutcome, Geometric, Law
from doral.engine.options import PRESETS, PolicyOptions
from doral.engine.options import make_policy as policy
from doral.experiments.kit.batches import Cell, Extent, Variant, base_name, shrunk
from doral.problem import Arm
from doral.simulation.catalogue import paper as paper_scenarios
from doral.simulation.catalogue.lookup import CLASS_SCENARIOS, SCENARIOS
from doral.simulation.catalogue.paper import NOISE_SD
from doral.simulation.catalogue.stress import HORIZON
from doral.simulation.rivals.rival import NamedPolicy
from doral.simulation.scenario.scenario import Scenario

REFERENCE = "doral-otf"
"""The policy that sweeps, variants and most claims are about."""
PAPER_SCENARIOS = tuple(paper_scenarios.SCENARIOS)
STRESS_SCENARIOS = tuple(name for name in CLASS_SCENARIOS if name not in PAPER_SCENARIOS)
DIVERSE_PARETO = "paper/diverse-pareto"


def short_name(scenario: str) -> str:
    """A scenario without its family.

    >>> short_name("stress/many-arms")
    'many-arms'
    """
    return scenario.rpartition("/")[2]


def changed_words(name: str) -> str:
    """The changed words of a variant, as they are given to `doral.policy`.

    >>> changed_words("doral-otf(curves_by=arm)")
    'curves_by=arm'
    """
    return name.partition("(")[2].removesuffix(")")


POSITIVES_FIRST = "stress/positives-first"

_SOON, _LATER = Geometric(150), Geometric(3_000)
FIRSTS: dict[str, tuple[Law, Law]] = {
    "positives": (_SOON, _LATER),
    "neither": (Geometric(500), Geometric(500)),
    "negatives": (_LATER, _SOON),
}
"""Which answers return first, and the delays of those above and below the split."""


def with_noise(noise_sd: float) -> Scenario:
    """Diverse Pareto delays with another noise of the rewards."""
    base = SCENARIOS[DIVERSE_PARETO]
    return dataclasses.replace(base, name=f"{base.name}@noise={noise_sd:g}", noise_sd=noise_sd)


def with_rewards_times(scale: float) -> Scenario:
    """Diverse Pareto delays with rewards in another unit of money: means and noise are multiplied, nothing else.

    Drawn parameters have no scale, so that theta and features are fixed numbers here, spread over (0, 1).
    """
    base = SCENARIOS[DIVERSE_PARETO]
    n_arms, n_features = base.problem.n_arms, base.problem.n_features
    numbers = np.modf(np.outer(np.arange(1, n_arms + base.problem.n_contexts + 1), np.sqrt([2, 3, 5, 7, 11])))[0]
    numbers = numbers[:, :n_features]
    features = numbers[:n_arms].tolist()
    arms = tuple(Arm(f"arm-{number}", features=row) for number, row in enumerate(features, start=1))
    return dataclasses.replace(
        base,
        name=f"{base.name}@rewards*{scale:g}",
        problem=dataclasses.replace(base.problem, arms=arms),
        theta=(scale * numbers[n_arms:]).tolist(),
        features="given",
        noise_sd=scale * NOISE_SD,
    )


def with_horizon_and_budget(horizon: int) -> Scenario:
    """Diverse Pareto delays over another horizon, with a budget for half of the rounds as before."""
    base = SCENARIOS[DIVERSE_PARETO]
    problem = dataclasses.replace(base.problem, horizon=horizon, budget=base.problem.rate * horizon)
    return dataclasses.replace(base, name=f"{base.name}@T={horizon}", problem=problem)


def with_end_and_horizon(horizon: int) -> Scenario:
    """The same, where only what has come by the last arrival counts."""
    base = with_horizon_and_budget(horizon)
    problem = dataclasses.replace(base.problem, counted="by_end")
    return dataclasses.replace(base, name=f"{base.name},by-end", problem=problem)


def with_first(first: str) -> Scenario:
    """Coins for rewards, of which one side returns sooner than the other, or neither."""
    base = SCENARIOS[POSITIVES_FIRST]
    above, below = FIRSTS[first]
    law = ByOutcome(above=above, below=below, threshold=0.5)
    return dataclasses.replace(base, name=f"{base.name}@first={first}", delays=((law,) * base.problem.n_arms,))


def _without(says: str, **words: Any) -> Variant:
    return Variant(policy=policy(REFERENCE, **words), says=says, reference=REFERENCE)


INGREDIENTS = (
    _without("a race first, as in the paper", screening="race"),
    _without("each theta shrunk to 0, not to their common mean", prior="noise"),
    _without("features are taken to be right", prior="shared"),
    _without("the bonus of the paper, not in units of the noise", bonus="corrected"),
    _without("a bonus that grows with time, not by how many it is for", bonus="calibrated"),
    _without("planned first tries", start_share=0.05),
    _without("open decisions do not narrow the bonus", pending="ignored"),
    _without("one return curve per arm, for all contexts", curves_by="arm"),
    _without("every answer is thought to return", return_probability="one", cutoff=None),
    _without("silence is read as a missing answer", learner="returned"),
    _without("silence is learned at the deadline", learner="scaled"),
    _without("budget spent as it comes, without the LP", pacing="greedy"),
    _without("Thompson sampling instead of optimism", sampling="thompson", exploration=0.5),
    _without("no features: every context and arm for itself", features="none"),
    _without("answers of 0 and of 1 have return curves of their own", outcome_split=0.5),
    _without("what was learned counts half after a third of a stress scenario", half_life=HORIZON // 3),
)
"""Every piece without which, or with another in its place, `doral-otf` is played."""


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


TABLE = "table"
INGREDIENTS_STUDY = "ingredients"
COURSE_STUDY = "course"

COURSE_SCENARIOS = (
    "paper/similar-geometric",
    "paper/diverse-pareto",
    "stress/context-delays",
    "stress/costs",
    "stress/drift",
)
"""Where the cut-off and the arms in play are followed over time."""


@dataclass(frozen=True, kw_only=True)
class BeyondExtent(Extent):
    """Also which policies play which scenarios."""

    policies: tuple[NamedPolicy, ...] = tuple(policy(name) for name in PRESETS if name != "oracle")
    scenarios: tuple[Scenario, ...] = tuple(CLASS_SCENARIOS.values())

    @property
    def with_sides(self) -> bool:
        """Ingredients and sweeps are about `doral-otf`: they are run where it is."""
        return super().with_sides and policy(REFERENCE) in self.policies

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """Those that the chosen scenarios can answer, with their points on them."""
        if not self.with_sides:
            return ()
        chosen = {one.name for one in self.scenarios}
        cut = (
            dataclasses.replace(
                sweep, points=tuple(one for one in sweep.points if base_name(one.scenario.name) in chosen)
            )
            for sweep in SWEEPS
        )
        return tuple(sweep for sweep in cut if sweep.points)


FULL = BeyondExtent(runs=20, side_runs=20)
QUICK = BeyondExtent(runs=3, side_runs=2, shrink=5)


def study_of(sweep: Sweep) -> str:
    """The study in which a sweep is run."""
    return f"choice {sweep.name}"


def table_cells(extent: BeyondExtent) -> Iterable[Cell]:
    """Every policy on every scenario."""
    for scenario in extent.scenarios:
        yield Cell(
            study=TABLE,
            scenario=shrunk(scenario, extent.shrink),
            policies=extent.policies,
            runs=extent.runs,
            keep_curves=scenario.name == DIVERSE_PARETO,  # which is shown over time, too
        )


def ingredient_cells(extent: BeyondExtent) -> Iterable[Cell]:
    """`doral-otf` and everything that lacks one of its ingredients, on every scenario."""
    policies = (policy(REFERENCE), *(variant.policy for variant in INGREDIENTS))
    for scenario in extent.scenarios:
        yield Cell(
            study=INGREDIENTS_STUDY, scenario=shrunk(scenario, extent.shrink), policies=policies, runs=extent.side_runs
        )


def course_cells(extent: BeyondExtent) -> Iterable[Cell]:
    """`doral-otf` with its course kept: how m and the arms in play move over time."""
    for scenario in extent.scenarios:
        if extent.with_sides and scenario.name in COURSE_SCENARIOS:
            yield Cell(
                study=COURSE_STUDY,
                scenario=shrunk(scenario, extent.shrink),
                policies=(policy(REFERENCE),),
                runs=extent.side_runs,
                keep_curves=True,
            )


def sweep_cells(sweep: Sweep, extent: BeyondExtent) -> Iterable[Cell]:
    """The points of a sweep; those on one scenario are played together."""
    scenarios = {point.scenario.name: point.scenario for point in sweep.points}
    for name, scenario in scenarios.items():
        policies = {point.policy.name: point.policy for point in sweep.points if point.scenario.name == name}
        yield Cell(
            study=study_of(sweep),
            scenario=shrunk(scenario, extent.shrink),
            policies=tuple(policies.values()),
            runs=extent.side_runs,
        )


def cells(extent: BeyondExtent) -> list[Cell]:
    """Everything that is run, the table first."""
    sides = ingredient_cells(extent) if extent.with_sides else ()
    swept = (cell for sweep in extent.sweeps for cell in sweep_cells(sweep, extent))
    return [*table_cells(extent), *sides, *course_cells(extent), *swept]
