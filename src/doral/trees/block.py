"""Blocks: trees at a fixed address, through which compiled code sees them.

A block is one piece of memory in words of 64 bits: for each array its data pointer and its shape, for each scalar
itself, in the order of the leaves. A tree inside a tree is a part of the block, so compiled code reaches it with the
same pointer.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from doral._cached import made_once
from doral.trees.layout import SCALARS, ArrayLeaf, Leaf, TreeLayout, codes_of, layout_of, memory_class, words_of

Tree = TypeVar("Tree")

WORD = 8  # bytes
_as_bytes = (ctypes.c_char * 0).from_buffer


class Field(NamedTuple):
    """Where a field of a tree lies in its block."""

    leaf: Leaf
    start: int  # bytes
    packer: struct.Struct


class Form:
    """What all blocks of a layout have in common."""

    def __init__(self, layout: TreeLayout) -> None:
        self.layout = layout
        self.memory = memory_class(layout)
        self.packer = struct.Struct("=" + codes_of(layout))
        self.fields: dict[str, Field] = {}
        start = 0
        for name, leaf in zip(layout.tree_class._fields, layout.leaves, strict=True):  # type: ignore[attr-defined]
            self.fields[name] = Field(leaf, start, struct.Struct("=" + codes_of(leaf)))
            start += WORD * words_of(leaf)


_form_of = made_once(Form)
_last_form: dict[type, Form] = {}  # by class of the tree: nearly always the next one has the same layout


def described(tree: Any) -> tuple[Form, list[Any]]:
    """The form of a tree, and its words."""
    words: list[Any] = []
    form = _last_form.get(type(tree))
    if form is None or not _describe(tree, form.layout.leaves, words):
        form, words = _form_of(layout_of(tree)), []
        _describe(tree, form.layout.leaves, words)
        _last_form[type(tree)] = form
    return form, words


def _describe(values: Any, leaves: Iterable[Leaf], words: list[Any]) -> bool:
    """Append the words of these values; False if one is not of the type of its leaf."""
    for value, leaf in zip(values, leaves, strict=True):
        if isinstance(leaf, ArrayLeaf):
            dtype, ndim = leaf
            if not isinstance(value, np.ndarray) or value.ndim != ndim:
                return False
            if value.dtype is not dtype and value.dtype != dtype:
                return False
            words.append(address_of(value))
            words.extend(value.shape)
        elif isinstance(leaf, TreeLayout):
            if type(value) is not leaf.tree_class or not _describe(value, leaf.leaves, words):
                return False
        elif SCALARS.get(type(value)) == leaf:
            words.append(value)
        else:
            return False
    return True


def _words(value: Any, leaf: Leaf) -> list[Any]:
    words: list[Any] = []
    if not _describe([value], [leaf], words):
        raise TypeError("a block keeps the type of its tree")
    return words


def address_of(array: Any) -> int:
    """Where the elements of an array are."""
    try:
        return ctypes.addressof(_as_bytes(array))
    except TypeError:  # one that may only be read: this takes ten times as long
        if not array.flags.c_contiguous:
            raise TypeError("arrays of a tree are contiguous, in row order") from None
        address: int = array.__array_interface__["data"][0]
        return address


class Block(Generic[Tree]):
    """A tree at a fixed address. Setting `tree` to one of the same type makes compiled code see its arrays."""

    __slots__ = ("_as_parameter_", "_form", "_make_tree", "_memory", "_tree")

    def __init__(self, tree: Tree) -> None:
        form, words = described(tree)
        self._settle(form, form.memory())
        self._fill(tree, words)

    @classmethod
    def at(cls, form: Form, memory: Any, make_tree: Callable[[], Tree]) -> Block[Tree]:
        """One whose words are written already; its tree is made when somebody asks for it."""
        block: Block[Tree] = cls.__new__(cls)
        block._settle(form, memory)
        block._make_tree = make_tree
        return block

    def _settle(self, form: Form, memory: Any) -> None:
        self._form, self._memory, self._as_parameter_ = form, memory, ctypes.byref(memory)
        self._make_tree: Callable[[], Tree] | None = None

    def _fill(self, tree: Tree, words: list[Any]) -> None:
        self._form.packer.pack_into(self._memory, 0, *words)
        self._tree, self._make_tree = tree, None  # kept: the block only points to its arrays

    @property
    def tree(self) -> Tree:
        if self._make_tree is not None:
            self._tree, self._make_tree = self._make_tree(), None
        return self._tree

    @tree.setter
    def tree(self, tree: Tree) -> None:
        self._fill(tree, _words(tree, self._form.layout))

    def replace(self, **fields: Any) -> None:
        """Put others in the place of some fields of the tree; the rest is not even looked at."""
        for name, value in fields.items():
            leaf, start, packer = self._form.fields[name]
            packer.pack_into(self._memory, start, *_words(value, leaf))
        tree: Any = self.tree
        self._tree = tree._replace(**fields)

    def with_fields(self, **fields: Any) -> Block[Tree]:
        """Another block, with others in the place of some fields; the rest is shared by both."""
        memory = self._form.memory.from_buffer_copy(self._memory)
        block = Block.at(self._form, memory, lambda: self.tree)
        block.replace(**fields)
        return block
