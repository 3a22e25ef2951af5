"""What multiplies ||f_a|| in the norm of V^-1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from doral import _check

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions

OPTION = "bonus"
IN_UNITS_OF_NOISE = ("ahead", "calibrated", "to_come")  # as it is measured
FILLS = ("bonus",)


@dataclass(frozen=True, kw_only=True)
class BonusOptions:
    """The width of what is not known."""

    bonus: Literal["ahead", "calibrated", "corrected", "printed", "to_come"] = "corrected"
    delta: float = 0.05
    exploration: float = 1.0


def check(options: PolicyOptions) -> None:
    _check.set_fields(
        options,
        delta=_check.finite_number("delta", options.delta, at_least=1e-12, at_most=1),
        exploration=_check.finite_number("exploration", options.exploration, at_least=0, at_most=1e6),
    )
