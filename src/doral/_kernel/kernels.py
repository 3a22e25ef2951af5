"""Kernels: functions that will be compiled, light until then."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, TypeVar, cast

from doral._cached import cached_property

Function = TypeVar("Function", bound=Callable[..., Any])

INLINED, SHARED, RARE = "inlined", "shared", "rare"

_here = threading.local()  # of this thread: the functions of kernels that run as Python


class Kernel:
    """A function that other kernels may call, and Python too."""

    def __init__(self, function: Callable[..., Any], kind: str) -> None:
        functools.update_wrapper(self, function)
        self.function, self.kind = function, kind

    def __repr__(self) -> str:
        return f"<kernel {self.function.__module__}.{self.function.__qualname__}>"

    def __call__(self, *arguments: Any) -> Any:
        """Call it compiled the plain way, for these types of arguments; as Python inside of `running_python`."""
        functions = getattr(_here, "functions", None)
        if functions is None:
            return self.plain(*arguments)
        return functions.get(self, self.function)(*arguments)

    @cached_property
    def plain(self) -> Any:
        """The ordinary Numba function."""
        from doral._kernel.plain import plain_dispatcher

        return plain_dispatcher(self)


@contextmanager
def running_python(functions: Mapping[Any, Callable[..., Any]] = MappingProxyType({})) -> Iterator[None]:
    """Run kernels that this thread calls as Python: their own functions, or those given for them."""
    before = getattr(_here, "functions", None)
    _here.functions = functions
    try:
        yield
    finally:
        _here.functions = before


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
