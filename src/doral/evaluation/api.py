"""`doral.evaluate`: a log, some policies, what they would have brought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.errors import InvalidValue
from doral.evaluation.asked import learns, listed, named, tables_of
from doral.evaluation.estimate import ESTIMATORS, Estimator, Interval, difference_of, interval_of
from doral.evaluation.evaluation import Evaluation, Value
from doral.evaluation.propensity import chances_of
from doral.evaluation.rows import Rows, longest_deadline, part_of, rows_of
from doral.evaluation.support import AT_TIMES, needed_arrivals, support_of, verdict_of
from doral.evaluation.targets import AS_LOGGED, STATUS_QUO, Policy
from doral.evaluation.valuing import HALVES, Added, Valuer
from doral.log.log import Log

MOST_REWARD = 1e60  # its fourth power must be a number


def evaluate(
    log: Log,
    policies: Policy | Sequence[Policy] = ("uniform", "best", "lp"),
    *,
    deadline: object = None,
    budget: float | None = None,
    propensities: str | None = None,
    estimators: Sequence[str] = ESTIMATORS,
    seed: int = 0,
) -> Evaluation:
    """What policies would have brought and cost per arrival, had they decided in place of who wrote the log.

    `policies` are words ("uniform", "nothing", "always:B", "best", "lp"), mappings {context: arm} or {context: {arm:
    probability}}, functions of a context's name that return such a thing, tables (J, A + 1), JSON files, or Learners;
    (name, policy) gives one a name. What was done is always valued beside them, as "status-quo". `deadline` is a
    duration ("14d"): what comes later counts nothing; without one, the longest that the log supports. `budget` is per
    arrival, for "lp"; without one, what was paid. `propensities` are "given" in the log or "estimated" from it.
    """
    if not isinstance(log, Log):
        raise InvalidValue("log", log, "must be a Log, as doral.read_log returns it")
    if len(log) == 0:
        raise InvalidValue("log", log.name, "has no rows")
    chosen = _checked_estimators(estimators)
    seed = _check.whole_number("seed", seed, at_least=0, at_most=2**63 - 1)
    notes: list[str] = []
    limit = longest_deadline(log) if deadline is None else log.clock.duration("deadline", deadline)
    words = log.clock.shown(limit) if log.has_delays else ""
    if not log.is_answered.any():
        return _nothing(log, "No answer has come yet: nothing can be valued.")
    rows = rows_of(log, deadline=limit)
    if len(rows) == 0 or not rows.is_complete.any():
        return _nothing(log, "Of nobody it is known what came: nothing can be valued.")
    if float(np.abs(rows.value).max()) > MOST_REWARD:
        worst = float(rows.value[np.argmax(np.abs(rows.value))])
        raise InvalidValue("reward", worst, f"must lie within {MOST_REWARD:g} of 0; choose another unit")
    if rows.is_too_late:
        remedy = f"nobody was watched so long; half of them were for {log.clock.shown(longest_deadline(log))}"
        raise InvalidValue("deadline", words, remedy)
    if deadline is None and words:
        notes.append(f"The deadline is {words}, the longest that this log supports; say another one if it matters.")
    notes.extend(_remarks(log, rows))
    chances = chances_of(rows, propensities)
    notes.extend(chances.notes)
    valuer = Valuer(rows, chances, seed=seed)
    quo = valuer.status_quo()
    rate = float(quo.cost.mean()) if budget is None else _check.finite_number("budget", budget, at_least=0.0)
    halves = [part_of(log, np.flatnonzero(valuer.half == half)) for half in range(HALVES)]
    tables: dict[str, Floats] = {}
    for policy in listed(policies):
        name, said = named(policy)
        if name in AS_LOGGED:
            continue
        if name in tables:
            raise InvalidValue("policy", name, "appears twice; give each its own name: (name, policy)")
        if not all(len(half) for half in halves) and learns(said):
            notes.append(f"{name} learns on one half and is valued on the other: there is one arrival only.")
            continue
        tables[name] = tables_of(said, name, rows=rows, halves=halves, deadline=limit, rate=max(rate, 0.0))
        if isinstance(said, str) and said == "lp":
            notes.append(f"lp spends at most {rate:.3g} per arrival{', as was paid' if budget is None else ''}.")
    values = [_status_quo_value(rows, quo)]
    kept = {STATUS_QUO: quo.value}
    for name, table in tables.items():
        added = valuer.added(table, chosen)
        kept[name] = added["dr" if "dr" in chosen else chosen[-1]].value
        weight, served = valuer.weights(table)
        support = support_of(rows, table.mean(axis=0), weight, served)
        largest = float(np.ptp(np.append(rows.value, 0.0)))
        for one in chosen:
            value, numbers = _numbers(added[one], quo)
            difference = difference_of(added[one].value, quo.value)
            verdict = verdict_of(support, value, largest, is_certain=chances.are_certain)
            is_supported = not verdict.startswith("not")
            values.append(
                Value(
                    policy=name,
                    estimator=one,
                    **numbers,
                    ess=support.ess,
                    ess_by_arm=support.ess_by_arm,
                    largest_weight=support.largest_weight,
                    unsupported=support.unsupported,
                    verdict=verdict,
                    needed=needed_arrivals(len(rows), difference) if is_supported else None,
                )
            )
    if any(AT_TIMES in one.verdict for one in values if not one.is_supported):
        notes.append(
            "What could not be done at some times was done at others: propensities='estimated' counts it over the whole"
            " time, which is right if what an arm brings does not change."
        )
    return Evaluation(
        log=log.name,
        arrivals=len(rows),
        complete=float(rows.is_complete.mean()),
        deadline=limit,
        deadline_words=words,
        values=tuple(values),
        notes=tuple(notes),
        allocations=tables,
        rows=rows,
        _half=valuer.half,
        _added=kept,
    )


def _nothing(log: Log, why: str) -> Evaluation:
    return Evaluation(
        log=log.name,
        arrivals=len(log),
        complete=0.0,
        deadline=None,
        deadline_words="",
        values=(),
        notes=(why,),
        allocations={},
        rows=None,
        _half=np.zeros(0, dtype=np.int64),
        _added={},
    )


def _remarks(log: Log, rows: Rows) -> list[str]:
    notes = []
    if rows.n_closed:
        notes.append(f"The last {rows.n_closed:,} arrivals, after which nothing was done any more, are left out.")
    if rows.nothing_is_known:
        notes.append("Doing nothing is taken to bring 0 and to cost 0: the log does not say what comes of it.")
    known = rows.value[rows.is_complete & rows.served]
    if known.size and float(np.ptp(known)) == 0.0:
        notes.append(f"All that came is the same ({known[0]:.3g}): intervals cannot show what else might come.")
    if len(log.arms) == 1:
        notes.append("There is one arm: policies differ only in whom they serve.")
    return notes


def _checked_estimators(said: object) -> tuple[Estimator, ...]:
    words = [said] if isinstance(said, str) else _check.items("estimators", said, what="names", at_most=len(ESTIMATORS))
    for one in words:
        if not _check.is_among(one, ESTIMATORS):
            raise InvalidValue("estimators", one, f"must be among {', '.join(ESTIMATORS)}")
    return tuple(one for one in ESTIMATORS if one in words)


def _numbers(added: Added, quo: Added) -> tuple[Interval, dict[str, Any]]:
    value, cost = interval_of(added.value), interval_of(added.cost)
    difference = difference_of(added.value, quo.value)
    numbers: dict[str, Any] = {
        "value": value.mean,
        "low": value.low,
        "high": value.high,
        "cost": cost.mean,
        "cost_low": cost.low,
        "cost_high": cost.high,
        "difference": difference.mean,
        "difference_low": difference.low,
        "difference_high": difference.high,
        "per_cost": None,
        "per_cost_low": None,
        "per_cost_high": None,
    }
    if cost.mean > 0.0:
        ratio = value.mean / cost.mean
        per_cost = interval_of(ratio + (added.value - ratio * added.cost) / cost.mean)
        numbers |= {"per_cost": ratio, "per_cost_low": per_cost.low, "per_cost_high": per_cost.high}
    return value, numbers


def _status_quo_value(rows: Rows, quo: Added) -> Value:
    _, numbers = _numbers(quo, quo)
    by_arm = np.bincount(rows.option, minlength=len(rows.options))
    return Value(
        policy=STATUS_QUO,
        estimator="mean",
        **numbers,
        ess=float(len(rows)),
        ess_by_arm=tuple((rows.options[k], float(by_arm[k])) for k in np.flatnonzero(by_arm).tolist()),
        largest_weight=1.0,
        unsupported=0.0,
        verdict="supported",
        needed=None,
    )
