"""Logs made from known scenarios: what a file would say of one run, and the truth beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

import doral
from doral._arrays import Floats
from doral.logs.clock import Clock
from doral.logs.log import SKIPPED, Log, Reading

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
HOUR = 3_600.0


def arrivals_of(scenario: doral.Scenario, policy: Any = "random", *, seed: int = 0, run: int = 0) -> pl.DataFrame:
    """Everybody who arrived in one run: context, arm (or none), reward, delay in rounds, cost and probability."""
    result = doral.simulate([policy], scenario, runs=1, first_run=run, seed=seed, keep_decisions=True)
    return result.decisions()


def log_of(
    scenario: doral.Scenario,
    policy: Any = "random",
    *,
    seed: int = 0,
    run: int = 0,
    round_s: float = HOUR,
    watched_after: float = 0.0,
) -> Log:
    """The log of a run, one arrival every `round_s` seconds, written so many rounds after the last of them."""
    return log_from(
        scenario, arrivals_of(scenario, policy, seed=seed, run=run), round_s=round_s, watched_after=watched_after
    )


def log_from(
    scenario: doral.Scenario, frame: pl.DataFrame, *, round_s: float = HOUR, watched_after: float = 0.0
) -> Log:
    problem = scenario.problem
    rounds = np.arange(1, frame.height + 1, dtype=np.float64)
    arm = np.array([SKIPPED if name is None else problem.arm_index(name) for name in frame["arm"]])
    context = np.array([problem.context_names.index(name) for name in frame["context"]])
    delay = frame["delay"].fill_null(np.inf).to_numpy().astype(np.float64)
    reward = frame["reward"].fill_null(np.nan).to_numpy().astype(np.float64)
    watched = rounds[-1] + watched_after - rounds
    is_heard = (arm != SKIPPED) & (delay <= watched)
    if problem.feedback == "silent":
        is_heard &= reward != 0.0
    costs = np.broadcast_to(problem.costs_by_context, (problem.n_contexts, problem.n_arms))
    cost = np.where(arm == SKIPPED, 0.0, costs[context, np.maximum(arm, 0)])
    probability: Floats = frame["probability"].fill_null(np.nan).to_numpy().astype(np.float64)
    return Log(
        name=scenario.name,
        arms=problem.arm_names,
        contexts=problem.context_names,
        clock=Clock("seconds", "days"),
        start=START,
        time=rounds * round_s,
        context=context,
        arm=arm,
        reward=np.where(is_heard, reward, np.nan),
        delay=np.where(is_heard, delay, np.inf) * round_s,
        watched=watched * round_s,
        cost=cost,
        paid=cost.copy(),
        probability=probability.copy(),
        feedback=problem.feedback,
        paid_when="always",
        has_delays=True,
        reading=Reading(rows=frame.height, columns=()),
    )


def file_of(log: Log) -> pl.DataFrame:
    """What a person would have in a file: names, dates, empty cells for what is not known."""

    def at(seconds: Floats) -> list[datetime | None]:
        assert log.start is not None
        start = log.start
        return [start + timedelta(seconds=one) if np.isfinite(one) else None for one in seconds.tolist()]

    return pl.DataFrame(
        {
            "time": at(log.time),
            "context": [log.contexts[one] for one in log.context.tolist()],
            "arm": [None if one == SKIPPED else log.arms[one] for one in log.arm.tolist()],
            "reward": [None if np.isnan(one) else one for one in log.reward.tolist()],
            "answered_at": at(log.time + log.delay),
            "cost": log.cost,
            "probability": log.probability,
        }
    )
