"""Trees of arrays, and their types.

A tree is a NamedTuple of arrays, of scalars and of further trees. Compiled code sees it through a block (`blocks.py`),
whose memory its layout describes.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from doral._cached import made_once

INT, FLOAT, BOOL, UINT64 = "int", "float", "bool", "uint64"
SCALARS: dict[type, str] = {
    int: INT,
    np.int64: INT,
    float: FLOAT,
    np.float64: FLOAT,
    bool: BOOL,
    np.bool_: BOOL,
    np.uint64: UINT64,
}
_CODES = {INT: "q", FLOAT: "d", BOOL: "q", UINT64: "Q"}


class ArrayLeaf(NamedTuple):
    """An array: every array of this dtype with so many axes has the same type."""

    dtype: np.dtype[Any]
    ndim: int


class TreeLayout(NamedTuple):
    """The type of a tree: its class and what is in its fields (scalars by name)."""

    tree_class: type
    leaves: tuple[ArrayLeaf | str | TreeLayout, ...]


Leaf: TypeAlias = ArrayLeaf | str | TreeLayout


def layout_of(tree: Any) -> TreeLayout:
    """The type of this tree."""
    return TreeLayout(type(tree), tuple(_leaf_of(value) for value in tree))


def _leaf_of(value: Any) -> Leaf:
    if isinstance(value, np.ndarray):
        return ArrayLeaf(value.dtype, value.ndim)
    if hasattr(value, "_fields"):
        return layout_of(value)
    kind = SCALARS.get(type(value))
    if kind is None:
        raise TypeError(f"a tree holds arrays, trees, int, float, bool and np.uint64, not {type(value).__name__}")
    return kind


def words_of(leaf: Leaf) -> int:
    """How many words it takes."""
    if isinstance(leaf, TreeLayout):
        return sum(words_of(one) for one in leaf.leaves)
    return 1 + leaf.ndim if isinstance(leaf, ArrayLeaf) else 1


def describe(layout: TreeLayout) -> str:
    """The layout in words, the same in every process: a part of the key of compiled code."""
    parts = []
    for name, leaf in zip(layout.tree_class._fields, layout.leaves, strict=True):  # type: ignore[attr-defined]
        if isinstance(leaf, TreeLayout):
            parts.append(f"{name}={describe(leaf)}")
        elif isinstance(leaf, ArrayLeaf):
            dtype = repr(leaf.dtype) if leaf.dtype.names else leaf.dtype.str
            parts.append(f"{name}={dtype}x{leaf.ndim}")
        else:
            parts.append(f"{name}={leaf}")
    return f"{layout.tree_class.__qualname__}({', '.join(parts)})"


@made_once
def memory_class(layout: TreeLayout) -> type[ctypes.Structure]:
    """The memory of a block. One class per layout: so a block in the wrong place is refused by the call itself."""
    fields = [("words", ctypes.c_uint64 * max(1, words_of(layout)))]
    return type(layout.tree_class.__name__, (ctypes.Structure,), {"_fields_": fields})


def codes_of(leaf: Leaf) -> str:
    """Its words as `struct` names them."""
    if isinstance(leaf, TreeLayout):
        return "".join(codes_of(one) for one in leaf.leaves)
    return "Q" + "q" * leaf.ndim if isinstance(leaf, ArrayLeaf) else _CODES[leaf]
