"""What was done: names of arms, and rows in which nothing was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral._arrays import Ints
from doral._check import MAX_NAME_CHARACTERS
from doral.errors import InvalidValue, UnknownName, shown
from doral.log.cleaning import Sieve
from doral.log.log import SKIPPED
from doral.log.values import text_of

if TYPE_CHECKING:
    import polars as pl

# A plan compares every arm with every other in every context: beyond this, hardly any log could tell them apart.
MAX_LOG_ARMS = 200
_NOTHING = ("nothing", "none", "skip", "skipped", "no treatment")  # as people write that nothing was done


class Done(NamedTuple):
    names: tuple[str, ...]
    codes: Ints  # of every row of the file
    notes: tuple[str, ...]


def arms_of(series: pl.Series, sieve: Sieve, *, nothing: Sequence[str] | None, arms: Sequence[str] | None) -> Done:
    """`nothing` are names that mean that nothing was done; of `arms`, where they are given, all others are left out."""
    import polars as pl

    text = text_of(series)
    found = text.filter(pl.Series(sieve.kept)).drop_nulls().value_counts(sort=True)
    levels = found[series.name].to_list() if found.width else []
    notes = []
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
    if clean != named:
        notes.append("Characters that cannot be printed were taken out of the names of arms.")
    return Done(tuple(clean), codes.fill_null(SKIPPED).to_numpy().astype(np.int64), tuple(notes))


def _printable(name: str) -> str:
    return "".join(one if one.isprintable() else " " for one in name).strip() or "?"
