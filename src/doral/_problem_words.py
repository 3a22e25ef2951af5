"""What a problem, its arms and its contexts show of themselves: a line, and a card in a notebook.

Below the problem, which shows itself with it: what is asked of it here is what everybody can see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doral.pages.notebook import card, note, small_table

_FEW = 6  # numbers or names in a line
_MOST = 12  # rows of a table
_LONG = 60  # characters of a name


def problem_in_words(problem: Any) -> str:
    """One line."""
    facts = [_many(problem.n_arms, "arm"), _many(problem.n_contexts, "context")]
    if problem.person:
        facts.append(_many(problem.n_traits, "feature") + " of a person")
    facts += [f"budget {_plain(problem.budget)}", _end(problem)]
    if problem.deadline is not None:
        facts.append(f"deadline {_plain(problem.deadline)}")
    if problem.feedback == "silent":
        facts.append("silent")
    if problem.paid != "always":
        facts.append("paid on answer")
    if isinstance(problem.baseline, str):
        facts.append(f"baseline {short(problem.baseline)}")
    elif problem.baseline is not None:
        facts.append("known baseline")
    return f"<Problem: {', '.join(facts)}>"


def arm_in_words(arm: Any) -> str:
    """One line."""
    features = f"features {_listed(arm.features)}, " if arm.features else ""
    return f"<Arm {short(arm.name)!r}: {features}cost {_cost(arm.cost)}>"


def context_in_words(context: Any) -> str:
    """One line."""
    return f"<Context {short(context.name)!r}: {', '.join(_facts_of(context))}>"


def problem_card(problem: Any) -> str:
    """For a notebook."""
    deadline = "none: every answer counts" if problem.deadline is None else f"{_plain(problem.deadline)} {_UNIT}"
    end = _end(problem) if problem.until is not None else f"after {_plain(problem.horizon)} arrivals"
    facts = [
        ("Budget", _plain(problem.budget)),
        ("End", end),
        ("Deadline", deadline),
    ]
    facts += [("Feedback", problem.feedback), ("Counted", problem.counted.replace("_", " "))]
    if problem.paid != "always":
        facts.append(("Paid", "on answer"))
    if problem.baseline is not None:
        known = problem.baseline if isinstance(problem.baseline, str) else _listed(problem.baseline)
        facts.append(("Baseline", known))
    if problem.return_at_least:
        facts.append(("Return at least", _plain(problem.return_at_least)))
    if problem.reserves:
        facts.append(("Reserves", ", ".join(f"tier {tier}: {share:.0%}" for tier, share in problem.reserves)))
    if problem.person:
        facts.append(("Of a person", ", ".join(_some([short(one) for one in problem.person_names]))))
    arms = [(short(one.name), _cost(one.cost), _listed(one.features)) for one in problem.arms[:_MOST]]
    contexts = [(short(one.name), "; ".join(_facts_of(one))) for one in problem.contexts[:_MOST]]
    parts = [small_table(("Arm", "Cost", "Features"), arms), *_rest(problem.n_arms, "arm")]
    parts += [small_table(("Context", ""), contexts), *_rest(problem.n_contexts, "context")]
    return card("Problem", facts, parts=parts)


def arm_card(arm: Any) -> str:
    """For a notebook."""
    return card(f"Arm {short(arm.name)}", [("Cost", _cost(arm.cost)), ("Features", _listed(arm.features) or "none")])


def context_card(context: Any) -> str:
    """For a notebook."""
    return card(f"Context {short(context.name)}", [("Known", ", ".join(_facts_of(context)))])


_UNIT = "(rounds in a simulation, seconds in a live campaign)"


def _facts_of(context: Any) -> list[str]:
    facts = ["share is learned" if context.share is None else f"share {_plain(context.share)}"]
    if context.weight != 1.0:
        facts.append(f"weight {_plain(context.weight)}")
    if context.deadline is not None:
        facts.append(f"deadline {_plain(context.deadline)}")
    if context.tier:
        facts.append(f"tier {context.tier}")
    return facts


def _end(problem: Any) -> str:
    if problem.until is None:
        return f"horizon {_plain(problem.horizon)}"
    return f"until {_plain(problem.until)}"


def _cost(cost: Any) -> str:
    if not isinstance(cost, tuple):
        return _plain(cost)
    amounts = [amount for _, amount in cost]
    low, high = min(amounts), max(amounts)
    return _plain(low) if low == high else f"{_plain(low)} to {_plain(high)} by context"


def _plain(value: float) -> str:
    """
    >>> _plain(85000.0), _plain(0.3), _plain(1e-9), _plain(1 / 3)
    ('85,000', '0.3', '1e-09', '0.333333')
    """
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.6g}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def short(name: str) -> str:
    """A name that fits into a line."""
    return name if len(name) <= _LONG else name[: _LONG - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _some(words: Sequence[str]) -> list[str]:
    more = len(words) - _FEW
    return list(words) if more <= 0 else [*words[:_FEW], f"and {more:,} more"]


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(_some([_plain(one) for one in numbers]))


def _rest(number: int, what: str) -> list[str]:
    return [note(f"and {_many(number - _MOST, what)} more")] if number > _MOST else []
