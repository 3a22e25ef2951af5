"""A decision for notebooks and terminals: what was decided, why, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doral.pages.names import short
from doral.pages.notebook import card
from doral.pages.numbers import figure

if TYPE_CHECKING:
    from doral.live.decision import Decision


def decision_words(one: Decision) -> str:
    """In one line."""
    what = "no arm" if one.arm is None else short(one.arm, 30)
    reward = "" if one.reward is None else f", reward {figure(one.reward)}"
    return f"{what} for {short(one.context, 30)}, {one.state}{reward}; {one.reason}"


def decision_card(one: Decision) -> str:
    """As HTML."""
    facts = [
        ("arm", "none" if one.arm is None else short(one.arm, 60)),
        ("why", one.reason),
        ("context", short(one.context, 60)),
        ("state", one.state),
        ("cost", figure(one.cost if one.actual_cost is None else one.actual_cost)),
    ]
    if one.reward is not None:
        facts.append(("reward", figure(one.reward)))
    if one.probability is not None:
        facts.append(("probability", figure(one.probability, 3)))
    if one.key is not None:
        facts.append(("key", short(one.key, 60)))
    return card(f"Decision {one.id}", facts)
