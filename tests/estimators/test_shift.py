"""Effects of features on rates: found where they are, none where there are none, and not those of arms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from doral._arrays import Floats
from doral.estimators.shift import FARTHEST, Shift, count_chance, count_shift, fade_shift, solve_shift, times
from tests.estimators.states import new_shift

pytestmark = pytest.mark.usefixtures("compiled_alone")


def learned(gamma: Floats, *, seed: int, n: int = 1500, off: float = 0.0, by_chance: bool = True) -> Shift:
    """Two arms; whoever has much of the first number mostly gets the second, whose curve is off by so much."""
    rng = np.random.default_rng(seed)
    shift = new_shift(1 + gamma.size, 2)
    for i in range(n):
        x = np.concatenate([[1.0], rng.normal(size=gamma.size)])
        arm = int(rng.random() < 1.0 / (1.0 + math.exp(-3.0 * x[1])))
        chance, faster = (0.4, 0.7)[arm], math.exp(float(gamma @ x[1:]))
        if by_chance:
            happened = bool(rng.random() < 1.0 - (1.0 - chance) ** faster)
            count_chance(shift, arm, x, happened, chance + (off if arm == 1 else 0.0))
        else:
            count_shift(shift, arm, x, float(rng.poisson(chance * faster)), chance)
        if i % 100 == 99:
            solve_shift(shift)
    return shift


@pytest.mark.parametrize("by_chance", [True, False])
def test_effects_are_found(by_chance: bool) -> None:
    gamma = np.array([0.4, -0.3, 0.0])
    found = [learned(gamma, seed=seed, by_chance=by_chance).gamma[1:] for seed in range(3)]
    assert np.mean(found, axis=0) == pytest.approx(gamma, abs=0.12)


def test_where_there_are_none_they_are_shrunk_to_none() -> None:
    shift = learned(np.zeros(4), seed=1)
    assert np.abs(shift.gamma[1:]).max() < 0.08
    assert shift.spread[0] < 0.02


@pytest.mark.parametrize("off", [-0.2, 0.15])
def test_an_arm_whose_curve_is_off_is_no_effect_of_those_who_get_it(off: float) -> None:
    assert np.abs(learned(np.zeros(2), seed=2, off=off).gamma[1:]).max() < 0.15


def test_nobody_is_eight_times_faster() -> None:
    shift = new_shift(2, 1)
    shift.gamma[:] = 100.0, 50.0  # the constant is no part of it
    assert times(shift, np.array([1.0, 3.0])) == pytest.approx(math.exp(FARTHEST))
    assert times(shift, np.array([1.0, -3.0])) == pytest.approx(math.exp(-FARTHEST))
    assert times(shift, np.array([1.0, 0.0])) == 1.0


def test_what_is_sure_tells_nothing() -> None:
    shift = new_shift(2, 1)
    for chance in (0.0, 1.0):
        count_chance(shift, 0, np.array([1.0, 2.0]), True, chance)
    solve_shift(shift)
    assert (shift.gamma == 0.0).all()


def test_the_past_fades() -> None:
    shift = learned(np.array([0.4]), seed=0, n=300)
    before = shift.precision.copy(), shift.by_arm.copy()
    fade_shift(shift, 0.5)
    assert (shift.precision == 0.5 * before[0]).all()
    assert (shift.by_arm == 0.5 * before[1]).all()
