"""Reports, as data, as text, and as cards of notebooks."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

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
from doral.errors import DoralError, InvalidValue
from doral.live.events.event import ARM_STATUS_NAMES, STATE_NAMES, Created
from doral.live.runtime.session import Session
from doral.live.state.definition import DAY_S, Definition
from doral.live.state.parts import Ledger
from doral.live.state.plan import Pace
from doral.live.state.state import CampaignState
from doral.live.storage.contract import CampaignRow, Log, Storage
from doral.live.views.decision import SHORT
from doral.live.views.groups import MOST_GROUPS, Served, ServedTables
from doral.live.views.text import certified, moment, pace_words, share, span
from doral.pages.names import short
from doral.pages.notebook import card, note, small_table
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
        is_paused: Whether every arrival is skipped until the campaign is resumed.
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
    is_paused: bool
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
        is_paused=state.arms.is_paused,
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


WIDTH = 80
_LABEL = 10  # columns of the word with which a line begins
_MOST_CERTIFICATES = 8
_MOST_ARMS = 20  # in a notebook
_NAME = 24


def wrapped(line: str, indent: int) -> list[str]:
    """A line in as many as it needs; numbers and names are not torn."""
    rest = " " * indent
    first = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line.lstrip(),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [""]


def report_text(report: Report) -> str:
    """All that matters, for a terminal."""
    lines = [line for one in _lines(report) for line in _kept(one)]
    for arm in report.arms:
        lines += wrapped(f"  {short(arm.name, _NAME)}: {_arm_words(report, arm)}", 4)
        lines += [line for one in _effects(report, arm.name) for line in wrapped(f"    {one}", 6)]
    told = report.certificates[:_MOST_CERTIFICATES]
    if told:
        lines.append("certain")
        lines += [line for one in told for line in wrapped(f"  {certified(one, width=_NAME)}", 4)]
        more = len(report.certificates) - len(told)
        lines += [f"  and {more:,} more"] if more else []
    return "\n".join(lines)


def _kept(line: str) -> list[str]:
    """The word at its beginning stays in a column of its own."""
    head, rest = line[:_LABEL], line[_LABEL:]
    found = textwrap.wrap(rest, WIDTH - _LABEL, break_on_hyphens=False) or [""]
    return [head + found[0], *(" " * _LABEL + one for one in found[1:])]


def _lines(report: Report) -> Iterator[str]:
    ledger = report.ledger
    yield f"campaign {short(report.name, 50)}: {_state(report)}, policy {report.policy}"
    yield from _arrivals(report)
    yield (
        f"{'budget':<10}{ledger.total} = spent {ledger.spent} + reserved {ledger.reserved} "
        f"+ left {ledger.left} ({report.spent_share:.1%} used; {ledger.released} released)"
    )
    yield f"{'plan':<10}{_pace(report)}"
    if report.is_paid_on_answer:
        promise = "the budget holds whatever is paid"
        if report.reserve < 1.0:
            promise = f"the budget holds what is paid with probability {report.reserve:g}, and may be overdrawn"
        back = figure(report.coming_back)
        yield f"{'reserve':<10}{promise}; of what is reserved, {back} is thought to come back"
    states = ", ".join(f"{count:,} {state}" for state, count in report.decisions.items() if count)
    yield f"{'decisions':<10}{states or 'none yet'}"
    late = f", and {report.late_reward:.6g} too late" if report.late_reward else ""
    yield f"{'reward':<10}{report.reward:.6g}{late}"
    yield from _extras(report)
    if report.is_racing:
        yield f"{'stage':<10}race, which finds the arms that answer fast enough"
    else:
        assert report.cutoff is not None
        waits = "cut-off none" if report.cutoff == float("inf") else f"cut-off {span(report.cutoff, report.clock)}"
        yield f"{'stage':<10}allocation, {waits}"


def _pace(report: Report) -> str:
    pace = Pace(report.pace, float(report.ledger.total - report.ledger.left), report.planned)
    return pace_words(pace, currency=report.currency, share_gone=report.time_share).replace("\N{NO-BREAK SPACE}", " ")


def _state(report: Report) -> str:
    return "closed" if report.is_closed else "paused" if report.is_paused else "open"


def _arrivals(report: Report) -> Iterator[str]:
    if report.until is None or report.forecast is None:
        yield f"{'arrivals':<10}{report.arrivals:,} of {report.horizon:,} ({report.time_share:.1%})"
        return
    ahead = report.forecast
    end = moment(report.until, "seconds")
    yield f"{'arrivals':<10}{report.arrivals:,}, {report.time_share:.1%} of the time until {end} UTC"
    yield (
        f"{'forecast':<10}{ahead.expected:,.0f} more until then ({ahead.low:,.0f} to {ahead.high:,.0f} with 90%), "
        f"{figure(ahead.pace * DAY_S, 3)} a day"
    )


def _extras(report: Report) -> Iterator[str]:
    """Said only where there is something to say."""
    if report.baseline is not None:
        rows = zip(report.shares, report.baseline.rewards, report.baseline.answers, strict=True)
        told = [f"{short(name, _NAME)} {value:.3g}" + (f" ({n:,.0f} answers)" if n else "") for name, value, n in rows]
        yield f"{'uplift':<10}{report.baseline.uplift:.6g}, what answers brought beyond doing nothing"
        more = f" and {len(told) - 20:,} more" if len(told) > 20 else ""
        yield f"{'nothing':<10}brings {', '.join(told[:20])}{more}"
    if report.explored.arrivals:
        yield (
            f"{'explored':<10}{report.explored.arrivals:,} arrivals at random, which has cost a reward of about "
            f"{report.explored.loss:.6g}"
        )
    if report.clock_went_back:
        yield (
            f"{'clock':<10}stood still for {report.clock_went_back:,} events that were stored after later ones: of "
            "hosts whose clocks were behind"
        )
    if report.idle_features:
        which = ", ".join(str(i + 1) for i in report.idle_features)
        yield f"{'features':<10}{which} of every arm are the same, and tell nothing of them"


def _arm_words(report: Report, arm: ArmReport) -> str:
    returned = f"{arm.view.return_curve[-1]:.0%} return" if arm.view.return_curve else "no return curve yet"
    return (
        f"{arm.status}, {arm.view.standing}, {arm.plays:,} plays at {cost_words(arm.cost)}, {arm.answers:,} answers, "
        f"reward {arm.reward:.6g}, {returned}{_ruled_out(report, arm.name)}"
    )


def cost_words(cost: float | dict[str, float]) -> str:
    """In few words."""
    if isinstance(cost, float):
        return f"{cost:g}"
    return f"{min(cost.values()):g} to {max(cost.values()):g}"


def _effects(report: Report, arm: str) -> list[str]:
    return [
        f"{one.feature} {one.change}: {one.effect:+.3g} ({one.low:+.3g} to {one.high:+.3g} with 95%)"
        for one in report.effects
        if one.arm == arm
    ]


def _ruled_out(report: Report, arm: str) -> str:
    out = [certificate.context for certificate in report.certificates if certificate.arm == arm]
    if report.person:
        return f", worse for certain for {'; '.join(out)}" if out else ""
    return f", ruled out in {len(out)} of {len(report.shares)} contexts" if out else ""


def report_words(report: Report) -> str:
    """In one line."""
    return (
        f"{_state(report)}, {report.arrivals:,} of {report.horizon:,} arrivals, {share(report.spent_share)} of the "
        f"budget used, reward {figure(report.reward)}"
    )


def report_card(report: Report, title: str) -> str:
    """As HTML."""
    ledger = report.ledger.to_dict()
    states = ", ".join(f"{count:,} {state}" for state, count in report.decisions.items() if count)
    cutoff = "race" if report.is_racing else f"allocation, cut-off {span(report.cutoff, report.clock)}"
    facts = [
        ("state", f"{_state(report)}, policy {report.policy}"),
        ("arrivals", f"{report.arrivals:,} of {report.horizon:,} ({share(report.time_share)} of the way)"),
        (
            "budget",
            f"{figure(ledger['total'], 6)} = spent {figure(ledger['spent'], 6)} + reserved "
            f"{figure(ledger['reserved'], 6)} + left {figure(ledger['left'], 6)}",
        ),
        ("plan", _pace(report)),
        ("decisions", states or "none yet"),
        ("reward", figure(report.reward, 6)),
        ("stage", cutoff),
    ]
    ranked = sorted(report.arms, key=lambda one: -one.plays)[:_MOST_ARMS]
    rows = [
        (
            short(one.name, 40),
            one.status,
            cost_words(one.cost),
            f"{one.plays:,}",
            f"{one.answers:,}",
            figure(one.reward),
            share(one.view.return_curve[-1]) if one.view.return_curve else "",
        )
        for one in ranked
    ]
    heads = ("arm", "status", "cost", "plays", "answers", "reward", "answered")
    parts = [small_table(heads, rows, numbers=range(2, 7))]
    if len(report.arms) > len(ranked):
        parts.append(note(f"the {len(ranked)} most used of {len(report.arms):,} arms"))
    parts += [note(certified(one)) for one in report.certificates[:_MOST_CERTIFICATES]]
    return card(title, facts, parts=parts)


if TYPE_CHECKING:
    from doral.live.campaign import Campaign

_MOST_CAMPAIGNS = 50


def campaign_repr(session: Session) -> str:
    """As it was when somebody last asked: looking at an object reads nothing."""
    name = short(session.row.name, 60)
    now = session.last_seen
    if session.is_gone:
        return f"<Campaign {name!r}, deleted>"
    if now is None:
        return f"<Campaign {name!r}>"
    state = "closed" if now.closed else "open"
    came = f"{now.round:,} of {now.engine.horizon:,} arrivals"
    return f"<Campaign {name!r}: {state}, {came}, {share(_used(now))} of the budget used>"


def _used(now: CampaignState) -> float:
    return float(1 - now.ledger.left / now.ledger.total)


def campaign_card(campaign: Campaign) -> str:
    """Its report; where the store cannot be read, why."""
    title = f"Campaign {short(campaign.name, 60)}"
    try:
        return report_card(campaign.report(), title)
    except DoralError as error:
        return card(title, parts=[note(str(error))])


def store_card(storage: Storage, opened: Mapping[str, CampaignState | None], *, is_closed: bool) -> str:
    """Its campaigns. Only those that were opened are known well: opening all of them could take long."""
    title = f"Store {storage.url}"
    if is_closed:
        return card(f"{title}, closed")
    try:
        with storage.reading() as found:
            there = len(found)
            rows = [_row(row, log, opened.get(row.name)) for row, log in found[:_MOST_CAMPAIGNS]]
    except DoralError as error:
        return card(title, parts=[note(str(error))])
    if not rows:
        return card(title, parts=[note("no campaign yet: make one with create()")])
    heads = ("campaign", "state", "created (UTC)", "events", "budget", "used")
    parts = [small_table(heads, rows, numbers=(3, 4, 5))]
    if there > len(rows):
        parts.append(note(f"the first {len(rows)} of {there:,} campaigns"))
    return card(title, parts=parts)


def _row(row: CampaignRow, log: Log, now: CampaignState | None) -> tuple[str, ...]:
    begun = moment(row.created_at, "seconds")
    try:
        events = log.head()[0]
        state = ""  # the log has no index of it
        if now is not None:
            state = "closed" if now.closed else "open"
            budget, used = figure(float(now.ledger.total)), share(_used(now))
        else:
            first = log.events([1])[1]
            assert isinstance(first, Created)
            budget, used = figure(Definition.from_json(first.definition).problem.budget), "not opened"
    except (DoralError, KeyError, TypeError, ValueError):
        return short(row.name, 40), "cannot be read", begun, "", "", ""
    return short(row.name, 40), state, begun, f"{events:,}", budget, used
