"""Hooks and slots: calls that a composition decides, resolved while compiling."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from doral._kernel.kernels import INLINED, SHARED, Kernel

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Composition:
    """Which kernels a hook or a slot stands for, by its name; a hook that is not named does nothing."""

    name: str
    hooks: Mapping[str, tuple[Any, ...]]

    def __hash__(self) -> int:
        return id(self)


class Hook:
    """A place in a kernel at which the kernels of a composition run one after another, with the same arguments."""

    is_slot = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}>"

    def __call__(self, *arguments: Any) -> Any:
        """From Python, with a plain tree first."""
        return composed(self, type(arguments[0]).composition, len(arguments))(*arguments)


class Slot(Hook):
    """A place that a composition fills with exactly one kernel: its result is the result."""

    is_slot = True


def hook(function: Function) -> Function:
    """A hook with the name and the signature of this function, whose body is only its description."""
    made = Hook(function.__name__)
    made.__doc__ = function.__doc__
    return cast(Function, made)


def slot(function: Function) -> Function:
    """The same for a slot."""
    made = Slot(function.__name__)
    made.__doc__ = function.__doc__
    return cast(Function, made)


@functools.cache
def composed(place: Hook, composition: Composition, n_arguments: int) -> Kernel:
    """The kernel that a hook or a slot stands for."""
    kernels = composition.hooks.get(place.name, ())
    if not place.is_slot:
        return _chain(place.name, kernels, n_arguments)
    if len(kernels) != 1:
        raise TypeError(f"composition {composition.name!r} has {len(kernels)} kernels for slot {place.name!r}, not 1")
    return cast(Kernel, kernels[0])


def _chain(name: str, kernels: tuple[Any, ...], n_arguments: int) -> Kernel:
    """One kernel that calls them all: its source is made here, because compilers want to see each call."""
    arguments = ", ".join(f"a{i}" for i in range(n_arguments))
    calls = "".join(f"    k{i}({arguments})\n" for i in range(len(kernels)))
    source = f"def {name}({arguments}):\n{calls or '    pass' + chr(10)}"
    scope: dict[str, Any] = {f"k{i}": one for i, one in enumerate(kernels)}
    exec(compile(source, f"<hook {name}>", "exec"), scope)
    return Kernel(scope[name], SHARED if len(kernels) > 1 else INLINED)
