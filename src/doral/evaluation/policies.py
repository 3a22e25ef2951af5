"""What policies do: words, mappings, tables, files, and those that learn from a log."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from doral._arrays import Floats, Ints
from doral.errors import InvalidValue, UnknownName, shown
from doral.evaluation.censoring import Censoring, finest_groups
from doral.evaluation.rows import Rows, rows_of
from doral.evaluation.valuing import CellModel
from doral.logs.log import Log
from doral.pacing import solve
from doral.problem import NOTHING

KNOWS_TRUTH = "oracle"  # no policy that can be had: it is a ceiling
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
    """The place of an arm, by its name or its number in the order of the log."""
    if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < len(options):
        return int(name)
    if not isinstance(name, str) or name not in options:
        raise UnknownName("arm", name, options)
    return options.index(name)  # an arm that is called like doing nothing comes first


def _row(said: object, options: tuple[str, ...], context: str, name: str) -> list[float]:
    row = [0.0] * len(options)
    if isinstance(said, str | int | np.integer) and not isinstance(said, bool):
        row[_option(said, options)] = 1.0
        return row
    field = f"policy {shown(name)} in {shown(context)}"
    if not isinstance(said, Mapping):
        raise InvalidValue(field, said, "must be an arm, by name or number, or a mapping from arms to probabilities")
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


TRIED = 5  # rows of one half: the other lacks what has so many in less than one of a hundred cases


class Learned(NamedTuple):
    """(J, A + 1) what options bring and cost; -inf where the log has too few to say."""

    values: Floats
    costs: Floats
    shares: Floats


def learn_cells(rows: Rows) -> Learned:
    """From all rows, each cell with a G of its own where it was watched enough: policies change, outcomes do not."""
    censoring = Censoring(
        is_complete=rows.is_complete,
        age=rows.age,
        watched=rows.watched,
        group=finest_groups([rows.option, rows.cell], rows.watched >= rows.deadline),
    )
    counts = rows.counts()
    values = _means(rows, rows.value, censoring.weight)
    costs = _means(rows, rows.paid, np.ones(len(rows)) if rows.is_paid_at_once else censoring.weight)
    values = np.where(counts >= TRIED, values, -np.inf)  # nobody takes what was hardly ever tried
    if rows.nothing_is_known:
        values[:, rows.nothing] = costs[:, rows.nothing] = 0.0
    return Learned(values, np.maximum(costs, 0.0), counts.sum(axis=1) / len(rows))


def _means(rows: Rows, amounts: Floats, weight: Floats) -> Floats:
    served = rows.served
    return CellModel(
        cell=rows.cell[served],
        shape=rows.shape,
        values=amounts[served],
        weight=weight[served],
        fold=np.zeros(int(served.sum()), dtype=np.int64),
        n_folds=1,
    ).of_all()


def _table(shape: tuple[int, int], option: Ints) -> Floats:
    table = np.zeros(shape)
    table[np.arange(shape[0]), option] = 1.0
    return table


@dataclass(frozen=True, kw_only=True)
class Best:
    """In every context what brings most, whatever it costs."""

    deadline: float
    name: str = "best"

    def allocation(self, log: Log) -> Floats:
        learned = learn_cells(rows_of(log, deadline=self.deadline))
        nothing = np.where(np.isfinite(learned.values[:, -1]), learned.values[:, -1], 0.0)
        arm = np.argmax(learned.values[:, :-1], axis=1)
        is_better = learned.values[np.arange(arm.size), arm] > nothing  # what brings no more is not done
        return _table(learned.values.shape, np.where(is_better, arm, learned.values.shape[1] - 1))


@dataclass(frozen=True, kw_only=True)
class Lp:
    """What brings most for a budget per arrival (LP_m)."""

    deadline: float
    budget: float  # per arrival
    name: str = "lp"

    def allocation(self, log: Log) -> Floats:
        learned = learn_cells(rows_of(log, deadline=self.deadline))
        without = np.where(np.isfinite(learned.values[:, -1]), learned.values[:, -1], 0.0)
        gains = learned.values[:, :-1] - without[:, None]
        costs = np.maximum(learned.costs[:, :-1] - learned.costs[:, -1:], 0.0)
        rate = max(self.budget - float((learned.shares * learned.costs[:, -1]).sum()), 0.0)
        play = solve(values=gains, costs=costs, shares=learned.shares, rate=rate).play
        rest = np.maximum(1.0 - play.sum(axis=1, keepdims=True), 0.0)
        table: Floats = np.hstack([play, rest])
        return table / table.sum(axis=1, keepdims=True)
