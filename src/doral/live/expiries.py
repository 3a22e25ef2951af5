"""Which decisions have expired: those up to some point of the log, by context, unless something became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Expiries:
    """Calls of `expire`, in their order; those in a row that treated money alike are one."""

    def __init__(self, n_contexts: int) -> None:
        self.upto = [0] * n_contexts  # by context: sequence of the last event up to which decisions have expired
        self._calls: list[tuple[list[int], bool]] = []

    def add(self, upto: Sequence[int], *, releases: bool) -> None:
        if self._calls and self._calls[-1][1] == releases:
            self._calls.pop()
        self.upto = list(upto)
        self._calls.append((self.upto, releases))

    def has(self, context: int, sequence: int) -> bool:
        return sequence <= self.upto[context]

    def is_released(self, context: int, sequence: int) -> bool:
        """Whether what was reserved for an expired decision came back."""
        return next((releases for upto, releases in self._calls if sequence <= upto[context]), False)

    def to_json(self) -> list[Any]:
        return [[upto, releases] for upto, releases in self._calls]

    @classmethod
    def from_json(cls, n_contexts: int, stored: list[Any]) -> Expiries:
        expiries = cls(n_contexts)
        for upto, releases in stored:
            expiries.add(upto, releases=releases)
        return expiries
