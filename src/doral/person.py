"""Features of an arrival: numbers and categories, checked where they come in.

A policy sees a vector. Numbers are as given; a category is the number of its level in the order of first appearance,
which the table of levels knows (`Levels`); what is missing, where that is allowed, is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from doral import _check
from doral._input_types import Words
from doral.errors import InvalidValue, UnknownName, shown

MAX_PERSON = 1_000  # features of one who arrives
MAX_LEVELS = 1_000_000  # of a category
MAX_NUMBER = 1e12  # in the unit that the user likes: years, metres, cents

Missing = Literal["error", "mean"]
FeaturesLike: TypeAlias = Mapping[str, Any] | Sequence[Any] | np.ndarray


@dataclass(frozen=True, init=False)
class Number:
    """A feature that is a number, in any unit; yes and no are 1 and 0.

    Args:
        name: What the feature is called.

    >>> Number("age")
    Number(name='age')
    """

    name: str

    def __init__(self, name: str) -> None:
        _check.set_fields(self, name=_check.name("name of a feature", name))


@dataclass(frozen=True, init=False)
class Category:
    """A feature that is one of several words. Levels need not be known before: one that was never seen works.

    Args:
        name: What the feature is called.
        levels: Words that are known before, in the order in which they are numbered. Default: none.

    >>> Category("clinic", levels=["north", "south"])
    Category(name='clinic', levels=('north', 'south'))
    """

    name: str
    levels: tuple[str, ...]

    def __init__(self, name: str, *, levels: Words = ()) -> None:
        name = _check.name("name of a feature", name)
        field = f"levels of {shown(name)}"
        given = _check.items(field, levels, what="words", at_most=MAX_LEVELS, at_least=0)
        words = tuple(_check.name(f"level of {shown(name)}", level) for level in given)
        _check.no_duplicates(f"level of {shown(name)}", words)
        _check.set_fields(self, name=name, levels=words)


Feature: TypeAlias = Number | Category
PersonLike: TypeAlias = Sequence[str | Feature] | Mapping[str, str]


def checked_person(value: object) -> tuple[Feature, ...]:
    """Names are numbers; a mapping says "number" or "category" for each."""
    if isinstance(value, Mapping):
        value = [_of_kind(name, kind) for name, kind in value.items()]
    what = "names, doral.Number or doral.Category objects"
    given = _check.items("person", value, what=what, at_most=MAX_PERSON, at_least=0)
    features = tuple(one if isinstance(one, Number | Category) else Number(one) for one in given)
    _check.no_duplicates("name of a feature", (one.name for one in features))
    return features


def _of_kind(name: str, kind: object) -> Feature:
    if kind == "category":
        return Category(name)
    if kind == "number":
        return Number(name)
    raise InvalidValue(f"feature {shown(name)}", kind, "must be number or category")


def checked_missing(value: object) -> Missing:
    if not _check.is_among(value, get_args(Missing)):
        raise InvalidValue("missing", value, "must be error, or mean: what is missing is then as it is on average")
    return value  # type: ignore[return-value]


def feature_to_dict(feature: Feature) -> dict[str, Any]:
    """Plain values that JSON can hold."""
    if isinstance(feature, Category):
        return {"name": feature.name, "kind": "category", "levels": list(feature.levels)}
    return {"name": feature.name, "kind": "number"}


def feature_from_dict(data: Any) -> Feature:
    """What `feature_to_dict` wrote; a name alone is a number."""
    if isinstance(data, str):
        return Number(data)
    given = _check.keys("feature", data, required=("name",), optional=("kind", "levels"))
    kind = given.get("kind", "number")
    if kind == "category":
        return Category(given["name"], levels=given.get("levels", ()))
    if kind != "number" or "levels" in given:
        raise InvalidValue("kind of a feature", kind, "must be number, or category, which may have levels")
    return Number(given["name"])


class Levels:
    """The levels of every category, with their numbers, in the order in which they were first seen."""

    def __init__(self, person: Sequence[Feature]) -> None:
        self._codes: dict[str, dict[str, int]] = {
            one.name: {level: code for code, level in enumerate(one.levels)}
            for one in person
            if isinstance(one, Category)
        }

    def code(self, category: str, level: str) -> int:
        """The number of a level; a new one gets the next."""
        codes = self._codes[category]
        if level not in codes:
            if len(codes) >= MAX_LEVELS:
                remedy = f"is one level too many: at most {MAX_LEVELS:,}; is it a name or a key, and no category?"
                raise InvalidValue(f"feature {shown(category)}", level, remedy)
            codes[level] = len(codes)
        return codes[level]

    def names(self, category: str) -> tuple[str, ...]:
        """All that were seen, in the order of their numbers."""
        return tuple(self._codes[category])


def checked_features(person: Sequence[Feature], missing: Missing, given: object) -> tuple[float | str | None, ...]:
    """Return the features of an arrival, in the order of the problem: numbers, words, and None for what is missing."""
    return tuple(_checked(one, missing, value) for one, value in zip(person, _in_order(person, given), strict=True))


def _in_order(person: Sequence[Feature], given: object) -> Iterable[object]:
    names = [one.name for one in person]
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise UnknownName("feature", name, names)
        return [given.get(name) for name in names]
    what = "one value for each feature of the problem, or a mapping from name to value"
    values = _check.items("features", given, what=what, at_most=MAX_PERSON, at_least=0)
    if len(values) != len(names):
        remedy = f"must be {len(names)}: {', '.join(names)}"
        raise InvalidValue("number of features", len(values), remedy)
    return values


def _checked(feature: Feature, missing: Missing, value: object) -> float | str | None:
    field = f"feature {shown(feature.name)}"
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        if missing == "error":
            remedy = "is missing; give it, or say missing='mean' in the problem"
            raise InvalidValue(field, value, remedy)
        return None
    if isinstance(feature, Category):
        if isinstance(value, bool | int):
            value = str(value)
        if not isinstance(value, str):
            raise InvalidValue(field, value, "is a category: must be a word")
        return _check.name(field, value)
    if isinstance(value, str):
        remedy = f"must be a number; if it is a category, say doral.Category({feature.name!r}) in the problem"
        raise InvalidValue(field, value, remedy)
    number = float(value) if isinstance(value, bool) else value
    return _check.finite_number(field, number, at_least=-MAX_NUMBER, at_most=MAX_NUMBER)


def traits_of(person: Sequence[Feature], levels: Levels, values: Sequence[float | str | None]) -> list[float]:
    """The vector that a policy sees, from what `checked_features` returned."""
    traits = []
    for feature, value in zip(person, values, strict=True):
        if value is None:
            traits.append(math.nan)
        elif isinstance(feature, Category):
            traits.append(float(levels.code(feature.name, str(value))))
        else:
            traits.append(float(value))
    return traits
