"""What the settings of rivals have in common."""

from __future__ import annotations

from dataclasses import dataclass

from doral import _check


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What can be set about a rival; each has its own."""


def share(field: str, value: object) -> float:
    """A number from 0 to 1."""
    return _check.finite_number(field, value, at_least=0, at_most=1)
