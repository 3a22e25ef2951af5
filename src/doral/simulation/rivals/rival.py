"""`doral.rival`: a rival by name, and what its settings mean."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, overload

from doral._given import Numbers, NumberTable
from doral.simulation.rivals import catalogue
from doral.simulation.rivals.catalogue import Rival

RivalName: TypeAlias = Literal["beta-ts-lp", "explore-then-lp", "a/b", "status-quo"]


@overload
def rival(
    name: Literal["beta-ts-lp"], /, *, label: str | None = None, explore: float = ..., width: float = ...
) -> Rival: ...


@overload
def rival(name: Literal["explore-then-lp", "a/b"], /, *, label: str | None = None, explore: float = ...) -> Rival: ...


@overload
def rival(
    name: Literal["status-quo"],
    /,
    *,
    label: str | None = None,
    shares: Numbers | None = ...,
    chances: NumberTable | None = ...,
) -> Rival: ...


def rival(name: RivalName, /, *, label: str | None = None, **settings: Any) -> Rival:
    """A rival by name, with settings changed at will.

    Args:
        name: "beta-ts-lp": Thompson draws from Beta posteriors, and the budget as DORAL paces it; "explore-then-lp":
            all arms alike for a while, then the best by what they earned, paced alike; "a/b": a test of all arms for a
            while, then the winner of each context; "status-quo": what is done today, whatever comes back.
        label: What it is called in results. Default: the name and, if settings were changed, those.

    Keyword Args:
        explore: "beta-ts-lp": the share of the budget that is spent on all arms alike, default 0.02; "explore-then-lp"
            and "a/b": the share of the horizon that the test takes, default 0.1 and 0.2. From 0 to 1.
        width: "beta-ts-lp": how far draws lie from the mean; 1 is Thompson's. Default: 0.5.
        shares: "status-quo": how often each arm is used, in the order of the problem, relative to each other; a coin
            makes the budget last. Default: all alike.
        chances: "status-quo": by context, the chance with which each arm is given to whoever arrives; the rest get
            nothing, and nothing paces it. Default: `shares` say it.

    >>> rival("beta-ts-lp", explore=0.05).name
    'beta-ts-lp(explore=0.05)'
    """
    return catalogue.rival(name, label=label, **settings)
