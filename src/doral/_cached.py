"""Cached values without a lock, which a forked process could inherit locked.

`cached_property` is as Python 3.12 has it. Two threads that ask at the same time compute the same twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

Made = TypeVar("Made")


def made_once(make: Callable[..., Made]) -> Callable[..., Made]:
    """Return a cached version, as `functools.cache` does, without a lock. Two threads that ask for the same at the same
    time both get the one that was ready first.
    """
    made: dict[tuple[Hashable, ...], Made] = {}

    @wraps(make)
    def ask(*arguments: Hashable) -> Made:
        if arguments not in made:
            made.setdefault(arguments, make(*arguments))
        return made[arguments]

    return ask


class ByDigest:
    """Compared and hashed by the digest of the content; nothing changes it."""

    @property
    def digest(self) -> str:
        """A hash of the content, equal for equal content."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self is other or (self.digest == other.digest if isinstance(other, type(self)) else NotImplemented)

    def __hash__(self) -> int:
        return hash(self.digest)


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
