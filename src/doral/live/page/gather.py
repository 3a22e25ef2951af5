"""The facts of a campaign: from its state at one moment, and from what its log up to then was counted to."""

from __future__ import annotations

import math

from doral.live.decision import Decision
from doral.live.events import IS_PENDING
from doral.live.fold import Fold
from doral.live.ledger import Ledger
from doral.live.page.beliefs import SIGMAS, Believed, believed, return_curve
from doral.live.page.facts import ArmFacts, CampaignFacts, ContextFacts, PairFacts, Period
from doral.live.page.history import MOST_PERIODS, History
from doral.live.page.pace import Standing, spending
from doral.live.page.sentences import notes, warnings
from doral.live.page.waiting import pending, unsettled
from doral.live.report import make_report
from doral.live.roster import ARM_STATUS_NAMES
from doral.live.served import Served
from doral.live.words import certified

MOST_PAIRS = 1_000  # of contexts and arms that are told one by one
MOST_CERTIFICATES = 200


class Finish:
    """What is taken from the state at one moment, before it moves on."""

    def __init__(self, fold: Fold, name: str, wall: float) -> None:
        problem, definition = fold.problem, fold.definition
        self.report = make_report(name, fold)
        self.pending, self.arrivals = fold.counts.states[IS_PENDING], fold.round
        self._definition, self._tag = definition, fold.names.tag
        self._wall = wall
        self._problem = problem
        self._ledger: Ledger = self.report.ledger
        self._clock_now = max(fold.clock, wall - definition.epoch) if definition.is_in_seconds else fold.clock
        self._believed = believed(fold.engine.state, problem.n_contexts, problem.n_arms)
        self._curves = [return_curve(fold.engine.state, arm) for arm in range(problem.n_arms)]
        self._control, self._status = fold.roster.control, list(fold.roster.status)
        self._costs = [list(fold.roster.costs(context)) for context in range(problem.n_contexts)]
        self._last = definition.epoch + fold.clock
        self._standing = Standing.of(fold)

    @property
    def person(self) -> tuple[str, ...]:
        """Features of people, by which it is told who is served."""
        return self.report.person

    def facts(
        self, history: History, latest: tuple[Decision, ...], groups: tuple[Served, ...], *, is_partial: bool
    ) -> CampaignFacts:
        report, definition = self.report, self._definition
        ledger = self._ledger.to_dict()
        points = history.points(spent=ledger["spent"], reserved=ledger["reserved"])
        state = "closed" if report.is_closed else "racing" if report.is_racing else "open"
        open_ones = pending(history.open, now=self._clock_now, clock=report.clock, epoch=definition.epoch)
        overdue = unsettled(history.open, now=self._clock_now, clock=report.clock)
        return CampaignFacts(
            name=report.name,
            tag=self._tag,
            policy=report.policy,
            clock=report.clock,
            state=state,
            made_at=self._wall,
            began_at=definition.created_at,
            last_at=self._last,
            ends_at=report.until,
            arrivals=report.arrivals,
            horizon=report.horizon,
            time_share=report.time_share,
            **ledger,
            spent_share=report.spent_share,
            reward=report.reward,
            late_reward=report.late_reward,
            states=report.decisions,
            reasons=report.reasons,
            cutoff=_finite(report.cutoff),
            price=next((one.price for one in latest if one.price > 0.0), None),
            spending=spending(self._standing, history, points),
            periods=_periods(history) if report.clock == "seconds" else (),
            arms=self._arms(),
            contexts=self._contexts(history),
            pairs=self._pairs(history),
            n_pairs=self._problem.n_arms * self._problem.n_contexts,
            certificates=tuple(certified(one) for one in report.certificates[:MOST_CERTIFICATES]),
            notes=tuple(notes(report)),
            warnings=tuple(warnings(report, overdue, deadline=self._problem.deadline, is_partial=is_partial)),
            pending=open_ones,
            groups=groups,
            latest=latest,
            is_partial=is_partial,
        )

    def _arms(self) -> tuple[ArmFacts, ...]:
        costs = self._costs
        return tuple(
            ArmFacts(
                name=one.name,
                status=one.status,
                standing=one.view.standing,
                is_control=arm == self._control,
                cost_low=min(row[arm] for row in costs),
                cost_high=max(row[arm] for row in costs),
                plays=one.plays,
                answers=one.answers,
                reward=one.reward,
                ages=curve.ages,
                returned=curve.returned,
                returned_low=curve.low,
                returned_high=curve.high,
            )
            for arm, (one, curve) in enumerate(zip(self.report.arms, self._curves, strict=True))
        )

    def _contexts(self, history: History) -> tuple[ContextFacts, ...]:
        nothing = self.report.baseline.rewards if self.report.baseline is not None else None
        return tuple(
            ContextFacts(
                name=context.name,
                share=self.report.shares[context.name],
                weight=context.weight,
                deadline=_finite(float(self._problem.deadlines[j])),
                arrivals=came.arrivals,
                served=came.served,
                answers=came.answers,
                reward=came.reward,
                spend=max(0.0, came.spend),
                nothing=None if nothing is None else _finite(nothing[j]),
            )
            for j, (context, came) in enumerate(zip(self._problem.contexts, history.contexts, strict=True))
        )

    def _pairs(self, history: History) -> tuple[PairFacts, ...]:
        """Those used most; where there are few, all of them by context."""
        n_arms, n_contexts = self._problem.n_arms, self._problem.n_contexts
        if n_arms * n_contexts <= MOST_PAIRS:
            chosen = [(j, a) for j in range(n_contexts) for a in range(n_arms)]
        else:
            ranked = sorted(history.uses.items(), key=lambda item: (-item[1].plays, item[0]))
            chosen = [pair for pair, _ in ranked[:MOST_PAIRS]]
        out = {(one.context, one.arm) for one in self.report.certificates}
        return tuple(self._pair(history, j, a, self._believed, out) for j, a in chosen)

    def _pair(self, history: History, j: int, a: int, found: Believed, out: set[tuple[str, str]]) -> PairFacts:
        context, arm = self._problem.contexts[j], self._problem.arms[a].name
        uses = history.uses.get((j, a))
        cost = self._costs[j][a]
        brings, error = _finite(float(found.brings[j, a])), _finite(float(found.error[j, a]))
        status = ARM_STATUS_NAMES[self._status[a]]
        return PairFacts(
            context=context.name,
            arm=arm,
            status="out" if (context.name, arm) in out and status == "active" else status,
            cost=cost,
            plays=0 if uses is None else uses.plays,
            answers=0 if uses is None else uses.answers,
            reward=0.0 if uses is None else uses.reward,
            value=_finite(float(found.value[j, a])),
            returns=None if brings is None else _finite(float(found.returns[j, a])),
            brings=brings,
            low=None if brings is None or error is None else brings - SIGMAS * error,
            high=None if brings is None or error is None else brings + SIGMAS * error,
            per_unit=None if brings is None or cost <= 0.0 else context.weight * brings / cost,
        )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _periods(history: History) -> tuple[Period, ...]:
    """From the first to the last; several days together where there are many."""
    bins, unit = history.bins, history.bin_s
    if not bins:
        return ()
    first, last = min(bins), max(bins)
    length = math.ceil((last - first + 1) / MOST_PERIODS)
    found = []
    for begin in range(first, last + 1, length):
        inside = [bins[one] for one in range(begin, min(begin + length, last + 1)) if one in bins]
        found.append(
            Period(
                begins=begin * unit,
                ends=(begin + length) * unit,
                reward=math.fsum(one.reward for one in inside),
                answers=sum(one.answers for one in inside),
                arrivals=sum(one.arrivals for one in inside),
            )
        )
    return tuple(found)
