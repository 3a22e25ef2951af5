"""The facts of a campaign: from its state at one moment, and from what its log up to then was counted to."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.engine.state import State
from doral.estimators.ridge import COUNT, REWARD, SQUARE
from doral.estimators.survival import whole_arm_curve
from doral.live.events.event import ARM_STATUS_NAMES, IS_PENDING
from doral.live.page.facts import ArmFacts, CampaignFacts, ContextFacts, Mix, PairFacts, Pending, Period, Waiting
from doral.live.page.history import MOST_PERIODS, SKIP, History, Open
from doral.live.page.spending import Standing, spending
from doral.live.state.definition import DAY_S
from doral.live.state.parts import Ledger
from doral.live.state.state import CampaignState
from doral.live.views.decision import Decision
from doral.live.views.groups import Served
from doral.live.views.report import Report, make_report
from doral.live.views.text import all_late, certified, moment, share, span
from doral.pages.numbers import count, figure

MOST_PAIRS = 1_000  # of contexts and arms that are told one by one
MOST_CERTIFICATES = 200
_PLAN_STEP_S = 60.0


class Finish:
    """What is taken from the state at one moment, before it moves on."""

    def __init__(self, now: CampaignState, name: str, wall: float) -> None:
        problem, definition = now.problem, now.definition
        self.report = make_report(name, now)
        self.pending, self.arrivals = now.counts.states[IS_PENDING], now.round
        self._definition, self._tag = definition, now.names.tag
        self._wall = wall
        self._problem = problem
        self._ledger: Ledger = self.report.ledger
        self._clock_now = max(now.clock, wall - definition.epoch) if definition.is_in_seconds else now.clock
        self._believed = believed(now.engine.state, problem.n_contexts, problem.n_arms)
        self._curves = [return_curve(now.engine.state, arm) for arm in range(problem.n_arms)]
        self._control, self._status = now.arms.control, list(now.arms.status)
        self._costs = [list(now.arms.costs(context)) for context in range(problem.n_contexts)]
        self._stage = now.stage
        self._last = definition.epoch + now.clock
        self._standing = Standing.of(now, self._planned_at(now))

    def _planned_at(self, now: CampaignState) -> float:
        """Where the end is a date, the plan goes on while nobody comes: by the minute, so that a page stands still."""
        until = now.engine.until
        if until is None:
            return now.clock
        step = min(_PLAN_STEP_S, until / _PLAN_STEP_S)
        return max(now.clock, self._clock_now // step * step)

    @property
    def person(self) -> tuple[str, ...]:
        """Features of people, by which it is told who is served."""
        return self.report.person

    def facts(self, history: History, latest: tuple[Decision, ...], groups: tuple[Served, ...]) -> CampaignFacts:
        report, definition = self.report, self._definition
        ledger = self._ledger.to_dict()
        points = history.points(spent=ledger["spent"], reserved=ledger["reserved"])
        open_ones = pending(history.open, now=self._clock_now, clock=report.clock, epoch=definition.epoch)
        overdue = unsettled(history.open, now=self._clock_now, clock=report.clock)
        return CampaignFacts(
            name=report.name,
            tag=self._tag,
            policy=report.policy,
            currency=report.currency,
            outcome=report.outcome,
            clock=report.clock,
            state=self._stage,
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
            mix=self._mix(history),
            periods=_periods(history) if report.clock == "seconds" else (),
            arms=self._arms(),
            contexts=self._contexts(history),
            pairs=self._pairs(history),
            n_pairs=self._problem.n_arms * self._problem.n_contexts,
            certificates=tuple(certified(one) for one in report.certificates[:MOST_CERTIFICATES]),
            notes=tuple(notes(report)),
            warnings=tuple(warnings(report, overdue, deadline=self._problem.deadline)),
            pending=open_ones,
            groups=groups,
            latest=latest,
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
                recent={self._arm_name(arm): many for arm, many in Counter(history.recent[j]).most_common()},
            )
            for j, (context, came) in enumerate(zip(self._problem.contexts, history.contexts, strict=True))
        )

    def _arm_name(self, arm: int) -> str:
        return "" if arm == SKIP else self._problem.arms[arm].name

    def _mix(self, history: History) -> tuple[Mix, ...]:
        start = self._standing.epoch if history.by_date else 0.0
        return tuple(
            Mix(
                begins=start + place * history.mix_step,
                ends=start + (place + 1) * history.mix_step,
                arrivals=sum(counts.values()),
                skipped=counts.get(SKIP, 0),
                arms={self._arm_name(arm): many for arm, many in sorted(counts.items()) if arm != SKIP},
            )
            for place, counts in sorted(history.mixes.items())
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


# --- what the policy believes of arms ---------------------------------------------------------------------------------


SIGMAS = 1.959963984540054  # of a 95% interval
_TAIL = 0.025  # of it, at each side


class Curve(NamedTuple):
    """Which share of an arm's uses is answered by an age, with a 95% interval."""

    ages: tuple[float, ...]
    returned: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def return_curve(state: State, arm: int) -> Curve:
    """Kaplan and Meier's, with Greenwood's error on the scale of log(-log), which stays between 0 and 1."""
    curves = state.curves
    n_arms = curves.arm_at_risk.shape[0]
    at_risk = curves.at_risk.reshape(-1, n_arms, curves.ages.size)[:, arm].sum(axis=0)
    answered = curves.returned.reshape(-1, n_arms, curves.ages.size)[:, arm].sum(axis=0)
    seen = at_risk > 0.0
    returned = whole_arm_curve(curves, arm)[seen]
    if not returned.size:
        return Curve((), (), (), ())
    n, d = at_risk[seen], answered[seen]
    open_after = np.maximum(n * (n - d), 1e-300)
    error = np.cumsum(np.where(n > d, d / open_after, 0.0))
    silent = np.clip(1.0 - returned, 0.0, 1.0)
    low, high = returned.copy(), returned.copy()
    inside = (silent > 0.0) & (silent < 1.0)
    width = SIGMAS * np.sqrt(error[inside]) / np.abs(np.log(silent[inside]))
    low[inside] = 1.0 - silent[inside] ** np.exp(-np.minimum(width, 50.0))
    high[inside] = 1.0 - silent[inside] ** np.exp(np.minimum(width, 50.0))
    # Nobody has answered, or all have: of so many, a few might have done otherwise by chance.
    low[silent <= 0.0] = _TAIL ** (1.0 / max(float(n.max()), 1.0))
    high[silent >= 1.0] = 1.0 - _TAIL ** (1.0 / np.maximum(n[silent >= 1.0], 1.0))
    return Curve(tuple(curves.ages[seen].tolist()), tuple(returned.tolist()), tuple(low.tolist()), tuple(high.tolist()))


class Believed(NamedTuple):
    """By context and arm; not a number where nothing is known."""

    value: Floats  # of an answer
    returns: Floats  # the chance of one in time
    brings: Floats  # of a use
    error: Floats  # its standard error


def believed(state: State, n_contexts: int, n_arms: int) -> Believed:
    """As decisions are made by; of an arm that was never answered nothing is known."""
    tau, tau_error = state.tau[:n_contexts, :n_arms].copy(), state.tau_error[:n_contexts, :n_arms]
    value, norm = state.ridge.estimate[:n_contexts, :n_arms].copy(), state.ridge.norm[:n_contexts, :n_arms]
    count = state.tally[COUNT][:n_contexts, :n_arms]
    error = np.sqrt((_noise(state, n_contexts)[:, None] * tau * norm) ** 2 + (tau_error * value) ** 2)
    value[:, count.sum(axis=0) <= 0.0] = math.nan
    return Believed(value, tau, value * tau, error)


def _noise(state: State, n_contexts: int) -> Floats:
    """The standard deviation of a reward around its mean: as the policy measures it, or over all answers."""
    if hasattr(state, "prior"):
        measured = np.asarray(state.prior.sigma, dtype=np.float64)
        if measured.size >= n_contexts:
            return measured[:n_contexts].copy()
    count, total, squares = (float(state.tally[part].sum()) for part in (COUNT, REWARD, SQUARE))
    if count <= 1.0:
        return np.ones(n_contexts)
    variance = max(0.0, squares / count - (total / count) ** 2) * count / (count - 1.0)
    return np.full(n_contexts, math.sqrt(variance))


# --- open decisions ---------------------------------------------------------------------------------------------------


_MINUTE_S = 60.0
_PATIENCE_S = 150.0  # two looks of a service, and some
_HOUR_S = 3_600.0
_BRIEF_S = (10.0, 30.0, _MINUTE_S, 2 * _MINUTE_S, 5 * _MINUTE_S, 15 * _MINUTE_S)  # where answers come at once
_STEPS_S = (
    *_BRIEF_S,
    _HOUR_S,
    6 * _HOUR_S,
    DAY_S,
    3 * DAY_S,
    7 * DAY_S,
    14 * DAY_S,
    30 * DAY_S,
    90 * DAY_S,
    365 * DAY_S,
)


def pending(found: Open, *, now: float, clock: str, epoch: float) -> Pending:
    """`now` is what the campaign's clock shows, or would show."""
    ages = np.sort(np.maximum(0.0, now - found.made)).tolist()
    ahead = found.expires - now
    is_limited = found.expires < math.inf
    future = found.expires[(now <= found.expires) & is_limited]
    return Pending(
        decisions=len(ages),
        reserved=math.fsum(found.cost.tolist()),
        overdue=int((ahead < 0.0).sum()),
        oldest_age=ages[-1] if ages else None,
        middle_age=ages[len(ages) // 2] if ages else None,
        next_expiry=epoch + float(future.min()) if future.size else None,
        by_age=_by_age(found, now, clock, ages[-1] if ages else 0.0),
        by_expiry=_by_expiry(found, now, clock, float(ahead[is_limited].max(initial=0.0))),
    )


def unsettled(found: Open, *, now: float, clock: str) -> int:
    """Decisions that are overdue for so long that nobody seems to settle them. A service does, every minute."""
    patience = _PATIENCE_S if clock == "seconds" else 0.0
    return int((found.expires - now < -patience).sum())


def _steps(clock: str, longest: float) -> list[float]:
    """Bounds of the groups, the last of which holds the longest."""
    if clock == "seconds":
        steps = list(_STEPS_S)
    else:
        unit = 10.0 ** max(0, math.ceil(math.log10(max(longest, 1.0))) - 1)
        steps = [unit * factor for factor in (1, 2, 5, 10)]
    kept = [one for one in steps if one < longest]
    return [*kept[-5:], math.inf]


def _by_age(found: Open, now: float, clock: str, oldest: float) -> tuple[Waiting, ...]:
    groups: list[Waiting] = []
    low, age = -math.inf, now - found.made
    for high in _steps(clock, oldest):
        if high == math.inf:
            words = "any age" if low == -math.inf else f"more than {span(low, clock)}"
        else:
            words = f"up to {span(high, clock)}"
        _put(groups, words, found.cost[(low < age) & (age <= high)])
        low = high
    return tuple(groups)


def _by_expiry(found: Open, now: float, clock: str, longest: float) -> tuple[Waiting, ...]:
    groups: list[Waiting] = []
    ahead, is_never = found.expires - now, found.expires == math.inf
    _put(groups, "overdue", found.cost[ahead < 0.0])
    low = 0.0
    for high in _steps(clock, longest):
        words = f"within {span(high, clock)}" if high < math.inf else "later" if low else "later than now"
        _put(groups, words, found.cost[~is_never & (low <= ahead) & (ahead < high)])
        low = high
    _put(groups, "never: there is no deadline", found.cost[is_never])
    return tuple(groups)


def _put(groups: list[Waiting], words: str, costs: Floats) -> None:
    if costs.size:
        groups.append(Waiting(words=words, decisions=int(costs.size), reserved=math.fsum(costs.tolist())))


# --- in sentences -----------------------------------------------------------------------------------------------------


def notes(report: Report) -> list[str]:
    """Sentences about what only some campaigns have."""
    said = []
    if report.forecast is not None and report.until is not None:
        ahead = report.forecast
        said.append(
            f"{figure(round(ahead.expected))} more arrivals are expected until {moment(report.until, 'seconds')} UTC "
            f"({figure(round(ahead.low))} to {figure(round(ahead.high))} with 90%), {figure(ahead.pace * DAY_S, 3)} a "
            "day."
        )
    if report.baseline is not None:
        said.append(f"Arms have brought {figure(report.baseline.uplift)} beyond what doing nothing would have brought.")
    if report.is_paid_on_answer:
        promise = "The budget holds whatever is paid"
        if report.reserve < 1.0:
            promise = f"The budget holds what is paid with probability {report.reserve:g}, and may be overdrawn"
        said.append(
            f"Costs are paid on answer. {promise}; of what is reserved, {figure(report.coming_back)} is thought to "
            "come back."
        )
    if report.explored.arrivals:
        said.append(
            f"{report.explored.arrivals:,} arrivals got one of their options at random, to learn from it, which has "
            f"cost a reward of about {figure(report.explored.loss)}."
        )
    if report.late_reward:
        said.append(f"A reward of {figure(report.late_reward)} came too late to count.")
    if report.corrections:
        said.append(f"{report.corrections:,} answers were corrected.")
    if report.decisions.get("cancelled"):
        said.append(f"{report.decisions['cancelled']:,} decisions were cancelled, and their budget was released.")
    if report.idle_features:
        which = ", ".join(str(i + 1) for i in report.idle_features)
        said.append(f"Features {which} of every arm are the same, and tell nothing of them.")
    return said


def warnings(report: Report, overdue: int, *, deadline: float | None) -> list[str]:
    """What somebody should look after."""
    said = []
    if overdue:
        said.append(
            f"{count(overdue, 'decision is', 'decisions are')} overdue, with budget still reserved: settle "
            "them under More, by expire(), or by `doral campaign expire`."
        )
    late = all_late(
        returned=report.decisions["returned"],
        late=report.decisions["late"],
        deadline=deadline,
        is_in_seconds=report.clock == "seconds",
    )
    if late is not None:
        said.append(f"{late[0].upper()}{late[1:]}.")
    if report.clock_went_back:
        said.append(
            f"The clock stood still for {report.clock_went_back:,} events that were stored after later ones: of hosts "
            "whose clocks were behind."
        )
    if not report.is_closed and report.time_share >= 1.0:
        said.append("The end was reached: extend the campaign, or close it.")
    if not report.is_closed and report.ledger.left <= 0 and report.time_share < 1.0:
        said.append(
            f"The budget is used up with {share(1.0 - report.time_share)} of the way to go: top it up, or close."
        )
    return said
