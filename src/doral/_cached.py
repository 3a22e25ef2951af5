"""`cached_property` as Python 3.12 has it. In 3.11 it takes a lock, which a process that is forked just then inherits
locked, for ever. Whoever asks at the same time computes the same twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801  (a function, to those who use it)
        """Computed when it is first asked for, and kept in the instance."""

        def __init__(self, compute: Any) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            found = instance.__dict__
            if self._name not in found:
                found[self._name] = self._compute(instance)
            return found[self._name]
