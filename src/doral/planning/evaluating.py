"""`doral.evaluate`: what policies would have brought, those that learn included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np

from doral._arrays import Floats
from doral._given import Duration
from doral._progress import Progress
from doral.engine.options import POLICY_NAMES, PolicyOptions
from doral.errors import InvalidValue
from doral.evaluation import api
from doral.evaluation.asked import listed
from doral.evaluation.estimate import Estimator
from doral.evaluation.evaluation import Evaluation
from doral.evaluation.targets import AS_LOGGED
from doral.log.asked import spent
from doral.log.log import Log
from doral.log.option_types import AnyLog, ReadOptions
from doral.log.read import as_log
from doral.planning.earnings import KNOWS_TRUTH
from doral.simulation.api import MadePolicy, made_policies, policy_name, simulate
from doral.simulation.policies import named_policy
from doral.simulation.rivals.rival import RIVALS, Rival
from doral.simulation.scenario.from_log import deadline_on_clock, scenario_from_log

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
        return api.evaluate(
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
