"""The tables of a plan: plain rows for files, and which of their columns a page shows, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from doral.log.log import SKIPPED
from doral.planning.curves import ReturnCurve
from doral.planning.plan import Plan
from doral.planning.values import CellValue

How = Literal["text", "name", "count", "number", "signed", "share", "times", "yes"]
Row = dict[str, Any]
TABLE_NAMES = (
    "policies", "pairs", "waiting", "arms", "costs", "contexts", "values", "findings", "tails", "nothing", "more",
    "evaluation", "columns", "dropped", "returns", "budget", "cost_gain",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A column of the page; with `ends` it is followed by an interval."""

    head: str
    key: str
    how: How = "text"
    ends: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows with the same keys. Times are in the unit that people read, which their keys name."""

    name: str  # of its file
    caption: str
    keys: tuple[str, ...]
    rows: Sequence[Row]
    shown: tuple[Shown, ...] = ()  # none: only in the file
    on_page: Sequence[Row] | None = None  # where the page shows fewer rows than the file has


def tables(plan: Plan, values: Sequence[CellValue]) -> dict[str, Table]:
    """All that have rows, by name."""
    made = (
        _policies(plan),
        _pairs(plan),
        _waits(plan),
        _arms(plan),
        _costs(plan),
        _contexts(plan),
        _cells(values),
        _findings(plan),
        _tails(plan),
        _nothing(plan),
        _more(plan),
        _evaluation(plan),
        _columns(plan),
        _dropped(plan),
        _curves(plan),
        _budget(plan),
        _cost_gain(plan),
    )
    return {one.name: one for one in made if one.rows}


def _table(name: str, caption: str, keys: Sequence[str], rows: Sequence[Row], shown: Sequence[Shown] = ()) -> Table:
    return Table(name=name, caption=caption, keys=tuple(keys), rows=rows, shown=tuple(shown))


class _Times:
    """Durations in the unit that people read."""

    def __init__(self, plan: Plan) -> None:
        self.unit = plan.log.clock.told
        self._size = plan.log.clock.size_of(self.unit)

    def __call__(self, duration: float | None) -> float | None:
        return None if duration is None else duration / self._size


def _policies(plan: Plan) -> Table:
    names = ("policy", "worth", "low", "high", "more", "more_low", "more_high", "oracle_share", "spend", "truths")
    found = plan.earnings.policies if plan.earnings is not None else ()
    unit = plan.earnings.unit if plan.earnings is not None else "reward"
    return _table(
        "policies",
        "What each policy earns over the planned horizon, the best first, with 95% intervals over truths that the "
        "log leaves possible. Differences are taken truth by truth.",
        names,
        [{name: getattr(one, name) for name in names} for one in found],
        [
            Shown(head="policy", key="policy", how="name"),
            Shown(head=unit, key="worth", how="number", ends=("low", "high")),
            Shown(head="more than now", key="more", how="signed", ends=("more_low", "more_high")),
            Shown(head="of the oracle", key="oracle_share", how="share"),
            Shown(head="spent", key="spend", how="number"),
            Shown(head="truths", key="truths", how="count"),
        ],
    )


def _pairs(plan: Plan) -> Table:
    names = ("first", "second", "more", "low", "high", "is_equal")
    found = plan.earnings.pairs if plan.earnings is not None else ()
    return _table(
        "pairs",
        "Every two policies: what the first earns more, truth by truth, with 95% intervals.",
        names,
        [{name: getattr(one, name) for name in names} for one in found],
        [
            Shown(head="policy", key="first"),
            Shown(head="against", key="second"),
            Shown(head="earns more", key="more", how="signed", ends=("low", "high")),
            Shown(head="cannot be told apart", key="is_equal", how="yes"),
        ],
    )


def _waits(plan: Plan) -> Table:
    t = _Times(plan)
    age = f"wait_{t.unit}"
    names = (
        "share", "share_low", "share_high", "kept", "value", "bias_as_zero", "bias_ignored", "variance",
        "open_decisions", "open_budget",
    )  # fmt: skip
    return _table(
        "waiting",
        "What it means to wait so long and no longer. Biases are of the mean reward of a decision; the variance is "
        "that of an estimate that corrects for the missing, times that of waiting until the deadline.",
        (age, *names),
        [{age: t(one.age), **{name: getattr(one, name) for name in names}} for one in plan.waiting.waits],
        [
            Shown(head="wait", key=age, how="times"),
            Shown(head="answered", key="share", how="share", ends=("share_low", "share_high")),
            Shown(head="answers kept", key="kept", how="share"),
            Shown(head="value kept", key="value", how="share"),
            Shown(head="bias, silence as 0", key="bias_as_zero", how="share"),
            Shown(head="bias, silence ignored", key="bias_ignored", how="share"),
            Shown(head="variance", key="variance", how="number"),
            Shown(head="decisions open", key="open_decisions", how="number"),
            Shown(head="budget open", key="open_budget", how="number"),
        ],
    )


def _arms(plan: Plan) -> Table:
    t, log = _Times(plan), plan.log
    wait = f"mean_wait_{t.unit}"
    speeds = {one.arm: one for one in plan.responsiveness.arms}
    worths = {one.arm: one for one in plan.arms}
    names = log.arm_names()
    place = np.where(log.arm == SKIPPED, len(log.arms), log.arm)
    rows = np.bincount(place, minlength=len(log.arms) + 1)
    answered = np.bincount(place[log.is_answered], minlength=len(log.arms) + 1)
    made: list[Row] = []
    for index, name in enumerate(names):
        speed, worth = speeds.get(name), worths.get(name)
        made.append(
            {
                "arm": name,
                "rows": int(rows[index]),
                "answered": int(answered[index]),
                "value": None if worth is None else worth.value,
                "value_low": None if worth is None else worth.low,
                "value_high": None if worth is None else worth.high,
                "value_per_cost": None if worth is None else worth.per_cost,
                "is_as_good_as_best": None if worth is None else worth.is_as_good_as_best,
                "share": None if speed is None else speed.share,
                "share_low": None if speed is None else speed.low,
                "share_high": None if speed is None else speed.high,
                wait: None if speed is None else t(speed.mean_wait),
                f"{wait}_low": None if speed is None else t(speed.wait_low),
                f"{wait}_high": None if speed is None else t(speed.wait_high),
                "rank": None if speed is None else speed.rank,
                "rank_low": None if speed is None else speed.rank_low,
                "rank_high": None if speed is None else speed.rank_high,
                "standing": None if speed is None else speed.standing,
            }
        )
    shown = [
        Shown(head="arm", key="arm", how="name"),
        Shown(head="rows", key="rows", how="count"),
        Shown(head="answered", key="answered", how="count"),
    ]
    if worths:
        shown += [
            Shown(head="brings", key="value", how="number", ends=("value_low", "value_high")),
            Shown(head="per unit of cost", key="value_per_cost", how="number"),
            Shown(head="may be the best", key="is_as_good_as_best", how="yes"),
        ]
    if speeds:
        shown += [
            Shown(head="by the deadline", key="share", how="share", ends=("share_low", "share_high")),
            Shown(head="mean wait", key=wait, how="times", ends=(f"{wait}_low", f"{wait}_high")),
            Shown(head="rank", key="rank", how="count", ends=("rank_low", "rank_high")),
            Shown(head="standing", key="standing"),
        ]
    return _table(
        "arms",
        "Arms, with how many have answered so far, and, corrected for what is still to come, what one use brings by "
        "the deadline (95% intervals) and how soon answers come (intervals for all arms at once, 95%).",
        tuple(made[0]) if made else (),
        made,
        shown,
    )


def _costs(plan: Plan) -> Table:
    names = ("arm", "context", "rows", "list_price", "paid", "low", "high", "paid_share", "paid_when")
    rows = [{name: getattr(one, name) for name in names} for one in plan.prices]
    together = [row for row in rows if row["context"] is None]
    more = " By context: in costs.csv." if len(together) < len(rows) else ""
    return Table(
        name="costs",
        caption=f"What a decision costs: by the list, and on average in the end, with 95% intervals.{more}",
        keys=names,
        rows=rows,
        on_page=together or rows,
        shown=(
            Shown(head="arm", key="arm", how="name"),
            Shown(head="rows", key="rows", how="count"),
            Shown(head="list price", key="list_price", how="number"),
            Shown(head="paid", key="paid", how="number", ends=("low", "high")),
            Shown(head="of the list price", key="paid_share", how="share"),
            Shown(head="paid when", key="paid_when"),
        ),
    )


def _contexts(plan: Plan) -> Table:
    log = plan.log
    many = len(log.contexts)
    rows = np.bincount(log.context, minlength=many)
    served = np.bincount(log.context[log.is_served], minlength=many)
    answered = np.bincount(log.context[log.is_answered], minlength=many)
    return _table(
        "contexts",
        "Who arrived, and what has been done and heard so far.",
        ("context", "rows", "share", "served_share", "answered_share"),
        [
            {
                "context": name,
                "rows": int(rows[place]),
                "share": float(rows[place] / len(log)),
                "served_share": float(served[place] / rows[place]) if rows[place] else None,
                "answered_share": float(answered[place] / rows[place]) if rows[place] else None,
            }
            for place, name in enumerate(log.contexts)
        ],
        [
            Shown(head="context", key="context", how="name"),
            Shown(head="rows", key="rows", how="count"),
            Shown(head="of all arrivals", key="share", how="share"),
            Shown(head="served", key="served_share", how="share"),
            Shown(head="answered", key="answered_share", how="share"),
        ],
    )


def _cells(values: Sequence[CellValue]) -> Table:
    names = ("context", "arm", "rows", "settled", "seen", "value", "low", "high")
    return _table(
        "values",
        "Reward of a decision by the deadline, with 95% intervals: what the rows of a cell say by themselves, and what "
        "is learned from all cells together. Both are corrected for answers that are still to come.",
        names,
        [{name: getattr(one, name) for name in names} for one in values],
        [
            Shown(head="context", key="context", how="name"),
            Shown(head="arm", key="arm", how="name"),
            Shown(head="rows", key="rows", how="count"),
            Shown(head="settled", key="settled", how="count"),
            Shown(head="by itself", key="seen", how="number"),
            Shown(head="learned together", key="value", how="number", ends=("low", "high")),
        ],
    )


def _findings(plan: Plan) -> Table:
    names = ("asked", "answer", "sentence", "measured", "effect", "low", "high", "margin", "p_value")
    return _table(
        "findings",
        "What kind of feedback this is. Effects have 95% intervals and p-values are corrected for all questions "
        "(Holm); numbers of times are on the clock of the log.",
        names,
        [{name: getattr(one, name) for name in names} for one in plan.findings],
        [
            Shown(head="question", key="asked"),
            Shown(head="answer", key="answer"),
            Shown(head="why", key="sentence"),
            Shown(head="measured", key="measured"),
            Shown(head="effect", key="effect", how="number", ends=("low", "high")),
            Shown(head="p", key="p_value", how="number"),
        ],
    )


def _tails(plan: Plan) -> Table:
    t = _Times(plan)
    age = f"from_{t.unit}"
    names = ("rows", "answered", "index", "low", "high", "answers", "mean_exists", "tail", "sentence")
    return _table(
        "tails",
        "How heavy the tail of the delays is: the share that is later than x falls like x to the power of minus the "
        "index, and a mean exists where that is above 1.",
        ("arm", age, *names),
        [
            {"arm": one.arm or "all together", age: t(one.from_age), **{name: getattr(one, name) for name in names}}
            for one in plan.tails
        ],
        [
            Shown(head="arm", key="arm", how="name"),
            Shown(head="answered", key="answered", how="count"),
            Shown(head="tail", key="tail"),
            Shown(head="index", key="index", how="number", ends=("low", "high")),
            Shown(head="from", key=age, how="times"),
            Shown(head="a mean exists", key="mean_exists"),
        ],
    )


def _nothing(plan: Plan) -> Table:
    names = ("context", "rows", "answered", "value", "low", "high")
    return _table(
        "nothing",
        "What comes where nothing is done, per arrival, with 95% intervals.",
        names,
        [
            {**{name: getattr(one, name) for name in names}, "context": one.context or "all together"}
            for one in plan.nothing
        ],
        [
            Shown(head="context", key="context", how="name"),
            Shown(head="rows", key="rows", how="count"),
            Shown(head="answered", key="answered", how="count"),
            Shown(head="reward", key="value", how="number", ends=("low", "high")),
        ],
    )


def _more(plan: Plan) -> Table:
    names = ("amount", "gain", "low", "high")
    return _table(
        "more",
        "What some more, or less, budget brings, with 95% intervals.",
        names,
        [{name: getattr(one, name) for name in names} for one in plan.more],
        [
            Shown(head="change of the budget", key="amount", how="signed"),
            Shown(head="brings", key="gain", how="signed", ends=("low", "high")),
        ],
    )


def _evaluation(plan: Plan) -> Table:
    names = (
        "policy", "estimator", "value", "low", "high", "cost", "cost_low", "cost_high", "difference",
        "difference_low", "difference_high", "ess", "unsupported", "verdict",
    )  # fmt: skip
    found = getattr(plan.evaluation, "values", ())
    return _table(
        "evaluation",
        "What simple rules would have brought per arrival, by the rows of the log alone, with 95% intervals.",
        names,
        [{name: getattr(one, name, None) for name in names} for one in (() if callable(found) else found)],
        [
            Shown(head="policy", key="policy", how="name"),
            Shown(head="estimator", key="estimator"),
            Shown(head="value", key="value", how="number", ends=("low", "high")),
            Shown(head="cost", key="cost", how="number"),
            Shown(head="to what was done", key="difference", how="signed", ends=("difference_low", "difference_high")),
            Shown(head="worth arrivals", key="ess", how="number"),
            Shown(head="verdict", key="verdict"),
        ],
    )


def _columns(plan: Plan) -> Table:
    reading = plan.log.reading
    return _table(
        "columns",
        "Which column was taken for what.",
        ("role", "column", "is_guessed"),
        [{"role": role, "column": name, "is_guessed": role in reading.guessed} for role, name in reading.columns],
        [
            Shown(head="taken for", key="role"),
            Shown(head="column", key="column", how="name"),
            Shown(head="guessed", key="is_guessed", how="yes"),
        ],
    )


def _dropped(plan: Plan) -> Table:
    return _table(
        "dropped",
        "Rows that were left out.",
        ("rows", "why", "examples"),
        [{"rows": one.rows, "why": one.why, "examples": "; ".join(one.examples)} for one in plan.log.reading.dropped],
        [
            Shown(head="why", key="why"),
            Shown(head="rows", key="rows", how="count"),
            Shown(head="for example", key="examples"),
        ],
    )


def _curves(plan: Plan) -> Table:
    t = _Times(plan)
    keys = ("arm", "outcome", f"age_{t.unit}", "share", "low", "high", "point_low", "point_high")
    rows = [dict(zip(keys, row, strict=True)) for one in plan.curves for row in _points(one, t)]
    return _table("returns", "Return curves with their bands.", keys, rows)


def _points(one: ReturnCurve, t: _Times) -> list[tuple[Any, ...]]:
    sides = zip(one.ages, one.share, one.low, one.high, one.point_low, one.point_high, strict=True)
    return [(one.arm or "all together", one.outcome, t(age), *rest) for age, *rest in sides]


def _budget(plan: Plan) -> Table:
    keys = ("budget", "value", "low", "high", "marginal", "marginal_low", "marginal_high")
    rows: list[Row] = []
    if plan.spending is not None:
        of = plan.spending
        sides = (of.budgets, of.value, of.low, of.high, of.marginal, of.marginal_low, of.marginal_high)
        rows = [dict(zip(keys, row, strict=True)) for row in zip(*sides, strict=True)]
    return _table("budget", "Value against budget.", keys, rows)


def _cost_gain(plan: Plan) -> Table:
    keys = ("spent_share", "gain", "low", "high", "at_random")
    rows: list[Row] = []
    if plan.spending is not None:
        of = plan.spending.cost_gain
        sides = (of.spent, of.gain, of.low, of.high, of.at_random)
        rows = [dict(zip(keys, row, strict=True)) for row in zip(*sides, strict=True)]
    return _table("cost_gain", "Gain against cost.", keys, rows)
