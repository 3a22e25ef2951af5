"""Trees of arrays, and the blocks through which compiled code sees them.

A tree is a NamedTuple of arrays, of scalars and of further trees. Its block is one piece of memory with a fixed
address, in words of 64 bits: for each array its data pointer and its shape, for each scalar itself, in the order of the
leaves. A tree inside a tree is a part of the block, so compiled code reaches it with the same pointer.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

Tree = TypeVar("Tree")

INT, FLOAT, BOOL, UINT64 = "int", "float", "bool", "uint64"
_SCALARS: dict[type, str] = {
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


def layout_of(tree: Any) -> TreeLayout:
    """The type of this tree."""
    return TreeLayout(type(tree), tuple(_leaf_of(value) for value in tree))


def _leaf_of(value: Any) -> ArrayLeaf | str | TreeLayout:
    if isinstance(value, np.ndarray):
        return ArrayLeaf(value.dtype, value.ndim)
    if hasattr(value, "_fields"):
        return layout_of(value)
    kind = _SCALARS.get(type(value))
    if kind is None:
        raise TypeError(f"a tree holds arrays, trees, int, float, bool and np.uint64, not {type(value).__name__}")
    return kind


def words_of(leaf: ArrayLeaf | str | TreeLayout) -> int:
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


@cache
def memory_class(layout: TreeLayout) -> type[ctypes.Structure]:
    """The memory of a block. One class per layout: so a block in the wrong place is refused by the call itself."""
    fields = [("words", ctypes.c_uint64 * max(1, words_of(layout)))]
    return type(layout.tree_class.__name__, (ctypes.Structure,), {"_fields_": fields})


@cache
def _packer(layout: TreeLayout) -> struct.Struct:
    return struct.Struct("=" + "".join(_codes(layout)))


def _codes(layout: TreeLayout) -> list[str]:
    codes = []
    for leaf in layout.leaves:
        if isinstance(leaf, TreeLayout):
            codes.extend(_codes(leaf))
        elif isinstance(leaf, ArrayLeaf):
            codes.append("Q" + "q" * leaf.ndim)
        else:
            codes.append(_CODES[leaf])
    return codes


def _collect(tree: Any, into: list[Any]) -> None:
    for value in tree:
        if isinstance(value, np.ndarray):
            if not value.flags.c_contiguous:
                raise TypeError("arrays of a tree are contiguous, in row order")
            into.append(value.__array_interface__["data"][0])
            into.extend(value.shape)
        elif hasattr(value, "_fields"):
            _collect(value, into)
        else:
            into.append(value)


class Block(Generic[Tree]):
    """A tree at a fixed address. Setting `tree` to one of the same type makes compiled code see its arrays."""

    __slots__ = ("_as_parameter_", "_layout", "_memory", "_tree")

    def __init__(self, tree: Tree) -> None:
        self._layout = layout_of(tree)
        self._memory = memory_class(self._layout)()
        self._as_parameter_ = ctypes.pointer(self._memory)
        self._write(tree)

    @property
    def tree(self) -> Tree:
        return self._tree

    @tree.setter
    def tree(self, tree: Tree) -> None:
        if layout_of(tree) != self._layout:
            raise TypeError("a block keeps the type of its tree")
        self._write(tree)

    def _write(self, tree: Tree) -> None:
        self._tree = tree  # kept: the block only points to its arrays
        words: list[Any] = []
        _collect(tree, words)
        _packer(self._layout).pack_into(self._memory, 0, *words)
