"""Tables of money: what policies earn, what arms cost, what a budget buys."""

from __future__ import annotations

from doral.planning.leading import difference
from doral.planning.plan import Plan
from doral.planning.table import Row, Shown, Table, table_of


def policies_table(plan: Plan) -> Table:
    """What each policy earns."""
    names = ("policy", "worth", "low", "high", "more", "more_low", "more_high", "oracle_share", "spend", "truths")
    found = plan.earnings.policies if plan.earnings is not None else ()
    unit = plan.earnings.unit if plan.earnings is not None else "reward"
    return table_of(
        "policies",
        "What each policy earns over the planned horizon, the best first, with 95% intervals over truths that the "
        "log leaves possible. Differences are taken truth by truth.",
        names,
        [
            {name: getattr(one, name) for name in names}
            | {name: difference(getattr(one, name), one.worth) for name in ("more", "more_low", "more_high")}
            for one in found
        ],
        [
            Shown(head="policy", key="policy", how="name"),
            Shown(head=unit, key="worth", how="number", ends=("low", "high")),
            Shown(head="more than now", key="more", how="signed", ends=("more_low", "more_high")),
            Shown(head="of the oracle", key="oracle_share", how="share"),
            Shown(head="spent", key="spend", how="number"),
            Shown(head="truths", key="truths", how="count"),
        ],
    )


def pairs_table(plan: Plan) -> Table:
    """Every two policies."""
    names = ("first", "second", "more", "low", "high", "is_equal")
    found = plan.earnings.pairs if plan.earnings is not None else ()
    most = max((abs(one.worth) for one in plan.earnings.policies), default=0.0) if plan.earnings is not None else 0.0
    return table_of(
        "pairs",
        "Every two policies: what the first earns more, truth by truth, with 95% intervals.",
        names,
        [
            {name: getattr(one, name) for name in names}
            | {name: difference(getattr(one, name), most) for name in ("more", "low", "high")}
            for one in found
        ],
        [
            Shown(head="policy", key="first"),
            Shown(head="against", key="second"),
            Shown(head="earns more", key="more", how="signed", ends=("low", "high")),
            Shown(head="cannot be told apart", key="is_equal", how="yes"),
        ],
    )


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


def more_table(plan: Plan) -> Table:
    """What another budget brings."""
    names = ("amount", "gain", "low", "high")
    return table_of(
        "more",
        "What some more, or less, budget brings, with 95% intervals.",
        names,
        [{name: getattr(one, name) for name in names} for one in plan.more],
        [
            Shown(head="change of the budget", key="amount", how="signed"),
            Shown(head="brings", key="gain", how="signed", ends=("low", "high")),
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
