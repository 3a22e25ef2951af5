"""Single kernels, called from Python and compiled as programs are."""

from __future__ import annotations

import itertools
import linecache
from collections import namedtuple
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doral.compiled import Block, Entry, Kernel, Program, machine, store
from doral.compiled import program as program_module
from doral.compiled.interpret import Interpreter
from doral.delays.kernels import DELAYS
from doral.engine.engine import PROGRAM
from doral.pacing import PACING
from doral.simulation.world.logbook import LOGBOOK
from doral.simulation.world.loop import PROGRAM as SIMULATION
from doral.simulation.world.tape import WORLD
from doral.trees import SCALARS, Form

_NUMBERS = itertools.count()
RETURNS: dict[str, type | None] = {"int": int, "float": float, "bool": bool, "None": None}


def call_alone(kernel: Kernel, *arguments: Any) -> Any:
    """Call a kernel compiled; where a program cannot be made of it, as Python."""
    returns = kernel.function.__annotations__.get("return")
    if returns not in RETURNS or not all(map(_fits, arguments)):  # an entry returns a number
        with np.errstate(all="ignore"):
            return kernel.python(*arguments)
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


def without_a_compiler(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Let all programs start anew, with an empty cache and a self-test that fails."""

    def fail() -> None:
        raise RuntimeError("no compiler today")

    monkeypatch.delenv("DORAL_COMPILE", raising=False)
    monkeypatch.setattr(store, "cache_folder", lambda: cache)
    monkeypatch.setattr(machine, "check_once", fail)
    monkeypatch.setattr(Interpreter, "start", lambda self: False)  # a child finds what this process has compiled
    monkeypatch.setattr(program_module, "_has_warned", False)
    for program in (PROGRAM, SIMULATION, WORLD, LOGBOOK, PACING, DELAYS):
        monkeypatch.setattr(program, "_functions", {})
        monkeypatch.setattr(program, "_is_interpreted", False)
