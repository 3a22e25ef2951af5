"""Where the delay depends on the outcome: how over-represented each kind of answer is among those in hand.

A decision of age x has its answer with probability F_c(x) if the answer is of kind c, so young answers tell too much of
the kind that is quick. To speak for all that come by the age that counts, R, an answer of a decision of age x gets the
weight

    [F(x) / F(R)] / [F_c(x) / F_c(R)]         F is over both kinds

which is 1 from R on, and at all ages where delays do not depend on the outcome.

Answers are only seen if they are younger than their decision: they are truncated on the right, and F_c(x) / F_c(R) is
the product limit in reversed time (Lynden-Bell): over decisions that have passed age g, one less the share of answers
by g that came in the last interval. Nothing has to be known of those who never answer. A kind with few answers is
shrunk to both together, that is to a weight of 1.
"""

from __future__ import annotations

from doral._arrays import Floats
from doral.compiled import kernel, rare

PRIOR_ANSWERS = 5.0  # both kinds together count like so many answers of one
HEAVIEST = 20.0  # no answer counts for more than so many, or for less than one of so many

# Rows: answers by the end of an interval, those inside it, and the weight after so many ages passed.
BY, INSIDE, WEIGHT = 0, 1, 2
LOW, HIGH = 0, 1  # kinds


@kernel
def count_answer(outcomes: Floats, ages: Floats, kind: int, arm: int, g: int, answer_age: float) -> None:
    """A decision has passed `ages[g]` and had been answered by then."""
    outcomes[BY, kind, arm, g] += 1.0
    if g == 0 or answer_age > ages[g - 1]:
        outcomes[INSIDE, kind, arm, g] += 1.0


@rare
def set_weights(outcomes: Floats, last: int) -> None:
    """Weights for decisions that have passed 0, 1, ... ages; R is `ages[last]`."""
    n_arms, n_weights = outcomes.shape[2], outcomes.shape[3]
    for arm in range(n_arms):
        both, low, high = 1.0, 1.0, 1.0  # F(x) / F(R)
        for passed in range(n_weights - 1, -1, -1):
            if 0 < passed <= last:
                by = outcomes[BY, LOW, arm, passed] + outcomes[BY, HIGH, arm, passed]
                inside = outcomes[INSIDE, LOW, arm, passed] + outcomes[INSIDE, HIGH, arm, passed]
                hazard = inside / by if by > 0.0 else 0.0
                both *= 1.0 - hazard
                low *= 1.0 - _shrunk(outcomes, LOW, arm, passed, hazard)
                high *= 1.0 - _shrunk(outcomes, HIGH, arm, passed, hazard)
            outcomes[WEIGHT, LOW, arm, passed] = _ratio(both, low)
            outcomes[WEIGHT, HIGH, arm, passed] = _ratio(both, high)


@kernel
def _shrunk(outcomes: Floats, kind: int, arm: int, g: int, hazard: float) -> float:
    """The share of this kind's answers by age g that came in its last interval."""
    return (outcomes[INSIDE, kind, arm, g] + PRIOR_ANSWERS * hazard) / (outcomes[BY, kind, arm, g] + PRIOR_ANSWERS)


@kernel
def _ratio(both: float, one: float) -> float:
    return 1.0 if both == one else min(max(both / max(one, 1e-300), 1.0 / HEAVIEST), HEAVIEST)
