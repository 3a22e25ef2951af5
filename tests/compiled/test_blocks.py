"""Blocks and templates: what compiled code sees of a tree, and that copies of one have nothing in common."""

from __future__ import annotations

import ctypes
import gc
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

from doral._arrays import Floats, Ints, Record
from doral._cached import made_once
from doral.compiled import Block, Entry, Program, Template, kernel
from doral.trees import LINE

NOW = np.dtype([("calls", np.int64), ("last", np.float64)], align=True)


class Part(NamedTuple):
    table: Floats  # (n, 2)
    factor: float


class Tree(NamedTuple):
    now: Record
    part: Part
    marks: Ints
    seed: np.uint64
    is_on: bool


@kernel
def visit(tree: Tree) -> float:
    """The sum of all that is in a tree; it leaves a trace in two of its arrays."""
    total = 0.0
    for row in range(tree.part.table.shape[0]):
        total += tree.part.table[row, 0] + tree.part.table[row, 1]
    total *= tree.part.factor
    for i in range(tree.marks.size):
        total += tree.marks[i]
        tree.marks[i] += 1
    tree.now[0].calls += 1
    tree.now[0].last = total
    return total + float(tree.seed) + (1.0 if tree.is_on else 0.0)


def make_tree(n: int = 2, **fields: Any) -> Tree:
    table = np.arange(2.0 * n).reshape(n, 2)
    tree = Tree(np.zeros(1, dtype=NOW), Part(table, 2.0), np.zeros(3, dtype=np.int64), np.uint64(100), True)
    return tree._replace(**fields)


PROGRAM = Program(name="test-blocks", entries=lambda: {"visit": Entry(visit, (make_tree(),), float)})


def visited(block: Block[Tree]) -> float:
    return float(PROGRAM["visit"](block))


def expected(tree: Tree) -> float:
    return float(tree.part.table.sum() * tree.part.factor + tree.marks.sum() + int(tree.seed) + tree.is_on)


def test_compiled_code_sees_the_tree_of_a_block() -> None:
    block = Block(make_tree())
    assert visited(block) == 2.0 * 6.0 + 101.0
    assert block.tree.marks.tolist() == [1, 1, 1]
    block.tree = make_tree(5, is_on=False)
    assert visited(block) == 2.0 * 45.0 + 100.0
    assert block.tree.now.tolist() == [(1, 90.0)]


def test_some_fields_are_replaced_by_others() -> None:
    block = Block(make_tree())
    marks = np.full(7, 3)
    block.replace(seed=np.uint64(2**40), marks=marks)
    assert visited(block) == 12.0 + 21.0 + 2.0**40 + 1.0
    assert block.tree.marks is marks
    assert block.tree.seed == 2**40


def test_another_block_may_share_all_but_some_fields() -> None:
    block = Block(make_tree())
    other = block.with_fields(part=Part(np.ones((4, 2)), 0.5))
    assert visited(other) == 4.0 + 101.0
    assert visited(block) == 12.0 + 3.0 + 101.0  # the marks are those of both
    assert other.tree.marks is block.tree.marks
    assert other.tree.part.factor == 0.5
    assert block.tree.part.factor == 2.0


WRONG = [
    {"marks": np.zeros(3)},
    {"marks": np.zeros((3, 1), dtype=np.int64)},
    {"marks": 3},
    {"part": Part(np.zeros((2, 2)), 2)},
    {"part": (np.zeros((2, 2)), 2.0)},
    {"seed": 100},
    {"is_on": 1.0},
]


@pytest.mark.parametrize("fields", WRONG, ids=str)
def test_a_block_keeps_the_type_of_its_tree(fields: dict[str, Any]) -> None:
    for block in (Block(make_tree()), Template(make_tree()).block()):
        before = visited(block)
        with pytest.raises(TypeError, match="keeps the type"):
            block.replace(**fields)
        with pytest.raises(TypeError, match="keeps the type"):
            block.tree = make_tree(**fields)
        assert visited(block) == before + 3.0


def test_layouts_of_one_class_are_told_apart() -> None:
    for _ in range(2):
        assert visited(Block(make_tree())) == expected(make_tree())
        other = Block(make_tree(marks=np.zeros(3)))
        with pytest.raises(ctypes.ArgumentError):
            visited(other)


def test_arrays_may_be_empty_or_read_only_but_lie_in_row_order() -> None:
    table = np.ones((3, 2))
    table.flags.writeable = False
    tree = make_tree(part=Part(table, 1.0), marks=np.zeros(0, dtype=np.int64))
    assert visited(Block(tree)) == 6.0 + 101.0
    with pytest.raises(TypeError, match="contiguous"):
        Block(make_tree(part=Part(np.ones((2, 3)).T, 1.0)))
    with pytest.raises(TypeError, match="contiguous"):
        Block(make_tree(marks=np.zeros(6, dtype=np.int64)[::2]))
    with pytest.raises(TypeError, match="not str"):
        Block(make_tree(seed="100"))


# --- templates --------------------------------------------------------------------------------------------------------


def bits(tree: Any) -> list[Any]:
    return [
        bits(one) if hasattr(one, "_fields") else one.tobytes() if isinstance(one, np.ndarray) else repr(one)
        for one in tree
    ]


def test_a_template_makes_copies() -> None:
    table = np.array([[-0.0, math.nan], [math.inf, 5e-324]])
    tree = make_tree(part=Part(table, 0.1), marks=np.zeros(0, dtype=np.int64))
    block = Template(tree).block()
    assert type(block.tree) is Tree
    assert bits(block.tree) == bits(tree)
    assert block.tree.marks is tree.marks  # empty: nothing can be written into it
    for one in (block.tree.now, block.tree.part.table):
        assert one.flags.writeable
        assert one.flags.aligned
        assert one.__array_interface__["data"][0] % LINE == 0
    assert block.tree.part.table.shape == (2, 2)


def test_copies_have_nothing_in_common() -> None:
    tree = make_tree()
    template = Template(tree)
    one, two = template.block(), template.block()
    assert visited(one) == expected(tree)
    assert visited(one) == expected(tree) + 3.0
    one.tree.part.table[:] = 7.0
    one.replace(seed=np.uint64(0))
    assert visited(one) == 2.0 * 28.0 + 6.0 + 1.0
    assert bits(two.tree) == bits(tree) == bits(template.block().tree)
    tree.part.table[:] = -1.0
    assert visited(template.block()) == visited(two) == expected(make_tree())


def test_a_copy_goes_on_with_larger_arrays() -> None:
    template = Template(make_tree())
    block = template.block()
    visited(block)
    block.tree = block.tree._replace(marks=np.append(block.tree.marks, [10, 10]))
    assert visited(block) == 12.0 + 23.0 + 101.0
    assert block.tree.now["calls"] == 2
    assert visited(template.block()) == 12.0 + 101.0


def test_what_is_shared_is_not_copied() -> None:
    table = np.ones((50, 2))
    template = Template(make_tree(part=Part(table, 1.0)), shared=[table])
    one, two = template.block(), template.block()
    assert one.tree.part.table is two.tree.part.table is table
    del table
    assert visited(one) == visited(two) == 201.0


def test_one_array_in_two_places_is_one_array_in_a_copy() -> None:
    class Twice(NamedTuple):
        first: Floats
        second: Floats

    array = np.zeros(4)
    copy = Template(Twice(array, array)).block().tree
    copy.first[2] = 5.0
    assert copy.second.tolist() == [0.0, 0.0, 5.0, 0.0]
    assert array.tolist() == [0.0] * 4


def test_a_copy_outlives_its_template_and_arrays_outlive_their_block() -> None:
    block = Template(make_tree()).block()
    gc.collect()
    np.full(10_000, 255, dtype=np.uint8)  # writes where freed memory would be
    assert visited(block) == 113.0
    table = block.tree.part.table
    del block
    gc.collect()
    np.full(10_000, 255, dtype=np.uint8)
    assert table.tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_threads_make_copies_of_one_template() -> None:
    template = Template(make_tree())

    def work(number: int) -> list[float]:
        found = []
        for _ in range(50):
            block = template.block()
            block.replace(seed=np.uint64(number))
            block.tree.part.table[:] = number
            visited(block)
            found.append(visited(block))
        return found

    with ThreadPoolExecutor(8) as threads:
        for number, found in enumerate(threads.map(work, range(8))):
            assert set(found) == {2.0 * 4.0 * number + 3.0 + number + 1.0}


def test_threads_that_ask_at_the_same_time_get_the_same_class() -> None:
    """A block of another class, however alike, is refused by every call."""
    together = threading.Barrier(8)

    @made_once
    def make(name: str) -> type:
        together.wait(timeout=10)  # all are in the middle of it
        return type(name, (), {})

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(make, ["Block"] * 8))) == 1
    assert make("Block").__name__ == "Block"
