"""What was done and what it cost: names of arms, rows without one, list prices and payments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral._check import MAX_NAME_CHARACTERS
from doral.errors import InvalidValue, UnknownName, shown
from doral.logs.cleaning import Sieve
from doral.logs.log import SKIPPED, Assumption
from doral.logs.profile import is_level_of_control
from doral.logs.values import Numbers, rewards_of, text_of
from doral.problem import MAX_AMOUNT, Paid

if TYPE_CHECKING:
    import polars as pl

# A plan compares every arm with every other in every context: beyond this, hardly any log could tell them apart.
MAX_LOG_ARMS = 200
_NOTHING = ("nothing", "none", "skip", "skipped", "no treatment")  # as people write that nothing was done


_NULLS = ("na", "n/a", "nan", "null", "nat", "#n/a", "<na>", "\\n")  # as tools write that nothing is known
_TOTALS = ("total", "totals", "sum", "grand total", "summe", "gesamt", "gesamtsumme", "insgesamt", "totale", "suma")


class Done(NamedTuple):
    names: tuple[str, ...]
    codes: Ints  # of every row of the file
    notes: tuple[str, ...]


def arms_of(series: pl.Series, sieve: Sieve, *, nothing: Sequence[str] | None, arms: Sequence[str] | None) -> Done:
    """`nothing` are names that mean that nothing was done; of `arms`, where they are given, all others are left out."""
    import polars as pl

    text = text_of(series)
    notes: list[str] = []
    if nothing is None:
        is_null = text.str.to_lowercase().is_in(list(_NULLS)).fill_null(value=False)
        if is_null.any():
            listed = ", ".join(shown(one) for one in text.filter(is_null).unique().sort().to_list())
            notes.append(f"Arm {listed} is read as no arm in {int(is_null.sum()):,} rows; nothing=[] says otherwise.")
            text = text.set(is_null, None)
    is_total = text.str.to_lowercase().is_in(list(_TOTALS)).fill_null(value=False)
    if len(text) > 1 and int(is_total.sum()) == 1 and bool(is_total[-1]):
        sieve.drop(is_total.to_numpy(), "sum up all others", lambda row: text[row])
    found = text.filter(pl.Series(sieve.kept)).drop_nulls().value_counts(sort=True)
    levels = found[series.name].to_list() if found.width else []
    if nothing is None:
        idle = [one for one in levels if one.lower() in _NOTHING and one not in (arms or ())]
        if idle:
            notes.append(f"Arm {', '.join(map(shown, idle))} is read as nothing being done; nothing=[] says otherwise.")
    else:
        idle = list(nothing)
        for one in idle:
            if one not in levels:
                raise InvalidValue("nothing", one, str(UnknownName("arm", one, levels)))
        if idle:
            notes.append(f"Arm {', '.join(map(shown, idle))} means that nothing was done, as was said.")
    named = [one for one in levels if one not in idle]
    if nothing is None and len(usual := [one for one in named if is_level_of_control([one])]) == 1 and len(named) > 1:
        told = f"nothing={shown(usual[0])} makes it what doing nothing brings."
        notes.append(f"Arm {shown(usual[0])} is taken for an option like the others; {told}")
    if arms is not None:
        for one in arms:
            if one not in levels:
                raise InvalidValue("arms", one, str(UnknownName("arm", one, levels)))
        is_other = text.is_not_null() & ~text.is_in([*arms, *idle])
        sieve.drop(is_other.to_numpy(), "have an arm that was not asked for", lambda row: text[row])
        named = [one for one in named if one in set(arms)]
    if len(named) > MAX_LOG_ARMS:
        listed = ", ".join(shown(one) for one in named[:5])
        remedy = (
            f"are more than {MAX_LOG_ARMS}: name those of interest with arms= (the commonest are {listed}),"
            " or group them in a column of their own; is it the right column?"
        )
        raise InvalidValue(f"number of arms in column {shown(series.name)}", len(named), remedy)
    for one in named:
        if len(one) > MAX_NAME_CHARACTERS:
            remedy = f"has more than {MAX_NAME_CHARACTERS} characters; is {shown(series.name)} the column of arms?"
            raise InvalidValue("arm", one, remedy)
    clean = [_printable(one) for one in named]
    place = {name: clean.index(short) for name, short in zip(named, clean, strict=True)}
    codes = text.replace_strict(list(place), list(place.values()), default=None, return_dtype=pl.Int64)
    folded = [one.casefold() for one in named]
    if alike := [one for one, lower in zip(named, folded, strict=True) if folded.count(lower) > 1]:
        listed = ", ".join(shown(one) for one in alike[:4])
        notes.append(f"Arms {listed} differ in capitals alone, and are taken for different ones.")
    if clean != named:
        notes.append("Characters that cannot be printed were taken out of the names of arms.")
    return Done(tuple(clean), codes.fill_null(SKIPPED).to_numpy().astype(np.int64), tuple(notes))


def arm_of_flags(flags: pl.DataFrame) -> pl.Series:
    """The arm of each row, from a column of 0 and 1 for each arm; what all their names share is left away."""
    import polars as pl

    values = {name: rewards_of(flags[name], positive=()).value == 1.0 for name in flags.columns}
    n_done = np.sum(list(values.values()), axis=0)
    if (n_done > 1).any():
        row = int(np.flatnonzero(n_done > 1)[0])
        listed = ", ".join(shown(one) for one in flags.columns[:4])
        raise InvalidValue("arm", flags.columns, f"of {listed} several are 1 in row {row + 1:,}; a row has one arm")
    words = [re.split(r"[_ ]+", name) for name in flags.columns]
    short = min(map(len, words)) - 1
    begin = next((n for n in range(short + 1) if n == short or len({one[n] for one in words}) > 1), 0)
    end = next((n for n in range(short + 1) if n >= short - begin or len({one[-1 - n] for one in words}) > 1), 0)
    names = [" ".join(one[begin : len(one) - end]) for one in words]
    arm = np.full(flags.height, len(names), dtype=np.int64)
    for place, one in enumerate(values.values()):
        arm[one] = place
    return pl.Series("arm", np.array([*names, None], dtype=object)[arm].tolist(), dtype=pl.String)


def _printable(name: str) -> str:
    return "".join(one if one.isprintable() else " " for one in name).strip() or "?"


class Costs(NamedTuple):
    cost: Floats
    paid: Floats
    paid_when: Paid
    notes: list[str | Assumption]


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
    notes: list[str | Assumption] = []
    is_served = arm >= 0
    for column, word in ((cost, "cost"), (paid, "amount paid")):
        if column is not None:
            value = column.value
            is_wild = is_served & (column.is_bad | (value < 0.0) | (value > MAX_AMOUNT))
            sieve.drop(is_wild, f"have a {word} that is no amount of at least 0", lambda row, v=value: f"{v[row]:g}")  # type: ignore[misc]
    if cost is None and paid is None:
        notes.append(Assumption(what="cost", value="1", why="there is no column of costs: each use costs 1"))
        price = np.where(is_served, 1.0, 0.0)
        return Costs(price, price.copy(), "always", notes)
    given = np.full(arm.size, np.nan) if cost is None else cost.value
    is_known = sieve.kept & is_served & ~np.isnan(given)
    if cost is None:
        assert paid is not None
        given = _largest(arm, paid.value, sieve.kept & is_served & ~np.isnan(paid.value))[arm]
        notes.append("There is no column of list prices: that of an arm is the most that was paid for it.")
    elif (is_unknown := sieve.kept & is_served & np.isnan(given)).any():
        given = np.where(np.isnan(given), _largest(arm, given, is_known)[arm], given)
        rows, first = int(is_unknown.sum()), int(np.flatnonzero(is_unknown)[0]) + 1
        told = f"Row {first:,} has" if rows == 1 else f"{rows:,} rows have"
        where = "" if rows == 1 else f" (the first is row {first:,})"
        notes.append(f"{told} no cost that is a number{where}: the largest cost of the same arm is taken.")
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
        notes.append(f"{rows:,} rows were answered without an amount paid: their cost is taken.")
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
