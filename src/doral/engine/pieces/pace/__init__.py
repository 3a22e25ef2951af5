"""Stage 2, allocation: whether this arrival is worth its cost today."""

from __future__ import annotations

from dataclasses import dataclass

OPTION = "pacing"
FILLS = ("spend",)


@dataclass(frozen=True, kw_only=True)
class PaceOptions:
    """Who is served."""

    pacing: str = "lp"
