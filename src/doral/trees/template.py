"""Templates: where many trees start alike, each is made by copying one piece of memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from doral.trees.block import WORD, Block, address_of, described

Tree = TypeVar("Tree")

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
    copied, since memory comes zeroed. Arrays in `shared` are in all trees the same: nobody may change them.
    """

    def __init__(self, tree: Tree, *, shared: Collection[Any] = ()) -> None:
        self._form, words = described(tree)
        known = {id(one) for one in shared}
        filled: dict[int, Any] = {}
        zeros: dict[int, Any] = {}
        for one in _leaves(tree):
            if isinstance(one, np.ndarray) and id(one) not in known:
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
