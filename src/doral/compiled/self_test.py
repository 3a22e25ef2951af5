"""Whether the machine code of this LLVM does what it must: a tiny program with everything in it."""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np

from doral.compiled.kernels import Kernel, kernel, rare, shared
from doral.trees import INT, Block, layout_of, memory_class


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


@rare
def _count(tree: _Tree, value: float) -> None:
    now = tree.now[0]
    now.total += value
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
        _count(tree, _scaled(tree, bounds.high))
    return spread + tree.part.limit + (tree.seed >> np.uint64(1))


@cache
def check_once() -> None:
    """RuntimeError unless a program gives what it must."""
    from doral.compiled.machine import HOST, Loaded, to_object
    from doral.compiled.translate import translate

    table = np.array([[9.0, 9.0, 9.0], [1.5, -2.0, 4.0], [8.0, 0.5, 3.0]])
    tree = _Tree(
        np.zeros(1, dtype=[("total", "f8"), ("count", "i8"), ("small", "i4")]),
        _Part(table, 7),
        0.5,
        True,
        np.uint64(2**63 + 4),
    )
    layout = layout_of(tree)
    code = Loaded(to_object(translate({"walk": (cast(Kernel, _walk), (layout, INT), float)}), HOST))
    walk = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.POINTER(memory_class(layout)), ctypes.c_int64)(code.address("walk"))
    found = walk(Block(tree), 1), tree.now[0].item()
    if found != (6.0 + 7.5 + 7.0 + float(2**62 + 2), (6.0, 6, 6)):
        raise RuntimeError(f"the self-test of the compile layer gave {found}")
