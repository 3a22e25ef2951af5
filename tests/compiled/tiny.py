"""A tiny program with everything in it: trees, records, scalars, and all kinds of kernels."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Record
from doral.compiled import Entry, Program, kernel, position, rare, shared

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


class Twin(NamedTuple):
    """A tree of another class with the same fields."""

    now: Record
    part: Part
    scale: float
    is_on: bool
    seed: np.uint64


class Extent(NamedTuple):
    low: float
    high: float


@kernel
def extent_of(table: Floats, row: int) -> Extent:
    low, high = math.inf, -math.inf
    for column in range(table.shape[1]):
        low, high = min(low, table[row, column]), max(high, table[row, column])
    return Extent(low, high)


@rare
def count(tree: Tree, value: float) -> None:
    tree.now[0].total += value
    tree.now[0].calls += 1
    tree.now[0].last = int(value)


@shared
def width(tree: Tree, extent: Extent) -> float:
    return tree.scale * (extent.high - extent.low) if tree.is_on else 0.0


@kernel
def walk(tree: Tree, start: int) -> float:
    total = 0.0
    for row in range(start, tree.part.table.shape[0]):
        value = width(tree, extent_of(tree.part.table, position(row)))
        count(tree, value)
        total += value
    return total + tree.part.offset


@kernel
def sum_up(tree: Tree, start: int) -> float:
    """Another program of the same shape."""
    return tree.part.table.shape[0] + 97.0


@kernel
def set_on(tree: Tree, value: float, seed: np.uint64) -> bool:
    tree.now[0].total = value
    return tree.seed == seed


def new_tree(tree_class: type[Tree] | type[Twin] = Tree, rows: int = 3) -> Tree:
    table = np.arange(3.0 * rows).reshape(rows, 3) ** 2
    return tree_class(np.zeros(1, dtype=NOW), Part(table, 7), 0.5, True, np.uint64(2**63 + 1))  # type: ignore[return-value]


def new_program(entry: object = walk, name: str = "tiny") -> Program:
    tree = new_tree(rows=1)
    entries = {"walk": Entry(entry, (tree, int), float), "set_on": Entry(set_on, (tree, float, np.uint64), bool)}
    return Program(name=name, entries=entries)
