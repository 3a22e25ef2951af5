"""Policies that are valued: tables of probabilities by context, however they were written down.

A policy is a word ("uniform", "nothing", "always:B", "best", "lp"), a mapping from contexts to arms or to mappings from
arms to probabilities (the rest is doing nothing), a function of the name of a context that returns such a mapping, a
table (J, A + 1), a file with such a mapping, or a `Learner`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from doral._arrays import Floats
from doral.errors import InvalidValue, UnknownName, shown
from doral.log.log import Log
from doral.problem import NOTHING

STATUS_QUO = "status-quo"
AS_LOGGED = (STATUS_QUO, "logged")
WORDS = ("uniform", NOTHING, "best", "lp", *AS_LOGGED)
EVERYWHERE = "*"  # in a mapping: every context that is not named
MOST_BYTES = 50_000_000  # of a file with a policy
TOLERANCE = 1e-6  # of sums of probabilities


@runtime_checkable
class Learner(Protocol):
    """A policy that learns from a log: what it settles on, as a table.

    It is given one half of the log and valued on the other, both ways: nothing is valued on what it was learned from.
    """

    name: str

    def allocation(self, log: Log) -> Floats:
        """(J, A + 1) the probability of every arm of the log in each context and, last, of doing nothing."""
        ...


Distribution: TypeAlias = str | Mapping[str, float]
Policy: TypeAlias = (
    str | Path | Mapping[str, Distribution] | Callable[[str], Distribution] | Floats | Learner | tuple[str, Any]
)


def table_of(policy: Any, *, contexts: tuple[str, ...], options: tuple[str, ...], name: str) -> Floats:
    """The table of a policy that does not learn."""
    shape = (len(contexts), len(options))
    if isinstance(policy, str):
        table = np.zeros(shape)
        if policy == "uniform":
            table[:, :-1] = 1.0 / (shape[1] - 1)
        elif policy == NOTHING:
            table[:, -1] = 1.0
        elif policy.startswith("always:"):
            table[:, _option(policy.removeprefix("always:"), options)] = 1.0
        else:
            raise UnknownName("policy", policy, (*WORDS, *(f"always:{one}" for one in options[:-1])))
        return table
    if isinstance(policy, Mapping):
        return _from_mapping(policy, contexts, options, name)
    if isinstance(policy, np.ndarray | list):
        return checked_table(policy, shape, name)
    if callable(policy):
        return np.array([_row(policy(one), options, one, name) for one in contexts])
    raise InvalidValue("policy", policy, "must be a word, a mapping from contexts to arms, a function or a table")


def checked_table(value: Any, shape: tuple[int, int], name: str) -> Floats:
    """A table as it came from outside."""
    try:
        table = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValue(
            f"policy {shown(name)}", value, f"must be a table of probabilities of shape {shape}"
        ) from None
    if table.shape != shape:
        remedy = f"must be {shape}: contexts by arms, and a last column for doing nothing"
        raise InvalidValue(f"shape of policy {shown(name)}", table.shape, remedy)
    sums = table.sum(axis=1)
    if not np.isfinite(table).all() or bool((table < -TOLERANCE).any()) or bool((np.abs(sums - 1.0) > TOLERANCE).any()):
        raise InvalidValue(f"policy {shown(name)}", value, "must hold probabilities that sum to 1 in every context")
    table = np.maximum(table, 0.0)
    checked: Floats = table / table.sum(axis=1, keepdims=True)
    return checked


def from_file(path: Path) -> Any:
    """What a JSON file says: {context: arm} or {context: {arm: probability}}."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidValue("policy", str(path), f"is a file of more than {MOST_BYTES:,} bytes")
        said = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InvalidValue("policy", str(path), f"is no JSON: {error}") from None
    except OSError as error:
        raise InvalidValue("policy", str(path), f"cannot be read: {error.strerror}") from None
    if not isinstance(said, dict):
        raise InvalidValue("policy", str(path), "must hold a mapping {context: arm} or {context: {arm: probability}}")
    return said


def _option(name: object, options: tuple[str, ...]) -> int:
    if not isinstance(name, str) or name not in options:
        raise UnknownName("arm", name, options)
    return options.index(name)  # an arm that is called like doing nothing comes first


def _row(said: object, options: tuple[str, ...], context: str, name: str) -> list[float]:
    row = [0.0] * len(options)
    if isinstance(said, str):
        row[_option(said, options)] = 1.0
        return row
    field = f"policy {shown(name)} in {shown(context)}"
    if not isinstance(said, Mapping):
        raise InvalidValue(field, said, "must be the name of an arm or a mapping from arms to probabilities")
    for arm, chance in said.items():
        is_number = isinstance(chance, int | float | np.number) and not isinstance(chance, bool)
        if not is_number or not 0.0 <= float(chance) <= 1.0 + TOLERANCE:
            raise InvalidValue(f"{field}, probability of {shown(arm)}", chance, "must be a number from 0 to 1")
        row[_option(arm, options)] += float(chance)
    total = math.fsum(row)
    if total > 1.0 + TOLERANCE:
        raise InvalidValue(field, total, "probabilities must not sum to more than 1")
    row = [one / max(total, 1.0) for one in row]
    row[-1] += max(0.0, 1.0 - math.fsum(row))  # the rest is doing nothing
    return row


def _from_mapping(policy: Mapping[Any, Any], contexts: tuple[str, ...], options: tuple[str, ...], name: str) -> Floats:
    known = set(contexts)
    for context in policy:
        if context not in known and context != EVERYWHERE:
            raise UnknownName("context", context, contexts)
    missing = [one for one in contexts if one not in policy]
    if missing and EVERYWHERE not in policy:
        remedy = f"does not say what to do in {shown(missing[0])}; add it, or {EVERYWHERE!r} for all others"
        raise InvalidValue(f"policy {shown(name)}", sorted(map(str, policy)), remedy)
    return np.array([_row(policy.get(one, policy.get(EVERYWHERE)), options, one, name) for one in contexts])
