"""Array types, and trees of arrays that are described once, by the annotations of a NamedTuple.

    class Cells(NamedTuple):
        mean: Annotated[Floats, Array("J A")]             # float64, zeros
        arm: Annotated[Ints, Array("J", fill=-1)]         # int64
        passed: Annotated[Floats, Array("J A G+1", when="silent")]
        now: Annotated[Record, Array("1", dtype=NOW)]

A shape is a list of sizes by name; `G+1` is one more, `J*A` a product. Where the flag `when` is off the field is there,
with no rows. Allocation, the estimate of memory, growth and the checks of a snapshot follow from this table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, get_type_hints

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Bits: TypeAlias = NDArray[np.uint8]  # 1 = yes
Record: TypeAlias = Any  # one structured scalar: NumPy types give its fields no names

Sizes: TypeAlias = Mapping[str, int]  # of axes by name, and flags (0 or 1)

_SUM = re.compile(r"([A-Za-z_]+|\d+)((?:[+*](?:[A-Za-z_]+|\d+))*)")
_STEP = re.compile(r"([+*])([A-Za-z_]+|\d+)")


@dataclass(frozen=True)
class Array:
    """Shape, first value and dtype of a field, and the flag by which it is present."""

    shape: str
    fill: float = 0.0
    dtype: Any = None  # None: float64 for `Floats`, int64 for `Ints`
    when: str = ""


@dataclass(frozen=True)
class ArrayField:
    """A field of a tree, resolved."""

    name: str
    array: Array | None  # None: a tree, or a number that is given
    tree: type | None
    dtype: Any


@cache
def fields_of(tree: Any) -> tuple[ArrayField, ...]:
    """Return the fields of a described NamedTuple in order."""
    hints = get_type_hints(tree, include_extras=True)
    return tuple(_field(name, hints[name]) for name in tree._fields)


def _field(name: str, hint: Any) -> ArrayField:
    array = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Array)), None)
    if array is None:
        return ArrayField(name, None, hint if hasattr(hint, "_fields") else None, None)
    dtype = array.dtype
    if dtype is None:
        dtype = np.dtype(np.int64 if hint.__origin__ == Ints else np.float64)
    return ArrayField(name, array, None, np.dtype(dtype))


def shape_of(array: Array, sizes: Sizes) -> tuple[int, ...]:
    """Return the shape of a field; an absent one has no rows."""
    shape = tuple(_extent(word, sizes) for word in array.shape.split())
    return shape if not array.when or sizes[array.when] else (0, *shape[1:])


def _extent(word: str, sizes: Sizes) -> int:
    match = _SUM.fullmatch(word)
    if match is None:
        raise ValueError(f"shape {word!r} is not a sum or product of sizes")
    extent = _number(match[1], sizes)
    for sign, operand in _STEP.findall(match[2]):
        extent = extent + _number(operand, sizes) if sign == "+" else extent * _number(operand, sizes)
    return extent


def _number(word: str, sizes: Sizes) -> int:
    return int(word) if word.isdigit() else int(sizes[word])


def allocate(tree: type, sizes: Sizes, **given: Any) -> Any:
    """Return a tree of this class with its first values; trees and numbers inside it that are not arrays are given."""
    values = []
    for field in fields_of(tree):
        if field.name in given:
            values.append(given[field.name])
        elif field.array is not None:
            shape = shape_of(field.array, sizes)
            filled = np.zeros(shape, dtype=field.dtype)
            if field.array.fill:
                filled[...] = field.array.fill
            values.append(filled)
        elif field.tree is not None:
            values.append(allocate(field.tree, sizes))
        else:
            raise TypeError(f"{tree.__name__}.{field.name} is a number and must be given")
    return tree(*values)


def count_bytes(tree: type, sizes: Sizes) -> int:
    """Return how many bytes the arrays of such a tree take; nothing is allocated."""
    total = 0
    for field in fields_of(tree):
        if field.array is not None:
            total += field.dtype.itemsize * math.prod(shape_of(field.array, sizes))
        elif field.tree is not None:
            total += count_bytes(field.tree, sizes)
    return total


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Iterate over the arrays with their names, such as ("ridge.weight", array); constants are left out."""
    for name, value in zip(tree._fields, tree, strict=True):
        if hasattr(value, "_fields"):
            yield from leaves(value, f"{path}{name}.")
        elif isinstance(value, np.ndarray):
            yield path + name, value


def replace_leaves(tree: Any, arrays: Mapping[str, Any], path: str = "") -> Any:
    """Return the same tree with these arrays, by name, in place of its own."""
    return type(tree)(
        *(
            replace_leaves(value, arrays, f"{path}{name}.")
            if hasattr(value, "_fields")
            else arrays.get(path + name, value)
            for name, value in zip(tree._fields, tree, strict=True)
        )
    )


def ring_fields(tree: Any, path: str = "") -> Iterator[tuple[str, Any, float]]:
    """Iterate over the arrays that are kept in step with the ring of decisions, with their first values."""
    kind: Any = type(tree)
    for field, value in zip(fields_of(kind), tree, strict=True):
        if field.array is not None and field.array.shape.split()[0] in ("ring", "ring+1"):
            yield path + field.name, value, field.array.fill
        elif hasattr(value, "_fields"):
            yield from ring_fields(value, f"{path}{field.name}.")
