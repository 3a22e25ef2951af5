"""The same kernels as plain Python: a live campaign decides at once, while a child process compiles the program.

An interpreted decision takes a fraction of a millisecond on a small problem; the program takes seconds to compile. So
where no machine code is at hand, the entries of the program run as Python on the arrays of the state. The campaign then
reads its log again with the compiled program, so a last bit that was rounded otherwise does not stay.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import numpy as np

from doral.compiled.kernels import running_python
from doral.compiled.program import Program
from doral.trees.block import Block

logger = logging.getLogger("doral")


class Interpreter:
    """The entries of a program as Python functions, until the program is compiled.

    `command` is Python code with which a child process prepares the program.
    """

    def __init__(self, program: Program, command: str) -> None:
        self._program, self._command = program, command
        self._child: Child | None = None
        self._starting = Lock()

    def start(self) -> bool:
        """Have a child compile the program; return whether calls are to be interpreted meanwhile."""
        if self._program.is_at_hand or not self._program.is_kept:
            return False
        with self._starting:
            if self._child is None:
                self._child = _started(self._command)
        return not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether the program is compiled, or no child compiles it."""
        return self._program.is_at_hand or self._child is None or self._child.poll() is not None

    def __getitem__(self, entry: str) -> Callable[..., Any]:
        """Return the function of an entry; it takes blocks, as those of the program do."""
        if self.is_over:
            return self._program[entry]
        kernel = self._program.entries[entry].kernel

        def call(*arguments: Any) -> Any:
            blocks = [one.tree for one in arguments if isinstance(one, Block)]
            saved = [(array, array.copy()) for tree in blocks for array in _arrays_of(tree)]
            try:
                with running_python():
                    return kernel(*(as_python(one.tree) if isinstance(one, Block) else one for one in arguments))
            except Exception as error:  # noqa: BLE001  (where Python raises, compiled code may have an infinity)
                logger.info("%s: waits for the compiled program (%s: %s)", entry, type(error).__name__, error)
            for array, values in saved:
                array[...] = values
            return self._program[entry](*arguments)

        return call


class Child(subprocess.Popen[bytes]):
    """A process that may outlive its parent: no warning when the parent ends first."""

    def __del__(self) -> None:
        """Leave it running."""


def _started(command: str) -> Child | None:
    """Start a child with the modules of this process. It outlives this process: the next one finds its code."""
    if not sys.executable:
        return None
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    nothing = subprocess.DEVNULL
    try:
        return Child(
            [sys.executable, "-c", command],
            env=environment,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
        )
    except OSError:
        return None


# --- trees, as kernels in Python see them ----------------------------------------------------------------------------


class Row:
    """One record, with plain numbers as attributes."""

    __slots__ = ("_record",)

    def __init__(self, record: Any) -> None:
        object.__setattr__(self, "_record", record)

    def __getattr__(self, name: str) -> Any:
        return self._record[name].item()

    def __setattr__(self, name: str, value: Any) -> None:
        self._record[name] = value


class Rows:
    """Records, of which each is a `Row`."""

    __slots__ = ("records", "shape", "size")

    def __init__(self, records: Any) -> None:
        self.records, self.size, self.shape = records, records.size, records.shape

    def __getitem__(self, index: Any) -> Row:
        return Row(self.records[index])


def _arrays_of(tree: Any) -> Iterator[Any]:
    for value in tree:
        if hasattr(value, "_fields"):
            yield from _arrays_of(value)
        elif isinstance(value, np.ndarray):
            yield value


def as_python(tree: Any) -> Any:
    """Return the same tree, on the same arrays, for kernels that run as Python."""
    return tree._make(_readable(value) for value in tree)


def _readable(value: Any) -> Any:
    if hasattr(value, "_fields"):
        return as_python(value)
    return Rows(value) if isinstance(value, np.ndarray) and value.dtype.names else value
