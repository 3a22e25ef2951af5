"""Kernels that ask first whether their piece is chosen: for states that may hold any of the pieces.

Their sources are made here, because the compiler wants to see each call by its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from doral._kernel import Kernel, kernel


def flag_name(piece: str) -> str:
    """The name of a piece as a field of `state.chosen`."""
    return piece.replace(".", "_")


def if_chosen(flag: str, one: Kernel) -> Kernel:
    """The kernel of a hook, run if the piece is chosen."""
    arguments = _arguments(one)
    body = f"    if {arguments[0]}.chosen.{flag}:\n        {flag}({', '.join(arguments)})\n"
    return _made(one, arguments, body, {flag: one})


def first_chosen(kernels: Mapping[str, Kernel], default: Kernel | None) -> Kernel:
    """The kernel of a slot: that of the chosen piece, else the default."""
    scope = {**kernels, **({} if default is None else {"default": default})}
    *others, last = scope
    arguments = _arguments(scope[last])
    call = f"({', '.join(arguments)})\n"
    body = "".join(f"    if {arguments[0]}.chosen.{flag}:\n        return {flag}{call}" for flag in others)
    return _made(scope[last], arguments, f"{body}    return {last}{call}", scope)


def _arguments(one: Kernel) -> list[str]:
    return list(inspect.signature(one.function).parameters)


def _made(like: Kernel, arguments: list[str], body: str, scope: Mapping[str, Any]) -> Kernel:
    name = like.function.__name__
    names: dict[str, Any] = dict(scope)
    exec(compile(f"def {name}({', '.join(arguments)}):\n{body}", f"<guard of {name}>", "exec"), names)
    made: Kernel = kernel(names[name])
    return made
