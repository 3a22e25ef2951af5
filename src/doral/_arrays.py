"""Array types, and trees of arrays that are described once, by the annotations of a NamedTuple.

    class Cells(NamedTuple):
        mean: Annotated[Floats, Array("J A")]             # float64, zeros
        arm: Annotated[Ints, Array("J", fill=-1, index="A")]  # int64, below A; -1: none
        passed: Annotated[Floats, Array("J A G+1", when="silent")]
        ring: Annotated[Record, Array("ring", dtype=DECISION, index="arm:A")]

A shape is a list of sizes by name; `G+1` is one more, `J*A` a product. Where the flag `when` is off the field is there,
with no rows. Compiled code checks no index, so `index` names the axis that integers point into; of a record, by field.
Allocation, the estimate of memory, growth, copies and the checks of a snapshot follow from this table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
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
    """Shape, first value and dtype of a field, the flag by which it is present, and the range of indices in it."""

    shape: str
    fill: float = 0.0
    dtype: Any = None  # None: float64 for `Floats`, int64 for `Ints`
    when: str = ""
    index: str = ""  # the size below which its integers are, or `fill` for none; of a record "context:J arm:A"


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
    first, steps = _terms(word)
    extent = _number(first, sizes)
    for sign, operand in steps:
        extent = extent + _number(operand, sizes) if sign == "+" else extent * _number(operand, sizes)
    return extent


@cache
def _terms(word: str) -> tuple[str, list[tuple[str, str]]]:
    match = _SUM.fullmatch(word)
    if match is None:
        raise ValueError(f"shape {word!r} is not a sum or product of sizes")
    return match[1], _STEP.findall(match[2])


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


def axis_fields(tree: Any, axis: str, path: str = "") -> Iterator[tuple[str, Any, float]]:
    """Iterate over the arrays whose rows are along this axis (or one more), by name, with their first values."""
    kind: Any = type(tree)
    for field, value in zip(fields_of(kind), tree, strict=True):
        if field.array is not None and field.array.shape.split()[0] in (axis, f"{axis}+1"):
            yield path + field.name, value, field.array.fill
        elif hasattr(value, "_fields"):
            yield from axis_fields(value, axis, f"{path}{field.name}.")


# --- checks of stored arrays -----------------------------------------------------------------------------------------


class Misfit(ValueError):
    """Stored arrays are not those of this tree."""


@cache
def table_of(tree: Any) -> Mapping[str, tuple[Array, Any]]:
    """Return the arrays of a tree, and of those inside it, by name as `leaves` has it, with their dtypes."""
    found: dict[str, tuple[Array, Any]] = {}
    for field in fields_of(tree):
        if field.array is not None:
            found[field.name] = field.array, field.dtype
        elif field.tree is not None:
            found |= {f"{field.name}.{name}": row for name, row in table_of(field.tree).items()}
    return found


def sizes_of_shapes(tree: type, shapes: Mapping[str, tuple[int, ...]], sizes: Sizes, growing: Sequence[str]) -> Sizes:
    """Return the sizes of a tree with arrays of these shapes; only growing axes may differ. Misfit if others do.

    Nothing is allocated: a damaged snapshot may promise any size.
    """
    table = table_of(tree)
    if list(shapes) != list(table):
        wrong = sorted(set(shapes) ^ set(table))
        raise Misfit(f"{', '.join(wrong[:3])} is missing or unknown" if wrong else "arrays are in another order")
    grown = {**sizes, **{axis: _size_of_axis(table, shapes, sizes, axis) for axis in growing}}
    for name, (array, _) in table.items():
        if shapes[name] != shape_of(array, grown):
            raise Misfit(f"{name} has the shape {shapes[name]}, not {shape_of(array, grown)}")
    return grown


def _size_of_axis(
    table: Mapping[str, tuple[Array, Any]], shapes: Mapping[str, tuple[int, ...]], sizes: Sizes, axis: str
) -> int:
    """Return the size of an axis as the first present array with it shows it; no less than it has at first."""
    for name, (array, _) in table.items():
        words = array.shape.split()
        if axis in array.shape and len(words) == len(shapes[name]) and (not array.when or sizes[array.when]):
            for word, extent in zip(words, shapes[name], strict=True):
                start = _extent(word, {**sizes, axis: 0})
                step = _extent(word, {**sizes, axis: 1}) - start
                if step > 0:
                    return max(sizes[axis], (extent - start) // step)
    return sizes[axis]


def check_values(tree: type, arrays: Mapping[str, Any], sizes: Sizes) -> None:
    """Raise Misfit unless arrays of the right shapes have the right dtypes too, with every index in its range."""
    for name, (array, dtype) in table_of(tree).items():
        if arrays[name].dtype != dtype:
            raise Misfit(f"{name} has the dtype {arrays[name].dtype}, not {dtype}")
        for term in array.index.split():
            part, _, end = term.rpartition(":")
            values, least = arrays[name][part] if part else arrays[name], min(0, int(array.fill))
            below = max(1, _extent(end, sizes))  # where an axis has no rows, 0 is not read
            if values.size and not least <= values.min() <= values.max() < below:
                raise Misfit(f"{name} {part} is not from {least} to {below - 1}")
