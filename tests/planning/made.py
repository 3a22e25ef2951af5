"""Logs made from arrays: what a test does not care about is filled in."""

from __future__ import annotations

from typing import Any

import numpy as np

from doral._arrays import Floats
from doral.logs.clock import Clock
from doral.logs.log import Log, Reading

DAY = 86_400.0


def made(delay: Any, watched: Any, **given: Any) -> Log:
    """A log of rows with these delays (infinite, or later than watched: no answer), one arm and rewards of 1."""
    watched = np.array(watched, dtype=np.float64)
    delay = np.array(delay, dtype=np.float64)
    delay = np.where(delay <= watched, delay, np.inf)
    n = delay.size
    reward = np.broadcast_to(np.asarray(given.pop("reward", 1.0), dtype=np.float64), n)
    arm = np.array(np.broadcast_to(given.pop("arm", 0), n), dtype=np.int64)
    context = np.array(np.broadcast_to(given.pop("context", 0), n), dtype=np.int64)
    cost = np.array(np.broadcast_to(given.pop("cost", 1.0), n), dtype=np.float64)
    end = float(watched.max())
    time = np.array(given.pop("time", np.sort(end - watched)), dtype=np.float64)
    fields: dict[str, Any] = {
        "name": "made",
        "arms": tuple(f"arm-{a + 1}" for a in range(max(int(arm.max()) + 1, 1))),
        "contexts": tuple(f"context-{c + 1}" for c in range(int(context.max()) + 1)),
        "clock": Clock("seconds", "days"),
        "start": None,
        "time": time,
        "context": context,
        "arm": arm,
        "reward": np.where(np.isfinite(delay), reward, np.nan),
        "delay": delay,
        "watched": watched,
        "cost": cost,
        "paid": cost.copy(),
        "probability": np.full(n, np.nan),
        "feedback": "explicit",
        "paid_when": "always",
        "has_delays": True,
        "reading": Reading(rows=n, columns=()),
    }
    return Log(**(fields | given))


def uniform_watch(n: int, longest: float, rng: np.random.Generator) -> Floats:
    """How long rows were watched that arrived at an even pace, the first one longest."""
    return np.sort(rng.uniform(0.0, longest, n))[::-1].copy()
