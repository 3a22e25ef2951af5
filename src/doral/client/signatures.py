"""What `help` says a method returns, that was made of one which makes a request."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

_WRAPPED = ("Call[Page[", "Call[")


def answering(method: Method, make: Callable[..., Any], words: str) -> Method:
    """The method, with the result in place of the request that asks for it: `words` around the result's name.

    >>> def make(self, n: int) -> "Call[int]": ...
    >>> inspect.signature(answering(lambda self, n: None, make, "Awaitable[{}]")).return_annotation
    'Awaitable[int]'
    """
    asked = inspect.signature(make)
    result = str(asked.return_annotation).strip("'")
    for prefix in _WRAPPED:
        if result.startswith(prefix):
            result = result.removeprefix(prefix)[: -prefix.count("[")]
            break
    method.__signature__ = asked.replace(return_annotation=words.format(result))  # type: ignore[attr-defined]
    method.__annotations__ = {**getattr(make, "__annotations__", {}), "return": words.format(result)}
    return method
