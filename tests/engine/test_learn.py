"""Learn: what enters V and G, and when; the prior, pending decisions, the window of the bonus, a half-life."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from doral._arrays import Floats
from doral.engine.bonus import _window_bias
from doral.engine.events import AFTER_CUTOFF, GONE, LEARNED, REPEATED, observe, tick
from doral.engine.learn import fade_rewards, follow_answers, rebuild_rewards, renew_pending
from doral.engine.state import EARLY, State, norm_row, remembered
from doral.estimators.ridge import padded
from doral.estimators.shrinkage import NOISE
from tests.engine.interpreted import ALL_ARMS, FEATURES, Player, decide, small_problem, state_of

pytestmark = pytest.mark.usefixtures("interpreted")

GREEDY: dict[str, Any] = {
    "screening": "none",
    "pacing": "greedy",
    "until_end": False,
}


def learning(learner: str, base: str = "doral", **options: Any) -> State:
    return state_of(base, **{**GREEDY, "learner": learner, **options})


def play(state: State, context: int, clock: float) -> int:
    """Decide for an arrival while nothing else happens; return the arm."""
    state.now[0].clock = clock
    arm = decide(state, context, ALL_ARMS).arm
    assert arm >= 0
    return int(arm)


def posterior(weight: Floats, target: Floats, penalty: float = 1.0) -> tuple[Floats, Floats]:
    """Estimates and norms that follow from the sums of a context."""
    inverse = np.linalg.inv(penalty * np.eye(2) + (FEATURES.T * weight) @ FEATURES)
    return FEATURES @ inverse @ FEATURES.T @ target, np.sqrt(np.einsum("ai,ij,aj->a", FEATURES, inverse, FEATURES))


def assert_follows(state: State, row: int, weight: Floats, target: Floats) -> None:
    estimate, norm = posterior(weight, target)
    assert state.ridge.weight[row].tolist() == pytest.approx(weight.tolist())
    assert state.ridge.target[row].tolist() == pytest.approx(target.tolist())
    assert state.ridge.estimate[row, :3].tolist() == pytest.approx(estimate.tolist())
    assert state.ridge.norm[row, :3].tolist() == pytest.approx(norm.tolist())


# --- what an answer is -----------------------------------------------------------------------------------------------


def test_an_answer_is_learned_once_and_not_after_the_cutoff() -> None:
    state = learning("returned", cutoff=5.0)
    play(state, 0, 1.0)
    play(state, 0, 2.0)
    assert observe(state, 0, 1.0, 6.0) == LEARNED  # of age 5: still inside
    assert observe(state, 0, 1.0, 6.0) == REPEATED
    assert observe(state, 1, 1.0, 7.5) == AFTER_CUTOFF
    assert state.ring[1].answer_age == 5.5
    assert state.tally[0].sum() == 1.0
    state.now[0].first = 1
    assert observe(state, 0, 1.0, 8.0) == GONE


def test_an_answer_of_the_race_teaches() -> None:
    state = state_of("doral")
    play(state, 0, 1.0)
    observe(state, 0, 1.0, 2.0)
    assert state.tally[0].sum() == 1.0


# --- learners --------------------------------------------------------------------------------------------------------


def test_returned_learns_when_an_answer_comes() -> None:
    state = learning("returned")
    arm = play(state, 0, 1.0)
    assert_follows(state, 0, np.zeros(3), np.zeros(3))
    observe(state, 0, 0.7, 3.0)
    one = np.eye(3)[arm]
    assert_follows(state, 0, one, 0.7 * one)
    assert_follows(state, 1, np.zeros(3), np.zeros(3))
    assert state.tally[:, 0, arm].tolist() == pytest.approx([1.0, 0.7, 0.49])


def test_thinned_learns_a_pull_at_once_and_its_reward_when_it_comes() -> None:
    state = learning("thinned")
    arm = play(state, 0, 1.0)
    one = np.eye(3)[arm]
    assert_follows(state, 0, one, np.zeros(3))
    observe(state, 0, 0.7, 3.0)
    assert_follows(state, 0, one, 0.7 * one)
    assert not state.tally.any()  # it has no answers of its own


@pytest.mark.parametrize("answered", [True, False])
def test_scaled_learns_when_a_decision_settles(answered: bool) -> None:
    state = learning("scaled", cutoff=5.0)
    state.thinning[:] = 0.5
    arm = play(state, 0, 1.0)
    if answered:
        assert observe(state, 0, 0.7, 3.0) == LEARNED
    tick(state, 6.0)
    assert_follows(state, 0, np.zeros(3), np.zeros(3))
    tick(state, 6.5)
    one, reward = np.eye(3)[arm], 0.7 if answered else 0.0
    assert_follows(state, 0, 0.25 * one, 0.5 * reward * one)
    assert state.tally[:, 0, arm].tolist() == pytest.approx([1.0, reward, reward**2])
    assert state.now[0].settled == 1


def test_scaled_is_rebuilt_when_tau_has_changed() -> None:
    state = learning("scaled", cutoff=5.0)
    arm = play(state, 0, 1.0)
    observe(state, 0, 0.7, 3.0)
    tick(state, 7.0)
    state.thinning[:] = 0.4
    rebuild_rewards(state)
    one = np.eye(3)[arm]
    assert_follows(state, 0, 0.16 * one, 0.4 * 0.7 * one)


def test_auto_is_returned_or_scaled() -> None:
    explicit = learning("auto")
    play(explicit, 0, 1.0)
    observe(explicit, 0, 0.7, 2.0)
    assert explicit.tally[0].sum() == 1.0
    silent = state_of("doral", small_problem(feedback="silent"), **{**GREEDY, "learner": "auto"})
    play(silent, 0, 1.0)
    observe(silent, 0, 0.7, 2.0)
    assert silent.rules.learner == EARLY
    assert silent.tally[0].sum() == 1.0  # an answered decision is a whole trial


def test_padding_stays_empty() -> None:
    state = learning("returned")
    play(state, 0, 1.0)
    observe(state, 0, 0.7, 2.0)
    assert state.ridge.estimate.shape[1] == padded(3)
    assert not state.ridge.estimate[:, 3:].any()
    assert not state.ridge.norm[:, 3:].any()


# --- the prior -------------------------------------------------------------------------------------------------------


def answered(state: State, rewards: dict[tuple[int, int], list[float]]) -> State:
    """What a state would know after these answers, by (context, arm)."""
    for (context, arm), some in rewards.items():
        state.tally[:, context, arm] = [len(some), sum(some), sum(one * one for one in some)]
        state.ridge.weight[context, arm], state.ridge.target[context, arm] = len(some), sum(some)
        state.now[0].learned += len(some)
    return state


REWARDS = {(0, 0): [0.1, 0.5, 0.3], (0, 2): [1.0, 1.4], (1, 1): [0.2, 0.8, 0.9, 0.3]}


def test_the_noise_is_measured_inside_cells() -> None:
    state = answered(learning("returned", prior="noise", bonus="calibrated"), REWARDS)
    follow_answers(state)
    inside = sum(np.var(some) * len(some) for some in REWARDS.values())
    degrees = sum(len(some) - 1 for some in REWARDS.values())
    everything = np.concatenate(list(REWARDS.values()))
    noise = (inside + everything.var()) / (degrees + 1)
    assert state.prior.scale[NOISE] == pytest.approx(noise)
    own = [(20 * noise + np.var(REWARDS[0, 0]) * 3 + np.var(REWARDS[0, 2]) * 2) / 23]
    own.append((20 * noise + np.var(REWARDS[1, 1]) * 4) / 23)
    assert state.prior.sigma.tolist() == pytest.approx(np.sqrt(own).tolist())
    assert state.now[0].calibrate_at == 9 + 10


def test_every_answer_counts_towards_the_next_calibration() -> None:
    for prior, expected in (("fixed", 0), ("noise", 1), ("shared", 1)):
        state = learning("returned", prior=prior)
        play(state, 0, 1.0)
        observe(state, 0, 0.7, 2.0)
        assert state.now[0].learned == expected


def test_a_shared_prior_pulls_a_context_to_the_others() -> None:
    """A context that knows nothing thinks of arms what the others have seen of them; under `noise` it does not."""
    rewards = {(0, 0): [1.0, 1.1, 0.9] * 5, (0, 2): [0.1, 0.0, 0.2] * 5}
    shared = answered(learning("returned", prior="shared", bonus="calibrated"), rewards)
    alone = answered(learning("returned", prior="noise", bonus="calibrated"), rewards)
    for state in (shared, alone):
        follow_answers(state)
    assert alone.ridge.estimate[1, :3].tolist() == [0.0, 0.0, 0.0]
    assert shared.ridge.estimate[1, 0] > 0.7
    assert shared.ridge.estimate[1, 0] - shared.ridge.estimate[1, 2] > 0.5


# --- pending decisions -----------------------------------------------------------------------------------------------


def pending_one(learner: str = "returned", **options: Any) -> tuple[State, int]:
    state = learning(learner, pending="expected", cutoff=5.0, **options)
    state.tau[:, :3] = 0.6
    return state, play(state, 0, 1.0)


def test_a_pending_decision_narrows_the_norm_by_its_chance_to_be_answered() -> None:
    state, arm = pending_one()
    assert norm_row(state, 0) == 2
    assert_follows(state, 2, 0.6 * np.eye(3)[arm], np.zeros(3))
    assert_follows(state, 0, np.zeros(3), np.zeros(3))  # estimates know nothing of it
    assert norm_row(learning("returned"), 1) == 1


@pytest.mark.parametrize(("fate", "weight"), [("answered", 1.0), ("settled", 0.0), ("open", 0.6)])
def test_a_pending_decision_counts_as_what_it_was_when_its_fate_is_known(fate: str, weight: float) -> None:
    state, arm = pending_one()
    if fate == "answered":
        observe(state, 0, 0.7, 2.0)
    tick(state, 6.5 if fate == "settled" else 3.0)
    assert state.ridge.weight[2].tolist() == pytest.approx((weight * np.eye(3)[arm]).tolist())
    renew_pending(state)  # norms follow when stock is taken
    assert_follows(state, 2, weight * np.eye(3)[arm], np.zeros(3))
    tick(state, 20.0)
    expected = 1.0 if fate == "answered" else 0.0
    assert state.ridge.weight[2, arm] == pytest.approx(expected)  # nothing is counted twice


def test_settled_it_counts_for_a_scaled_learner_as_thinned() -> None:
    state, arm = pending_one("scaled")
    state.thinning[:] = 0.5
    tick(state, 6.5)
    assert state.ridge.weight[2, arm] == pytest.approx(0.25)


# --- the window of the bias ------------------------------------------------------------------------------------------


def test_the_window_holds_pulls_inside_the_cutoff() -> None:
    state = learning("thinned", cutoff=5.0)
    arms = [play(state, 0, clock) for clock in (1.0, 2.0, 3.0)]
    tick(state, 7.5)
    expected = np.bincount(arms[2:], minlength=3)
    assert state.window[0].tolist() == expected.tolist()
    assert _window_bias(state, 0) == pytest.approx(float(expected @ state.ridge.norm[0, :3]))
    assert _window_bias(state, 1) == 0.0


def test_without_a_window_there_is_no_bias() -> None:
    state = learning("returned")
    play(state, 0, 1.0)
    assert _window_bias(state, 0) == 0.0


# --- forgetting ------------------------------------------------------------------------------------------------------


def test_what_was_learned_counts_half_after_a_half_life() -> None:
    state = learning("returned", half_life=10.0)
    arm = play(state, 0, 1.0)
    observe(state, 0, 0.7, 2.0)
    state.curves.at_risk[:], state.curves.returned[:] = 8.0, 4.0
    tally = state.tally.copy()
    state.now[0].read_last, state.now[0].round = 1, 21
    fade_rewards(state)
    assert state.tally == pytest.approx(0.25 * tally)
    assert_follows(state, 0, 0.25 * np.eye(3)[arm], 0.25 * 0.7 * np.eye(3)[arm])
    assert (state.curves.at_risk == 2.0).all()
    assert (state.curves.returned == 1.0).all()


def test_within_one_round_nothing_is_forgotten() -> None:
    state = learning("returned", half_life=10.0)
    play(state, 0, 1.0)
    observe(state, 0, 0.7, 2.0)
    state.now[0].read_last = state.now[0].round
    tally = state.tally.copy()
    fade_rewards(state)
    assert (state.tally == tally).all()


def test_what_is_remembered_of_a_decision_dates_from_the_reading_before_it() -> None:
    state = learning("returned", half_life=10.0, pending="expected")
    state.now[0].read_last = 40
    play(state, 0, 41.0)
    state.now[0].read_last = 55
    assert remembered(state, 0) == pytest.approx(0.5**1.5)
    observe(state, 0, 0.7, 56.0)
    assert remembered(state, 0) == 1.0  # from now on it is the answer that is forgotten
    assert remembered(learning("returned"), 0) == 1.0


def test_a_long_game_of_updates_is_what_the_sums_say() -> None:
    """Rank-one updates, with some forgetting between them, agree with the sums at any time."""
    player = Player(learning("returned", half_life=20.0, cutoff=8.0))
    rng = np.random.default_rng(2)
    for clock in range(1, 90):
        player.decide(int(rng.integers(2)), float(clock))
        if clock % 3 == 0:
            player.answer(player.state.now[0].next - 1, float(rng.normal()), clock + 0.5)
    state = player.state
    assert state.ridge.weight.sum() > 2.0
    for row in range(2):
        assert_follows(state, row, state.ridge.weight[row].copy(), state.ridge.target[row].copy())
