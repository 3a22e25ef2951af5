"""A plan: all that a log says to somebody who has to decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from doral.evaluation.evaluation import Evaluation
from doral.log.log import Log
from doral.planning.arms_apart import ArmValue
from doral.planning.curves import ReturnCurve
from doral.planning.earnings import Earnings
from doral.planning.fact import Fact
from doral.planning.nothing import NothingDone
from doral.planning.prices import Price
from doral.planning.questions import Finding
from doral.planning.responsive import Responsiveness
from doral.planning.spending import More, Spending
from doral.planning.tails import DelayTail
from doral.planning.waiting import Waiting
from doral.problem import Problem


@dataclass(frozen=True, kw_only=True)
class Recommendation(Fact):
    """What to run, and why."""

    policy: str
    options: tuple[tuple[str, Any], ...]
    reasons: tuple[str, ...]  # sentences
    limits: tuple[str, ...]  # what the log cannot tell, what was assumed: sentences


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """The answer in short, what to run, and everything that led there."""

    answer: tuple[str, ...]  # sentences for somebody in a hurry, the most important first
    log: Log
    problem: Problem  # to run next: what `problem.json` holds; its clock is in seconds, as in a campaign
    deadline: float  # on the clock of the log
    recommendation: Recommendation
    earnings: Earnings | None  # None where nothing was answered
    arms: tuple[ArmValue, ...]  # the best first; none where nothing was answered
    curves: tuple[ReturnCurve, ...]
    findings: tuple[Finding, ...]
    tails: tuple[DelayTail, ...]
    responsiveness: Responsiveness
    waiting: Waiting
    prices: tuple[Price, ...]
    nothing: tuple[NothingDone, ...]
    spending: Spending | None
    more: tuple[More, ...]  # what some more, or less, budget brings
    evaluation: Evaluation | None  # what the log says by itself of simple rules, without a simulation
    seed: int
    took_s: float
    command: str
