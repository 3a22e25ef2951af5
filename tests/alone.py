"""Single kernels, called from Python and compiled as programs are: that takes a small part of the time of Numba."""

from __future__ import annotations

import itertools
import linecache
from collections import namedtuple
from functools import cache
from typing import Any

import numpy as np

from doral.compiled import Block, Entry, Kernel, Program
from doral.trees.block import Form
from doral.trees.layout import SCALARS

_NUMBERS = itertools.count()
RETURNS: dict[str, type | None] = {"int": int, "float": float, "bool": bool, "None": None}


def call_alone(kernel: Kernel, *arguments: Any) -> Any:
    """What a call of a kernel means in tests; where a program cannot be made of it, the plain way."""
    returns = kernel.function.__annotations__.get("return")
    if returns not in RETURNS or not all(map(_fits, arguments)):  # an entry returns a number
        return kernel.plain(*arguments)
    block = Block(_given_class(kernel, len(arguments))(*arguments))
    found = _program(kernel, block._form)["call"](block)
    return bool(found) if returns == "bool" else found


def _fits(argument: Any) -> bool:
    if isinstance(argument, np.ndarray):
        return argument.flags.c_contiguous
    if hasattr(argument, "_fields"):
        return all(map(_fits, argument))
    return type(argument) in SCALARS


@cache
def _given_class(kernel: Kernel, number: int) -> Any:
    """The tree of all arguments: one class for each kernel, so that its blocks are nearly always of one form."""
    del kernel
    return namedtuple(f"Given{number}", [f"a{i}" for i in range(number)])


@cache
def _program(kernel: Kernel, form: Form) -> Program:
    function, arguments = kernel.function, ", ".join(f"given.{name}" for name in form.fields)
    scope: dict[str, Any] = {"kernel": kernel}
    source, path = f"def call(given):\n    return kernel({arguments})\n", f"<alone {next(_NUMBERS)}>"
    linecache.cache[path] = len(source), None, source.splitlines(keepends=True), path  # translated from its source
    exec(compile(source, path, "exec"), scope)
    call = scope["call"]
    call.__module__, call.__qualname__ = function.__module__, f"{function.__qualname__}, alone"
    returns = RETURNS[function.__annotations__["return"]]
    return Program(name="alone", entries={"call": Entry(Kernel(call, kernel.kind), (form.layout,), returns)})
