"""All tables of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from doral.planning import tables_answers, tables_money, tables_rows
from doral.planning.plan import Plan
from doral.planning.table import Table
from doral.planning.values import CellValue

TABLE_NAMES = (
    "policies", "pairs", "waiting", "arms", "costs", "contexts", "values", "findings", "tails", "nothing", "more",
    "evaluation", "columns", "dropped", "returns", "budget", "cost_gain",
)  # fmt: skip


def tables(plan: Plan, values: Sequence[CellValue]) -> dict[str, Table]:
    """All that have rows, by name."""
    made = (
        tables_money.policies_table(plan),
        tables_money.pairs_table(plan),
        tables_answers.waits_table(plan),
        tables_answers.arms_table(plan),
        tables_money.costs_table(plan),
        tables_rows.contexts_table(plan),
        tables_rows.cells_table(values),
        tables_answers.findings_table(plan),
        tables_answers.tails_table(plan),
        tables_rows.nothing_table(plan),
        tables_money.more_table(plan),
        tables_money.evaluation_table(plan),
        tables_rows.columns_table(plan),
        tables_rows.dropped_table(plan),
        tables_answers.curves_table(plan),
        tables_money.budget_table(plan),
        tables_money.cost_gain_table(plan),
    )
    return {one.name: one for one in made if one.rows}
