"""rho: what may be spent per round from now on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from doral import _check

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

OPTION = "rate"
FILLS = ("rate",)
HIDDEN = ("printed_coin",)  # what "printed" means for the coin


@dataclass(frozen=True, kw_only=True)
class RateOptions:
    """How quickly the budget may go."""

    rate: Literal["period", "printed", "remaining"] = "remaining"
    periods: int = 50


def check(options: PolicyOptions) -> None:
    _check.set_fields(options, periods=_check.whole_number("periods", options.periods, at_least=1, at_most=10**9))


def word(options: PolicyOptions, problem: Problem) -> str:
    return "printed_coin" if options.rate == "printed" and options.pacing == "coin" else options.rate
