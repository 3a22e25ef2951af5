"""A campaign from a plan: the problem, the policy, and everything that the log has taught."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from doral.engine.presets import policy as policy_by_name
from doral.errors import InvalidValue
from doral.log.log import SKIPPED, Log

if TYPE_CHECKING:
    from doral.live.campaign import Campaign
    from doral.live.store import Store
    from doral.planning.plan import Plan


def create_campaign(plan: Plan, storage: str | Store, name: str, *, seed: int | None = None) -> Campaign:
    """Open a campaign that knows what the log knows, as if it had lived through it.

    Its clock starts where the log does, so that the age of every open decision is right. What the log spent is not of
    this campaign's budget, and who came then is none of those who are expected.
    """
    from doral.live.store import Store
    from doral.live.store import open as open_store

    log, problem = plan.log, plan.problem
    if log.clock.unit == "units":
        remedy = "a campaign lives in real time: say what the times of the log count, as in time_unit='days'"
        raise InvalidValue("time_unit", None, remedy)
    options = policy_by_name(plan.recommendation.policy, **dict(plan.recommendation.options))
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
    campaign.record_many(_records(log, begins))
    return campaign


def _records(log: Log, begins: float) -> Iterator[dict[str, Any]]:
    """Every row as a record: what was done and when, and what came of it."""
    is_paid = log.paid_when == "on_answer"
    nothing_is_told = ~log.skips_are_answered
    rows = zip(
        log.context.tolist(),
        log.arm.tolist(),
        (begins + log.time).tolist(),
        log.reward.tolist(),
        (begins + log.time + log.delay).tolist(),
        (log.paid if is_paid else log.cost).tolist(),
        log.probability.tolist(),
        strict=True,
    )
    for number, (context, arm, made, reward, answered, cost, probability) in enumerate(rows):
        is_answered = math.isfinite(answered) and not (arm == SKIPPED and nothing_is_told)
        yield {
            "context": log.contexts[context],
            "arm": None if arm == SKIPPED else log.arms[arm],
            "at": made,
            "reward": reward if is_answered else None,
            "answered_at": answered if is_answered else None,
            "cost": None if arm == SKIPPED or math.isnan(cost) else cost,
            "probability": None if math.isnan(probability) else probability,
            "key": log.key[number] if log.key else None,
        }
