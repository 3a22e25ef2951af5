"""Models of answers, made of the library's own dataclasses: the description of the API stays in step with them.

A float that is not finite is null in JSON, so that every float may be.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

_ATTRIBUTE = re.compile(r"^        (\w+): (.+(?:\n            .+)*)", re.MULTILINE)


@cache
def plain_model(kind: type, *, leave_out: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> type[BaseModel]:
    """The model of what `dataclasses.asdict` makes of this class, or `_asdict` of a named tuple.

    Args:
        kind: A dataclass, or a named tuple.
        leave_out: Fields that are not sent.
        optional: Fields that are not always sent.
    """
    hints = get_type_hints(kind)
    words = {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(kind.__doc__ or "")}
    fields: dict[str, Any] = {}
    for name in _names(kind):
        if name not in leave_out:
            default = None if name in optional else ...
            is_taken = hasattr(BaseModel, name)  # pydantic has something of its own there
            described = Field(default, description=words.get(name), alias=name if is_taken else None)
            fields[f"{name}_" if is_taken else name] = (_plain(hints[name]), described)
    doc = (kind.__doc__ or "").strip().split("\n")[0]
    made = create_model(kind.__name__, __config__=ConfigDict(extra="forbid"), __doc__=doc, **fields)
    return cast(type[BaseModel], made)


def _names(kind: type) -> list[str]:
    if dataclasses.is_dataclass(kind):
        return [one.name for one in dataclasses.fields(kind)]
    return list(kind._fields)  # type: ignore[attr-defined]


def _plain(hint: Any) -> Any:
    """The type of a field as JSON has it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is float or hint is Decimal:
        return float | None
    if origin in (Union, types.UnionType):
        return Union[tuple(_plain(one) for one in inner)]  # noqa: UP007  (made of what is only known now)
    if origin is tuple:
        return list[_plain(inner[0])]  # type: ignore[misc]
    if origin is list:
        return list[_plain(inner[0])]  # type: ignore[misc]
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _plain(inner[1])]  # type: ignore[misc]
    if origin is Callable:
        return Any
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
        return plain_model(hint)
    return hint
