"""A plan in a notebook: the advice, what policies earn, and where to read on."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from doral.pages.notebook import card, note, small_table
from doral.planning.facts import between, money, number, percent
from doral.planning.report.tables import leading

if TYPE_CHECKING:
    from doral.planning.earnings import Earning
    from doral.planning.plan import Plan

_MOST = 10  # policies


def plan_card(plan: Plan) -> str:
    """The answer first."""
    first, *others = plan.answer
    facts = [("Answer", first), *(("", one) for one in others)]
    run = " ".join((plan.recommendation.sentence, *plan.recommendation.reasons))
    facts.append(("Run", run))
    parts = [*_earnings(plan), *_picture(plan)]
    parts.append(note("plan.text() says more, plan.save('folder') writes the page with all figures."))
    return card(f"Plan of {plan.log.name}", facts, parts=parts)


def _earnings(plan: Plan) -> list[str]:
    earnings = plan.earnings
    if earnings is None or not earnings.policies:
        return []
    rows = [_row(one, is_advised=one.policy == plan.recommendation.policy) for one in leading(plan, _MOST)]
    heads = ("Policy", earnings.unit, "95%", "Of the oracle")
    budget = money(earnings.budget, plan.log.currency)
    title = f"Earnings over {number(earnings.arrivals)} arrivals with a budget of {budget}"
    return [note(title), small_table(heads, rows, numbers=(1, 2, 3))]


def _picture(plan: Plan) -> list[str]:
    """What policies earn, as on the page."""
    import warnings

    from doral.pages.images import as_bytes, as_data
    from doral.planning.report.money_figures import earnings_drawing

    drawn = earnings_drawing(plan)
    if drawn is None:
        return []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")  # names in any script; the table has them in full
        picture = as_data(as_bytes(drawn.figure, "png"))
    return [f'<img src="{picture}" alt="{escape(drawn.alt)}" style="max-width:100%;width:720px">']


def _row(one: Earning, *, is_advised: bool) -> tuple[str, ...]:
    return (
        f"{one.policy} (advised)" if is_advised else one.policy,
        number(one.worth.value),
        between(one.worth),
        "" if one.oracle_share is None else percent(one.oracle_share),
    )
