"""People as they are given: a table of their features, checked once and kept as columns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Floats, Ints
from doral._cached import cached_property
from doral.errors import InvalidValue, UnknownName, shown
from doral.person import MAX_NUMBER, Category, Feature, Levels, Missing, checked_features

Columns: TypeAlias = Mapping[str, NDArray[Any]]  # numbers, and words; what is missing is NaN, or ""
MAX_PEOPLE = 10**7
CONTEXT = "context"  # a column of this name says in which context somebody is


class Table:
    """Numbers that nobody changes: compared, hashed and pickled by what they are."""

    def __init__(self, numbers: Floats) -> None:
        self.numbers = np.array(numbers, dtype=np.float64)
        self.numbers.flags.writeable = False

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(repr(self.numbers.shape).encode() + self.numbers.tobytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Table) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array(self.numbers, dtype=dtype)

    def __repr__(self) -> str:
        return f"Table(shape={self.numbers.shape}, digest={self.digest[:12]!r})"


class Crowd:
    """Everybody who may come, by feature, and their contexts by name where the problem has several."""

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

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Crowd) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Crowd(size={self.size}, features={list(self.columns)}, digest={self.digest[:12]!r})"

    def traits(self, person: Sequence[Feature]) -> Floats:
        """(N, m + 1) as policies see them, and everybody's number."""
        levels, traits = Levels(person), np.empty((self.size, len(person) + 1))
        for i, feature in enumerate(person):
            column = self.columns[feature.name]
            if isinstance(feature, Category):
                words: list[str] = column.tolist()
                traits[:, i] = [levels.code(feature.name, word) if word else np.nan for word in words]
            else:
                traits[:, i] = column
        traits[:, -1] = np.arange(self.size)
        return traits

    def row(self, who: int) -> dict[str, float | str | None]:
        """What is known of one of them."""
        values = ((name, column[who].item()) for name, column in self.columns.items())
        return {name: None if value == "" or value != value else value for name, value in values}

    def table(self) -> Columns:
        """What a law of the truth is told: the features, and the contexts."""
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
