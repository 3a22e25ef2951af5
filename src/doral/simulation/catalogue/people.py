"""Scenarios in which arrivals have features. People, effects and levels are drawn anew for every run.

Effects are in units of reward for a standard deviation of a feature, in any unit. In sum, what features do
for all arms alike, what they do for each arm, and what arms differ by on average are of the same size, 0.1; none of the
numbers was chosen with a policy in view. What matters stands first among the features, which is what a cut into strata
begins with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doral._arrays import Floats
from doral.numerics.elementary import exp, product
from doral.person import Category, Number
from doral.problem import Arm, Problem
from doral.simulation.catalogue.paper import (
    DEADLINE_ROUNDS,
    DIVERSE_PARETO,
    NOISE_SD,
    SHARES,
    drawn_arms,
    numbered_arms,
    spread,
)
from doral.simulation.catalogue.paper import SCENARIOS as PAPER
from doral.simulation.scenario.people import Columns
from doral.simulation.scenario.scenario import Scenario

HORIZON, BUDGET = 60_000, 30_000
N_ARMS = 10
SIZE = 0.1  # of each part of what arms bring, as a standard deviation
LEVEL = 0.5
REWARD_SD = 0.3

# Mean and standard deviation of each, so that an effect is one for a standard deviation.
NUMBERS: Mapping[str, tuple[float, float]] = {
    "age": (54.0, 72.0 / 12.0**0.5),
    "distance_km": (12.0, 6.0 * 2.0**0.5),
    "visits": (2.0, 2.0**0.5),
    "income_eur": (3_200.0, 1_600.0),
    "returning": (0.3, 0.21**0.5),
}


def _numbers(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {
        "age": rng.uniform(18.0, 90.0, n),
        "distance_km": rng.gamma(2.0, 6.0, n),
        "visits": rng.poisson(2.0, n).astype(np.float64),
        "income_eur": rng.gamma(4.0, 800.0, n),
        "returning": (rng.random(n) < 0.3).astype(np.float64),
    }


def standardised(people: Columns, names: Sequence[str]) -> Floats:
    """(N, features) numbers less their mean, in standard deviations."""
    return np.column_stack([(people[name] - NUMBERS[name][0]) / NUMBERS[name][1] for name in names])


@dataclass(frozen=True)
class Visitors:
    """The first of the numbers, and so many more that have to do with nothing, each in a unit of its own."""

    names: tuple[str, ...] = tuple(NUMBERS)
    noise: int = 0
    postcodes: int = 0

    def __call__(self, rng: np.random.Generator, n: int) -> dict[str, Any]:
        drawn = _numbers(rng, n)
        columns = {name: drawn[name] for name in self.names}
        for number in range(1, self.noise + 1):
            columns[f"noise_{number}"] = rng.normal(number, float(number), n)
        if self.postcodes:
            columns["postcode"] = np.array(postcode_names(self.postcodes))[self._postcode(rng, n)]
        return columns

    def _postcode(self, rng: np.random.Generator, n: int) -> Any:
        """The second largest has half of the people of the largest, and so on."""
        shares = 1.0 / np.arange(1, self.postcodes + 1)
        return rng.choice(self.postcodes, size=n, p=shares / shares.sum())


def postcode_names(n: int) -> list[str]:
    return [f"{10_000 + 137 * number}" for number in range(1, n + 1)]


@dataclass(frozen=True)
class Lines:
    """Levels of arms, and effects of features: for all arms alike, and for each arm."""

    names: tuple[str, ...] = tuple(NUMBERS)
    phases: int = 1

    def __call__(self, people: Columns, features: Floats, rng: np.random.Generator) -> Floats:
        x = standardised(people, self.names)
        return np.array([lines(rng, x, len(features)) for _ in range(self.phases)])


def lines(rng: np.random.Generator, x: Floats, n_arms: int) -> Floats:
    """(N, A)."""
    each = SIZE / x.shape[1] ** 0.5
    levels, alike = rng.normal(LEVEL, SIZE, n_arms), rng.normal(0.0, each, (x.shape[1], 1))
    return np.asarray(levels + product(x, alike + rng.normal(0.0, each, (x.shape[1], n_arms))))


@dataclass(frozen=True)
class OfArmFeatures:
    """What people make of an arm goes by what it is like; a third of that is the arm's own."""

    def __call__(self, people: Columns, features: Floats, rng: np.random.Generator) -> Floats:
        x = standardised(people, tuple(NUMBERS))
        k, n_arms = features.shape[1], len(features)
        f = (features - features.mean(axis=0)) / features.std(axis=0)
        each = SIZE / x.shape[1] ** 0.5
        levels = LEVEL + product(f, rng.normal(0.0, SIZE / k**0.5, k)) + rng.normal(0.0, SIZE / 3.0, n_arms)
        by_features = product(rng.normal(0.0, each / k**0.5, (x.shape[1], k)), f.T)
        own = rng.normal(0.0, each / 3.0, (x.shape[1], n_arms))
        return np.asarray(levels + product(x, rng.normal(0.0, each, (x.shape[1], 1)) + by_features + own))


@dataclass(frozen=True)
class StepsAndProducts:
    """A number counts by the third of the people that it falls into, with thirds of any size; and pairs of them do."""

    def __call__(self, people: Columns, features: Floats, rng: np.random.Generator) -> Floats:
        names, n_arms = tuple(NUMBERS), len(features)
        x = standardised(people, names)
        means = np.tile(rng.normal(LEVEL, SIZE, n_arms), (len(x), 1))
        each = SIZE / len(names) ** 0.5
        for column in x.T:
            part = np.searchsorted(np.quantile(column, np.sort(rng.uniform(0.1, 0.9, 2))), column, side="right")
            means += (rng.normal(0.0, each, (3, 1)) + rng.normal(0.0, each, (3, n_arms)))[part]
        pairs = [(i, j) for i in range(len(names)) for j in range(i)]
        for i, j in pairs:
            means += (x[:, i] * x[:, j])[:, None] * rng.normal(0.0, SIZE / len(pairs) ** 0.5, n_arms)
        return means


@dataclass(frozen=True)
class LinesAndPostcodes:
    """A postcode is worth something for all arms alike, and half as much more for each arm."""

    names: tuple[str, ...]
    postcodes: int

    def __call__(self, people: Columns, features: Floats, rng: np.random.Generator) -> Floats:
        n_arms = len(features)
        number = {name: i for i, name in enumerate(postcode_names(self.postcodes))}
        lived = np.array([number[name] for name in people["postcode"].tolist()])
        alike, own = rng.normal(0.0, SIZE, (self.postcodes, 1)), rng.normal(0.0, SIZE / 2.0, (self.postcodes, n_arms))
        return lines(rng, standardised(people, self.names), n_arms) + (alike + own)[lived]


@dataclass(frozen=True)
class Conversions:
    """Chances of about one in eight, whose odds go by lines."""

    usual: float = 0.125
    times: float = 4.0  # the effects on rewards, as effects on logarithms of odds

    def __call__(self, people: Columns, features: Floats, rng: np.random.Generator) -> Floats:
        score = self.times * (lines(rng, standardised(people, tuple(NUMBERS)), len(features)) - LEVEL)
        return np.asarray(1.0 / (1.0 + exp(math.log(1.0 / self.usual - 1.0) - score)))


@dataclass(frozen=True)
class Speed:
    """Some answer sooner than others: effects on the logarithm of the hazard, a third of its standard deviation."""

    def __call__(self, people: Columns, features: Floats, rng: np.random.Generator) -> Floats:
        x = standardised(people, tuple(NUMBERS))
        return exp(np.clip(product(x, rng.normal(0.0, 1.0 / (3.0 * x.shape[1] ** 0.5), x.shape[1])), -3.0, 3.0))


@dataclass(frozen=True)
class OlderFirst:
    """At first mostly older people come, in the end mostly younger ones."""

    phases: int

    def __call__(self, people: Columns, features: Floats) -> Floats:
        age = standardised(people, ("age",))[:, 0]
        return exp(np.linspace(1.0, -1.0, self.phases)[:, None] * age)


@dataclass(frozen=True)
class OneThetaEach:
    """The paper's rewards: what the arms' features are worth to a class is drawn from U(0, 1)."""

    def __call__(self, people: Columns, features: Floats, rng: np.random.Generator) -> Floats:
        which = np.column_stack(list(people.values()))
        return product(product(which, rng.random((which.shape[1], features.shape[1]))), features.T)


def _problem(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "arms": [Arm(f"arm-{number}") for number in range(1, N_ARMS + 1)],
        "person": list(NUMBERS),
        "budget": BUDGET,
        "horizon": HORIZON,
        "deadline": DEADLINE_ROUNDS,
    }
    return Problem(**(given | changes))


def _scenario(name: str, problem: Problem, **changes: Any) -> Scenario:
    given: dict[str, Any] = {"people": Visitors(), "means": Lines(), "delays": DIVERSE_PARETO, "noise_sd": REWARD_SD}
    return Scenario(name=f"people/{name}", problem=problem, **(given | changes))


def many(noise: int = 45) -> Scenario:
    """Five numbers that matter among fifty."""
    people = Visitors(noise=noise)
    names = [*NUMBERS, *(f"noise_{number}" for number in range(1, noise + 1))]
    return _scenario("many", _problem(person=names), people=people)


def categories(postcodes: int = 500) -> Scenario:
    """Postcodes of which most are rare, and three numbers."""
    names = tuple(NUMBERS)[:3]
    problem = _problem(person=[Category("postcode"), *(Number(name) for name in names)])
    return _scenario(
        "categories",
        problem,
        people=Visitors(names=names, postcodes=postcodes),
        means=LinesAndPostcodes(names, postcodes),
    )


def drift(phases: int = 3) -> Scenario:
    """Everything that features do changes twice, and so do those who come."""
    return _scenario("drift", _problem(), phases=phases, means=Lines(phases=phases), frequencies=OlderFirst(phases))


def one_class_each(
    paper: str = "paper/diverse-pareto", *, horizon: int = HORIZON, budget: float = BUDGET, name: str = "one-class-each"
) -> Scenario:
    """A scenario of the paper whose classes are features, one 0 or 1 for each; stratified, it is the class model's."""
    classes = np.eye(len(SHARES))
    person = [f"is_{context}" for context in PAPER[paper].problem.context_names]
    return _scenario(
        name,
        _problem(arms=drawn_arms([1.0] * N_ARMS), person=person, horizon=horizon, budget=budget),
        people=classes,
        means=OneThetaEach(),
        frequencies=SHARES,
        features="drawn",
        delays=PAPER[paper].delays,
        noise_sd=NOISE_SD,
    )


def silent() -> Scenario:
    """Conversions with silent feedback, sooner with some people than with others."""
    return _scenario("silent", _problem(feedback="silent"), means=Conversions(), noise="bernoulli", speed=Speed())


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        _scenario("linear", _problem()),
        _scenario("hybrid", _problem(arms=numbered_arms(spread(1, N_ARMS, 4))), means=OfArmFeatures()),
        _scenario("nonlinear", _problem(), means=StepsAndProducts()),
        drift(),
        many(),
        categories(),
        one_class_each(),
        silent(),
    )
}
