"""Cases in which decisions are compared: with those of the twin, and with recorded ones."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from doral.delays import ByOutcome, Exponential, Geometric, Never, Pareto
from doral.engine.options import POLICY_NAMES, PRESETS, PRINTED_READINGS, PolicyOptions, policy_of
from doral.problem import Arm, Context, Problem
from doral.simulation.scenario.arrivals import Arrivals, Bursts
from doral.simulation.scenario.scenario import Scenario
from tests.small_worlds import MIXED_LAWS, make_scenario

UNIT = make_scenario()
# Everything else at once: different costs, no deadline, learned shares, arms that are missing, answers that never come.
MIXED = make_scenario(
    costs=(1.0, 2.5, 0.7, 1.3, 2.5),
    budget=350.0,
    horizon=400,
    deadline=None,
    delays=MIXED_LAWS,
    shares=None,
    availability=(1.0, 0.6, 0.9, 0.8, 0.5),
    seed=3,
    name="mixed",
)
# Urgency: weights, deadlines and reserves by context; and a world that changes.
URGENT = Scenario(
    name="urgent",
    problem=Problem(
        arms=[Arm(f"a{i}", features=row, cost=1.0 + 0.5 * (i % 2)) for i, row in enumerate(UNIT.problem.features)],
        contexts=[
            Context("now", 0.15, weight=3, deadline=15, tier=2),
            Context("soon", 0.35, weight=1.5, tier=1),
            Context("some day", 0.5),
        ],
        budget=160.0,
        horizon=260,
        deadline=60.0,
        reserves={2: 0.15, 1: 0.2},
    ),
    delays=UNIT.delays,
    noise_sd=0.2,
    phases=3,
)
# Conversions: no news and a reward of zero look the same.
SILENT = Scenario(
    name="silent",
    problem=dataclasses.replace(MIXED.problem, feedback="silent", deadline=25.0, horizon=260, budget=230.0),
    delays=tuple((Geometric(3), Pareto(5, 2), Geometric(9), Pareto(2, 2), Geometric(30)) for _ in range(3)),
    shares=(0.4, 0.35, 0.25),
    means=np.random.default_rng(4).uniform(0.05, 0.6, (3, 5)),
    noise="bernoulli",
)
SMALL_WORLDS = [UNIT, MIXED, URGENT, SILENT]
# Good news travels fast, and bad news does not, except where it is the other way round.
TELLING = Scenario(
    name="telling",
    problem=dataclasses.replace(UNIT.problem, horizon=300, budget=220.0),
    delays=(
        ByOutcome(above=Geometric(2), below=Geometric(25), threshold=0.5),
        ByOutcome(above=Geometric(20), below=Geometric(4), threshold=0.5),
        ByOutcome(above=Pareto(3, 2), below=Geometric(40), threshold=0.5),
        Geometric(8),
        ByOutcome(above=Exponential(6), below=Never(Geometric(15), 0.3), threshold=0.5),
    ),
    means=np.random.default_rng(5).uniform(0.1, 0.8, (3, 5)),
    noise="bernoulli",
)
# Doing nothing has an outcome: one that is learned from those who are skipped, ...
_SPREAD = np.array([[0.9, -0.4, 0.3], [0.2, 0.8, 0.1], [0.5, 0.5, -0.6]])
WATCHED = Scenario(
    name="watched",
    problem=dataclasses.replace(UNIT.problem, budget=200.0, horizon=400, baseline="observed"),
    delays=(*UNIT.delays[0], Geometric(12)),
    theta=_SPREAD,
    baseline_means=[0.35, 0.05, 0.6],
    noise_sd=0.2,
)
# ... an arm with features like those of others, where arms may be missing, costs differ and shares are learned, ...
STANDARD = Scenario(
    name="standard",
    problem=dataclasses.replace(
        MIXED.problem,
        arms=tuple(
            dataclasses.replace(arm, cost=0.0 if i == 2 else arm.cost) for i, arm in enumerate(MIXED.problem.arms)
        ),
        baseline="a2",
        horizon=300,
        budget=200.0,
        deadline=35.0,
    ),
    delays=MIXED.delays,
    theta=_SPREAD,
    shares=(0.4, 0.35, 0.25),
    availability=(1.0, 0.6, 0.9, 0.8, 0.5),
    noise_sd=0.2,
)
# ... one that is known, with weights and reserves, ...
KNOWN = dataclasses.replace(
    URGENT,
    name="known",
    problem=dataclasses.replace(URGENT.problem, baseline=(0.4, 0.1, -0.2)),
    theta=tuple(map(tuple, _SPREAD.tolist())),
)
# ... conversions that would have come anyway; ...
ANYWAY = Scenario(
    name="anyway",
    problem=dataclasses.replace(SILENT.problem, baseline="observed"),
    delays=tuple((*laws, Geometric(6)) for laws in SILENT.delays),
    shares=SILENT.shares,
    means=np.random.default_rng(4).uniform(0.05, 0.6, (3, 5)),
    baseline_means=[0.3, 0.6, 0.02],
    noise="bernoulli",
)
# ... where nothing comes of nothing, and there is too little budget for planned tries; ...
HOPELESS = Scenario(
    name="hopeless",
    problem=Problem(
        arms=[Arm("small", cost=1.0), Arm("large", cost=10.0)],
        contexts={"x": 0.5, "y": 0.5},
        budget=100.0,
        horizon=400,
        deadline=50.0,
        baseline="observed",
    ),
    delays=Geometric(3),
    means=[[0.3, 0.6], [0.2, 0.5]],
    baseline_means=0.0,
    noise="bernoulli",
)
# ... and where everything is worse than nothing.
HARMFUL = Scenario(
    name="harmful",
    problem=dataclasses.replace(UNIT.problem, horizon=400),
    delays=UNIT.delays,
    theta=-0.3 * np.array(UNIT.theta),
    noise_sd=0.3,
)
# Offers that cost only where something comes of them, by context, some of them nothing; and money that is kept back.
_PRICES: tuple[float | dict[str, float], ...] = (2.0, {"now": 1.0, "soon": 3.0, "later": 0.7}, 1.5, 0.0, 4.0)
_OFFERS = Problem(
    arms=[Arm(f"a{i}", features=row, cost=_PRICES[i]) for i, row in enumerate(UNIT.problem.features)],
    contexts=[Context("now", 0.3, deadline=15), Context("soon", 0.3, weight=2), Context("later", 0.4)],
    budget=70.0,
    horizon=320,
    deadline=40.0,
    paid="on_answer",
)
_TAKE_UP = np.random.default_rng(6).uniform(0.05, 0.7, (3, 5))
OFFERS = Scenario(
    name="offers", problem=_OFFERS, delays=UNIT.delays, means=_TAKE_UP, noise="bernoulli", paid="on_success"
)
SILENT_OFFERS = dataclasses.replace(
    OFFERS, name="silent offers", problem=dataclasses.replace(_OFFERS, feedback="silent", reserve=0.9)
)
SOME_PAID = Scenario(
    name="some paid",
    problem=dataclasses.replace(_OFFERS, reserve=0.95, return_at_least=0.3),
    delays=UNIT.delays,
    theta=UNIT.theta,
    noise_sd=0.2,
    paid=_TAKE_UP,
)
QUICK_RACE: Mapping[str, Any] = {"min_answers": 4}

OPTION_VALUES: Mapping[str, tuple[Any, ...]] = {
    "screening": ("race", "none"),
    "accept": (None, 1, 2, 5),
    "censoring": ("returned", "min_age", "kaplan_meier", "instant"),
    "min_answers": (1, 10, 10**9),
    "race_budget_share": (0.0, 0.1, 0.4, 1.0),
    "cutoff": (None, 1.0, 7.5, 30.0, 1000.0, "adaptive", "none"),
    "learner": ("auto", "returned", "scaled", "thinned", "early"),
    "features": ("given", "none"),
    "prior": ("fixed", "noise", "shared", "cells"),
    "half_life": (None, 15.0, 300.0),
    "outcome_split": (None, 0.5, 0.9),
    "sampling": ("optimism", "thompson", "oracle"),
    "explore": (0.0, 0.1, 1.0),
    "pending": ("ignored", "expected"),
    "penalty": (0.01, 1.0, 30.0),
    "delta": (1e-12, 0.05, 1.0),
    "exploration": (0.0, 0.1, 1.0, 5.0),
    "bonus": ("corrected", "calibrated", "to_come"),
    "return_probability": ("estimated", "oracle", "one"),
    "curves_by": ("arm", "context"),
    "until_end": (True, False),
    "cost": ("list", "learned"),
    "pacing": ("lp", "coin", "greedy"),
    "rate": ("remaining", "period"),
    "periods": (1, 7, 50),
    "start_share": (0.0, 0.02, 0.3),
    "start_tries": (0, 9),
    "printed": ((), *((reading,) for reading in PRINTED_READINGS), PRINTED_READINGS),
}
# Options of arrivals with features have tests of their own.
OF_PEOPLE = {"reservoir", "basis", "products", "values"}
IN_NOISE = ("calibrated", "to_come")  # bonuses in units of measured noise


def completed(options: Mapping[str, Any], problem: Problem, *, option: str = "") -> dict[str, Any]:
    """Return options with what they cannot do without; `option` itself stays as it is."""
    chosen = dict(options)
    if option == "periods":
        chosen["rate"] = "period"
    if option == "start_share" and chosen["start_share"] > 0.0:
        chosen["screening"], chosen["prior"] = "none", "noise" if chosen["prior"] == "fixed" else chosen["prior"]
    if chosen["learner"] == "early" and chosen["return_probability"] != "estimated":
        word = option == "return_probability"
        chosen["learner" if word else "return_probability"] = "returned" if word else "estimated"
    if chosen["outcome_split"] is not None:
        if option in ("learner", "return_probability", "half_life"):
            chosen["outcome_split"] = None
        else:
            chosen["learner"] = "auto" if chosen["learner"] == "auto" else "returned"
            chosen["return_probability"], chosen["half_life"] = "estimated", None
    if chosen["rate"] == "period" and "rate" in chosen["printed"]:
        if option == "printed":
            chosen["rate"] = "remaining"
        else:
            chosen["printed"] = [reading for reading in chosen["printed"] if reading != "rate"]
    if chosen["sampling"] == "oracle" and "choice" in chosen["printed"]:
        if option == "printed":
            chosen["sampling"] = "optimism"
        else:
            chosen["printed"] = [reading for reading in chosen["printed"] if reading != "choice"]
    if chosen["return_probability"] != "estimated" and chosen["cutoff"] == "adaptive":
        if option == "cutoff":
            chosen["return_probability"] = "estimated"
        else:
            chosen["cutoff"] = 25.0
    in_noise = chosen["bonus"] in IN_NOISE and "bonus" not in chosen["printed"]
    if chosen["prior"] == "fixed" and (in_noise or chosen["sampling"] == "thompson"):
        if option == "prior":
            chosen["bonus"] = "corrected" if in_noise else chosen["bonus"]
            chosen["sampling"] = "optimism" if chosen["sampling"] == "thompson" else chosen["sampling"]
        else:
            chosen["prior"] = "noise"
    if chosen["learner"] == "thinned" and chosen["prior"] != "fixed":
        if option in ("prior", "bonus", "sampling", "features"):
            chosen["learner"] = "returned"
        else:
            chosen["prior"] = "fixed"
            chosen["sampling"] = "optimism" if chosen["sampling"] == "thompson" else chosen["sampling"]
            chosen["bonus"] = "corrected" if chosen["bonus"] in IN_NOISE else chosen["bonus"]
    in_noise = chosen["bonus"] in IN_NOISE and "bonus" not in chosen["printed"]
    if chosen["features"] == "none" and chosen["sampling"] != "thompson" and not in_noise:
        if option == "features":
            chosen["bonus"], chosen["prior"] = "calibrated", "shared"
            chosen["printed"] = [reading for reading in chosen["printed"] if reading != "bonus"]
            chosen["learner"] = "returned" if chosen["learner"] == "thinned" else chosen["learner"]
        else:
            chosen["features"] = "given"
    if chosen["learner"] == "thinned" and chosen["pending"] == "expected":
        chosen["learner" if option == "pending" else "pending"] = "returned" if option == "pending" else "ignored"
    if chosen["screening"] == "none" and chosen["cutoff"] is None and not np.isfinite(problem.deadlines).all():
        chosen["cutoff"] = 50.0
    if chosen["screening"] == "race" or chosen["prior"] == "fixed":
        chosen["start_share"] = 0.0
    return chosen


def changed(base: str, option: str, value: Any, problem: Problem) -> PolicyOptions:
    """Return a preset with one option changed, and what that cannot do without."""
    options = {**policy_of(base, {}).to_dict(), **QUICK_RACE, option: value}
    return PolicyOptions(**completed(options, problem, option=option))


def quick(name: str, problem: Problem, **changes: Any) -> PolicyOptions:
    """Return a preset whose race, if it has one, ends early."""
    return PolicyOptions(**completed({**policy_of(name, {}).to_dict(), **QUICK_RACE, **changes}, problem))


EVERY_VALUE = [(option, value) for option, values in OPTION_VALUES.items() for value in values]


class Case(NamedTuple):
    """A policy that plays a scenario."""

    name: str
    options: PolicyOptions
    scenario: Scenario


def presets(worlds: Sequence[Scenario] = SMALL_WORLDS, *, each: int = len(SMALL_WORLDS)) -> Iterator[Case]:
    """Yield every preset in so many worlds in turn; those that race, also with a race that ends early."""
    turns = itertools.cycle(worlds)
    for name, scenario in ((name, next(turns)) for name in POLICY_NAMES for _ in range(each)):
        options = PolicyOptions(**completed(policy_of(name, {}).to_dict(), scenario.problem))
        yield Case(f"preset {name} {scenario.name}", options, scenario)
        if options.screening == "race" and options.min_answers > QUICK_RACE["min_answers"]:
            yield Case(f"preset {name} quick {scenario.name}", policy_of(name, QUICK_RACE), scenario)


def option_values(
    base: str, worlds: Sequence[Scenario], values: Iterable[tuple[str, Any]] = EVERY_VALUE, *, each: int = 1
) -> Iterator[Case]:
    """Yield a preset with one option changed at a time, each in so many worlds in turn."""
    turns = itertools.cycle(worlds)
    for option, value in values:
        said = "+".join(value) if isinstance(value, tuple) else value
        for scenario in itertools.islice(turns, each):
            options = changed(base, option, value, scenario.problem)
            yield Case(f"option {base} {option}={said} {scenario.name}", options, scenario)


def outcomes_told_apart() -> Iterator[Case]:
    """Yield every prior, with and without features, after a race or without one, and cut-offs that may move."""
    told_apart = policy_of("doral-otf", {"outcome_split": 0.5, "cutoff": None, **QUICK_RACE}).to_dict()
    chosen = itertools.product(OPTION_VALUES["prior"], ("given", "none"), ("none", "race"), ("ignored", "expected"))
    for prior, features, screening, pending in chosen:
        changes = {"prior": prior, "features": features, "screening": screening, "pending": pending}
        if prior == "fixed":
            changes |= {"bonus": "corrected", "features": "given"}
        options = PolicyOptions(**completed({**told_apart, **changes}, TELLING.problem))
        yield Case(f"outcomes {prior} {features} {screening} {pending}", options, TELLING)
    for cutoff in ("adaptive", 6.0):
        options = policy_of("doral-otf", {"outcome_split": 0.5, "cutoff": cutoff})
        yield Case(f"outcomes cutoff={cutoff}", options, TELLING)


def ending(scenario: Scenario) -> Scenario:
    """Return a scenario in which only what has come by the last arrival counts."""
    problem = dataclasses.replace(scenario.problem, counted="by_end")
    return dataclasses.replace(scenario, problem=problem, name=f"{scenario.name}, by its end")


def by_end() -> Iterator[Case]:
    """Yield policies that foresee the end, and that do not."""
    for base, foresees, scenario in itertools.product(("doral-otf", "doral"), (True, False), map(ending, SMALL_WORLDS)):
        options = quick(base, scenario.problem, until_end=foresees)
        yield Case(f"by end {base} until_end={foresees} {scenario.name}", options, scenario)


def baselines() -> Iterator[Case]:
    """Yield problems in which skipping has an outcome, for every way in which arms are valued, chosen and paced."""
    for name, scenario in itertools.product(PRESETS, (WATCHED, STANDARD, KNOWN, ANYWAY)):
        yield Case(f"baseline {name} {scenario.name}", quick(name, scenario.problem), scenario)
    for name in ("doral-otf", "eva"):
        yield Case(f"harm {name}", policy_of(name, {}), HARMFUL)
        yield Case(f"hopeless {name}", policy_of(name, {}), HOPELESS)
    for words in ({"features": "none"}, {"pending": "ignored"}, {"sampling": "thompson"}):
        yield Case(f"baseline {words}", policy_of("doral-otf", words), WATCHED)


def by_date() -> Iterator[Case]:
    """Yield ends that are dates: with a guess that is half of the truth or none, with nights and bursts or without.

    Days are short, so that two weeks of them are over long before the end.
    """
    still, busy, lazy = (0.2,) * 12 + (1.8,) * 12, (1.0,) * 24, (1.2,) * 5 + (0.5,) * 2
    named = itertools.product(("doral-otf", "doral", "eva", "oracle"), SMALL_WORLDS, ("rhythm", "even"))
    for base, scenario, pace in named:
        given = scenario.problem
        until = 0.7 * given.horizon
        problem = dataclasses.replace(
            given,
            horizon=0,
            until=until,
            expected_arrivals=given.horizon // 2 if pace == "rhythm" else None,
            counted="by_end" if pace == "rhythm" else "within_deadline",
        )
        arrivals = Arrivals(
            number=given.horizon,
            day=until / 24,
            hours=still if pace == "rhythm" else busy,
            weekdays=lazy if pace == "rhythm" else (1.0,) * 7,
            bursts=Bursts(share=0.2, arrivals=8, length=until / 50) if pace == "rhythm" else None,
        )
        name = f"{scenario.name}, {pace}, to a date"
        place = dataclasses.replace(scenario, problem=problem, arrivals=arrivals, phases=1, name=name)
        yield Case(f"by date {base} {pace} {scenario.name}", quick(base, problem), place)


def learners() -> Iterator[Case]:
    """Yield every learner with every return probability, after a race or without one."""
    chosen = itertools.product(("returned", "scaled", "thinned"), ("estimated", "oracle", "one"), ("none", "race"))
    for learner, returns, screening in chosen:
        options = quick("doral", UNIT.problem, learner=learner, return_probability=returns, screening=screening)
        yield Case(f"learner {learner} {returns} {screening}", options, UNIT)


def explorers() -> Iterator[Case]:
    """Yield random options with every pace, in a race and after it, by optimism and by draws."""
    bases, places = ("doral", "doral-otf", "d-lints"), (UNIT, MIXED, URGENT)
    for pacing, base, scenario in itertools.product(("lp", "greedy", "coin"), bases, places):
        options = quick(base, scenario.problem, pacing=pacing, explore=0.15)
        yield Case(f"explore {base} {pacing} {scenario.name}", options, scenario)


def short_cutoffs() -> Iterator[Case]:
    """Yield cut-offs, with and without features: a decision that leaves the cut-off is not pending any more."""
    for base, cutoff, scenario in itertools.product(("eva", "doral-otf"), (2.0, 6.0, 20.0), SMALL_WORLDS):
        yield Case(f"cutoff {base} {cutoff} {scenario.name}", policy_of(base, {"cutoff": cutoff}), scenario)


def offers() -> Iterator[Case]:
    """Yield costs that are paid on answer: learned or not, with money reserved for all of it or for what is likely."""
    worlds = (OFFERS, SILENT_OFFERS, SOME_PAID)
    words: tuple[dict[str, Any], ...] = ({}, {"cost": "list"}, {"curves_by": "arm"}, {"half_life": 40.0})
    for changes, scenario in itertools.product(words, worlds):
        said = ", ".join(f"{name}={word}" for name, word in changes.items())
        yield Case(f"offers {said} {scenario.name}", policy_of("doral-otf", changes), scenario)
    for name, scenario in itertools.product(("eva", "d-linucb", "random"), worlds):
        yield Case(f"offers {name} {scenario.name}", policy_of(name, {}), scenario)


def distinct(cases: Iterable[Case]) -> list[Case]:
    """Return cases without those that repeat the policy and the scenario of an earlier one under another name."""
    found: dict[tuple[PolicyOptions, str], Case] = {}
    for case in cases:
        found.setdefault((dataclasses.replace(case.options, name="any"), case.scenario.name), case)
    return list(found.values())


def spread(cases: Iterable[Case], n: int) -> list[Case]:
    """Return n of the cases, evenly spread."""
    listed = list(cases)
    return [listed[i * len(listed) // n] for i in range(n)]
