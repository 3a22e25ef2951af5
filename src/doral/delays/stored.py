"""Laws out of the plain values that `to_dict` wrote, every check made again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from doral import _check
from doral.delays import laws
from doral.delays.laws import AnyLaw
from doral.errors import InvalidValue, UnknownName

MAX_NESTED_LAWS = 8

_CLASSES: dict[str, type[AnyLaw]] = {
    law.__name__: law
    for law in (
        laws.Geometric,
        laws.Pareto,
        laws.Lognormal,
        laws.Weibull,
        laws.Exponential,
        laws.Fixed,
        laws.Empirical,
        laws.Never,
        laws.ByOutcome,
    )
}


def from_dict(data: Mapping[str, Any]) -> AnyLaw:
    """The law that `to_dict` wrote, with every check made again.

    Args:
        data: A mapping with the name of the law as "type", and its parameters.

    >>> from_dict({"type": "Pareto", "minimum": 400, "shape": 2})
    Pareto(minimum=400.0, shape=2.0)
    """
    return _from_dict(data, levels_left=MAX_NESTED_LAWS)


def _from_dict(data: object, *, levels_left: int) -> AnyLaw:
    if not isinstance(data, Mapping) or "type" not in data:
        raise InvalidValue("delay law", data, 'must be a mapping with a "type"')
    if levels_left == 0:
        raise InvalidValue("delay law", data, f"must not be nested deeper than {MAX_NESTED_LAWS} levels")
    type_name = data["type"]
    if not isinstance(type_name, str) or type_name not in _CLASSES:
        raise UnknownName("delay law", type_name, _CLASSES)
    law = _CLASSES[type_name]
    names = [field.name for field in fields(law)]
    given = _check.keys(type_name, data, required=("type", *names))
    arguments: dict[str, Any] = {}
    for name in names:
        value = given[name]
        if isinstance(value, Mapping):
            value = _from_dict(value, levels_left=levels_left - 1)
        elif isinstance(value, list):
            value = [math.inf if item is None else item for item in value]
        arguments[name] = value
    return law(**arguments)
