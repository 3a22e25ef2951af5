"""Contexts: kinds of arrivals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from doral import _check
from doral._input_types import Words
from doral.errors import InvalidValue, shown
from doral.problem.limits import (
    MAX_AGE,
    MAX_CONTEXTS,
    MAX_TIERS,
    MAX_WEIGHT,
    MIN_AGE,
    MIN_SHARE,
    MIN_WEIGHT,
    SHARES_TOLERANCE,
)

EVERYONE = "everyone"  # the one context of a problem that has none


@dataclass(frozen=True, init=False)
class Context:
    """A class of arrivals.

    Urgency has three parts: `weight`, `deadline` and `tier`.

    Args:
        name: What it is called.
        share: The share of all arrivals that it makes up, above 0 up to 1; None: it is learned.
        weight: What one unit of reward is worth here. Default: 1.
        deadline: Replaces that of the problem, in the same unit: rounds (arrivals) in a simulation, seconds in a live
            campaign. None: that of the problem.
        tier: Orders contexts: a reserve of the problem for a tier is closed to all lower ones. Default: 0, the lowest.

    >>> Context("elderly", 0.3, weight=2)
    <Context 'elderly': share 0.3, weight 2>
    """

    name: str
    share: float | None
    weight: float
    deadline: float | None
    tier: int

    def __init__(
        self,
        name: str,
        share: float | None = None,
        *,
        weight: float = 1.0,
        deadline: float | None = None,
        tier: int = 0,
    ) -> None:
        name = _check.name("name of a context", name)
        if deadline is not None:
            deadline = checked_deadline(f"deadline of context {shown(name)}", deadline)
        if share is not None:
            share = _check.finite_number(
                f"share of context {shown(name)}",
                share,
                at_least=MIN_SHARE,
                at_most=1,
                hint="; leave the context out if it never arrives",
            )
        _check.set_fields(
            self,
            name=name,
            share=share,
            weight=_check.finite_number(
                f"weight of context {shown(name)}", weight, at_least=MIN_WEIGHT, at_most=MAX_WEIGHT
            ),
            deadline=deadline,
            tier=_check.whole_number(f"tier of context {shown(name)}", tier, at_least=0, at_most=MAX_TIERS - 1),
        )

    def __repr__(self) -> str:
        from doral.problem.display import context_in_words

        return context_in_words(self)

    def _repr_html_(self) -> str:
        from doral.problem.display import context_card

        return context_card(self)


ContextsLike: TypeAlias = Mapping[str, float] | Mapping[str, None] | Words | Sequence[Context]


def checked_contexts(contexts: object) -> tuple[Context, ...]:
    if isinstance(contexts, Mapping):
        given: object = [Context(name, share) for name, share in contexts.items()]
    else:
        given = contexts
    what = "names or of Context objects, or a mapping from name to share"
    checked = tuple(
        item if isinstance(item, Context) else Context(item)
        for item in _check.items("contexts", given, what=what, at_most=MAX_CONTEXTS)
    )
    _check.no_duplicates("name of a context", (context.name for context in checked))
    _check_shares(checked)
    return checked


def _check_shares(contexts: tuple[Context, ...]) -> None:
    shares = [context.share for context in contexts if context.share is not None]
    if not shares:
        return
    if len(shares) < len(contexts):
        without = next(context.name for context in contexts if context.share is None)
        raise InvalidValue(f"share of context {shown(without)}", None, "give every context a share, or none of them")
    total = math.fsum(shares)
    if abs(total - 1) > SHARES_TOLERANCE:
        raise InvalidValue("sum of the context shares", round(total, 9), "must be 1; divide each share by the sum")


def checked_deadline(field: str, value: object) -> float:
    hint = ", in units of the clock (rounds of a simulation, seconds of a campaign), or None"
    return _check.finite_number(field, value, at_least=MIN_AGE, at_most=MAX_AGE, hint=hint)
