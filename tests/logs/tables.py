"""Small tables as people have them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import doral

START = datetime(2026, 3, 2, tzinfo=UTC)


def table(n: int = 200, *, seed: int = 0) -> dict[str, list[Any]]:
    """Arrivals every hour, two arms, answers after some hours, a fifth still open."""
    rng = np.random.default_rng(seed)
    times = [START + timedelta(hours=one) for one in range(n)]
    is_open = rng.random(n) < 0.2
    delays = np.ceil(rng.exponential(5.0, n))
    return {
        "time": times,
        "context": rng.choice(["north", "south"], n, p=[0.7, 0.3]).tolist(),
        "arm": rng.choice(["kit", "visit"], n, p=[0.6, 0.4]).tolist(),
        "reward": [None if o else float(v) for o, v in zip(is_open, rng.random(n) < 0.4, strict=True)],
        "answered_at": [
            None if o else t + timedelta(hours=float(d)) for o, t, d in zip(is_open, times, delays, strict=True)
        ],
        "cost": [2.0] * n,
    }


def written(folder: Path, text: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same(one: doral.Log, other: doral.Log) -> None:
    """Both say the same, whatever was noted on the way."""
    assert (one.arms, one.contexts, one.clock, one.start) == (other.arms, other.contexts, other.clock, other.start)
    assert (one.feedback, one.paid_when, one.has_delays) == (other.feedback, other.paid_when, other.has_delays)
    for name in ("context", "arm"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("time", "reward", "delay", "watched", "cost", "paid", "probability"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=2e-6, err_msg=name)


def said(log: doral.Log) -> str:
    return " ".join([*(one.sentence for one in log.reading.assumptions), *log.reading.notes])


def frame(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame(columns, strict=False)
