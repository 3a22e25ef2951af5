"""`doral.evaluate`: a log, some policies, what they would have brought; those that learn included."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral._input_types import Duration
from doral._progress import Progress
from doral.engine.options import POLICY_NAMES, PolicyOptions
from doral.errors import InvalidValue
from doral.evaluation.evaluation import Evaluation, Value
from doral.evaluation.policies import (
    AS_LOGGED,
    KNOWS_TRUTH,
    STATUS_QUO,
    Best,
    Learner,
    Lp,
    Policy,
    checked_table,
    from_file,
    table_of,
)
from doral.evaluation.propensity import chances_of
from doral.evaluation.rows import Rows, check_deadline, longest_deadline, part_of, rows_of
from doral.evaluation.support import AT_TIMES, needed_arrivals, not_seen, support_of, verdict_of
from doral.evaluation.valuing import ESTIMATORS, HALVES, Added, Estimator, Interval, Valuer, difference_of, interval_of
from doral.inference.log_problem import spent
from doral.logs.log import Log
from doral.logs.read import AnyLog, ReadOptions, as_log
from doral.simulation.api import MadePolicy, made_policies, policy_name, simulate
from doral.simulation.rivals.rival import RIVALS, Rival, named_policy
from doral.simulation.scenario.from_log import deadline_on_clock, scenario_from_log

MOST_POLICIES = 1_000


def listed(policies: Any) -> list[Any]:
    """One policy, or several."""
    is_one = isinstance(policies, str | Path | Mapping | np.ndarray) or callable(policies)
    if is_one or isinstance(policies, Learner) or (isinstance(policies, tuple) and _is_named(policies)):
        return [policies]
    return _check.items("policies", policies, what="policies", at_most=MOST_POLICIES)


def _is_named(policy: tuple[Any, ...]) -> bool:
    return len(policy) == 2 and isinstance(policy[0], str) and not isinstance(policy[1], str)


def named(policy: Any) -> tuple[str, Any]:
    """Its name, and the policy without it."""
    if isinstance(policy, tuple) and len(policy) == 2 and isinstance(policy[0], str):
        name, said = _check.name("name of a policy", policy[0]), policy[1]
        return name, from_file(said) if isinstance(said, Path) else said
    if isinstance(policy, Path) or (isinstance(policy, str) and policy.endswith(".json")):
        path = Path(policy)
        return path.stem, from_file(path)
    if isinstance(policy, str):
        return policy, policy
    if isinstance(policy, Learner):
        return _check.name("name of a policy", policy.name), policy
    if callable(policy):
        return str(getattr(policy, "__name__", type(policy).__name__)), policy
    return "table" if isinstance(policy, np.ndarray) else "mapping", policy


def learns(said: Any) -> bool:
    """Whether it needs a log to know what it does."""
    return isinstance(said, Learner) or (isinstance(said, str) and said in ("best", "lp"))


def tables_of(said: Any, name: str, *, rows: Rows, halves: list[Log], deadline: float, rate: float) -> Floats:
    """(halves, J, A + 1): what is done to each half; what learns has learned it from the other."""
    if isinstance(said, str) and said == "best":
        said = Best(deadline=deadline)
    elif isinstance(said, str) and said == "lp":
        said = Lp(deadline=deadline, budget=rate)
    if isinstance(said, Learner):
        learned = [checked_table(said.allocation(half), rows.shape, name) for half in reversed(halves)]
        return np.stack(learned)
    table = table_of(said, contexts=rows.contexts, options=rows.options, name=name)
    return np.stack([table] * HALVES)


MOST_REWARD = 1e60  # its fourth power must be a number


def value_policies(
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
    check_deadline(log, limit)
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
            if verdict.startswith("weak"):
                share = not_seen(support)
                _widen(numbers, ("", "difference_"), by=share * largest)
                _widen(numbers, ("cost_",), by=share * float(np.ptp(np.append(rows.paid, 0.0))))
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


def _widen(numbers: dict[str, Any], ends: tuple[str, ...], *, by: float) -> None:
    """Move the ends of intervals apart by what the part that was not seen could bring; per unit of cost alike."""
    for name in ends:
        numbers[f"{name}low"] -= by
        numbers[f"{name}high"] += by
    if "" in ends and numbers["per_cost"] is not None:
        numbers["per_cost_low"] -= by / numbers["cost"]
        numbers["per_cost_high"] += by / numbers["cost"]


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


_RUNS = 4  # of the scenario in which a policy shows what it settles on


def _nobody_asks(words: str) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What a policy that learns settles on: it plays the world that one half of a log tells of, and what it does in the
    second half of the time, by context, is its allocation.

    What it loses while it learns is not in its value: `doral.plan` plays that.
    """

    policy: MadePolicy
    rate: float  # budget per arrival
    arrivals: int
    deadline: float  # on the clock of the log
    seed: int
    told: Callable[[str], None] = field(default=_nobody_asks, compare=False)  # what it is doing

    @property
    def name(self) -> str:
        return policy_name(self.policy)

    def allocation(self, log: Log) -> Floats:
        """(J, A + 1) shares of the arms in each context and, last, of nothing."""
        scenario = scenario_from_log(
            log,
            budget=max(self.rate * self.arrivals, 1e-9),
            horizon=self.arrivals,
            deadline=log.clock.written(self.deadline),
            name=None,
            seed=self.seed,
            columns={},
        )
        self.told(f"{self.name} learns")
        played = simulate(
            [self.policy], scenario, runs=_RUNS, seed=self.seed, keep_decisions=True, progress=False
        ).decisions()
        rounds = played["round"].to_numpy()
        late = played.filter(rounds > rounds.max() // 2)
        n_arms = len(log.arms)
        arm_of = {name: i for i, name in enumerate(log.arms)}
        context_of = {name: j for j, name in enumerate(log.contexts)}
        table = np.zeros((len(log.contexts), n_arms + 1))
        for context, arm, n in late.group_by("context", "arm", maintain_order=True).len().iter_rows():
            table[context_of[context], arm_of.get(arm, n_arms)] += n
        came = table.sum(axis=1, keepdims=True)
        nothing = np.eye(n_arms + 1)[-1]  # of a context in which nobody came
        return np.where(came > 0.0, table / np.maximum(came, 1.0), nothing)


def evaluate(
    log: AnyLog,
    policies: Any = ("uniform", "best", "lp"),
    *,
    deadline: Duration | None = None,
    budget: float | None = None,
    propensities: Literal["given", "estimated"] | None = None,
    estimators: Sequence[Estimator] = ("ips", "snips", "dr"),
    seed: int = 0,
    progress: bool | None = None,
    **columns: Unpack[ReadOptions],
) -> Evaluation:
    """What policies would have brought and cost per arrival, had they decided in place of who wrote the log.

    What was done is always valued beside them, as "status-quo". Policies of doral are valued by what they settle on.

    Args:
        log: One that `doral.read_log` has read, or anything that it reads.
        policies: One or several of: words ("uniform", "nothing", "always:B", "best", "lp"), mappings {context: arm} or
            {context: {arm: probability}}, functions of a context's name that return such a thing, tables
            (contexts, arms and nothing), JSON files, policies of doral by name or as `doral.policy(...)`, objects with
            a name and allocation(log). (name, policy) gives one a name. Default: "uniform", "best" and "lp".
        deadline: How old an answer may be to count: "14d", or a number in the unit in which the log's times are told.
            None: the longest that the log supports.
        budget: What can be spent per arrival, for "lp" and policies of doral. None: what was paid.
        propensities: "given": the probabilities of the log; "estimated": from it. None: those of the log where it has
            them all.
        estimators: Which of "ips" (weights), "snips" (weights that sum to 1) and "dr" (weights around a model, the one
            that is told in words). Default: all three.
        seed: Of how the log is halved. Default: 0.
        progress: Whether one line on standard error says how long it takes. None: where somebody is looking.
        columns: Options of `doral.read_log`, where `log` is still to be read.
    """
    with Progress("evaluating", is_shown=progress) as shown:
        read = as_log(log, columns)
        asked: Any = {"deadline": deadline, "budget": budget, "seed": seed, "told": shown.stage}
        chosen = [_learner(one, read, **asked) for one in listed(policies)]
        return value_policies(
            read,
            chosen,
            deadline=deadline,
            budget=budget,
            propensities=propensities,
            estimators=estimators,
            seed=seed,
        )


def _learner(
    one: Any, log: Log, *, deadline: object, budget: float | None, seed: int, told: Callable[[str], None] = _nobody_asks
) -> Any:
    """A policy of doral as one that learns from a log; everything else as it is."""
    if isinstance(one, str) and one in (*POLICY_NAMES, *RIVALS) and one not in AS_LOGGED:
        one = named_policy(one)
    if not isinstance(one, PolicyOptions | Rival):
        return one
    if policy_name(one) == KNOWS_TRUTH:
        raise InvalidValue("policy", policy_name(one), "knows the truth, which no log does; 'lp' is what comes nearest")
    rate = spent(log) / max(len(log), 1) if budget is None else budget
    limit = deadline_on_clock(log, deadline)
    return Settled(policy=made_policies(one)[0], rate=rate, arrivals=len(log), deadline=limit, seed=seed, told=told)
