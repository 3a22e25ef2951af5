"""Kernels: functions that will be compiled, light until then."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from doral._cached import cached_property

Function = TypeVar("Function", bound=Callable[..., Any])

INLINED, SHARED, RARE = "inlined", "shared", "rare"


class Kernel:
    """A function that other kernels may call, and Python too."""

    def __init__(self, function: Callable[..., Any], kind: str) -> None:
        functools.update_wrapper(self, function)
        self.function, self.kind = function, kind

    def __repr__(self) -> str:
        return f"<kernel {self.function.__module__}.{self.function.__qualname__}>"

    def __call__(self, *arguments: Any) -> Any:
        """Compiled the plain way, for these types of arguments: for tests and small tools."""
        return self.plain(*arguments)

    @cached_property
    def plain(self) -> Any:
        """The ordinary Numba function."""
        from doral._kernel.plain import plain_dispatcher

        return plain_dispatcher(self)


def kernel(function: Function) -> Function:
    """A hot function: inlined as far as that pays."""
    return cast(Function, Kernel(function, INLINED))


def shared(function: Function) -> Function:
    """A function that several entries call: compiled once, not inlined."""
    return cast(Function, Kernel(function, SHARED))


def rare(function: Function) -> Function:
    """A function that is called seldom: not inlined, and kept small."""
    return cast(Function, Kernel(function, RARE))


_SIGN_OFF = 2**63 - 1


@kernel
def position(index: int) -> int:
    """The index itself, known to the compiler not to be negative: it then spares the test for indices from the end."""
    return index & _SIGN_OFF
