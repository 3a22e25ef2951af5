"""Values on the wire: decisions, ledgers and reports as JSON, and back; and addresses.

Values are read by the types that their classes say. What a newer service says beyond this version's fields is passed
over. JSON has no infinite numbers: what is null where a number must be was one, or is not known, and the bounds say
which.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import math
import types
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from urllib.parse import quote

from doral.live.state.parts import Ledger, exact
from doral.live.views.decision import Decision
from doral.live.views.report import Report


def path_of(*parts: str) -> str:
    """A path of parts that are not encoded yet.

    >>> path_of("v1", "campaigns", "a/b"), path_of("campaigns", "..")
    ('/v1/campaigns/a%2Fb', '/campaigns/%2E%2E')
    """
    return "".join("/" + _encoded(part) for part in parts)


def _encoded(part: str) -> str:
    # Browsers take `..` out of paths, and its encoded form, too; nothing can be done about that here.
    return quote(part, safe="") if part.strip(".") else part.replace(".", "%2E")


def is_loopback(host: str) -> bool:
    """Whether nobody else can reach this address. A name counts only if it is `localhost`.

    >>> is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("0.0.0.0"), is_loopback("")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


_DECISION_FIELDS = tuple(one.name for one in dataclasses.fields(Decision))
_all_fields = attrgetter(*_DECISION_FIELDS)  # in one step: it is done for every decision that is sent


def decision_to_dict(decision: Decision) -> dict[str, Any]:
    """Every field, the delay, and the reason in a sentence."""
    found: dict[str, Any] = dict(zip(_DECISION_FIELDS, _all_fields(decision), strict=True))
    found["delay"], found["reason"] = decision.delay, decision.reason
    for name in ("features", "effects"):
        if found[name] is not None:
            found[name] = dict(found[name])
    if found["available"] is not None:
        found["available"] = list(found["available"])
    return found


def decision_from_dict(given: Mapping[str, Any]) -> Decision:
    """The decision that a service has sent; what a newer service says beyond this version's fields is passed over."""
    found = {name: given[name] for name in _DECISION_FIELDS if name in given}
    if found.get("available") is not None:
        found["available"] = tuple(found["available"])
    return Decision(**found)


Kind = TypeVar("Kind")

# Numbers that are infinite while nothing is known, or where nothing bounds them.
_BOUNDS = {"delay_lower": -math.inf, "delay_upper": math.inf, "price_high": math.inf}


def read_as(kind: type[Kind], given: object) -> Kind:
    """A value of this class; ValueError where what was sent is none."""
    try:
        return cast("Kind", _read(kind, given, ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no {kind.__name__}: {type(error).__name__}: {error}") from error


def read_ledger(given: Mapping[str, Any]) -> Ledger:
    """Amounts as text hold every digit; as numbers, those that a float has."""
    amounts = {one.name: given[one.name] for one in dataclasses.fields(Ledger) if one.name in given}
    return Ledger(
        **{
            name: Decimal(amount) if isinstance(amount, str) else exact(float(amount))
            for name, amount in amounts.items()
        }
    )


def read_report(given: Mapping[str, Any]) -> Report:
    """JSON has no number for answers that are waited for without end: there is no cut-off only while a race runs."""
    found = read_as(Report, given)
    return found if found.is_racing or found.cutoff is not None else dataclasses.replace(found, cutoff=math.inf)


def _read(kind: Any, given: Any, name: str) -> Any:
    if kind is Any or kind is object:
        return given
    if kind is Decision:
        return decision_from_dict(given)
    if kind is Ledger:
        return read_ledger(given)
    if kind is float:
        return _number(given, name)
    if dataclasses.is_dataclass(kind):
        return _fields(kind, given)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _one_of(parts, given, name)
    if origin is tuple:
        inside = parts[:1] * len(given) if parts[-1] is Ellipsis else parts
        return tuple(_read(one, value, name) for one, value in zip(inside, given, strict=True))
    if origin is list:
        return [_read(parts[0], value, name) for value in given]
    if origin in (dict, Mapping):
        return {key: _read(parts[1], value, name) for key, value in given.items()}
    if hasattr(kind, "_fields"):
        hints = _hints(kind)
        return kind(**{one: _read(hints[one], given[one], one) for one in kind._fields})
    if not isinstance(given, kind):
        raise TypeError(f"{name} is {type(given).__name__}")
    return given


def _fields(kind: Any, given: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    found = {
        one.name: _read(hints[one.name], given[one.name], one.name)
        for one in dataclasses.fields(kind)
        if one.init and one.name in given
    }
    return kind(**found)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _number(given: Any, name: str) -> float:
    if given is None:
        return _BOUNDS.get(name, math.nan)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"{name} is {type(given).__name__}")
    return float(given)


def _one_of(parts: tuple[Any, ...], given: Any, name: str) -> Any:
    """The first of several types that fits; null is None where that is one of them."""
    if given is None and type(None) in parts:
        return None
    for part in parts:
        if part is type(None):
            continue
        try:
            return _read(part, given, name)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    raise TypeError(f"{name} is {type(given).__name__}")
