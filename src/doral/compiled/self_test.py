"""Whether Numba is the one that we know how to use: a tiny program with everything in it, and what must come out."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from doral.compiled.blocks import Block
from doral.compiled.hooks import Composition, hook, slot
from doral.compiled.kernels import Kernel, kernel, rare, shared
from doral.compiled.trees import INT, layout_of, memory_class

_RECORD = np.dtype([("total", np.float64), ("count", np.int64), ("small", np.int32)])


class _Part(NamedTuple):
    table: Any
    limit: int


class _Tree(NamedTuple):
    now: Any
    part: _Part
    scale: float
    is_on: bool
    seed: np.uint64


class _Pair(NamedTuple):
    low: float
    high: float


@hook
def _seen(tree: _Tree, value: float) -> None:
    """A value was seen."""


@slot
def _weigh(tree: _Tree, value: float) -> float:
    """What it counts."""
    raise NotImplementedError


@kernel
def _add(tree: _Tree, value: float) -> None:
    tree.now[0].total += value


@rare
def _count(tree: _Tree, value: float) -> None:
    now = tree.now[0]
    now.count += int(value)
    now.small = now.count


@shared
def _scaled(tree: _Tree, value: float) -> float:
    return tree.scale * value if tree.is_on else 0.0


@kernel
def _bounds(table: Any, row: int) -> _Pair:
    low, high = math.inf, -math.inf
    for column in range(table.shape[1]):
        low, high = min(low, table[row, column]), max(high, table[row, column])
    return _Pair(low, high)


@kernel
def _walk(tree: _Tree, start: int) -> float:
    spread = 0.0
    for row in range(start, tree.part.table.shape[0]):
        bounds = _bounds(tree.part.table, row)
        spread += bounds.high - bounds.low
        _seen(tree, _weigh(tree, bounds.high))
    return spread + tree.part.limit + (tree.seed >> np.uint64(1))


class _Composed(_Tree):
    __slots__ = ()
    composition: ClassVar[Composition] = Composition("self-test", {"_seen": (_add, _count), "_weigh": (_scaled,)})


@cache
def check_once() -> None:
    """RuntimeError unless the lean way gives what it must."""
    import ctypes

    from doral.compiled.lean import lower_program
    from doral.compiled.machine import Loaded, to_bitcode, to_object

    table = np.array([[9.0, 9.0, 9.0], [1.5, -2.0, 4.0], [8.0, 0.5, 3.0]])
    tree = _Composed(np.zeros(1, dtype=_RECORD), _Part(table, 7), 0.5, True, np.uint64(2**63 + 4))
    layout = layout_of(tree)
    code = Loaded(to_object(to_bitcode(*lower_program("self-test", {"walk": (cast(Kernel, _walk), (layout, INT))}))))
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.POINTER(memory_class(layout)), ctypes.c_int64)
    block = Block(tree)
    found = kind(code.address("walk"))(block, 1), tree.now[0].item()
    if found != (6.0 + 7.5 + 7.0 + float(2**62 + 2), (6.0, 6, 6)):
        raise RuntimeError(f"the self-test of the compile layer gave {found}")
