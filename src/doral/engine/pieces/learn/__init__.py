"""What enters V and G: the learners of stage 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from doral import _check

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

OPTION = "learner"
FILLS = ("learn_answer", "learn_recalled", "learn_correction")
ALSO = ("auto",)


@dataclass(frozen=True, kw_only=True)
class LearnOptions:
    """Options of every learner."""

    learner: Literal["auto", "early", "returned", "scaled", "thinned"] = "returned"
    features: Literal["given", "none"] = "given"
    penalty: float = 1.0


def check(options: PolicyOptions) -> None:
    _check.set_fields(options, penalty=_check.finite_number("penalty", options.penalty, at_least=1e-9, at_most=1e9))


def word(options: PolicyOptions, problem: Problem) -> str:
    """The learner that the problem needs, where that is left open."""
    if options.learner != "auto":
        return options.learner
    if problem.feedback != "silent":
        return "returned"
    return "early" if options.return_probability == "estimated" else "scaled"
