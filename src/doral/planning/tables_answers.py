"""Tables of answers: how long to wait, which arms answer, what kind of feedback this is."""

from __future__ import annotations

from typing import Any

import numpy as np

from doral.log.log import SKIPPED
from doral.planning.curves import ReturnCurve
from doral.planning.plan import Plan
from doral.planning.table import Row, Shown, Table, Times, table_of


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


def curves_table(plan: Plan) -> Table:
    """Return curves, point by point."""
    t = Times(plan)
    keys = ("arm", "outcome", f"age_{t.unit}", "share", "low", "high", "point_low", "point_high")
    rows = [dict(zip(keys, row, strict=True)) for one in plan.curves for row in _points(one, t)]
    return table_of("returns", "Return curves with their bands.", keys, rows)


def _points(one: ReturnCurve, t: Times) -> list[tuple[Any, ...]]:
    sides = zip(one.ages, one.share, one.low, one.high, one.point_low, one.point_high, strict=True)
    return [(one.arm or "all together", one.outcome, t(age), *rest) for age, *rest in sides]
