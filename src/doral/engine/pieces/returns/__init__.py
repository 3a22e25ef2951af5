"""tau: which share of answers returns in time. "one", where all do, needs no piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from doral import _check
from doral.engine.pieces import learn
from doral.errors import InvalidValue
from doral.problem import MAX_AGE

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

OPTION = "return_probability"
FILLS = ("read_returns",)
EMPTY = "one"
HIDDEN = ("silent", "early")  # what "estimated" means where feedback is silent

MAX_CURVE_POINTS = 1_000


@dataclass(frozen=True, kw_only=True)
class ReturnsOptions:
    """Return curves, tau and the cut-off m."""

    cutoff: float | Literal["adaptive", "none"] | None = None
    cutoff_share: float = 0.95
    return_probability: Literal["one", "estimated", "oracle"] = "estimated"
    return_by: Literal["deadline", "cutoff"] = "deadline"
    curves_by: Literal["arm", "context"] = "arm"
    curve_points: int = 16
    until_end: bool = False


def check(options: PolicyOptions) -> None:
    if isinstance(options.cutoff, str):
        if options.cutoff not in ("adaptive", "none"):
            raise InvalidValue("cutoff", options.cutoff, "must be a number of rounds, adaptive, none or None")
    elif options.cutoff is not None:
        _check.set_fields(options, cutoff=_check.finite_number("cutoff", options.cutoff, at_least=1, at_most=MAX_AGE))
    if options.cutoff == "adaptive" and options.return_probability != "estimated":
        raise InvalidValue("cutoff", options.cutoff, "follows return curves: needs return_probability='estimated'")
    points = _check.whole_number("curve_points", options.curve_points, at_least=2, at_most=MAX_CURVE_POINTS)
    share = _check.finite_number("cutoff_share", options.cutoff_share, above=0, at_most=1)
    _check.set_fields(options, curve_points=points, cutoff_share=share)


def word(options: PolicyOptions, problem: Problem) -> str:
    """Where feedback is silent, an answer of 0 cannot be seen, and there is no curve to read."""
    if options.return_probability != "estimated":
        return options.return_probability
    if learn.word(options, problem) == "early":
        return "early"
    return "silent" if problem.feedback == "silent" else "estimated"
