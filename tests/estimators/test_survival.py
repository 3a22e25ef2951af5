"""Kaplan-Meier return curves against lifelines."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter

from doral._arrays import Flags, Floats
from doral.estimators.survival import age_grid, count_passage, restricted_mean, return_probability
from tests.estimators.states import new_return_curves

LAST_AGE = 20


def fit_return_curve(ages: Floats, answered: Flags, grid: Floats) -> Floats:
    """The return curve of one group at each age of `grid`.

    `ages` holds the delay of each answered decision, and for the others how long they have been watched
    (expired and pending alike: both are "not by this age").
    """
    curves = new_return_curves(1, 1, grid, pools=False)
    for age, has_answer in zip(ages.tolist(), answered.tolist(), strict=True):
        for g, end in enumerate(grid.tolist()):
            if has_answer or age >= end:
                count_passage(curves, 0, g, age if has_answer else math.inf)
    return np.array([return_probability(curves, 0, 0, end) for end in grid.tolist()])


@st.composite
def samples(draw: st.DrawFn) -> tuple[list[int], list[bool]]:
    ages = draw(st.lists(st.integers(1, LAST_AGE + 5), min_size=1, max_size=60))
    answered = draw(st.lists(st.booleans(), min_size=len(ages), max_size=len(ages)))
    return ages, answered


@settings(max_examples=60)
@given(sample=samples())
def test_full_grid_equals_lifelines(sample: tuple[list[int], list[bool]]) -> None:
    """On a grid of all whole ages nothing is lost.

    A decision that was watched for exactly w rounds without an answer counts in all intervals up to w, as in lifelines.
    Only where nobody at all is left under observation do the two differ: lifelines stays flat, we turn optimistic.
    """
    ages, answered = np.array(sample[0], dtype=np.float64), np.array(sample[1])
    grid = np.arange(1.0, LAST_AGE + 1)
    ours = fit_return_curve(ages, answered, grid)
    theirs = 1.0 - KaplanMeierFitter().fit(ages, answered).survival_function_at_times(grid).to_numpy()
    seen = grid <= ages.max()
    assert ours[seen] == pytest.approx(theirs[seen], abs=1e-12)
    died_out = theirs[seen][-1] if seen.any() else 0.0
    if not seen.all():
        assert (ours[~seen] == 1.0).all() or ours[~seen] == pytest.approx(died_out)


@settings(max_examples=60)
@given(
    delays=st.lists(st.integers(1, 40) | st.just(math.inf), min_size=1, max_size=60),
    now=st.integers(1, 80),
    last=st.floats(5.0, 40.0),
    points=st.integers(2, 20),
)
def test_counting_passages_equals_counting_the_list(delays: list[float], now: int, last: float, points: int) -> None:
    """One decision per round; whoever has passed an age is counted there, with what is known of it then."""
    curves = new_return_curves(2, 1, age_grid(last, points), pools=False)
    ages = curves.ages.tolist()
    for g, age in enumerate(ages):
        for made, delay in enumerate(delays):
            if now - made > age:
                count_passage(curves, 1, g, delay if made + delay <= now else math.inf)
    survival, area, start = 1.0, 0.0, 0.0
    for g, end in enumerate(ages):
        watched = [d for made, d in enumerate(delays) if now - made > end and (g == 0 or d > ages[g - 1])]
        after = survival * (1.0 - sum(d <= end for d in watched) / len(watched)) if watched else 0.0
        assert return_probability(curves, 0, 1, end) == pytest.approx(1.0 - after, abs=1e-12)
        middle = 0.5 * (start + end)
        assert return_probability(curves, 0, 1, middle) == pytest.approx(1.0 - 0.5 * (survival + after), abs=1e-9)
        area += 0.5 * (survival + after) * (end - start)
        survival, start = after, end
    if any(now - made > ages[0] for made in range(len(delays))):
        assert restricted_mean(curves, 1) == pytest.approx(area)
    else:
        assert restricted_mean(curves, 1) == math.inf
    assert restricted_mean(curves, 0) == math.inf  # the other group has seen nobody
    assert return_probability(curves, 0, 0, last) == 1.0


def test_answers_in_hand_do_not_run_ahead_of_silences() -> None:
    """Half of all answers come at once, half never: young decisions must not make the curve look better than that."""
    curves = new_return_curves(1, 1, np.array([5.0, 10.0]), pools=False)
    for made in range(40):
        delay = 1.0 if made % 2 else math.inf
        for g, age in enumerate((5.0, 10.0)):
            if 40 - made > age:
                count_passage(curves, 0, g, delay)
    assert return_probability(curves, 0, 0, 10.0) == pytest.approx(0.5, abs=0.02)


@given(last=st.floats(1e-3, 1e9), points=st.integers(2, 1000))
def test_the_grid_ends_exactly_at_its_last_age(last: float, points: int) -> None:
    grid = age_grid(last, points)
    assert grid.size == points
    assert grid[-1] == last
    assert (np.diff(grid) > 0.0).all()
