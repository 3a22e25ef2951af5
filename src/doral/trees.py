"""Trees of arrays: how compiled code sees the state of a policy.

A tree is a NamedTuple of arrays, of scalars and of further trees; its layout is its type. A block is one piece of
memory in words of 64 bits: for each array its data pointer and its shape, for each scalar itself, in the order of the
leaves. A tree inside a tree is a part of the block, so compiled code reaches it with the same pointer. A template
copies one piece of memory where many trees start alike.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from doral._cached import made_once

# --- types -----------------------------------------------------------------------------------------------------------

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


# --- blocks ----------------------------------------------------------------------------------------------------------

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
        """One whose words are written already; its tree is made when it is asked for."""
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


# --- templates -------------------------------------------------------------------------------------------------------


LINE = 64  # bytes: every array starts where a line of the cache does


class _Cut(NamedTuple):
    """How to cut an array out of a piece of memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int


class _Cutting:
    """How to cut a tree out of a piece of memory."""

    def __init__(self, tree: Any, cuts: Mapping[int, _Cut]) -> None:
        self._make, self._values = tree._make, list(tree)
        self._arrays = [(i, *cuts[id(one)]) for i, one in enumerate(tree) if id(one) in cuts]
        inner = [(i, _Cutting(one, cuts)) for i, one in enumerate(tree) if hasattr(one, "_fields")]
        self._trees = [(i, one) for i, one in inner if one]
        for i, *_ in self._arrays:
            self._values[i] = None  # not kept: it may be large

    def __bool__(self) -> bool:
        return bool(self._arrays or self._trees)

    def out_of(self, piece: Any) -> Any:
        values = self._values.copy()
        for i, shape, dtype, start in self._arrays:
            values[i] = np.ndarray(shape, dtype, piece, start)
        for i, tree in self._trees:
            values[i] = tree.out_of(piece)
        return self._make(values)


class Template(Generic[Tree]):
    """Makes blocks with copies of a tree: what is written into one of them is seen in no other.

    A piece of memory holds the words of the block, then the arrays; those that are all zeros come last and are not
    copied, since memory comes zeroed. Arrays in `shared` are in all trees the same, and must not be changed.
    """

    def __init__(self, tree: Tree, *, shared: Collection[Any] = ()) -> None:
        self._form, words = described(tree)
        known = {id(one) for one in shared}
        filled: dict[int, Any] = {}
        zeros: dict[int, Any] = {}
        for one in _leaves(tree):
            if isinstance(one, np.ndarray) and one.size and id(one) not in known:  # all share one that is empty
                (zeros if _is_zero(one) else filled)[id(one)] = one
        self._n_words = len(words)
        cuts, n_copied = _laid_out(filled, WORD * self._n_words)
        self._image: Any = np.zeros(n_copied, dtype=np.uint8)
        for key, one in filled.items():
            np.ndarray(one.shape, one.dtype, self._image, cuts[key].start)[...] = one
        empty_cuts, self._n_bytes = _laid_out(zeros, n_copied)
        self._cutting = _Cutting(tree, cuts | empty_cuts)
        self._pointers = self._write_words(tree, cuts | empty_cuts)

    def _write_words(self, tree: Tree, cuts: Mapping[int, _Cut]) -> Any:
        """Those of the block, into the image; the positions of those that count from the beginning of a piece."""
        words, pointers = list[Any](), list[int]()
        for leaf in _leaves(tree):
            if id(leaf) in cuts:
                pointers.append(len(words))
                words.extend((cuts[id(leaf)].start, *leaf.shape))
            elif isinstance(leaf, np.ndarray):
                words.extend((address_of(leaf), *leaf.shape))
            else:
                words.append(leaf)
        self._form.packer.pack_into(self._image, 0, *words)
        return np.array(pointers, dtype=np.int64)

    def block(self) -> Block[Tree]:
        """A new one."""
        room = np.zeros(self._n_bytes + LINE, dtype=np.uint8)
        address = address_of(room)
        begin = -address % LINE
        piece: Any = room[begin:]
        piece[: self._image.size] = self._image
        piece[: WORD * self._n_words].view(np.uint64)[self._pointers] += np.uint64(address + begin)
        return Block.at(self._form, self._form.memory.from_buffer(piece), partial(self._cutting.out_of, piece))


def _leaves(tree: Any) -> Iterator[Any]:
    for value in tree:
        if hasattr(value, "_fields"):
            yield from _leaves(value)
        else:
            yield value


def _is_zero(array: Any) -> bool:
    """To the bit: a minus zero is something."""
    return not array.reshape(-1).view(np.uint8).any()


def _laid_out(arrays: Mapping[int, Any], end: int) -> tuple[dict[int, _Cut], int]:
    """A place for each, from `end` on; and where the last one ends."""
    cuts = {}
    for key, array in arrays.items():
        start = -(-end // LINE) * LINE
        cuts[key] = _Cut(array.shape, array.dtype, start)
        end = start + array.nbytes
    return cuts, end
