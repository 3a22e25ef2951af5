"""Bonus: how much uncertainty counts, and the index of an arm with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from doral._arrays import Floats
from doral.engine.bonus import bonus_scale, set_stretch_of_contexts, stretch, stretched
from doral.engine.decide import set_values
from doral.engine.events import tick
from doral.engine.state import State, norm_row
from doral.estimators.ridge import refactor
from doral.estimators.shrinkage import DOUBT, NOISE
from tests.engine.interpreted import FEATURES, SEED, WEIGHTS, small_problem, state_of
from tests.twin import normals

pytestmark = pytest.mark.usefixtures("interpreted")

ARMS = slice(3)
ESTIMATE = np.array([[0.4, 0.9, -0.2], [0.3, 0.1, 0.6]])
NORM = np.array([[0.5, 0.2, 0.9], [0.7, 0.4, 0.1]])
TAU = np.array([[0.9, 0.5, 0.8], [0.6, 1.0, 0.7]])
TAU_ERROR = np.array([[0.1, 0.3, 0.05], [0.2, 0.0, 0.4]])
PULLS = (7.0, 20.0)
AHEAD = np.array([[1.4, 0.6, 2.0], [0.3, 1.0, 0.8]])


def known(base: str, **options: Any) -> State:
    """A state that knows the numbers above."""
    state = state_of(base, **options)
    state.ridge.estimate[:2, ARMS], state.ridge.norm[:2, ARMS] = ESTIMATE, NORM
    state.tau[:, ARMS], state.tau_error[:, ARMS] = TAU, TAU_ERROR
    state.now[0].round = 1
    for j, pulls in enumerate(PULLS):
        state.contexts[j].pulls = pulls
    return state


def scored(state: State, context: int, *, restricted: bool = False, is_here: bool = True) -> Floats:
    set_values(state, context, restricted, is_here)
    return state.values[ARMS].copy()


# --- the bonus -------------------------------------------------------------------------------------------------------


def delayed_linucb(n: float, confidence: float, *, penalty: float, bias: float = 0.0) -> float:
    k = FEATURES.shape[1]
    inside = 2.0 * math.log(1.0 / confidence) + k * math.log((k * penalty + n) / (k * penalty))
    return 2.0 * (math.sqrt(penalty) + math.sqrt(inside)) + bias


@pytest.mark.parametrize("context", [0, 1])
def test_the_corrected_bonus_grows_with_the_pulls_of_the_context(context: int) -> None:
    state = known("doral", screening="none", delta=0.1, penalty=0.5, exploration=0.3)
    expected = 0.3 * delayed_linucb(PULLS[context], 0.1, penalty=0.5)
    assert bonus_scale(state, context) == pytest.approx(expected, rel=1e-14)


def test_the_printed_bonus_grows_with_the_rounds_and_has_the_penalty_for_a_confidence() -> None:
    state = known("d-linucb", learner="returned", printed=["bonus"], penalty=0.5)
    state.now[0].round = 40
    assert bonus_scale(state, 1) == pytest.approx(delayed_linucb(40.0, 0.5, penalty=0.5), rel=1e-14)


def test_the_printed_bonus_changes_every_context_in_every_round() -> None:
    state = known("d-linucb", printed=["bonus"])
    state.contexts[0].is_stale = state.contexts[1].is_stale = state.now[0].n_stale = 0
    tick(state, 1.0)
    assert state.now[0].n_stale == 2
    racing = state_of("doral", printed=["bonus"])
    racing.contexts[0].is_stale = racing.contexts[1].is_stale = racing.now[0].n_stale = 0
    tick(racing, 1.0)
    assert racing.now[0].n_stale == 0  # stage 1 has no bonus


def test_a_bonus_under_the_root_is_never_imaginary() -> None:
    state = known("d-linucb", learner="returned", printed=["bonus"], penalty=30.0)
    state.now[0].round = 0
    assert bonus_scale(state, 0) == pytest.approx(2.0 * math.sqrt(30.0))


def test_the_bias_of_the_bonus_is_that_of_pulls_inside_the_cutoff() -> None:
    state = known("d-linucb", delta=0.1)
    state.window[0] = [2.0, 0.0, 1.0]
    expected = delayed_linucb(PULLS[0], 0.1, penalty=1.0, bias=2.0 * NORM[0, 0] + NORM[0, 2])
    assert bonus_scale(state, 0) == pytest.approx(expected, rel=1e-14)


def test_the_calibrated_bonus_is_in_units_of_the_noise() -> None:
    state = known("doral-otf", exploration=0.7, bonus="calibrated")
    state.prior.sigma[:] = [0.2, 0.5]
    assert bonus_scale(state, 1) == pytest.approx(0.7 * 0.5 * math.sqrt(math.log(math.e + PULLS[1])), rel=1e-14)
    assert stretch(state, 1, 0.3) == 1.0


def test_the_bonus_counts_the_arrivals_of_a_context() -> None:
    """Of 100 arrivals two fifths are of this context; the less is known of an arm, the more they count."""
    state = known("doral-otf", exploration=0.7)
    state.prior.sigma[:] = [0.2, 0.5]
    assert bonus_scale(state, 1) == pytest.approx(0.7 * 0.5)
    state.prior.scale[NOISE], state.prior.scale[DOUBT] = 0.2, 0.8
    for norm in (0.3, 2.0, 0.0):
        assert stretch(state, 1, norm) == pytest.approx(math.sqrt(math.log1p(0.4 * 100 * norm**2 / 4 / 2.3)), rel=1e-14)


def test_the_bonus_counts_arrivals_to_come_that_can_be_paid() -> None:
    """Of 100 arrivals 30 are still to come, and what is left pays 15 of them the arm that costs 2."""
    state = known("doral-otf")
    state.now[0].round, state.now[0].budget_left = 70, 30.0
    state.ridge.norm[norm_row(state, 1), ARMS] = 0.5
    state.tau_error[1, ARMS] = [0.1, 0.25, 0.4]  # in units of one half: of the last arm less is known of its return
    set_stretch_of_contexts(state)
    per_arrival = 0.4 * state.prior.scale[NOISE] / state.prior.scale[DOUBT] / 2.3
    for arm, (n, unknown) in enumerate(((30, 0.5), (15, 0.5), (30, 0.8))):
        expected = 0.5 * math.sqrt(math.log1p(n * unknown**2 * per_arrival))
        assert stretched(state, 1, arm, 0.5) == pytest.approx(expected, rel=1e-12)
    state.now[0].round = 100
    set_stretch_of_contexts(state)
    assert stretched(state, 1, 0, 0.5) == 0.0  # no arrivals are left to learn for


@pytest.mark.parametrize("s", [1, 3, 10, 30, 100])
def test_the_bonus_is_what_is_right_for_one_arm_against_nothing(s: int) -> None:
    """For s more tries than there are answers: how many errors below nothing the mean of an arm with normal rewards may
    be for one more try to be worth it, by dynamic programming.
    """
    state = known("doral-otf")
    state.prior.scale[NOISE] = state.prior.scale[DOUBT] = 1.0
    assert stretch(state, 1, math.sqrt(s / 40.0)) == pytest.approx(errors_below_nothing(s), abs=0.2)


def errors_below_nothing(s: int, known: int = 20) -> float:
    """Backward over s * known tries, where `known` answers are known and the noise is 1."""
    mean = np.linspace(-6.0, 6.0, 1501) / math.sqrt(known)
    points, weights = np.polynomial.hermite_e.hermegauss(21)
    worth = np.zeros(mean.size)
    for tries_left in range(1, s * known + 1):
        n = known + s * known - tries_left
        step = math.sqrt(1.0 / n - 1.0 / (n + 1))
        after = sum(w * np.interp(mean + step * p, mean, worth, left=0.0) for p, w in zip(points, weights, strict=True))
        go_on = mean + after / weights.sum()
        worth = np.maximum(go_on, 0.0)
        worth[-1] = mean[-1] * tries_left
    first = int(np.argmax(go_on > 0.0))
    return float(-np.interp(0.0, go_on[first - 1 : first + 1], mean[first - 1 : first + 1]) * math.sqrt(known))


# --- the index -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", [0, 1])
def test_optimism_is_weight_times_tau_times_estimate_and_bonus(context: int) -> None:
    state = known("doral", screening="none")
    expected = WEIGHTS[context] * TAU[context] * (ESTIMATE[context] + bonus_scale(state, context) * NORM[context])
    assert scored(state, context) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("context", [0, 1])
def test_doubts_about_return_add_in_squares(context: int) -> None:
    """As many standard errors of tau as of the reward, and tau is at most 1."""
    state = known("doral-otf", pending="ignored", exploration=0.7)
    state.ahead[:2, ARMS] = AHEAD
    of_reward = TAU[context] * bonus_scale(state, context) * AHEAD[context] * NORM[context]
    paid_for = np.maximum(ESTIMATE[context], 0.0)  # that harm may not return is nothing to pay for
    of_return = np.minimum(0.7 * AHEAD[context] * TAU_ERROR[context], 1.0 - TAU[context]) * paid_for
    expected = WEIGHTS[context] * (TAU[context] * ESTIMATE[context] + np.hypot(of_reward, of_return))
    assert scored(state, context) == pytest.approx(expected, rel=1e-14)


def test_no_estimate_is_outside_the_range_of_rewards() -> None:
    problem = small_problem(reward_range=(0.0, 0.6))
    state = known("doral-otf", problem=problem, pending="ignored")
    state.ridge.norm[:2, ARMS] = state.tau_error[:, ARMS] = 0.0
    for context in (0, 1):
        expected = WEIGHTS[context] * TAU[context] * np.clip(ESTIMATE[context], 0.0, 0.6)
        assert scored(state, context) == pytest.approx(expected)


@pytest.mark.parametrize("base", ["doral", "doral-otf"])
def test_pending_decisions_narrow_the_norm(base: str) -> None:
    """Norms that count them are in rows of their own, and only the bonus asks for those."""
    state = known(base, screening="none", pending="expected")
    plain = known(base, screening="none", pending="ignored")
    state.ridge.norm[2:, ARMS] = plain.ridge.norm[:2, ARMS] = 0.5 * NORM
    assert scored(state, 0) == pytest.approx(scored(plain, 0))
    assert (scored(state, 0) != scored(known(base, screening="none", pending="ignored"), 0)).any()


def test_thompson_sampling_draws_for_the_arrival_alone() -> None:
    state = known("d-lints", exploration=0.8)
    state.prior.sigma[:] = [0.2, 0.5]
    state.now[0].round = 11
    root = np.linalg.cholesky(state.ridge.inverse[1, :, :2])
    drawn = FEATURES @ root @ normals(SEED, 0, 11, 2)
    expected = WEIGHTS[1] * TAU[1] * (ESTIMATE[1] + 0.8 * 0.5 * drawn)
    assert scored(state, 1) == pytest.approx(expected, rel=1e-12)
    assert scored(state, 1, is_here=False) == pytest.approx(WEIGHTS[1] * TAU[1] * ESTIMATE[1], rel=1e-14)


# --- arms that are out -----------------------------------------------------------------------------------------------

INDEXES: dict[str, dict[str, Any]] = {
    "optimism": {"base": "doral", "screening": "none"},
    "doubtful": {"base": "doral-otf"},
    "thompson": {"base": "d-lints"},
}


@pytest.mark.parametrize("index", INDEXES)
def test_arms_that_are_out_are_worth_nothing(index: str) -> None:
    state = known(**INDEXES[index])
    free = scored(state, 0)
    out = int(free.argmax())
    state.barrier[0, out] = -np.inf
    values = scored(state, 0)
    assert values[out] == -np.inf
    assert (np.delete(values, out) == np.delete(free, out)).all()
    assert np.isfinite(values).any()


@pytest.mark.parametrize("index", INDEXES)
def test_where_arms_are_missing_only_retired_arms_stay_out(index: str) -> None:
    """Certificates of the context do not hold today; what is out whatever is certified stays out."""
    state = known(**INDEXES[index])
    state.barrier[0, :3] = [-np.inf, 0.0, -np.inf]
    state.barrier[2, :3] = [0.0, 0.0, -np.inf]
    state.allowed[:] = [1, 0, 1]
    assert np.isfinite(scored(state, 0, restricted=True)).tolist() == [True, False, False]


def test_the_unweighted_choice_is_by_the_index_alone() -> None:
    state = known("doral", screening="none", printed=["choice"])
    index = ESTIMATE[1] + bonus_scale(state, 1) * NORM[1]
    best = int(index.argmax())
    state.tau[1, best] = 0.01  # though hardly any of its answers return
    values = scored(state, 1)
    assert values[best] == pytest.approx(WEIGHTS[1] * 0.01 * index[best])
    assert (np.delete(values, best) == -np.inf).all()
    state.allowed[:] = [0 if a == best else 1 for a in range(3)]
    assert scored(state, 1, restricted=True).argmax() == int(np.where(np.arange(3) == best, -np.inf, index).argmax())


def test_without_features_every_cell_stands_for_itself() -> None:
    state = state_of("eva")
    assert state.ridge.features.shape == (3, 0)
    state.ridge.weight[:, 0], state.ridge.target[:, 0] = 3.0, 1.5
    for row in range(4):
        refactor(state.ridge, row)
    precision = state.ridge.precision[0, :, 0]
    assert state.ridge.estimate[0, 0] == pytest.approx(1.5 / (3.0 + precision[0]))
    assert scored(state, 0)[1:] == pytest.approx(bonus_scale(state, 0) / np.sqrt(precision[1:]))
