"""All tables of a plan: plain rows for a file, and which of their columns a page shows, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from doral.evaluation.policies import KNOWS_TRUTH
from doral.logs.log import SKIPPED
from doral.planning.curves import ReturnCurve
from doral.planning.earnings import Earning
from doral.planning.plan import Plan

How = Literal["text", "name", "count", "number", "signed", "share", "times", "yes"]
Row = dict[str, Any]


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


def table_of(name: str, caption: str, keys: Sequence[str], rows: Sequence[Row], shown: Sequence[Shown] = ()) -> Table:
    """A table with all its rows on the page, where it is there at all."""
    return Table(name=name, caption=caption, keys=tuple(keys), rows=rows, shown=tuple(shown))


class Times:
    """Durations in the unit that people read."""

    def __init__(self, plan: Plan) -> None:
        self.unit = plan.log.clock.told
        self._size = plan.log.clock.size_of(self.unit)

    def __call__(self, duration: float | None) -> float | None:
        return None if duration is None else duration / self._size


_ROUNDING = 1e-9  # of what is earned: what policies that do the same differ by is how sums are rounded


def difference(more: float | None, worth: float) -> float | None:
    """Of two earnings, one of which is `worth`; nothing where that is all it is.

    >>> difference(-5.5e-14, 65.9), difference(0.5, 65.9)
    (0.0, 0.5)
    """
    return 0.0 if more is not None and abs(more) < _ROUNDING * abs(worth) else more


def leading(plan: Plan, at_most: int) -> list[Earning]:
    """The best ones, best first; the advised one and the status quo are always among them."""
    if plan.earnings is None:
        return []
    kept = {plan.recommendation.policy, plan.earnings.status_quo}
    wanted = [one for one in plan.earnings.policies if one.policy in kept]
    others = [one for one in plan.earnings.policies if one.policy not in kept]
    chosen = {one.policy for one in (*wanted, *others[: max(0, at_most - len(wanted))])}
    return [one for one in plan.earnings.policies if one.policy in chosen]


def waits_table(plan: Plan) -> Table:
    """What each wait means."""
    t = Times(plan)
    age = f"wait_{t.unit}"
    names = (
        "share", "share_low", "share_high", "kept", "value", "bias_as_zero", "bias_ignored", "variance",
        "open_decisions", "open_budget",
    )  # fmt: skip
    return table_of(
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


def arms_table(plan: Plan) -> Table:
    """What arms bring, and how soon."""
    t, log = Times(plan), plan.log
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
                "may_be_best": None if worth is None else worth.may_be_best,
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
            Shown(head="may be the best", key="may_be_best", how="yes"),
        ]
    if speeds:
        shown += [
            Shown(head="by the deadline", key="share", how="share", ends=("share_low", "share_high")),
            Shown(head="mean wait", key=wait, how="times", ends=(f"{wait}_low", f"{wait}_high")),
            Shown(head="rank", key="rank", how="count", ends=("rank_low", "rank_high")),
            Shown(head="standing", key="standing"),
        ]
    return table_of(
        "arms",
        "Arms, with how many have answered so far, and, corrected for what is still to come, what one use brings by "
        "the deadline (95% intervals) and how soon answers come (intervals for all arms at once, 95%).",
        tuple(made[0]) if made else (),
        made,
        shown,
    )


def findings_table(plan: Plan) -> Table:
    """Questions about the feedback."""
    names = ("asked", "answer", "sentence", "measured", "effect", "low", "high", "margin", "p_value")
    return table_of(
        "findings",
        "What kind of feedback this is. Effects have 95% intervals and p-values are corrected for all questions "
        "(Holm).",
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


def tails_table(plan: Plan) -> Table:
    """Tails of the delays."""
    t = Times(plan)
    age = f"from_{t.unit}"
    names = ("rows", "answered", "index", "low", "high", "answers", "mean_exists", "tail", "sentence")
    return table_of(
        "tails",
        "How heavy the tail of the delays is: the share that is later than x falls like x to the power of minus the "
        "index, and a mean exists where that is above 1, or where the tail is light.",
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


def curves_table(plan: Plan) -> Table:
    """Return curves, point by point."""
    t = Times(plan)
    keys = ("arm", "outcome", f"age_{t.unit}", "share", "low", "high", "point_low", "point_high")
    rows = [dict(zip(keys, row, strict=True)) for one in plan.curves for row in _points(one, t)]
    return table_of("returns", "Return curves with their bands.", keys, rows)


def _points(one: ReturnCurve, t: Times) -> list[tuple[Any, ...]]:
    sides = zip(one.ages, one.share, one.low, one.high, one.point_low, one.point_high, strict=True)
    return [(one.arm or "all together", one.outcome, t(age), *rest) for age, *rest in sides]


def policies_table(plan: Plan) -> Table:
    """What each policy earns."""
    keys = (
        "policy", "worth", "low", "high", "more", "more_low", "more_high", "is_clear", "oracle_share", "spend",
        "truths", "can_run_live",
    )  # fmt: skip
    found = plan.earnings.policies if plan.earnings is not None else ()
    unit = plan.earnings.unit if plan.earnings is not None else "reward"
    compared = plan.earnings.compared if plan.earnings is not None else 0
    return table_of(
        "policies",
        "What each policy earns over the planned horizon, the best first, with 95% intervals over posterior draws. "
        "Differences are taken draw by draw; clear are those that differ from today at 5%, corrected for "
        f"{compared} comparisons (Holm).",
        keys,
        [_policy_row(one) for one in found],
        [
            Shown(head="policy", key="policy", how="name"),
            Shown(head=unit, key="worth", how="number", ends=("low", "high")),
            Shown(head="more than today", key="more", how="signed", ends=("more_low", "more_high")),
            Shown(head="clear", key="is_clear", how="yes"),
            Shown(head="runs live", key="can_run_live", how="yes"),
            Shown(head="of the oracle", key="oracle_share", how="share"),
            Shown(head=f"spent{_in(plan.log.currency)}", key="spend", how="number"),
            Shown(head="draws", key="truths", how="count"),
        ],
    )


def _policy_row(one: Earning) -> Row:
    more = (None, None, None) if one.more is None else (one.more.value, one.more.low, one.more.high)
    more_value, more_low, more_high = (difference(each, one.worth.value) for each in more)
    return {
        "policy": one.policy,
        "worth": one.worth.value,
        "low": one.worth.low,
        "high": one.worth.high,
        "more": more_value,
        "more_low": more_low,
        "more_high": more_high,
        "is_clear": None if one.more is None or one.policy == KNOWS_TRUTH else one.is_clear,
        "oracle_share": one.oracle_share,
        "spend": one.spend,
        "truths": one.truths,
        "can_run_live": one.can_run_live,
    }


def costs_table(plan: Plan) -> Table:
    """What decisions cost; the page has them by arm, the file also by context."""
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


def _in(unit: str | None) -> str:
    return f", {unit}" if unit else ""


def more_table(plan: Plan) -> Table:
    """What another budget brings."""
    names = ("amount", "gain", "low", "high")
    unit = None if plan.earnings is None else plan.earnings.unit
    return table_of(
        "more",
        "What some more, or less, budget brings, with 95% intervals.",
        names,
        [{name: getattr(one, name) for name in names} for one in plan.more],
        [
            Shown(head=f"change of the budget{_in(plan.log.currency)}", key="amount", how="signed"),
            Shown(head=f"brings{_in(unit)}", key="gain", how="signed", ends=("low", "high")),
        ],
    )


def budget_table(plan: Plan) -> Table:
    """The curve of value against budget."""
    keys = ("budget", "value", "low", "high", "marginal", "marginal_low", "marginal_high")
    rows: list[Row] = []
    if plan.spending is not None:
        of = plan.spending
        sides = (of.budgets, of.value, of.low, of.high, of.marginal, of.marginal_low, of.marginal_high)
        rows = [dict(zip(keys, row, strict=True)) for row in zip(*sides, strict=True)]
    return table_of("budget", "Value against budget.", keys, rows)


def cost_gain_table(plan: Plan) -> Table:
    """The curve of gain against cost."""
    keys = ("spent_share", "gain", "low", "high", "at_random")
    rows: list[Row] = []
    if plan.spending is not None:
        of = plan.spending.cost_gain
        sides = (of.spent, of.gain, of.low, of.high, of.at_random)
        rows = [dict(zip(keys, row, strict=True)) for row in zip(*sides, strict=True)]
    return table_of("cost_gain", "Gain against cost.", keys, rows)


def evaluation_table(plan: Plan) -> Table:
    """What the rows of the log say by themselves of simple rules."""
    names = (
        "policy", "estimator", "value", "low", "high", "cost", "cost_low", "cost_high", "difference",
        "difference_low", "difference_high", "ess", "unsupported", "verdict",
    )  # fmt: skip
    found = plan.evaluation.values if plan.evaluation is not None else ()
    return table_of(
        "evaluation",
        "What simple rules would have brought per arrival, by the rows of the log alone, with 95% intervals.",
        names,
        [{name: getattr(one, name) for name in names} for one in found],
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


def columns_table(plan: Plan) -> Table:
    """Which column was taken for what."""
    reading = plan.log.reading
    return table_of(
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


def dropped_table(plan: Plan) -> Table:
    """What was left out."""
    return table_of(
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


def contexts_table(plan: Plan) -> Table:
    """Who arrived."""
    log = plan.log
    many = len(log.contexts)
    rows = np.bincount(log.context, minlength=many)
    served = np.bincount(log.context[log.is_served], minlength=many)
    answered = np.bincount(log.context[log.is_answered], minlength=many)
    return table_of(
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


def cells_table(plan: Plan) -> Table:
    """What arms bring to whom."""
    names = ("context", "arm", "rows", "settled", "seen", "value", "low", "high")
    return table_of(
        "values",
        "Reward of a decision by the deadline, with 95% intervals: what the rows of a cell say by themselves, and what "
        "is learned from all cells together. Both are corrected for answers that are still to come.",
        names,
        [{name: getattr(one, name) for name in names} for one in plan.cells],
        [
            Shown(head="context", key="context", how="name"),
            Shown(head="arm", key="arm", how="name"),
            Shown(head="rows", key="rows", how="count"),
            Shown(head="settled", key="settled", how="count"),
            Shown(head="by itself", key="seen", how="number"),
            Shown(head="learned together", key="value", how="number", ends=("low", "high")),
        ],
    )


def nothing_table(plan: Plan) -> Table:
    """What comes where nothing is done."""
    names = ("context", "rows", "answered", "value", "low", "high")
    return table_of(
        "nothing",
        "What comes where nothing is done, per arrival, with 95% intervals.",
        names,
        [
            {**{name: getattr(one, name) for name in names}, "context": one.context or "all together"}
            for one in plan.nothing
            if one.rows
        ],
        [
            Shown(head="context", key="context", how="name"),
            Shown(head="rows", key="rows", how="count"),
            Shown(head="answered", key="answered", how="count"),
            Shown(head="reward", key="value", how="number", ends=("low", "high")),
        ],
    )


TABLE_NAMES = (
    "policies", "waiting", "arms", "costs", "contexts", "values", "findings", "tails", "nothing", "more",
    "evaluation", "columns", "dropped", "returns", "budget", "cost_gain",
)  # fmt: skip


def tables(plan: Plan) -> dict[str, Table]:
    """All that have rows, by name."""
    made = (
        policies_table(plan),
        waits_table(plan),
        arms_table(plan),
        costs_table(plan),
        contexts_table(plan),
        cells_table(plan),
        findings_table(plan),
        tails_table(plan),
        nothing_table(plan),
        more_table(plan),
        evaluation_table(plan),
        columns_table(plan),
        dropped_table(plan),
        curves_table(plan),
        budget_table(plan),
        cost_gain_table(plan),
    )
    return {one.name: one for one in made if one.rows}
