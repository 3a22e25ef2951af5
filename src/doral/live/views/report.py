"""A campaign at a glance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from doral.engine.certificates import Certificate, certificates
from doral.engine.explain import (
    ArmView,
    BaselineView,
    Explored,
    FeatureEffect,
    ForecastView,
    view_arm,
    view_baseline,
    view_effects,
    view_explored,
    view_forecast,
    view_shares,
)
from doral.errors import InvalidValue
from doral.live.events.event import ARM_STATUS_NAMES, STATE_NAMES
from doral.live.state.ledger import Ledger
from doral.live.state.state import CampaignState
from doral.live.views.reasons import SHORT
from doral.live.views.report_text import cost_words, report_card, report_text, report_words, wrapped
from doral.live.views.served import MOST_GROUPS, Served, ServedTables
from doral.pages.names import short
from doral.pages.notebook import card
from doral.pages.numbers import figure


@dataclass(frozen=True, kw_only=True)
class ArmReport:
    """One arm.

    Attributes:
        name: Of the arm.
        status: Active, paused or retired.
        cost: Of a use; by context, where it differs.
        plays: Uses that were not cancelled.
        answers: How many came, in time or late.
        reward: What it brought that counts, weighed as its contexts are.
        view: What the policy believes of it.
    """

    name: str
    status: str
    cost: float | dict[str, float]
    plays: int
    answers: int
    reward: float
    view: ArmView

    def __repr__(self) -> str:
        used = f"{self.plays:,} plays, {self.answers:,} answers, reward {figure(self.reward)}"
        return f"<ArmReport {short(self.name, 40)!r}: {self.status}, {used}>"

    def _repr_html_(self) -> str:
        facts = [
            ("status", f"{self.status}, {self.view.standing}"),
            ("cost", cost_words(self.cost)),
            ("plays", f"{self.plays:,}"),
            ("answers", f"{self.answers:,}"),
            ("reward", figure(self.reward)),
        ]
        return card(short(self.name, 60), facts)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Where a campaign stands.

    Attributes:
        name: Of the campaign.
        policy: Its name.
        clock: In "seconds" or "rounds".
        seed: Of the policy's coin.
        is_closed: Whether no more decisions are made.
        arrivals: How many came so far.
        horizon: How many are planned for; where the end is a date, as it is forecast.
        ledger: Where the budget is, to the last digit.
        is_paid_on_answer: Whether what is reserved may come back because costs are paid on answer.
        reserve: With this probability, what open decisions will cost is in the budget; 1: whatever they cost.
        coming_back: Of what is reserved, as it is thought; 0 where that is not learned.
        spent_share: Of the budget, reservations included.
        planned: What was planned to be used by now, in budget units.
        pace: What is used relative to that: "not begun", "too early", "on plan", "ahead of plan", "behind plan",
            "used up" or "over".
        time_share: Of the horizon, or of the time where the end is a date.
        decisions: How many there are, by state.
        reasons: How many there are, by reason, in short words.
        reward: What was brought that counts; without what those brought who were skipped.
        late_reward: That came too late to count.
        is_racing: Whether stage 1 still runs.
        cutoff: How long answers are waited for, in seconds or rounds; None while the race has not found it.
        shares: Of the contexts, among arrivals, as it is thought.
        arms: One report for each.
        explored: Arrivals that got one of their options at random, and what that has cost.
        certificates: Of arms that cannot enter the LP's solution in a context, for now.
        corrections: Answers that were corrected.
        clock_went_back: Events for which the clock stood still instead.
        events: In the log.
        baseline: What doing nothing brings, and what arms have brought beyond it.
        until: Seconds since 1970, where the end is a date; `horizon` is then a forecast.
        forecast: Of those still to come, as of the last event.
        idle_features: Features of arms, by their place from 0, that are the same for all arms and tell nothing.
        effects: What features of people are worth, by arm; empty until enough have come.
        person: The features that are known of everybody.
        read_served: What reads the log, if somebody asks who is served.
    """

    name: str
    currency: str
    outcome: str
    policy: str
    clock: str
    seed: int
    is_closed: bool
    arrivals: int
    horizon: int
    ledger: Ledger
    is_paid_on_answer: bool
    reserve: float
    coming_back: float
    spent_share: float
    planned: float
    pace: str
    time_share: float
    decisions: dict[str, int]
    reasons: dict[str, int]
    reward: float
    late_reward: float
    is_racing: bool
    cutoff: float | None
    shares: dict[str, float]
    arms: tuple[ArmReport, ...]
    explored: Explored
    certificates: tuple[Certificate, ...]
    corrections: int
    clock_went_back: int
    events: int
    baseline: BaselineView | None = None
    until: float | None = None
    forecast: ForecastView | None = None
    idle_features: tuple[int, ...] = ()
    effects: tuple[FeatureEffect, ...] = ()
    person: tuple[str, ...] = ()
    read_served: Callable[[], ServedTables] | None = field(default=None, repr=False, compare=False)

    def served_by(self, feature: str, bins: int = 4) -> tuple[Served, ...]:
        """Who is served, by level of a category or by equal shares of a number; the log is read for it.

        Args:
            feature: The name of a feature of people.
            bins: Into how many parts, of equally many people, a number is cut.
        """
        if self.read_served is None:
            raise InvalidValue("feature", feature, "this problem knows no features of people")
        return self.read_served().table(feature, bins)

    def served(self) -> dict[str, list[dict[str, Any]]]:
        """The same for all features, in plain values."""
        tables = None if self.read_served is None else self.read_served()
        return {} if tables is None else {one: [asdict(group) for group in tables.table(one, 4)] for one in self.person}

    def served_lines(self) -> list[str]:
        """The same in words."""
        if self.read_served is None:
            return []
        tables, lines = self.read_served(), list[str]()
        for feature in self.person:
            groups = tables.table(feature, 4)
            lines += [line for one in groups[:MOST_GROUPS] for line in wrapped(f"  {one}", 4)]
            if len(groups) > MOST_GROUPS:
                lines.append(f"  {feature}: and {len(groups) - MOST_GROUPS:,} more")
        return ["served", *lines] if lines else []

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        plain = asdict(replace(self, read_served=None))
        del plain["read_served"]
        if not self.person:
            del plain["effects"], plain["person"]
        else:
            plain["effects"] = [one._asdict() for one in self.effects]
        return {**plain, "ledger": self.ledger.to_dict()}

    def __repr__(self) -> str:
        return f"<Report of {short(self.name, 40)!r}: {report_words(self)}>"

    def __str__(self) -> str:
        return report_text(self)

    def _repr_html_(self) -> str:
        return report_card(self, f"Report of {short(self.name, 60)}")


def make_report(name: str, state: CampaignState, read_served: Callable[[], ServedTables] | None = None) -> Report:
    """`read_served` reads the log, if somebody asks who is served."""
    engine, counts, ledger, pace = state.engine, state.counts, state.ledger, state.pace()
    ahead = view_forecast(engine.state)
    return Report(
        name=name,
        currency=state.problem.currency,
        outcome=state.problem.outcome,
        policy=state.definition.policy.name,
        clock=state.definition.clock,
        seed=state.definition.seed,
        is_closed=state.closed,
        arrivals=state.round,
        horizon=engine.horizon if ahead is None else state.round + round(ahead.expected),
        idle_features=state.problem.idle_features,
        ledger=ledger.copy(),
        is_paid_on_answer=state.problem.paid == "on_answer",
        reserve=1.0 if engine.keeps_reserve else state.problem.reserve,
        coming_back=engine.coming_back,
        planned=pace.planned,
        pace=pace.status,
        spent_share=float((ledger.spent + ledger.reserved) / ledger.total),
        time_share=state.time_share,
        decisions=dict(zip(STATE_NAMES, counts.states, strict=True)),
        reasons={SHORT.get(reason, str(reason)): count for reason, count in sorted(counts.reasons.items())},
        reward=float(counts.reward),
        late_reward=float(counts.late_reward),
        is_racing=engine.is_racing,
        cutoff=None if engine.is_racing else engine.cutoff,
        shares=dict(zip(state.names.contexts, view_shares(engine.state, state.problem), strict=True)),
        arms=tuple(_arm_report(state, arm) for arm in range(state.problem.n_arms)),
        explored=view_explored(engine.state),
        certificates=certificates(engine.state, state.problem),
        corrections=counts.corrections,
        clock_went_back=counts.clock_went_back,
        events=state.sequence,
        baseline=view_baseline(engine.state, state.problem),
        until=None if engine.until is None else state.definition.epoch + engine.until,
        forecast=ahead,
        effects=view_effects(engine.state, state.problem, state.levels),
        person=state.problem.person_names,
        read_served=read_served if state.problem.person else None,
    )


def _arm_report(state: CampaignState, index: int) -> ArmReport:
    arm, counts, n_contexts = state.problem.arms[index], state.counts, state.problem.n_contexts
    view = view_arm(state.engine.state, index)
    return ArmReport(
        name=arm.name,
        status=ARM_STATUS_NAMES[state.arms.status[index]],
        cost=dict(arm.cost) if isinstance(arm.cost, tuple) else arm.cost,
        plays=counts.arm_plays[index],
        answers=counts.arm_answers[index],
        reward=float(counts.arm_rewards[index]),
        view=replace(view, values=view.values[:n_contexts], norms=view.norms[:n_contexts]),
    )
