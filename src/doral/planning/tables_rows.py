"""Tables of rows: how the file was read, who arrived, and what that brought."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from doral.planning.plan import Plan
from doral.planning.table import Shown, Table, table_of
from doral.planning.values import CellValue


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


def cells_table(values: Sequence[CellValue]) -> Table:
    """What arms bring to whom."""
    names = ("context", "arm", "rows", "settled", "seen", "value", "low", "high")
    return table_of(
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
        ],
        [
            Shown(head="context", key="context", how="name"),
            Shown(head="rows", key="rows", how="count"),
            Shown(head="answered", key="answered", how="count"),
            Shown(head="reward", key="value", how="number", ends=("low", "high")),
        ],
    )
