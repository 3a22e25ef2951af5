"""What was done at which price, and what was paid in the end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.log.cleaning import Sieve
from doral.log.values import Numbers
from doral.problem import MAX_AMOUNT, Paid


class Costs(NamedTuple):
    cost: Floats
    paid: Floats
    paid_when: Paid
    notes: list[str]


def costs_of(
    sieve: Sieve,
    cost: Numbers | None,
    paid: Numbers | None,
    *,
    arm: Ints,
    is_answered: Flags,
    is_pending: Flags,
) -> Costs:
    """`is_pending` rows have nothing paid as yet because they are open, whatever is paid in the end."""
    notes: list[str] = []
    is_served = arm >= 0
    for column, word in ((cost, "cost"), (paid, "amount paid")):
        if column is not None:
            value = column.value
            is_wild = is_served & (column.is_bad | (value < 0.0) | (value > MAX_AMOUNT))
            sieve.drop(is_wild, f"have a {word} that is no amount of at least 0", lambda row, v=value: f"{v[row]:g}")  # type: ignore[misc]
    if cost is None and paid is None:
        notes.append("There is no column of costs: everything that was done costs 1.")
        price = np.where(is_served, 1.0, 0.0)
        return Costs(price, price.copy(), "always", notes)
    given = np.full(arm.size, np.nan) if cost is None else cost.value
    is_known = sieve.kept & is_served & ~np.isnan(given)
    if cost is None:
        assert paid is not None
        given = _largest(arm, paid.value, sieve.kept & is_served & ~np.isnan(paid.value))[arm]
        notes.append("There is no column of list prices: that of an arm is the most that was paid for it.")
    elif rows := int((sieve.kept & is_served & np.isnan(given)).sum()):
        given = np.where(np.isnan(given), _largest(arm, given, is_known)[arm], given)
        notes.append(f"{rows:,} rows have no cost: the largest of their arm is taken.")
    price = np.where(is_served, given, 0.0)
    if paid is None:
        return Costs(price, price.copy(), "always", notes)
    final = np.where(is_served, paid.value, 0.0)
    here = sieve.kept & is_served
    is_more = here & (final > price)
    if is_more.any():
        notes.append(f"{int(is_more.sum()):,} rows were paid more than their cost: it was raised to what was paid.")
        price = np.where(is_more, final, price)
    is_open = here & ~is_answered
    differs = here & ~np.isnan(final) & ~np.isclose(final, price)
    is_empty = is_open & np.isnan(final) & ~is_pending
    if rows := int((here & is_answered & np.isnan(final)).sum()):
        notes.append(f"{rows:,} rows were answered, and nobody says what was paid: their cost is taken.")
        final = np.where(is_answered & np.isnan(final), price, final)
    without = final[is_open & ~np.isnan(final) & ~is_pending]
    if differs.any() and np.count_nonzero(without > 0.0) > 0.5 * without.size:
        # To take it for paid on answer would make all of these free.
        notes.append("Also what was not answered is paid for: a use costs what was paid, on average of its kind.")
        final = np.where(np.isnan(final), price, final)
        return Costs(final.copy(), final, "always", notes)
    if differs.any() or is_empty.any():
        notes.append("What is paid depends on what came of it (paid on answer).")
        return Costs(price, final, "on_answer", notes)
    return Costs(price, np.where(np.isnan(final), price, final), "always", notes)


def _largest(arm: Ints, value: Floats, those: Flags) -> Floats:
    """By arm, and last, for those who were skipped, 0; of an arm of which nothing is known, the largest of all."""
    n_arms = int(arm.max(initial=-1)) + 1
    largest = np.full(n_arms + 1, -np.inf)
    np.maximum.at(largest, arm[those], value[those])
    largest[np.isinf(largest)] = largest.max() if np.isfinite(largest.max()) else 1.0
    largest[-1] = 0.0
    return largest
