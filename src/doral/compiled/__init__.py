"""The compile layer: from kernels, plain Python functions, to one piece of machine code per program.

    @kernel            a hot function: inlined as far as that pays
    @shared            a function that several entries call: compiled once, called
    @rare              seldom needed: called, and kept small

    Block(tree)        a tree of arrays (nested NamedTuples) at a fixed address; `block.tree = grown` moves its arrays
    Template(tree)     where many start alike: each `template.block()` is a block with a copy of the tree
    Program(...)       entries compiled together into one piece of machine code, kept in the cache folder

A kernel is plain Python in the part that `translate.py` knows: numbers, arrays, records, trees, tuples, branches, loops
and calls of kernels. It allocates nothing and raises nothing. A program names its entries and what they take: `int`,
`float`, `bool`, `np.uint64`, or a tree that stands for all of its type (only its classes, dtypes and numbers of axes
matter, so tiny arrays do).

    program = Program(name="policy", entries={"play": Entry(play, (state, world, tape, book, int, int), int)})
    state, tape = Block(state), Block(tape)
    played = program["play"](state, world, tape, book, 1, 0)

The first call compiles, or loads what an earlier process has compiled. The code is kept under a key of what was
compiled (`key.py`), so an edit of a comment, a docstring or a message compiles nothing. If anything fails on this way,
or with DORAL_COMPILE=plain, kernels run as Python (`program.py`): slower, with the same results.
"""

from __future__ import annotations

from doral.compiled.kernels import Kernel, kernel, position, rare, shared
from doral.compiled.program import Entry, Program
from doral.trees import Block, Template, TreeLayout, layout_of

__all__ = [
    "Block",
    "Entry",
    "Kernel",
    "Program",
    "Template",
    "TreeLayout",
    "kernel",
    "layout_of",
    "position",
    "rare",
    "shared",
]
