"""Plans with plausible numbers, made by hand: what pages, figures and files are tried with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from doral._arrays import Floats
from doral.inference.intervals import Estimate
from doral.inference.truths import truths_of
from doral.logs.clock import Clock
from doral.logs.log import SKIPPED, Dropped, Log, Reading
from doral.planning.curves import Outcome, ReturnCurve
from doral.planning.earnings import Earning, Earnings
from doral.planning.plan import Plan, Recommendation
from doral.planning.questions import Finding
from doral.planning.responsiveness import ArmSpeed, Responsiveness
from doral.planning.spending import More, Spending, spending
from doral.planning.tails import DelayTail
from doral.planning.values import ArmValue, CellValue, NothingDone, Price, cell_values
from doral.planning.waiting import Deadline, Wait, Waiting
from doral.problem import Arm, Problem

DAY = 86_400.0
HOSTILE_ARMS = (
    "<script>alert('arm')</script>",
    '=HYPERLINK("http://evil.example","click")',
    "$x^2$ & 100% \"quoted\" 'single' \\alpha_{1}",
    "long " + "wörd-" * 39,
    "検査所 \N{TEST TUBE}",
)
HOSTILE_CONTEXTS = ("</style><img src=x onerror=alert(1)>", "@SUM(A1:A9)", "-2+3", "café \u202egnp.exe")
POLICIES = ("doral-otf", "explore-then-lp", "beta-ts-lp", "d-linucb", "status-quo", "a/b", "random")


def a_plan(
    *,
    arms: Sequence[str] = ("text message", "letter", "call"),
    contexts: Sequence[str] = ("young", "old"),
    rows: int = 1_200,
    has_delays: bool = True,
    is_world: bool = True,
    name: str = "reminders.csv",
) -> Plan:
    """A plan in full."""
    unit = DAY if is_world else 24.0
    log = a_log(tuple(arms), tuple(contexts), rows=rows, has_delays=has_delays, is_world=is_world, name=name)
    curves = _curves(log, unit) if has_delays else ()
    return Plan(
        answer=(
            "With the same budget, about 31 more positives [12, 48] than now.",
            f"The log cannot tell {arms[0]} from {arms[-1]}." if len(arms) > 1 else "There is one arm.",
            "Wait 9 days, not 14: 97% of what comes is there by then.",
        ),
        log=log,
        problem=Problem(
            arms=[Arm(one, cost=1.0 + place) for place, one in enumerate(arms)],
            contexts={one: 1.0 / len(contexts) for one in contexts},
            budget=600,
            horizon=rows,
            deadline=14.0 * unit,
        ),
        deadline=14.0 * unit if has_delays else log.span,
        recommendation=Recommendation(
            sentence="Run doral-otf.",
            policy="doral-otf",
            options=(("cutoff", 9.0), ("accept", 3)),
            reasons=(
                "It earns most over the truths that the log leaves possible, 31 more than the status quo [12, 48].",
                f"It drops {arms[-1]} where that brings nothing.",
            ),
            limits=(
                "The log has no probabilities: they were estimated by stratum.",
                "Answers later than 40 days are not known.",
            ),
        ),
        earnings=_earnings(),
        arms=tuple(_arm_value(one, place) for place, one in enumerate(arms)),
        cells=_cells(log, 14.0 * unit if has_delays else log.span),
        curves=curves,
        findings=_findings(unit) if has_delays else (),
        tails=_tails(log, unit) if has_delays else (),
        responsiveness=_responsiveness(log, unit, has_delays),
        waiting=_waiting(unit, has_delays),
        prices=tuple(_price(log, one) for one in arms),
        nothing=(
            NothingDone(
                sentence="Of those for whom nothing was done, 8% came by themselves [5%, 11%].",
                context=None,
                rows=200,
                answered=150,
                value=0.08,
                low=0.05,
                high=0.11,
            ),
        ),
        spending=_spending(),
        more=(
            More(sentence="500 more buy 31 positives [22, 40].", amount=500.0, gain=31.0, low=22.0, high=40.0),
            More(sentence="500 less lose 64 positives [50, 79].", amount=-500.0, gain=-64.0, low=-79.0, high=-50.0),
        ),
        evaluation=None,
        seed=7,
        took_s=12.3,
        command="doral plan reminders.csv --seed 7",
    )


def hostile_plan() -> Plan:
    """Names that attack pages, spreadsheets, figures and terminals; also the name of the file."""
    return a_plan(arms=HOSTILE_ARMS, contexts=HOSTILE_CONTEXTS, name='"><script>alert(2)</script>.csv')


def wide_plan() -> Plan:
    """Sixty strata and thirty arms."""
    arms = tuple(f"clinic {one + 1}" for one in range(30))
    contexts = tuple(f"age {20 + one // 4 * 5} / region {'NESW'[one % 4]}" for one in range(60))
    return a_plan(arms=arms, contexts=contexts, rows=6_000)


def minimal_plan() -> Plan:
    """One row, one arm, no answer: nothing can be said."""
    log = Log(
        name="one.csv",
        arms=("a",),
        contexts=("everyone",),
        clock=Clock("rounds", "rounds"),
        start=None,
        time=np.zeros(1),
        context=np.zeros(1, dtype=np.int64),
        arm=np.zeros(1, dtype=np.int64),
        reward=np.full(1, np.nan),
        delay=np.full(1, np.inf),
        watched=np.ones(1),
        cost=np.ones(1),
        paid=np.full(1, np.nan),
        probability=np.full(1, np.nan),
        feedback="explicit",
        paid_when="always",
        has_delays=False,
        reading=Reading(rows=1, columns=()),
    )
    nothing_known = "Nothing was answered: nothing can be said."
    deadline = Deadline(sentence=nothing_known, age=None, is_given=False, watched=0)
    return Plan(
        answer=(nothing_known,),
        log=log,
        problem=Problem(arms=[Arm("a")], contexts=["everyone"], budget=1, horizon=1),
        deadline=log.span,
        recommendation=Recommendation(
            sentence="Run random, to learn.", policy="random", options=(), reasons=(), limits=()
        ),
        earnings=None,
        arms=(),
        cells=(),
        curves=(),
        findings=(),
        tails=(),
        responsiveness=Responsiveness(
            sentence=nothing_known, deadline=None, arms=(), responsive=(), slow=(), margin=0.05
        ),
        waiting=Waiting(
            sentence=nothing_known,
            deadline=deadline,
            waits=(),
            keep=0.95,
            advised=None,
            advised_low=None,
            advised_high=None,
            advised_wait=None,
            fewer_open=None,
        ),
        prices=(),
        nothing=(),
        spending=None,
        more=(),
        evaluation=None,
        seed=0,
        took_s=0.1,
        command="",
    )


def a_log(
    arms: tuple[str, ...], contexts: tuple[str, ...], *, rows: int, has_delays: bool, is_world: bool, name: str
) -> Log:
    rng = np.random.default_rng(5)
    unit = DAY if is_world else 24.0
    time = np.sort(rng.uniform(0.0, 90.0, rows) + rng.exponential(0.05, rows)) * unit
    popular = 1.0 / np.arange(1, len(arms) + 1)
    arm = rng.choice(len(arms), rows, p=popular / popular.sum())
    arm[rng.random(rows) < 0.15] = SKIPPED
    delay = rng.lognormal(1.0 + 0.3 * (np.maximum(arm, 0) % 4), 0.7, rows) * unit if has_delays else np.zeros(rows)
    watched = 100.0 * unit - time
    is_heard = (delay <= watched) & (rng.random(rows) < 0.85)
    reward = (rng.random(rows) < 0.1 + 0.05 * (np.maximum(arm, 0) % 6)).astype(np.float64)
    return Log(
        name=name,
        arms=arms,
        contexts=contexts,
        clock=Clock("seconds", "days") if is_world else Clock("units", "units"),
        start=datetime(2026, 3, 2, tzinfo=UTC) if is_world else None,
        time=time,
        context=rng.integers(0, len(contexts), rows),
        arm=arm,
        reward=np.where(is_heard, reward, np.nan),
        delay=np.where(is_heard, delay, np.inf),
        watched=watched,
        cost=np.where(arm == SKIPPED, 0.0, 1.0 + arm),
        paid=np.where(arm == SKIPPED, 0.0, 1.0 + arm),
        probability=np.full(rows, np.nan),
        feedback="explicit",
        paid_when="always",
        has_delays=has_delays,
        reading=Reading(
            rows=rows + 14,
            columns=(("time", "sent_at"), ("context", "age_group"), ("arm", arms[0][:40]), ("reward", "came")),
            guessed=("time", "reward"),
            notes=("Times are in UTC; delays are in days.", "3 levels with fewer than 20 rows were pooled as 'other'."),
            dropped=(
                Dropped(rows=12, why="the answer came before the decision", examples=("row 17", "row 90")),
                Dropped(rows=2, why="a duplicate key", examples=("=cmd|' /C calc'!A0",)),
            ),
            unused=("comment", "<b>id</b>"),
        ),
    )


def _curves(log: Log, unit: float) -> tuple[ReturnCurve, ...]:
    ages = np.linspace(0.0, 40.0, 120)
    outcomes: tuple[Outcome, ...] = ("any", "above 0", "not above 0")
    made = [_curve(log, None, one, ages, 3.0 + place, unit) for place, one in enumerate(outcomes)]
    for place, arm in enumerate(log.arms):
        made += [_curve(log, arm, "any", ages, 2.0 + place % 7, unit)]
    return tuple(made)


def _curve(log: Log, arm: str | None, outcome: Outcome, ages: Floats, mean: float, unit: float) -> ReturnCurve:
    share = (0.85 if outcome == "any" else 1.0) * (1.0 - np.exp(-ages / mean))
    reach = 0.02 + 0.04 * ages / 40.0
    is_known = ages <= 33.0
    place = log.arms.index(arm) if arm is not None else None
    rows = len(log) if place is None else int((log.arm == place).sum())

    def ends(sign: float, width: float) -> tuple[float | None, ...]:
        band = np.clip(share + sign * width * reach, 0.0, 1.0)
        return tuple(float(one) if known else None for one, known in zip(band, is_known, strict=True))

    return ReturnCurve(
        sentence=f"By {log.clock.shown(9 * unit)}, 80% of {arm or 'all'} have answered [76%, 84%].",
        arm=arm,
        outcome=outcome,
        rows=rows,
        answered=int(0.8 * rows),
        ages=tuple((ages * unit).tolist()),
        share=tuple(share.tolist()),
        low=ends(-1.0, 1.0),
        high=ends(1.0, 1.0),
        point_low=ends(-1.0, 0.6),
        point_high=ends(1.0, 0.6),
        longest=40.0 * unit,
        known_until=33.0 * unit,
    )


def _cells(log: Log, deadline: float) -> tuple[CellValue, ...]:
    return cell_values(log, truths_of(log, deadline=deadline, n=40, seed=7)) if log.is_answered.any() else ()


def _earnings() -> Earnings:
    worths = dict(zip(POLICIES, (231.0, 226.0, 224.5, 210.0, 200.0, 196.0, 188.0), strict=True)) | {"oracle": 250.0}
    policies = tuple(
        Earning(
            sentence=f"{one} earns {worth:g} positives.",
            policy=one,
            worth=Estimate(worth, worth - 24.0, worth + 25.0),
            more=None if one == "status-quo" else Estimate(worth - 200.0, worth - 217.0, worth - 182.0),
            is_clear=worth > 217.0,
            oracle_share=worth / 250.0,
            spend=595.0,
            truths=40,
            can_run_live=one in ("doral-otf", "d-linucb", "random"),
        )
        for one, worth in sorted(worths.items(), key=lambda each: -each[1])
    )
    luck = np.random.default_rng(0).normal(size=40)
    return Earnings(
        sentence="The largest mean is that of doral-otf.",
        policies=policies,
        status_quo="status-quo",
        compared=len(POLICIES) - 1,
        arrivals=1_200.0,
        budget=600.0,
        unit="positives",
        left_out=("eva: knows classes alone.",),
        _totals={one: worth + luck for one, worth in worths.items()},
    )


def _findings(unit: float) -> tuple[Finding, ...]:
    return (
        Finding(
            sentence="Positives come 2.1 days sooner [1.2, 3.0].",
            question="positives_first",
            asked="Do positives come first?",
            answer="yes",
            effect=-2.1 * unit,
            low=-3.0 * unit,
            high=-1.2 * unit,
            margin=0.7 * unit,
            p_value=0.001,
            measured="mean wait of positives less that of the others",
        ),
        Finding(
            sentence="This cannot be asked: the feedback is explicit.",
            question="silent",
            asked="Is no news a zero?",
            answer="cannot tell",
            effect=None,
            low=None,
            high=None,
            margin=None,
            p_value=None,
            measured="",
        ),
    )


def _tails(log: Log, unit: float) -> tuple[DelayTail, ...]:
    return tuple(
        DelayTail(
            sentence=f"{arm or 'All arms together'}: the tail is light; a mean exists.",
            arm=arm,
            rows=400,
            answered=340,
            index=3.1,
            low=2.2,
            high=None,
            from_age=8.0 * unit,
            answers=60,
            mean_exists="yes",
            tail="light",
        )
        for arm in (None, *log.arms)
    )


def _responsiveness(log: Log, unit: float, has_delays: bool) -> Responsiveness:
    speeds = tuple(
        ArmSpeed(
            sentence=f"{arm} answers within {2 + place} days on average.",
            arm=arm,
            rows=int((log.arm == place).sum()),
            share=0.9 - 0.01 * place,
            low=0.85 - 0.01 * place,
            high=0.94 - 0.01 * place,
            mean_wait=(2.0 + place) * unit,
            wait_low=(1.5 + place) * unit,
            wait_high=(2.6 + place) * unit,
            rank=place + 1,
            rank_low=max(1, place),
            rank_high=place + 2,
            standing="responsive" if place < 2 else "slow",
        )
        for place, arm in enumerate(log.arms)
    )
    return Responsiveness(
        sentence=f"{log.arms[0]} answers soonest." if has_delays else "The log has no delays.",
        deadline=14.0 * unit if has_delays else None,
        arms=speeds if has_delays else (),
        responsive=log.arms[:2],
        slow=log.arms[2:],
        margin=0.05,
    )


def _waiting(unit: float, has_delays: bool) -> Waiting:
    deadline = Deadline(sentence="The deadline is 14 days, as given.", age=14.0 * unit, is_given=True, watched=900)
    if not has_delays:
        return Waiting(
            sentence="The log has no delays: there is nothing to wait for.",
            deadline=Deadline(sentence="There are no delays.", age=None, is_given=False, watched=0),
            waits=(),
            keep=0.95,
            advised=None,
            advised_low=None,
            advised_high=None,
            advised_wait=None,
            fewer_open=None,
        )
    waits = tuple(_wait(float(days), unit) for days in range(1, 15))
    return Waiting(
        sentence="Wait 9 days [8, 11]: 97% of the value is there, and 31% fewer decisions are open than with 14.",
        deadline=deadline,
        waits=waits,
        keep=0.95,
        advised=9.0 * unit,
        advised_low=8.0 * unit,
        advised_high=11.0 * unit,
        advised_wait=waits[8],
        fewer_open=0.31,
    )


def _wait(days: float, unit: float) -> Wait:
    kept = (1.0 - np.exp(-days / 3.0)) / (1.0 - np.exp(-14.0 / 3.0))
    return Wait(
        sentence=f"After {days:g} days {100 * kept:.0f}% is there.",
        age=days * unit,
        share=0.85 * kept,
        share_low=0.82 * kept,
        share_high=min(1.0, 0.88 * kept),
        kept=kept,
        value=min(1.0, kept**0.8),
        bias_as_zero=kept**0.8 - 1.0,
        bias_ignored=0.1 * (1.0 - kept),
        variance=1.0 / max(kept, 0.05),
        open_decisions=12.0 * days * (1.0 - 0.5 * kept),
        open_budget=24.0 * days * (1.0 - 0.5 * kept),
    )


def _price(log: Log, arm: str) -> Price:
    place = log.arms.index(arm)
    return Price(
        sentence=f"{arm} costs {0.8 * (1 + place):.2g} per decision in the end [0.7, 0.9], 80% of its list price.",
        arm=arm,
        context=None,
        rows=int((log.arm == place).sum()),
        list_price=1.0 + place,
        paid=0.8 * (1 + place),
        low=0.7 * (1 + place),
        high=0.9 * (1 + place),
        paid_share=0.8,
        paid_when="on answer",
    )


def _arm_value(arm: str, place: int) -> ArmValue:
    value = 0.2 - 0.004 * place
    return ArmValue(
        sentence=f"{arm} brings {value:.2g} a use.",
        arm=arm,
        value=value,
        low=value - 0.05,
        high=value + 0.05,
        cost=1.0 + place,
        per_cost=value / (1.0 + place),
        best_probability=0.5 if place < 2 else 0.0,
        may_be_best=place < 2,
    )


def _spending() -> Spending:
    """What it takes to make one is small: three contexts and three arms, over draws of what they bring."""
    rng = np.random.default_rng(11)
    values = rng.beta(6.0, 20.0, (60, 3, 3)) + np.array([0.0, 0.05, 0.2])[:, None]
    costs = np.broadcast_to(np.array([1.0, 2.0, 3.0]), values.shape)
    return spending(values, costs, rng.dirichlet([50.0, 30.0, 20.0], 60), 1_200.0, 600.0)
