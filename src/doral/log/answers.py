"""What is known of answers that have not come: the estimate of Kaplan and Meier, as weights of the rows that have.

A row that was watched for a while without an answer hands its weight on to those that were answered later, in equal
parts (Efron's redistribution to the right). What nobody is left to take is the mass of answers that come after all that
was watched, or never. Rewards, delays and costs of answered rows stay together, so that a mean of anything over these
weights is corrected for what is still open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats


class Weighed(NamedTuple):
    """Rows of one group."""

    weight: Floats  # by row; 0 where there is no answer
    never: float  # the rest: later than anybody was watched, or never
    longest: float  # how long a row was watched at most: of what is later nothing is known


def event_weights(is_event: Flags, mass: Floats | None = None) -> Floats:
    """Return the product-limit weight of every event; rows are sorted by the age at which they left, `mass` is 1 each.

    >>> event_weights(np.array([True, False, True, False]))
    array([0.25 , 0.   , 0.375, 0.   ])
    """
    mass = np.ones(is_event.size) if mass is None else mass
    at_risk = np.cumsum(mass[::-1])[::-1]
    hazard = np.where(is_event, np.divide(mass, at_risk, out=np.zeros(mass.size), where=at_risk > 0.0), 0.0)
    weight = hazard.copy()
    weight[1:] *= np.cumprod(1.0 - hazard)[:-1]
    return weight


def weigh_answers(delay: Floats, watched: Floats, own: Floats | None = None) -> Weighed:
    """The weights of the rows of a group, which sum to 1 with `never`; `own` are what each row counts to begin with.

    >>> weigh_answers(np.array([1.0, np.inf, 3.0, np.inf]), np.array([9.0, 2.0, 9.0, 9.0])).weight
    array([0.25 , 0.   , 0.375, 0.   ])
    """
    n = delay.size
    if n == 0:
        return Weighed(np.zeros(0), 1.0, 0.0)
    is_answered = np.isfinite(delay)
    left = np.where(is_answered, delay, watched)
    order = np.lexsort((~is_answered, left))  # of those who leave at the same age, answers come first
    weight = np.empty(n)
    weight[order] = event_weights(is_answered[order], None if own is None else own[order])
    return Weighed(weight, float(max(0.0, 1.0 - weight.sum())), float(watched.max()))
