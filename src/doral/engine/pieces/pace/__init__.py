"""Stage 2, allocation: whether this arrival is worth its cost today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OPTION = "pacing"
FILLS = ("spend",)


@dataclass(frozen=True, kw_only=True)
class PaceOptions:
    """Who is served."""

    pacing: Literal["coin", "greedy", "lp"] = "lp"
