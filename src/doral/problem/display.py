"""What a problem, its arms and its contexts show of themselves: a line, and a card in a notebook.

Below the problem, which shows itself with it: it uses public attributes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doral.pages.names import short
from doral.pages.notebook import card, note, small_table
from doral.pages.numbers import count, figure

_FEW = 6  # numbers or names in a line
_MOST = 12  # rows of a table
_LONG = 60  # columns of a name


def problem_in_words(problem: Any) -> str:
    """One line."""
    facts = [count(problem.n_arms, "arm", "arms"), count(problem.n_contexts, "context", "contexts")]
    if problem.person:
        facts.append(count(problem.n_traits, "feature", "features") + " of a person")
    facts += [f"budget {_number(problem.budget)}", _end(problem)]
    if problem.deadline is not None:
        facts.append(f"deadline {_number(problem.deadline)}")
    if problem.feedback == "silent":
        facts.append("silent")
    if problem.paid != "always":
        facts.append("paid on answer")
    if isinstance(problem.baseline, str):
        facts.append(f"baseline {called(problem.baseline)}")
    elif problem.baseline is not None:
        facts.append("known baseline")
    return f"<Problem: {', '.join(facts)}>"


def arm_in_words(arm: Any) -> str:
    """One line."""
    features = f"features {_listed(arm.features)}, " if arm.features else ""
    return f"<Arm {called(arm.name)!r}: {features}cost {_cost(arm.cost)}>"


def context_in_words(context: Any) -> str:
    """One line."""
    return f"<Context {called(context.name)!r}: {', '.join(_facts_of(context))}>"


def problem_card(problem: Any) -> str:
    """For a notebook."""
    deadline = "none: every answer counts" if problem.deadline is None else f"{_number(problem.deadline)} {_UNIT}"
    end = _end(problem) if problem.until is not None else f"after {_number(problem.horizon)} arrivals"
    facts = [
        ("Budget", _number(problem.budget)),
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
        facts.append(("Return at least", _number(problem.return_at_least)))
    if problem.reserves:
        facts.append(("Reserves", ", ".join(f"tier {tier}: {share:.0%}" for tier, share in problem.reserves)))
    if problem.person:
        facts.append(("Of a person", ", ".join(_some([called(one) for one in problem.person_names]))))
    arms = [(called(one.name), _cost(one.cost), _listed(one.features)) for one in problem.arms[:_MOST]]
    contexts = [(called(one.name), "; ".join(_facts_of(one))) for one in problem.contexts[:_MOST]]
    parts = [small_table(("Arm", "Cost", "Features"), arms), *_rest(problem.n_arms, "arm")]
    parts += [small_table(("Context", ""), contexts), *_rest(problem.n_contexts, "context")]
    return card("Problem", facts, parts=parts)


def arm_card(arm: Any) -> str:
    """For a notebook."""
    return card(
        f"Arm {called(arm.name)}",
        [("Cost", _cost(arm.cost)), ("Features", _listed(arm.features) or "none")],
    )


def context_card(context: Any) -> str:
    """For a notebook."""
    return card(f"Context {called(context.name)}", [("Known", ", ".join(_facts_of(context)))])


_UNIT = "(rounds in a simulation, seconds in a live campaign)"


def _facts_of(context: Any) -> list[str]:
    facts = ["share is learned" if context.share is None else f"share {_number(context.share)}"]
    if context.weight != 1.0:
        facts.append(f"weight {_number(context.weight)}")
    if context.deadline is not None:
        facts.append(f"deadline {_number(context.deadline)}")
    if context.tier:
        facts.append(f"tier {context.tier}")
    return facts


def _end(problem: Any) -> str:
    if problem.until is None:
        return f"horizon {_number(problem.horizon)}"
    return f"until {_number(problem.until)}"


def _cost(cost: Any) -> str:
    if not isinstance(cost, tuple):
        return _number(cost)
    amounts = [amount for _, amount in cost]
    low, high = min(amounts), max(amounts)
    return _number(low) if low == high else f"{_number(low)} to {_number(high)} by context"


def called(name: str) -> str:
    """A name that fits into a line."""
    return short(name, _LONG)


def _number(value: float) -> str:
    return figure(value, 6)


def _some(words: Sequence[str]) -> list[str]:
    more = len(words) - _FEW
    return list(words) if more <= 0 else [*words[:_FEW], f"and {more:,} more"]


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(_some([_number(one) for one in numbers]))


def _rest(number: int, what: str) -> list[str]:
    more = count(number - _MOST, what, f"{what}s")
    return [note(f"and {more} more")] if number > _MOST else []
