"""People of a scenario: their features, and rewards, speeds and frequencies by person, as tables or laws."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral._arrays import Floats, Ints
from doral._cached import ByDigest, cached_property
from doral.errors import InvalidValue, UnknownName, shown
from doral.person import MAX_NUMBER, Category, Feature, Levels, Missing, checked_features
from doral.problem import OBSERVED, Problem

if TYPE_CHECKING:
    from doral.simulation.scenario.scenario import Scenario
    from doral.simulation.scenario.strata import Strata

Columns: TypeAlias = Mapping[str, NDArray[Any]]  # numbers, and words; what is missing is NaN, or ""
MAX_PEOPLE = 10**7
CONTEXT = "context"  # the name of the column with contexts


class Table(ByDigest):
    """An immutable array: compared, hashed and pickled by content."""

    def __init__(self, numbers: Floats) -> None:
        self.numbers = np.array(numbers, dtype=np.float64)
        self.numbers.flags.writeable = False

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(repr(self.numbers.shape).encode() + self.numbers.tobytes()).hexdigest()

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array(self.numbers, dtype=dtype)

    def __repr__(self) -> str:
        return f"Table(shape={self.numbers.shape}, digest={self.digest[:12]!r})"


class Crowd(ByDigest):
    """All who may arrive, by feature, and their contexts by name where the problem has several."""

    def __init__(self, columns: Columns, contexts: NDArray[Any] | None) -> None:
        self.columns, self.contexts = dict(columns), contexts

    @property
    def size(self) -> int:
        return int(next(iter(self.columns.values())).size)

    @cached_property
    def digest(self) -> str:
        found = hashlib.sha256()
        named = {**self.columns, "": np.zeros(0) if self.contexts is None else self.contexts}
        for name, column in named.items():
            found.update(f"{name} {column.dtype} {column.size}".encode() + np.ascontiguousarray(column).tobytes())
        return found.hexdigest()

    def __repr__(self) -> str:
        return f"Crowd(size={self.size}, features={list(self.columns)}, digest={self.digest[:12]!r})"

    def traits(self, person: Sequence[Feature]) -> Floats:
        """Return features as policies see them, and the number of each (N, m + 1)."""
        return self._coded(person)[0]

    def levels(self, person: Sequence[Feature]) -> Levels:
        """Return the words of categories, numbered as in `traits`."""
        return self._coded(person)[1]

    def _coded(self, person: Sequence[Feature]) -> tuple[Floats, Levels]:
        levels, traits = Levels(person), np.empty((self.size, len(person) + 1))
        for i, feature in enumerate(person):
            column = self.columns[feature.name]
            if isinstance(feature, Category):
                words: list[str] = column.tolist()
                traits[:, i] = [levels.code(feature.name, word) if word else np.nan for word in words]
            else:
                traits[:, i] = column
        traits[:, -1] = np.arange(self.size)
        return traits, levels

    def row(self, who: int) -> dict[str, float | str | None]:
        """What is known of one of them."""
        values = ((name, column[who].item()) for name, column in self.columns.items())
        return {name: None if value == "" or value != value else value for name, value in values}

    def table(self) -> Columns:
        """Return what laws are called with: the features, and the contexts."""
        contexts = {} if self.contexts is None or CONTEXT in self.columns else {CONTEXT: self.contexts}
        return {**self.columns, **contexts}

    def classes(self, contexts: Sequence[str]) -> Ints:
        """(N,) the numbers of their contexts."""
        if self.contexts is None:
            return np.zeros(self.size, dtype=np.int64)
        positions = {name: number for number, name in enumerate(contexts)}
        return np.array([positions[name] for name in self.contexts.tolist()], dtype=np.int64)


def read_crowd(
    value: object, person: Sequence[Feature], missing: Missing, contexts: Sequence[str], classes: object = None
) -> Crowd:
    """From an array (people, features), a data frame, a mapping from name to column, or a list of mappings."""
    if isinstance(value, Crowd):
        return _as_kept(value, person, contexts)
    raw = _raw_columns(value, [one.name for one in person])
    sizes = {name: len(column) for name, column in raw.items()}
    size = next(iter(sizes.values()), 0)
    if not 1 <= size <= MAX_PEOPLE:
        raise InvalidValue("number of people", size, f"must be from 1 to {MAX_PEOPLE:,}")
    for name, length in sizes.items():
        if length != size:
            raise InvalidValue(f"length of column {shown(name)}", length, f"must be that of the others, {size}")
    if classes is not None and CONTEXT in raw and CONTEXT not in [one.name for one in person]:
        raise InvalidValue("classes", classes, f"stand in the column {CONTEXT!r} of people, too; give them once")
    given = classes
    if given is None and CONTEXT not in [one.name for one in person]:
        given = raw.get(CONTEXT)
    columns = {one.name: _checked_column(one, missing, raw[one.name]) for one in person}
    return Crowd(columns, _checked_contexts(given, size, contexts))


def _as_kept(crowd: Crowd, person: Sequence[Feature], contexts: Sequence[str]) -> Crowd:
    if list(crowd.columns) != [one.name for one in person]:
        remedy = f"are described by other features than the problem names: {', '.join(one.name for one in person)}"
        raise InvalidValue("people", list(crowd.columns), remedy)
    _checked_contexts(crowd.contexts, crowd.size, contexts)
    return crowd


def _raw_columns(value: object, names: list[str]) -> dict[str, Any]:
    if isinstance(value, Mapping):
        columns = dict(value)
    elif hasattr(value, "columns") and hasattr(value, "__getitem__"):  # a data frame
        columns = {name: value[name] for name in value.columns}
    elif isinstance(value, Sequence) and value and all(isinstance(row, Mapping) for row in value):
        found = dict.fromkeys(name for row in value for name in row)
        columns = {name: [row.get(name) for row in value] for name in found}
        columns.update({name: [None] * len(value) for name in names if name not in columns})
    else:
        return _columns_of_array(value, names)
    for name in columns:
        if name not in names and name != CONTEXT:
            raise UnknownName("feature", name, [*names, CONTEXT])
    for name in names:
        if name not in columns:
            raise InvalidValue("people", sorted(map(str, columns)), f"lack the feature {shown(name)}")
    return {name: _plain(column) for name, column in columns.items()}


def _columns_of_array(value: object, names: list[str]) -> dict[str, Any]:
    try:
        array = value if isinstance(value, np.ndarray) else np.array(value, dtype=object)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.ndim != 2:
        remedy = "must be a data frame, an array (people, features), a list of mappings, or a law(rng, n)"
        raise InvalidValue("people", value, remedy)
    if array.shape[1] != len(names):
        raise InvalidValue("columns of people", array.shape[1], f"must be {len(names)}: {', '.join(names)}")
    return {name: array[:, i] for i, name in enumerate(names)}


def _plain(column: Any) -> Any:
    """A column as NumPy has it; one with words or with nothing in places is a list."""
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    array = column if isinstance(column, np.ndarray) else np.array(column, dtype=object)
    if array.ndim != 1:
        raise InvalidValue("column of people", column, "must have one value for each of them")
    return array


def _checked_column(feature: Feature, missing: Missing, column: NDArray[Any]) -> NDArray[Any]:
    if not isinstance(feature, Category) and column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        usual = np.abs(numbers) <= MAX_NUMBER
        if missing == "mean":
            usual |= np.isnan(numbers)
        if not usual.all():
            first = int(np.argmin(usual))
            _checked_value(feature, missing, first, float(numbers[first]))
        return numbers
    values = [_checked_value(feature, missing, i, value) for i, value in enumerate(column.tolist())]
    if isinstance(feature, Category):
        return np.array(["" if value is None else value for value in values], dtype=np.str_)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _checked_value(feature: Feature, missing: Missing, number: int, value: object) -> float | str | None:
    try:
        return checked_features((feature,), missing, [value])[0]
    except InvalidValue as error:
        raise InvalidValue(f"{error.field} of person {number}", value, error.remedy) from None


def _checked_contexts(value: object, size: int, contexts: Sequence[str]) -> NDArray[Any] | None:
    if value is None:
        if len(contexts) > 1:
            remedy = f"the problem has {len(contexts)} contexts: name that of every person, or add a column 'context'"
            raise InvalidValue("classes", None, remedy)
        return None
    names = np.array(_plain(value).tolist(), dtype=object)
    if names.size != size:
        raise InvalidValue("number of classes", names.size, f"must be one for every person, {size}")
    for name in dict.fromkeys(names.tolist()):
        if not isinstance(name, str) or name not in contexts:
            raise UnknownName("context", name, contexts)
    return names.astype(np.str_)


Law: TypeAlias = Callable[..., Any]
POPULATION = 20_000
MIN_SPEED, MAX_SPEED = 0.01, 100.0
MAX_COUNT_MEAN = 500.0  # beyond, counts are as good as normal
PEOPLE, MEANS, SPEED, PAID, FREQUENCIES, NOTHING, STRATA = range(7)  # what generators are for


@dataclass(frozen=True)
class Drawn:
    """All who may arrive in one run, and what is true of them."""

    crowd: Crowd
    traits: Floats  # (N, features + 1) as policies see them, and the number of each; (1, 0) where they do not
    classes: Ints  # (N,) the numbers of their contexts
    means: Floats  # (phases, N, A)
    speed: Floats  # (N,) by which the hazard of an answer is multiplied; empty: 1
    paid: Floats  # (N, A) chances; empty where payments do not depend on them
    shares: Floats  # (phases, N) of arrivals; (0, N): all alike
    is_sample: bool  # of a law

    @property
    def cumulative_shares(self) -> Floats:
        """Return cumulative shares (phases * N,), or none where all are alike."""
        return np.ascontiguousarray(np.cumsum(self.shares, axis=1)).ravel()


def generator(seed: int, run: int, purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, run, purpose))))


def takes_rng(law: object) -> bool:
    try:
        return callable(law) and "rng" in inspect.signature(law).parameters
    except ValueError:  # it has no signature
        return False


@dataclass(frozen=True)
class BesideNothing:
    """Means of the arms, with what doing nothing brings in its place."""

    means: Any  # a law, or a Table
    nothing: Any  # a law, or a Table of one number or of one per person
    control: int

    def __call__(self, people: Columns, features: Floats, rng: np.random.Generator) -> Floats:
        n = next(iter(people.values())).size
        own = _numbers_by(self.means, "means", people, features, lambda: rng)
        own = own if own.ndim == 3 else own[None]
        nothing = _numbers_by(self.nothing, "baseline_means", people, features, lambda: rng)
        nothing = np.broadcast_to(nothing, (n,))
        if own.shape[1:] != (n, len(features) - 1):
            raise InvalidValue("shape of means", own.shape[1:], f"must be {(n, len(features) - 1)}: all but `nothing`")
        return np.insert(own, self.control, nothing, axis=2)


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


def people_of(scenario: Scenario, features: Floats, *, seed: int, run: int) -> Drawn:
    """Return all who may come in one run, where the arms have these features."""
    if are_drawn(scenario):
        return draw_people(scenario, features, seed=seed, run=run)
    return scenario.once(given_people)


def given_people(scenario: Scenario) -> Drawn:
    """Return people who are the same in all runs."""
    return draw_people(scenario, scenario.problem.features, seed=0, run=0)


def _numbers_by(
    law: Any, field: str, people: Columns, features: Floats, rng: Callable[[], np.random.Generator]
) -> Floats:
    """Return the numbers of a table or a law."""
    if isinstance(law, Table):
        return law.numbers
    return _numbers(field, law(people, features, **({"rng": rng()} if takes_rng(law) else {})))


def draw_people(scenario: Scenario, features: Floats, *, seed: int, run: int) -> Drawn:
    """The people of one run, in which the arms have these features."""
    problem, strata, n = scenario.problem, scenario.strata, scenario.population or 0
    crowd = draw_crowd(scenario, generator(seed, run, PEOPLE))
    table, shape = crowd.table(), (n, problem.n_arms)

    def numbers_for(field: str, law: Any, purpose: int) -> Floats:
        return _numbers_by(law, field, table, features, lambda: generator(seed, run, purpose))

    base = crowd.classes((problem if strata is None else strata).context_names)
    paid = np.zeros((0, 0))
    if not isinstance(scenario.paid, str):
        paid = _chances(numbers_for("paid", scenario.paid, PAID), base, shape)
    return Drawn(
        crowd=crowd,
        traits=crowd.traits(problem.person) if strata is None else np.zeros((1, 0)),
        classes=base if strata is None else strata.of(crowd),
        means=_means(numbers_for("means", scenario.means, MEANS), scenario, shape),
        speed=np.zeros(0) if scenario.speed is None else _speed(numbers_for("speed", scenario.speed, SPEED), n),
        paid=paid,
        shares=_shares(scenario, n, numbers_for),
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
    """Return the share of all arrivals that each makes up (N,), over all phases."""

    def numbers_for(field: str, law: Any, purpose: int) -> Floats:
        return _numbers_by(law, field, crowd.table(), scenario.problem.features, lambda: rng)

    shares = _shares(scenario, crowd.size, numbers_for)
    return shares.mean(axis=0) if len(shares) else np.full(crowd.size, 1.0 / crowd.size)


def _check_between(field: str, values: Floats, low: float, high: float, remedy: str) -> None:
    if values.min() < low or values.max() > high:
        raise InvalidValue(field, float(values.min() if values.min() < low else values.max()), remedy)


def check_means(means: Floats, noise: str) -> None:
    """Check that chances are probabilities, and that counts can be drawn."""
    most = {"bernoulli": 1.0, "poisson": MAX_COUNT_MEAN}.get(noise)
    if most is not None:
        _check_between("mean reward", means, 0.0, most, f"must be between 0 and {most:g} for {noise} rewards")


def _means(means: Floats, scenario: Scenario, shape: tuple[int, int]) -> Floats:
    phases = scenario.phases
    if means.shape not in (shape, (1, *shape), (phases, *shape)):
        remedy = f"must be {shape}, people and arms" + (f", or {(phases, *shape)}" if phases > 1 else "")
        if means.ndim == 3 and means.shape[1:] == shape:
            remedy = f"must be {phases} tables; or say phases={means.shape[0]} in the scenario"
        raise InvalidValue("shape of means", means.shape, remedy)
    check_means(means, scenario.noise)
    return np.ascontiguousarray(np.broadcast_to(means, (phases, *shape)))


def _speed(speed: Floats, n: int) -> Floats:
    if speed.shape != (n,):
        raise InvalidValue("shape of speed", speed.shape, f"must be {(n,)}, one number per person")
    remedy = f"must be from {MIN_SPEED:g} to {MAX_SPEED:g} times the usual hazard"
    _check_between("speed", speed, MIN_SPEED, MAX_SPEED, remedy)
    return speed


def _chances(paid: Floats, classes: Ints, shape: tuple[int, int]) -> Floats:
    if paid.shape != shape:
        if paid.ndim != 2 or paid.shape[1] != shape[1] or paid.shape[0] <= classes.max():
            raise InvalidValue("shape of paid", paid.shape, f"must be {shape}, people and arms; or contexts and arms")
        paid = paid[classes]
    _check_between("paid", paid, 0.0, 1.0, "must be from 0 to 1")
    return np.ascontiguousarray(paid)


def _shares(scenario: Scenario, n: int, numbers_for: Callable[[str, Any, int], Floats]) -> Floats:
    if scenario.frequencies is None:
        return np.zeros((0, n))
    given = numbers_for("frequencies", scenario.frequencies, FREQUENCIES)
    if given.shape not in ((n,), (scenario.phases, n)):
        remedy = f"must be {(n,)}, one number per person, or {(scenario.phases, n)} where there are phases"
        raise InvalidValue("shape of frequencies", given.shape, remedy)
    table = np.broadcast_to(given, (scenario.phases, n))
    if table.min() < 0.0 or not (table.sum(axis=1) > 0.0).all():
        raise InvalidValue("frequencies", float(table.min()), "must be 0 or more, and above 0 for some")
    return np.array([row / math.fsum(row.tolist()) for row in table])
