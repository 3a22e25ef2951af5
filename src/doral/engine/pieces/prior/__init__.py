"""What theta_j is shrunk to, and the noise; "fixed", the penalty alone, needs no piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

OPTION = "prior"
FILLS = ("follow_answers", "on_learned")
EMPTY = "fixed"
HIDDEN = ("people",)  # what all others mean where people have features


@dataclass(frozen=True, kw_only=True)
class PriorOptions:
    """The prior of theta_j."""

    prior: Literal["fixed", "cells", "noise", "shared"] = "fixed"


def word(options: PolicyOptions, problem: Problem) -> str:
    return "people" if problem.person and options.prior != "fixed" else options.prior


def check(options: PolicyOptions) -> None:
    if options.prior != "fixed" and options.learner == "thinned":
        raise InvalidValue("prior", options.prior, "is measured on answers; the thinned learner has none of its own")
