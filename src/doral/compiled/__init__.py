"""Our own way from Python functions to machine code: kernels, trees handed over by pointer, and programs.

    @kernel            a hot function: inlined as far as that pays
    @shared            a function that several entries call: compiled once, called
    @rare              seldom needed: called, and kept small

    @hook              a place at which a composition may do something: its kernels run one after another
    @slot              a place that a composition fills with exactly one kernel: its result is the result

    Block(tree)        a tree of arrays (nested NamedTuples) at a fixed address; `block.tree = grown` moves its arrays
    Template(tree)     where many start alike: each `template.block()` is a block with a copy of the tree
    Program(...)       entries compiled together into one piece of machine code, kept in the cache folder

A kernel is plain Python in the subset that Numba takes. It allocates nothing and raises nothing. Other kernels, hooks
and slots are called by their names. From Python a kernel can be called too: it is then compiled the plain way, alone.

A hook is resolved while compiling, by the type of its first argument: the class of that tree has an attribute
`composition`, with a `name` and with `hooks`, names of hooks to the kernels of each.

    class State(NamedTuple): ...

    class OtfState(State):
        __slots__ = ()
        composition = Composition(name="doral-otf", hooks={"on_answer": (learn, count), "index": (ucb,)})

    @hook
    def on_answer(state: State, slot: int, reward: float) -> None:
        "An answer has come."

    @slot
    def index(state: State, context: int) -> float:
        "What an arm may bring."
        raise NotImplementedError

    @kernel
    def observe(state: State, slot: int, reward: float) -> int:
        on_answer(state, slot, reward)     # learn(...), then count(...)
        return 0

A program names its entries and what they take: `int`, `float`, `bool`, `np.uint64`, or a tree that stands for all of
its type (only its classes, dtypes and numbers of axes matter, so tiny arrays do).

    program = Program(name="doral-otf", entries={"play": Entry(play, (state, world, tape, book, int, int))})
    state, tape = Block(state), Block(tape)
    played = program["play"](state, world, tape, book, 1, 0)

The first call compiles, or loads what an earlier process has compiled: then Numba is not even imported. If Numba is
not the one that we know how to use (a self-test says so), or with DORAL_COMPILE=plain, programs run as ordinary Numba
functions: slower, with the same results.
"""

from __future__ import annotations

from doral.compiled.blocks import Block
from doral.compiled.kernels import Kernel, kernel, position, rare, shared
from doral.compiled.program import Entry, Program
from doral.compiled.templates import Template
from doral.compiled.trees import TreeLayout, layout_of

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
