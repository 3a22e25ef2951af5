"""Where no news and a reward of 0 look the same: how much of a trial an open decision is by its age.

Of the answers that come by the deadline R, the share F(x) has come by age x. A decision of age x has therefore had F(x)
of its chances, and counts as that fraction of a trial, whether or not it was answered: rewards so far, over the trials
so far, are then what a decision brings by its deadline, from the first day on (Vernade, Cappe and Perchet 2017 count in
the same way, with a known F).

F is learned from the answers themselves. They are seen only if they are younger than their decision, that is truncated
on the right: F is the product limit in reversed time (Lynden-Bell). Over decisions that have passed age g, one less the
share of answers by g that came in the last interval. Arms are shrunk to all arms together, and those, before there are
answers, to a return that is even over time.
"""

from __future__ import annotations

from doral._arrays import Floats
from doral.compiled import kernel, rare

ARM_ANSWERS = 5.0  # all arms together count like so many answers of one
EVEN_ANSWERS = 1.0  # an even return counts like so many answers of all

# Rows of the counts (2, A, ages): answers by an age of decisions that have passed it, those since the age before.
BY, INSIDE = 0, 1


@kernel
def count_positive(counts: Floats, ages: Floats, arm: int, g: int, answer_age: float) -> None:
    """A decision has passed `ages[g]` and had been answered by then."""
    counts[BY, arm, g] += 1.0
    if g == 0 or answer_age > ages[g - 1]:
        counts[INSIDE, arm, g] += 1.0


@rare
def set_shares(counts: Floats, ages: Floats, shares: Floats) -> None:
    """shares[a, g] = F(ages[g]) / F(the last age) of every arm."""
    n_arms, n_ages = shares.shape
    for a in range(n_arms):
        shares[a, n_ages - 1] = 1.0
    for g in range(n_ages - 1, 0, -1):
        by, inside = EVEN_ANSWERS, EVEN_ANSWERS * (1.0 - ages[g - 1] / ages[g])
        for a in range(n_arms):
            by += counts[BY, a, g]
            inside += counts[INSIDE, a, g]
        for a in range(n_arms):
            own = (counts[INSIDE, a, g] + ARM_ANSWERS * inside / by) / (counts[BY, a, g] + ARM_ANSWERS)
            shares[a, g - 1] = shares[a, g] * (1.0 - own)


@kernel
def share_by(shares: Floats, ages: Floats, arm: int, age: float) -> float:
    """F at any age, on a line between those of the grid."""
    if age >= ages[ages.size - 1]:
        return 1.0
    below_age, below = 0.0, 0.0
    for g in range(ages.size):
        if age <= ages[g]:
            return below + (shares[arm, g] - below) * (age - below_age) / (ages[g] - below_age)
        below_age, below = ages[g], shares[arm, g]
    return 1.0


@rare
def mean_age(counts: Floats, ages: Floats, shares: Floats) -> float:
    """Of an answer that comes by the last age; over arms, by how many answers they had. 0 while there are none."""
    n_arms, n_ages = shares.shape
    total, n = 0.0, 0.0
    for a in range(n_arms):
        answers = counts[BY, a, 0]
        for g in range(1, n_ages):
            answers = max(answers, counts[BY, a, g])
        mean, below_age, below = 0.0, 0.0, 0.0
        for g in range(n_ages):
            mean += (shares[a, g] - below) * 0.5 * (below_age + ages[g])
            below_age, below = ages[g], shares[a, g]
        total += answers * mean
        n += answers
    return total / n if n > 0.0 else 0.0


@kernel
def trial_share(shares: Floats, ages: Floats, arm: int, g: int, deadline: float) -> float:
    """What passed[g] counts for in `trials`."""
    whole = share_by(shares, ages, arm, deadline)
    here = 1.0
    if g < ages.size:
        here = 0.5 * min(shares[arm, g] / whole, 1.0) + (0.5 * min(shares[arm, g - 1] / whole, 1.0) if g > 0 else 0.0)
    if g == 0:
        return here
    before = 0.5 * min(shares[arm, g - 1] / whole, 1.0)
    before += 0.5 * min(shares[arm, g - 2] / whole, 1.0) if g > 1 else 0.0
    return here - before


@kernel
def trials(passed: Floats, shares: Floats, ages: Floats, arm: int, deadline: float) -> float:
    """How many trials the decisions of a cell amount to: `passed[0]` were made, `passed[g + 1]` have passed ages[g].

    Between two ages a decision is half way from one to the other.
    """
    whole = share_by(shares, ages, arm, deadline)
    total, before, below = 0.0, 0.0, 0.0
    for g in range(ages.size):
        share = min(shares[arm, g] / whole, 1.0)
        half_way = 0.5 * (below + share)
        total += passed[g] * (half_way - before)
        before, below = half_way, share
    return total + passed[ages.size] * (1.0 - before)
