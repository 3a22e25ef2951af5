"""Tables as people have them: one made-up truth, written down in many ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import doral
from doral.logs.summary import UnclearColumns

START = datetime(2026, 2, 20, 8, tzinfo=UTC)  # days above 12 occur: the order of day and month can be seen
COSTS = {"letter": 1.5, "call": 4.0, "visit": 12.25}


@dataclass(frozen=True)
class Truth:
    """What happened: one entry of every list is a decision, in the order of time."""

    time: list[datetime]
    arm: list[str]
    region: list[str]
    reward: list[float | None]  # None: not answered
    answered: list[datetime | None]
    cost: list[float]

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Expected:
    """What a log of the truth must say; names of arms as the table has them."""

    arm: dict[str, str | None] = field(default_factory=dict)  # our names to those of the table; None: nothing was done
    has_times: bool = True
    has_delays: bool = True
    has_costs: bool = True
    feedback: str = "explicit"
    rounding: float = 1.0  # seconds of times
    contexts: int = 1
    currency: str | None = None


def truth(n: int = 400, *, seed: int = 0, silent: bool = False) -> Truth:
    """A decision every 37 minutes; answers take some hours, a fifth never comes."""
    rng = np.random.default_rng(seed)
    arm = rng.choice(list(COSTS), n, p=[0.5, 0.3, 0.2]).tolist()
    rate = {"letter": 0.2, "call": 0.4, "visit": 0.6}
    success = [float(rng.random() < rate[one]) for one in arm]
    is_open = [not one if silent else bool(rng.random() < 0.2) for one in success]
    time = [START + timedelta(minutes=37 * one) for one in range(n)]
    delay = [timedelta(minutes=int(one)) for one in rng.integers(30, 4_000, n)]
    return Truth(
        time=time,
        arm=arm,
        region=rng.choice(["north", "south"], n).tolist(),
        reward=[None if o else s for o, s in zip(is_open, success, strict=True)],
        answered=[None if o else t + d for o, t, d in zip(is_open, time, delay, strict=True)],
        cost=[COSTS[one] for one in arm],
    )


def check(log: doral.Log, made: Truth, expected: Expected) -> None:
    """The log says what happened: compared with the truth row by row, not with what the reader notes."""
    assert len(log) == len(made)
    names = [expected.arm.get(one, one) for one in made.arm]
    assert [None if one < 0 else log.arms[one] for one in log.arm.tolist()] == names
    heard = np.array([one is not None and not (expected.feedback == "silent" and one == 0.0) for one in made.reward])
    np.testing.assert_array_equal(log.is_answered, heard)
    reward = np.array([np.nan if one is None else one for one in made.reward])
    np.testing.assert_allclose(log.reward[heard], reward[heard])
    assert log.feedback == expected.feedback
    assert log.has_delays == expected.has_delays
    if expected.has_times:
        assert log.clock.unit == "seconds"
        since = np.array([(one - made.time[0]).total_seconds() for one in made.time])
        np.testing.assert_allclose(log.time, since, atol=expected.rounding)
        if expected.has_delays:
            delay = np.array(
                [
                    np.inf if a is None or not h else (a - t).total_seconds()
                    for a, t, h in zip(made.answered, made.time, heard, strict=True)
                ]
            )
            np.testing.assert_allclose(log.delay[heard], delay[heard], atol=expected.rounding)
    done = np.array([one is not None for one in names])
    np.testing.assert_allclose(log.cost[done], np.array(made.cost)[done] if expected.has_costs else 1.0)
    assert len(log.contexts) == expected.contexts
    assert log.currency == expected.currency


def csv(columns: Mapping[str, Any], *, separator: str = ",") -> bytes:
    """Text of a table; empty for None."""
    lines = [separator.join(columns)]
    for row in zip(*columns.values(), strict=True):
        cells = ["" if one is None else str(one) for one in row]
        lines.append(separator.join(f'"{one}"' if separator in one else one for one in cells))
    return ("\n".join(lines) + "\n").encode()


def in_form(times: list[datetime | None] | list[datetime], form: str) -> list[str | None]:
    """Times as text; empty for None."""
    return [None if one is None else one.strftime(form) for one in times]


def naive(times: list[datetime | None] | list[datetime]) -> list[datetime | None]:
    """Times without their zone."""
    return [None if one is None else one.replace(tzinfo=None) for one in times]


def pick(values: list[float | None], yes: str, no: str, nothing: str | None = None) -> list[str | None]:
    """Words for rewards; `nothing` for those that are not known."""
    return [nothing if one is None else yes if one else no for one in values]


def with_zeros(made: Truth) -> Truth:
    """Return the truth with a zero where there is no answer."""
    return replace(made, reward=[one or 0.0 for one in made.reward])


def asked(source: Any, **options: Any) -> UnclearColumns:
    """Read a table that must be refused because of its columns, and return the error."""
    with pytest.raises(UnclearColumns) as caught:
        doral.read_log(source, **options)
    return caught.value


def open_roles(error: UnclearColumns) -> dict[str, tuple[str, ...]]:
    """Return the candidates for each role that is asked for."""
    return {one.role: one.candidates for one in error.questions}
