"""Interpretation of kernels: a live campaign decides at once, while a child process compiles the program.

An interpreted decision takes a fraction of a millisecond on a small problem; the program takes seconds to compile. So
where no machine code is at hand, the entries of the program run as Python on the arrays of the state. The campaign then
reads its log again with the compiled program, so a last bit that was rounded otherwise does not stay.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any

from doral.compiled.program import Program, arrays_of, interpreted, make_total
from doral.compiled.store import cache_folder, folders
from doral.trees import Block

TRIES = 2  # where a child is killed, for want of memory for one


class Interpreter:
    """The entries of a program as Python functions, until the program is compiled.

    `command` is Python code with which a child process prepares the program.
    """

    def __init__(self, program: Program, command: str) -> None:
        self._program, self._command = program, command
        self._child: Child | None = None
        self._tries = TRIES
        self._starting = Lock()

    def start(self) -> bool:
        """Have a child compile the program; return whether calls are to be interpreted meanwhile."""
        if self._program.is_at_hand or not self._program.is_kept:
            return False
        self._start_child(again=False)
        return not self.is_over

    def _start_child(self, *, again: bool) -> None:
        with self._starting:
            is_wanted = self._child is None if not again else self._is_killed
            if is_wanted and self._tries > 0:
                self._tries -= 1
                self._child = _started(self._command)

    @property
    def _is_killed(self) -> bool:
        return self._child is not None and (self._child.poll() or 0) < 0

    @property
    def is_over(self) -> bool:
        """Whether the program is compiled, or this process has to compile it.

        A child that was killed is started again. After the last one calls stay interpreted: what killed the children,
        mostly a want of memory, would kill this process too.
        """
        if self._program.is_at_hand:
            return True
        if self._is_killed:
            self._start_child(again=True)
        return not self._is_killed and (self._child is None or self._child.poll() is not None)

    def __getitem__(self, entry: str) -> Callable[..., Any]:
        """Return the function of an entry; it takes blocks, as those of the program do."""
        if self.is_over:
            return self._program[entry]
        described = self._program.entries[entry]
        interpret = interpreted(described)

        def call(*arguments: Any) -> Any:
            trees = [one.tree for one in arguments if isinstance(one, Block)]
            saved = [(array, array.copy()) for tree in trees for array in arrays_of(tree)]
            try:
                return interpret(*arguments)
            except (ArithmeticError, ValueError):  # where machine code has an infinity
                for array, values in saved:
                    array[...] = values
            make_total([described.kernel])
            return interpret(*arguments)

        return call


class Child(subprocess.Popen[bytes]):
    """A process that may outlive its parent: no warning when the parent ends first."""

    def __del__(self) -> None:
        """Leave it running."""


def _started(command: str) -> Child | None:
    """Start a child with the modules of this process. It outlives this process, where the next one finds its code."""
    if not sys.executable:
        return None
    folder = folders()[-1]
    path = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": path, "DORAL_CACHE_DIR": str(folder.parent)}
    nothing = subprocess.DEVNULL
    try:
        child = Child(
            [sys.executable, "-c", command],
            env=environment,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
        )
    except OSError:
        return None
    if folder != cache_folder():  # which goes with this process
        atexit.register(child.kill)
    return child
