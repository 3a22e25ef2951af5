"""The index gamma_t of an arm, and what the arm is worth: weight_j * tau_a * gamma_t(j, a)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from doral import _check

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

OPTION = "sampling"
FILLS = ("score",)
HIDDEN = ("doubtful",)  # what "optimism" means where it extends to return probabilities


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """How what is not known enters the value of an arm."""

    sampling: Literal["directed", "optimism", "oracle", "thompson"] = "optimism"
    return_optimism: float = 0.0
    draws: int = 8


def check(options: PolicyOptions) -> None:
    optimism = _check.finite_number("return_optimism", options.return_optimism, at_least=0, at_most=1e6)
    draws = _check.whole_number("draws", options.draws, at_least=1, at_most=10_000)
    _check.set_fields(options, return_optimism=optimism, draws=draws)


def word(options: PolicyOptions, problem: Problem) -> str:
    is_doubtful = options.sampling == "optimism" and options.return_optimism > 0.0
    return "doubtful" if is_doubtful else options.sampling
