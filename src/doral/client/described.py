"""What remote campaigns say of their calls: what local ones do. Written once, there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)


def described_as(model: type) -> Callable[[Kind], Kind]:
    """A class whose methods have the docstrings that the methods of these names have in another class."""

    def describe(kind: Kind) -> Kind:
        for name, method in vars(kind).items():
            if callable(method) and not name.startswith("_") and method.__doc__ is None:
                method.__doc__ = getattr(model, name).__doc__
        return kind

    return describe
