"""An evaluation in plain sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from doral.evaluation.targets import STATUS_QUO

if TYPE_CHECKING:
    from doral.evaluation.evaluation import Evaluation, Value


def number(value: float, *, signed: bool = False) -> str:
    """Three digits are more than an interval ever deserves."""
    if not math.isfinite(value):
        return "unknown"
    return f"{value:+.3g}" if signed else f"{value:.3g}"


def between(low: float, high: float, *, signed: bool = False) -> str:
    if not math.isfinite(low) or not math.isfinite(high):
        return "[anything]"
    return f"[{number(low, signed=signed)}, {number(high, signed=signed)}]"


def text_of(result: Evaluation) -> str:
    """Lines: what is valued, what was done, each policy, what to know of the log."""
    lines = []
    if result.values:
        within = f" within {result.deadline_words}" if result.deadline_words else ""
        lines.append(f"Valued per arrival: what came{within}, of {result.arrivals:,} arrivals.")
        if result.complete < 1.0:
            lines.append(f"Of {1.0 - result.complete:.0%} it is not known yet: those who were watched stand for them.")
        done = result.of(STATUS_QUO)
        lines.append(
            f"What was done brought {number(done.value)} {between(done.low, done.high)} and cost {number(done.cost)}"
            f"{_per_cost(done)}."
        )
        others = [result.of(one) for one in result.policies if one != STATUS_QUO]
        lines.extend(_sentence(one, result.arrivals) for one in others)
        if sum(one.is_supported for one in others) > 1 and result.arrivals > 1:
            lines.append(_best(result))
    lines.extend(result.notes)
    return "\n".join(lines)


def _per_cost(value: Value) -> str:
    return "" if value.per_cost is None else f", {number(value.per_cost)} per unit of budget"


def _sentence(value: Value, arrivals: int) -> str:
    if not value.is_supported:
        return f"{value.policy}: {value.verdict}. No number of arrivals of the same kind would change that."
    told = (
        f"{value.policy} would have brought {number(value.value)} {between(value.low, value.high)} at a cost of "
        f"{number(value.cost)}{_per_cost(value)}: {number(value.difference, signed=True)} "
        f"{between(value.difference_low, value.difference_high, signed=True)} to what was done"
    )
    if value.is_equal:
        told += ", which the log cannot tell from 0"
        if value.needed is not None and value.needed > arrivals:
            told += (
                f" (about {value.needed:,} such arrivals would, if that is the difference; {4 * arrivals:,} halve the "
                "interval)"
            )
    return f"{told}. {value.verdict[0].upper()}{value.verdict[1:]}; worth {value.ess:,.0f} arrivals."


def _best(result: Evaluation) -> str:
    best = result.best()
    names = " and ".join(dict.fromkeys(best.policies))
    return (
        f"The best of these, chosen on one half and valued on the other ({names}): {number(best.value)} "
        f"{between(best.low, best.high)}, {number(best.difference, signed=True)} "
        f"{between(best.difference_low, best.difference_high, signed=True)} to what was done."
    )
