"""An evaluation as it shows itself: a line, and in a notebook what it says in short with its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doral.evaluation.targets import STATUS_QUO
from doral.evaluation.words import between, number
from doral.pages.notebook import card, note, small_table
from doral.pages.numbers import count

if TYPE_CHECKING:
    from doral.evaluation.evaluation import Evaluation

_MOST = 30  # rows of the table


def in_words(result: Evaluation) -> str:
    """One line."""
    others = [one for one in result.policies if one != STATUS_QUO]
    within = f" within {result.deadline_words}" if result.deadline_words else ""
    size = f"{count(len(others), 'policy', 'policies')} on {result.arrivals:,} arrivals{within}"
    return f"<Evaluation of {result.log!r}: {size if result.values else 'nothing can be valued'}>"


def evaluation_card(result: Evaluation) -> str:
    """For a notebook."""
    told = result.text().splitlines()
    parts = [note(line) for line in told[: 2 + len(result.policies)]] if not result.values else []
    if result.values:
        rows = [
            (
                one.policy,
                f"{number(one.value)} {between(one.low, one.high)}",
                ""
                if one.policy == STATUS_QUO
                else f"{number(one.difference, signed=True)} "
                f"{between(one.difference_low, one.difference_high, signed=True)}",
                number(one.cost),
                one.verdict,
            )
            for one in (result.of(name) for name in result.policies[:_MOST])
        ]
        heads = ("Policy", "Brings per arrival", "More than what was done", "Costs", "The log says")
        parts.append(small_table(heads, rows, numbers=(3,)))
        parts += [note(one) for one in result.notes]
    facts = [("", told[0])] if told else []
    return card(f"Evaluation of {result.log}", facts, parts=parts)
