"""A plan: all that a log says to somebody who has to decide."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doral.evaluation.evaluation import Evaluation
from doral.logs.log import Log
from doral.planning.curves import ReturnCurve
from doral.planning.earnings import Earnings
from doral.planning.facts import Fact
from doral.planning.questions import Finding
from doral.planning.responsiveness import Responsiveness
from doral.planning.spending import More, Spending
from doral.planning.tails import DelayTail
from doral.planning.values import ArmValue, CellValue, NothingDone, Price
from doral.planning.waiting import Waiting
from doral.problem import Problem

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.live.campaign import Campaign
    from doral.live.store import Store


@dataclass(frozen=True, kw_only=True)
class Recommendation(Fact):
    """What to run, and why."""

    policy: str | None  # as it is called among those that played; None: go on as today
    options: tuple[tuple[str, Any], ...]  # in which it differs from its preset
    reasons: tuple[str, ...]  # sentences
    limits: tuple[str, ...]  # what the log cannot tell, what was assumed: sentences
    preset: str = ""  # the name that `doral.policy` knows; "" where it is that of the policy

    @property
    def known_as(self) -> str | None:
        """To `doral.policy`, together with the options; None where nothing is recommended."""
        return self.preset or self.policy


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan:
    """The answer in short, what to run, and everything that led there. Made by `doral.plan`.

    Attributes:
        answer: Sentences for somebody in a hurry, the most important first.
        log: What it rests on.
        problem: What to run next: what `problem.json` holds; its clock is in seconds, as in a campaign.
        deadline: How old an answer may be to count, in the unit of the log's clock.
        recommendation: Which policy to run, and why.
        earnings: What policies earned in the worlds that the log leaves possible; None where nothing was answered.
        arms: What arms bring, the best first; none where nothing was answered.
        cells: What a decision brings in every context with every arm; none where nothing was answered.
        curves: Which share of the answers has come by which age.
        findings: What there is to know about the answers, question by question.
        tails: How the longest delays fall off.
        responsiveness: Who answers, by arm and context.
        waiting: How long to wait.
        prices: What a unit of budget brings where.
        nothing: What doing nothing brings.
        spending: What budgets buy; None where nothing was answered.
        more: What some more, or less, budget brings.
        evaluation: What the log says by itself of simple rules, without a simulation; None where nothing was answered.
        seed: Of all draws.
        took_s: How long it took, in seconds.
        command: What to type for the same plan.
    """

    answer: tuple[str, ...]
    log: Log
    problem: Problem
    deadline: float
    recommendation: Recommendation
    earnings: Earnings | None
    arms: tuple[ArmValue, ...]
    cells: tuple[CellValue, ...]
    curves: tuple[ReturnCurve, ...]
    findings: tuple[Finding, ...]
    tails: tuple[DelayTail, ...]
    responsiveness: Responsiveness
    waiting: Waiting
    prices: tuple[Price, ...]
    nothing: tuple[NothingDone, ...]
    spending: Spending | None
    more: tuple[More, ...]
    evaluation: Evaluation | None
    seed: int
    took_s: float
    command: str

    def text(self) -> str:
        """The answer and the tables that matter most, for a terminal."""
        from doral.planning.report.text import text

        return text(self)

    def save(self, folder: str | Path) -> Path:
        """Write the page, the figures, the tables, plan.json, problem.json and policy.json; returns the page.

        Args:
            folder: Where to; it is made if need be.
        """
        from doral.planning.report.folder import save

        return save(self, Path(folder))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        from doral.planning.report.folder import to_dict

        return to_dict(self)

    def create(
        self,
        storage: str | Store,
        name: str,
        *,
        policy: str | PolicyOptions | None = None,
        seed: int | None = None,
    ) -> Campaign:
        """Open a campaign that runs what is recommended, and knows what the log knows.

        Args:
            storage: A store, or its address as `doral.open` takes it.
            name: What the campaign is called.
            policy: What it runs. None: what is recommended; a plan that says to go on as today recommends nothing.
            seed: Of its draws. None: the campaign draws one.
        """
        from doral.planning.campaign import create_campaign

        return create_campaign(self, storage, name, policy=policy, seed=seed)

    def __repr__(self) -> str:
        return f"<Plan of {self.log.name!r}: {self.answer[0]}>"

    def _repr_html_(self) -> str:
        from doral.planning.report.notebook import plan_card

        return plan_card(self)
