"""What is true of people: who they are, and tables by person, given once or drawn anew for every run.

A law is a function that draws. That of people is called with a generator and a number, `law(rng, n)`; those of the
truth with the columns of the people and the features of the arms, `means(people, features)`, and with a generator of
their own where they have a parameter `rng`. Generators depend on (seed, run) and on what they are for, nothing else.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from doral import _check
from doral._arrays import Floats, Ints
from doral.errors import InvalidValue
from doral.problem import OBSERVED, Problem
from doral.simulation.scenario.crowd import MAX_PEOPLE, Columns, Crowd, Table, read_crowd
from doral.simulation.scenario.strata import Strata

if TYPE_CHECKING:
    from doral.simulation.scenario.scenario import Scenario

Law: TypeAlias = Callable[..., Any]
POPULATION = 20_000
MIN_SPEED, MAX_SPEED = 0.01, 100.0
MAX_COUNT_MEAN = 500.0  # beyond, counts are as good as normal
PEOPLE, MEANS, SPEED, PAID, FREQUENCIES, NOTHING, STRATA = range(7)  # what generators are for


@dataclass(frozen=True)
class Drawn:
    """Everybody in one run, and what is true of them."""

    crowd: Crowd
    traits: Floats  # (N, features + 1) as policies see them, and everybody's number; (1, 0) where they do not
    classes: Ints  # (N,) the numbers of their contexts
    means: Floats  # (phases, N, A)
    speed: Floats  # (N,) by which the hazard of an answer is multiplied; empty: 1
    paid: Floats  # (N, A) chances; empty where payments do not depend on them
    shares: Floats  # (phases, N) of arrivals; (0, N): everybody comes as often
    is_sample: bool  # of a law

    @property
    def cumulative_shares(self) -> Floats:
        """(phases * N,), or none where everybody comes as often."""
        return np.ascontiguousarray(np.cumsum(self.shares, axis=1)).ravel()


def generator(seed: int, run: int, purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, run, purpose))))


def takes_rng(law: object) -> bool:
    try:
        return callable(law) and "rng" in inspect.signature(law).parameters
    except ValueError:  # nobody knows its arguments
        return False


@dataclass(frozen=True)
class BesideNothing:
    """Means of the arms, with what doing nothing brings in its place."""

    means: Any  # a law, or a Table
    nothing: Any  # a law, or a Table of one number or of one per person
    control: int

    def __call__(self, people: Columns, features: Floats, rng: np.random.Generator) -> Floats:
        n = next(iter(people.values())).size
        own = self._of("means", self.means, people, features, rng)
        own = own if own.ndim == 3 else own[None]
        nothing = np.broadcast_to(self._of("baseline_means", self.nothing, people, features, rng), (n,))
        if own.shape[1:] != (n, len(features) - 1):
            raise InvalidValue("shape of means", own.shape[1:], f"must be {(n, len(features) - 1)}: all but `nothing`")
        return np.insert(own, self.control, nothing, axis=2)

    @staticmethod
    def _of(field: str, what: Any, people: Columns, features: Floats, rng: np.random.Generator) -> Floats:
        if isinstance(what, Table):
            return what.numbers
        return _numbers(field, what(people, features, **({"rng": rng} if takes_rng(what) else {})))


def _numbers(field: str, value: object) -> Floats:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValue(field, value, "must be numbers, or a function that returns them") from None
    if not np.isfinite(array).all():
        raise InvalidValue(field, value, "must hold finite numbers only")
    return array


def _stored(field: str, value: object) -> Any:
    """A law as it is, numbers as a table."""
    if value is None or callable(value) or isinstance(value, Table):
        return value
    return Table(_numbers(field, value))


def checked_people(
    *,
    problem: Problem,
    people: object,
    population: object,
    classes: object,
    means: object,
    baseline_means: object,
    speed: object,
    frequencies: object,
    paid: object,
    strata: Strata | None,
) -> dict[str, Any]:
    """The fields of a scenario that people have, as they are stored."""
    if strata is None and not problem.person:
        raise InvalidValue("people", people, "the problem does not say what is known of them: person=['age', ...]")
    if means is None:
        raise InvalidValue("means", None, "say what the arms bring: a table (people, arms), or means(people, features)")
    described = problem if strata is None else strata
    source: Any = people
    if not callable(people):
        source = read_crowd(people, described.person, described.missing, described.context_names, classes)
        size = source.size
        if population is not None and population != size:
            raise InvalidValue("population", population, f"is for laws of people; here are {size}: leave it out")
    else:
        if classes is not None:
            raise InvalidValue("classes", classes, "a law of people says it itself, in a column 'context'")
        size = _check.whole_number(
            "population", POPULATION if population is None else population, at_least=2, at_most=MAX_PEOPLE
        )
    return {
        "people": source,
        "population": size,
        "means": _stored_means(problem, _stored("means", means), baseline_means),
        "speed": _stored("speed", speed),
        "frequencies": _stored("frequencies", frequencies),
        "paid": paid if isinstance(paid, str) else _stored("paid", paid),
        "strata": strata,
    }


def _stored_means(problem: Problem, means: Any, baseline_means: object) -> Any:
    if baseline_means is None:
        if problem.baseline == OBSERVED and isinstance(means, Table) and means.numbers.shape[-1] == problem.n_arms - 1:
            remedy = "the baseline is observed: say what doing nothing brings, one number or one per person"
            raise InvalidValue("baseline_means", None, remedy)
        return means
    if problem.baseline != OBSERVED or problem.control is None:
        remedy = f"is for problems with baseline={OBSERVED!r}; a known one stands there, an arm has means of its own"
        raise InvalidValue("baseline_means", baseline_means, remedy)
    return BesideNothing(means, _stored("baseline_means", baseline_means), problem.control)


def are_drawn(scenario: Scenario) -> bool:
    """Whether people or what is true of them differ from run to run."""
    laws = (scenario.means, scenario.speed, scenario.frequencies, scenario.paid)
    beneath = (scenario.means.means, scenario.means.nothing) if isinstance(scenario.means, BesideNothing) else ()
    return (
        callable(scenario.people)
        or scenario.features == "drawn"
        or any(takes_rng(law) for law in (*laws, *beneath) if not isinstance(law, BesideNothing))
    )


def draw_people(scenario: Scenario, features: Floats, *, seed: int, run: int) -> Drawn:
    """The people of one run, in which the arms have these features."""
    problem, strata, n = scenario.problem, scenario.strata, scenario.population or 0
    crowd = draw_crowd(scenario, generator(seed, run, PEOPLE))
    table, shape = crowd.table(), (n, problem.n_arms)

    def told(field: str, law: Any, purpose: int) -> Floats:
        if isinstance(law, Table):
            return law.numbers
        given = {"rng": generator(seed, run, purpose)} if takes_rng(law) else {}
        return _numbers(field, law(table, features, **given))

    base = crowd.classes((problem if strata is None else strata).context_names)
    paid = np.zeros((0, 0))
    if not isinstance(scenario.paid, str):
        paid = _chances(told("paid", scenario.paid, PAID), base, shape)
    return Drawn(
        crowd=crowd,
        traits=crowd.traits(problem.person) if strata is None else np.zeros((1, 0)),
        classes=base if strata is None else strata.of(crowd),
        means=_means(told("means", scenario.means, MEANS), scenario, shape),
        speed=np.zeros(0) if scenario.speed is None else _speed(told("speed", scenario.speed, SPEED), n),
        paid=paid,
        shares=_shares(scenario, n, told),
        is_sample=callable(scenario.people),
    )


def draw_crowd(scenario: Scenario, rng: np.random.Generator) -> Crowd:
    """Who they are."""
    law, n = scenario.people, scenario.population
    if not callable(law):
        assert isinstance(law, Crowd)
        return law
    described = scenario.problem if scenario.strata is None else scenario.strata
    crowd = read_crowd(law(rng, n), described.person, described.missing, described.context_names)
    if crowd.size != n:
        raise InvalidValue("number of people drawn", crowd.size, f"must be what the law was asked for, {n}")
    return crowd


def frequencies_of(scenario: Scenario, crowd: Crowd, rng: np.random.Generator) -> Floats:
    """(N,) the share of all arrivals that everybody makes up, over all phases."""

    def told(field: str, law: Any, purpose: int) -> Floats:
        if isinstance(law, Table):
            return law.numbers
        given = {"rng": rng} if takes_rng(law) else {}
        return _numbers(field, law(crowd.table(), scenario.problem.features, **given))

    shares = _shares(scenario, crowd.size, told)
    return shares.mean(axis=0) if len(shares) else np.full(crowd.size, 1.0 / crowd.size)


def _means(means: Floats, scenario: Scenario, shape: tuple[int, int]) -> Floats:
    phases = scenario.phases
    if means.shape not in (shape, (1, *shape), (phases, *shape)):
        remedy = f"must be {shape}, people and arms" + (f", or {(phases, *shape)}" if phases > 1 else "")
        if means.ndim == 3 and means.shape[1:] == shape:
            remedy = f"must be {phases} tables; or say phases={means.shape[0]} in the scenario"
        raise InvalidValue("shape of means", means.shape, remedy)
    most = {"bernoulli": 1.0, "poisson": MAX_COUNT_MEAN}.get(scenario.noise)
    if most is not None and (means.min() < 0.0 or means.max() > most):
        extreme = float(means.min() if means.min() < 0.0 else means.max())
        raise InvalidValue("mean reward", extreme, f"must be between 0 and {most:g} for {scenario.noise} rewards")
    return np.ascontiguousarray(np.broadcast_to(means, (phases, *shape)))


def _speed(speed: Floats, n: int) -> Floats:
    if speed.shape != (n,):
        raise InvalidValue("shape of speed", speed.shape, f"must be {(n,)}, one number per person")
    if speed.min() < MIN_SPEED or speed.max() > MAX_SPEED:
        extreme = float(speed.min() if speed.min() < MIN_SPEED else speed.max())
        remedy = f"must be from {MIN_SPEED:g} to {MAX_SPEED:g} times the usual hazard"
        raise InvalidValue("speed", extreme, remedy)
    return speed


def _chances(paid: Floats, classes: Ints, shape: tuple[int, int]) -> Floats:
    if paid.shape != shape:
        if paid.ndim != 2 or paid.shape[1] != shape[1] or paid.shape[0] <= classes.max():
            raise InvalidValue("shape of paid", paid.shape, f"must be {shape}, people and arms; or contexts and arms")
        paid = paid[classes]
    if paid.min() < 0.0 or paid.max() > 1.0:
        raise InvalidValue("paid", float(paid.min() if paid.min() < 0.0 else paid.max()), "must be from 0 to 1")
    return np.ascontiguousarray(paid)


def _shares(scenario: Scenario, n: int, told: Callable[[str, Any, int], Floats]) -> Floats:
    if scenario.frequencies is None:
        return np.zeros((0, n))
    given = told("frequencies", scenario.frequencies, FREQUENCIES)
    if given.shape not in ((n,), (scenario.phases, n)):
        remedy = f"must be {(n,)}, one number per person, or {(scenario.phases, n)} where there are phases"
        raise InvalidValue("shape of frequencies", given.shape, remedy)
    table = np.broadcast_to(given, (scenario.phases, n))
    if table.min() < 0.0 or not (table.sum(axis=1) > 0.0).all():
        raise InvalidValue("frequencies", float(table.min()), "must be 0 or more, and not 0 for everybody")
    return np.array([row / math.fsum(row.tolist()) for row in table])
