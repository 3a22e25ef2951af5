"""A campaign from a plan: the problem, the policy, and everything that the log has taught."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from doral.engine.options import PolicyOptions
from doral.engine.options import make_policy as policy_by_name
from doral.errors import InvalidValue
from doral.logs.log import SKIPPED, Log

STRETCH = 40_000  # rows that are entered together: some hundred MB while they are on their way

if TYPE_CHECKING:
    from doral.live.campaign import Campaign
    from doral.live.store import Store
    from doral.planning.plan import Plan


def create_campaign(
    plan: Plan, storage: str | Store, name: str, *, policy: str | PolicyOptions | None = None, seed: int | None = None
) -> Campaign:
    """Open a campaign that knows what the log knows, as if it had lived through it.

    Its clock starts where the log does, so that the age of every open decision is right. What the log spent is not of
    this campaign's budget, and who came then is none of those who are expected. Decisions that were open when the log
    was written, and whose deadline has passed since, are left out: nobody knows what became of them.
    """
    from doral.live.store import Store
    from doral.live.store import open as open_store

    log, problem = plan.log, plan.problem
    if log.clock.unit == "units":
        remedy = "a campaign lives in real time: say what the times of the log count, as in time_unit='days'"
        raise InvalidValue("time_unit", None, remedy)
    options = policy_to_run(plan) if policy is None else policy_by_name(policy) if isinstance(policy, str) else policy
    store = storage if isinstance(storage, Store) else open_store(storage)
    in_seconds = log.clock.unit == "seconds"
    begins = log.start.timestamp() if in_seconds and log.start is not None else 0.0
    campaign = store.create(
        name,
        problem,
        policy=options,
        seed=seed,
        clock="seconds" if in_seconds else "rounds",
        at=begins if in_seconds else None,
    )
    try:
        _live_through(campaign, _without_lost(log, plan.deadline, time.time() - begins), begins)
    except BaseException:  # a campaign that knows half of the log would look like one that knows it
        store.delete(name)
        raise
    return campaign


def policy_to_run(plan: Plan) -> PolicyOptions:
    """Return the policy that is recommended; a plan that recommends none says how to choose one."""
    advised = plan.recommendation
    if advised.known_as is None:
        remedy = "must be named, as in policy='doral-otf': the plan says to go on as today"
        raise InvalidValue("policy", None, remedy)
    return policy_by_name(advised.known_as, **dict(advised.options))


def _without_lost(log: Log, deadline: float, now: float) -> Log:
    """The log without those of whom silence says nothing: the log ended before their deadline, and now it is over."""
    if log.clock.unit != "seconds":
        return log
    kept = log.is_answered | (log.watched >= deadline) | (now - log.time <= deadline)
    if not log.skips_are_answered:
        kept = kept | ~log.is_served  # of these nothing is asked
    if kept.all():
        return log
    columns = ("time", "context", "arm", "reward", "delay", "watched", "cost", "paid", "probability")
    keys = tuple(key for key, is_kept in zip(log.key, kept.tolist(), strict=True) if is_kept) if log.key else ()
    return dataclasses.replace(log, key=keys, **{name: getattr(log, name)[kept] for name in columns})


def _live_through(campaign: Campaign, log: Log, begins: float) -> None:
    """Enter the log, a stretch of time after the other: decisions with the answers that came in the same stretch, and
    then those to earlier ones.

    Up to `STRETCH` rows that is one stretch, and everything is entered exactly in the order in which it happened.
    """
    ids: dict[int, str] = {}
    came = log.time + log.delay
    for first in range(0, len(log), STRETCH):
        rows = range(first, min(first + STRETCH, len(log)))
        ends = math.inf if rows.stop == len(log) else float(log.time[rows.stop])
        made = campaign.record_many(_records(log, begins, rows, ends))
        answered = [row for row in ids if came[row] < ends]
        campaign.feedback_many(
            {
                "decision_id": ids.pop(row),
                "reward": float(log.reward[row]),
                "at": begins + float(came[row]),
                **_cost(log, row),
            }
            for row in sorted(answered, key=lambda row: float(came[row]))
        )
        ids.update({row: made[row - first].id for row in rows if ends <= came[row] < math.inf})


def _cost(log: Log, row: int) -> dict[str, float]:
    """What was paid, where the answer tells it."""
    paid = float(log.paid[row])
    return {"actual_cost": paid} if log.paid_when == "on_answer" and not math.isnan(paid) else {}


def _records(log: Log, begins: float, rows: range, ends: float) -> Iterator[dict[str, Any]]:
    """Rows as records: what was done and when, and what came of it before the end."""
    is_paid = log.paid_when == "on_answer"
    has_answers = log.skips_are_answered
    for row in rows:
        arm, made, came = int(log.arm[row]), float(log.time[row]), float(log.time[row] + log.delay[row])
        cost, chance = float(log.paid[row] if is_paid else log.cost[row]), float(log.probability[row])
        is_answered = came < ends and (arm != SKIPPED or has_answers)
        yield {
            "context": log.contexts[log.context[row]],
            "arm": None if arm == SKIPPED else log.arms[arm],
            "at": begins + made,
            "reward": float(log.reward[row]) if is_answered else None,
            "answered_at": begins + came if is_answered else None,
            "cost": None if arm == SKIPPED or math.isnan(cost) or (is_paid and not is_answered) else cost,
            "probability": None if math.isnan(chance) else chance,
            "key": log.key[row] if log.key else None,
        }
