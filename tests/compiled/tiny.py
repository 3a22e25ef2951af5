"""A tiny program with everything in it: trees, records, scalars, a hook, a slot, and all kinds of kernels."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from doral._arrays import Floats, Record
from doral.compiled import Composition, Entry, Program, hook, kernel, position, rare, shared, slot

NOW = np.dtype([("total", np.float64), ("calls", np.int64), ("last", np.int32)])


class Part(NamedTuple):
    table: Floats
    offset: int


class Tree(NamedTuple):
    now: Record
    part: Part
    scale: float
    is_on: bool
    seed: np.uint64


class Extent(NamedTuple):
    low: float
    high: float


@hook
def on_row(tree: Tree, value: float) -> None:
    """A row was seen."""


@slot
def worth(tree: Tree, extent: Extent) -> float:
    """What a row is worth."""
    raise NotImplementedError


@kernel
def extent_of(table: Floats, row: int) -> Extent:
    low, high = math.inf, -math.inf
    for column in range(table.shape[1]):
        low, high = min(low, table[row, column]), max(high, table[row, column])
    return Extent(low, high)


@kernel
def add(tree: Tree, value: float) -> None:
    tree.now[0].total += value


@rare
def count(tree: Tree, value: float) -> None:
    tree.now[0].calls += 1
    tree.now[0].last = int(value)


@shared
def width(tree: Tree, extent: Extent) -> float:
    return tree.scale * (extent.high - extent.low) if tree.is_on else 0.0


@kernel
def height(tree: Tree, extent: Extent) -> float:
    return extent.high


class Wide(Tree):
    __slots__ = ()
    composition: ClassVar[Composition] = Composition("wide", {"on_row": (add, count), "worth": (width,)})


class High(Tree):
    __slots__ = ()
    composition: ClassVar[Composition] = Composition("high", {"worth": (height,)})


class Shapeless(Tree):
    __slots__ = ()
    composition: ClassVar[Composition] = Composition("shapeless", {"on_row": (add,)})


@kernel
def walk(tree: Tree, start: int) -> float:
    total = 0.0
    for row in range(start, tree.part.table.shape[0]):
        value = worth(tree, extent_of(tree.part.table, position(row)))
        on_row(tree, value)
        total += value
    return total + tree.part.offset


@kernel
def set_on(tree: Tree, value: float, seed: np.uint64) -> bool:
    tree.now[0].total = value
    return tree.seed == seed


def new_tree(tree_class: type[Tree] = Wide, rows: int = 3) -> Tree:
    table = np.arange(3.0 * rows).reshape(rows, 3) ** 2
    return tree_class(np.zeros(1, dtype=NOW), Part(table, 7), 0.5, True, np.uint64(2**63 + 1))


def new_program(tree_class: type[Tree] = Wide, name: str = "tiny") -> Program:
    tree = new_tree(tree_class, 1)
    entries = {"walk": Entry(walk, (tree, int), float), "set_on": Entry(set_on, (tree, float, np.uint64), bool)}
    return Program(name=name, entries=entries)
