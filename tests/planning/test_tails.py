"""Tails: known laws are recovered, whoever never answers, and the end of watching does not bend them."""

from __future__ import annotations

import numpy as np
import pytest

from doral._arrays import Floats, Ints
from doral.logs.log import Log
from doral.planning.tails import delay_tails
from tests.planning.made import made, uniform_watch


def _log(delay: Floats, seed: int, *, never: float = 0.3, arm: int | Ints = 0) -> Log:
    rng = np.random.default_rng([seed, 1])
    n = delay.size
    return made(np.where(rng.random(n) < never, np.inf, delay), uniform_watch(n, float(n), rng), arm=arm)


def _pareto(shape: float, n: int, seed: int, minimum: float = 10.0) -> Floats:
    drawn: Floats = minimum * np.random.default_rng([seed, 2]).random(n) ** (-1.0 / shape)
    return drawn


@pytest.mark.parametrize(("shape", "expected"), [(0.8, "no"), (1.5, "yes"), (3.0, "yes")])
@pytest.mark.parametrize("is_rounded", [False, True])
def test_a_power_law_is_recovered(shape: float, expected: str, is_rounded: bool) -> None:
    inside, right = 0, 0
    for seed in range(12):
        delay = _pareto(shape, 6_000, seed)
        found = delay_tails(_log(np.ceil(delay) if is_rounded else delay, seed))[0]
        assert found.index == pytest.approx(shape, rel=0.25)
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= shape <= found.high
        assert found.mean_exists in (expected, "cannot tell")
        right += found.mean_exists == expected
        assert found.tail == "heavy"
    assert inside >= 10
    assert right >= 10


def test_light_tails_have_a_mean() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        for delay in (rng.geometric(0.01, 6_000).astype(float), rng.exponential(100, 6_000)):
            found = delay_tails(_log(delay, seed))[0]
            assert (found.tail, found.mean_exists) == ("light", "yes")
        bell = delay_tails(_log(np.exp(rng.normal(4.0, 1.0, 6_000)), seed))[0]
        assert bell.mean_exists == "yes"


def test_never_is_not_late() -> None:
    """The index is that of those who answer, however many do not."""
    found = [delay_tails(_log(_pareto(1.5, 20_000, 3), 3, never=never))[0].index for never in (0.0, 0.6)]
    assert found[0] == pytest.approx(1.5, rel=0.1)
    assert found[1] == pytest.approx(1.5, rel=0.1)


def test_arms_have_tails_of_their_own() -> None:
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, 16_000)
    delay = np.where(arm == 0, _pareto(0.8, 16_000, 4), rng.exponential(50, 16_000))
    together, first, second = delay_tails(_log(delay, 4, arm=arm))
    assert (together.arm, first.arm, second.arm) == (None, "arm-1", "arm-2")
    assert (first.mean_exists, second.mean_exists) == ("no", "yes")


def test_little_says_little() -> None:
    few = delay_tails(made(np.arange(1.0, 31.0), np.full(30, 100.0)))[0]
    assert (few.index, few.mean_exists, few.tail) == (None, "cannot tell", "cannot tell")
    assert "too few" in few.sentence
    wrong = 0
    for seed in range(40):
        delay = np.random.default_rng(seed).geometric(0.1, 120).astype(float)
        wrong += delay_tails(_log(delay, seed, never=0.0))[0].mean_exists == "no"
    assert wrong <= 1
    same = delay_tails(made(np.full(200, 5.0), np.full(200, 9.0)))[0]
    assert same.mean_exists in ("yes", "cannot tell")
    assert delay_tails(made(np.zeros(100), np.zeros(100), has_delays=False)) == ()


@pytest.mark.parametrize("kind", ["weekly", "monthly", "written twice"])
def test_answers_that_come_in_steps_have_a_tail_or_none(kind: str) -> None:
    rng = np.random.default_rng(0)
    for share in (0.2, 0.5, 0.9):
        step = {"weekly": 7.0, "monthly": 30.4, "written twice": 1.0}[kind]
        delay = step * rng.geometric(share, 400).astype(float)
        if kind == "written twice":
            delay = np.repeat(rng.exponential(5.0, 200), 2)
        for told in delay_tails(made(delay, step * np.sort(rng.uniform(0.0, 12.0, 400))[::-1])):
            assert told.sentence
