"""Single kernels, called from Python and compiled as programs are: that takes a small part of Numba's own time."""

from __future__ import annotations

import hashlib
from collections import namedtuple
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from doral.compiled import Block, Entry, Kernel, Program
from doral.compiled.blocks import Form
from doral.compiled.trees import SCALARS

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
    if hasattr(argument, "_fields"):  # a composition inside of a tree would not be in the name of the code
        return not hasattr(argument, "composition") and all(map(_fits, argument))
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
    exec(f"def call(given):\n    return kernel({arguments})\n", scope)
    call = scope["call"]
    call.__module__, call.__qualname__ = function.__module__, f"{function.__qualname__}, alone"
    returns = RETURNS[function.__annotations__["return"]]
    return Program(name=_name(kernel), entries={"call": Entry(Kernel(call, kernel.kind), (form.layout,), returns)})


def _name(kernel: Kernel) -> str:
    """The key of a program knows of changes in the sources of doral; of those in a module of tests, its name does."""
    if kernel.function.__module__.startswith("doral."):
        return "alone"
    source = Path(kernel.function.__code__.co_filename).read_bytes()
    return f"alone-{hashlib.sha256(source).hexdigest()[:8]}"
