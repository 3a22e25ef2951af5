"""Refresh: when it is due, and what it re-estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from doral.engine import learn
from doral.engine.events import is_refresh_due, refresh
from doral.engine.learn import _set_next_calibration, is_calibration_due, set_next_look, set_next_reading
from doral.engine.options import POLICY_NAMES, policy, policy_of
from doral.engine.setup import QUICK_REFRESH, Blueprint, limits_of, refresh_rounds, rules_of
from doral.engine.state import State
from tests.engine.interpreted import Player, first, small_problem, state_of

pytestmark = pytest.mark.usefixtures("interpreted")


def with_refresh_rounds(state: State, rounds: int) -> State:
    """Return a state whose refresh takes as long as so many rounds."""
    return state._replace(limits=state.limits._replace(refresh_rounds=rounds))


# --- when ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("round_", "expected"), [(0, 32), (1, 32), (31, 32), (32, 64), (33, 64), (5_000, 5_024)])
def test_curves_by_arm_are_read_every_32_rounds(round_: int, expected: int) -> None:
    state = state_of("doral", screening="none")
    state.now[0].round = round_
    set_next_reading(state)
    assert state.now[0].read_at == expected
    set_next_look(state)
    assert state.now[0].read_at == expected


@pytest.mark.parametrize(
    ("round_", "expected"), [(100, 128), (2_000, 2_046), (6_400, 6_600), (16_400, 16_896), (90_000, 90_112)]
)
def test_curves_by_context_are_read_once_in_a_share_of_the_rounds_so_far(round_: int, expected: int) -> None:
    state = state_of("doral-otf", small_problem(horizon=1_000_000))
    state.now[0].round = round_
    set_next_reading(state)
    assert state.now[0].read_at == expected
    wait = max(32, min(round_ // 32, 512))
    assert expected % wait == 0
    assert 0 < expected - round_ <= wait


@pytest.mark.parametrize(("left", "wait"), [(2_048, 512), (2_047, 32)])
def test_near_the_end_they_are_read_often_again(left: int, wait: int) -> None:
    by_end = small_problem(horizon=100_000, counted="by_end")
    state = state_of("doral-otf", by_end)
    state.now[0].round = 100_000 - left
    set_next_reading(state)
    assert state.now[0].read_at == (state.now[0].round // wait + 1) * wait
    for blind in (
        state_of("doral-otf", by_end, until_end=False),
        state_of("doral-otf", small_problem(horizon=100_000)),
    ):
        blind.now[0].round = 100_000 - left
        set_next_reading(blind)
        assert blind.now[0].read_at == (blind.now[0].round // 512 + 1) * 512


@pytest.mark.parametrize(
    ("learned", "wait"), [(0, 10), (1, 10), (99, 10), (200, 20), (12_345, 1_234), (20_000, 2_000), (500_000, 2_000)]
)
def test_the_prior_moves_when_a_tenth_more_has_been_learned(learned: int, wait: int) -> None:
    state = state_of("doral-otf")
    state.now[0].learned = learned
    _set_next_calibration(state)
    assert state.now[0].calibrate_at == learned + wait


# --- large problems --------------------------------------------------------------------------------------------------


def test_up_to_the_sizes_of_the_paper_a_refresh_is_as_frequent_as_it_is_wanted() -> None:
    for n_contexts, n_arms in ((10, 10), (20, 20), (10, 100)):
        assert refresh_rounds(n_contexts=n_contexts, n_arms=n_arms, n_features=5, n_ages=17) == 0


@pytest.mark.parametrize("growing", ["n_contexts", "n_arms", "n_features"])
def test_in_a_large_problem_a_refresh_waits_until_rounds_have_paid_for_it(growing: str) -> None:
    size = {"n_contexts": 10, "n_arms": 10, "n_features": 5, "n_ages": 17}
    waits = [refresh_rounds(**{**size, growing: n}) for n in (10, 100, 1_000, 10_000)]
    assert waits == sorted(waits)
    assert waits[0] == 0 < waits[-1]
    j, a, k, g = 5_000, 10, 5, 17
    refresh = j * (4 * k**3 + 2 * a * k**2 + a * g)
    assert refresh > QUICK_REFRESH
    one_round = 500 + 4 * k**2 + 4 * k * a + 4 * a
    paid = refresh_rounds(n_contexts=j, n_arms=a, n_features=k, n_ages=g) * one_round
    assert refresh < paid < 20 * refresh  # less than half of all time, and no more patience than that needs


def test_a_policy_of_a_large_problem_knows_how_long_to_wait() -> None:
    names = [f"c{j}" for j in range(10_000)]
    blueprint = Blueprint(options=policy("doral-otf"), problem=small_problem(contexts=names), seed=0)
    found = limits_of(blueprint, rules_of(blueprint)).refresh_rounds
    assert found == refresh_rounds(n_contexts=10_000, n_arms=3, n_features=3, n_ages=blueprint.ages.size) > 0


@pytest.mark.parametrize(
    ("round_", "wait"), [(0, 32), (40, 40), (300, 300), (999, 999), (1_000, 1_000), (5_000, 1_000)]
)
def test_while_it_is_young_it_waits_for_twice_as_much_and_then_for_what_is_paid(round_: int, wait: int) -> None:
    state = with_refresh_rounds(state_of("doral", screening="none"), 1_000)
    state.now[0].round = round_
    set_next_reading(state)
    assert state.now[0].read_at == (round_ // wait + 1) * wait


def test_the_prior_of_a_large_problem_moves_when_curves_are_read() -> None:
    state = with_refresh_rounds(state_of("doral-otf"), 1_000)
    _set_next_calibration(state)
    state.now[0].learned, state.now[0].round, state.now[0].read_at = 10**9, 63, 64
    assert not is_calibration_due(state)
    assert not is_refresh_due(state)
    state.now[0].round = 64
    assert is_calibration_due(state)


def test_the_prior_of_a_small_problem_moves_when_enough_has_been_learned() -> None:
    state = state_of("doral-otf")
    state.now[0].learned, state.now[0].read_at = 100, 10**9
    _set_next_calibration(state)
    state.now[0].learned = 109
    assert not is_calibration_due(state)
    state.now[0].learned = 110
    assert is_calibration_due(state)


# --- what ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_first_state_is_refreshed_unless_it_races(name: str) -> None:
    oracle = np.full((1, 3, 30), 0.4)
    state = first(policy_of(name, {}), oracle=oracle)
    races = policy_of(name, {}).screening == "race"
    assert state.now[0].must_read == 0
    assert (state.now[0].read_at == 0) == races
    assert is_refresh_due(state) == races  # at the first round


def quiet(base: str = "doral-otf", **options: Any) -> State:
    """Nothing is due."""
    state = state_of(base, **options)
    state.now[0].round, state.now[0].read_at, state.now[0].calibrate_at = 40, 64, 10
    state.now[0].n_stale = state.contexts[0].is_stale = state.contexts[1].is_stale = 0
    assert not is_refresh_due(state)
    return state


def test_it_is_due_at_a_round_after_some_answers_or_on_demand() -> None:
    state = quiet()
    state.now[0].round = 64
    assert is_refresh_due(state)
    state = quiet()
    state.now[0].learned = 10
    assert is_refresh_due(state)
    state = quiet()
    state.now[0].must_read = 1
    assert is_refresh_due(state)


def test_after_a_reading_every_context_is_valued_anew_and_the_next_one_is_set() -> None:
    state = quiet()
    state.now[0].round = 64
    state.curves.at_risk[:], state.curves.returned[:] = 50.0, 1.0
    refresh(state)
    assert (state.tau[:, :3] < 0.5).all()
    assert state.now[0].n_stale == 2
    assert (state.now[0].read_last, state.now[0].must_read) == (64, 0)
    assert state.now[0].read_at > 64


def test_answers_alone_move_the_prior_and_read_nothing() -> None:
    state = quiet()
    state.now[0].learned = 10
    state.tally[:, 0, 0] = [10.0, 5.0, 3.0]
    state.curves.at_risk[:], state.curves.returned[:] = 50.0, 1.0
    refresh(state)
    assert state.now[0].calibrate_at == 20
    assert state.ridge.weight[0, 0] == 10.0  # rebuilt from the tally
    assert state.now[0].n_stale == 2
    assert (state.tau[:, :3] == 1.0).all()  # not yet
    assert (state.now[0].read_at, state.now[0].read_last) == (64, 0)


def test_where_nothing_is_read_curves_only_grow() -> None:
    """A race on return curves, whose return probability is one."""
    state = quiet("doral", screening="none", return_probability="one")
    assert not state.limits.reads
    state.now[0].round = 64
    refresh(state)
    assert state.now[0].read_at == 96
    assert state.now[0].n_stale == 0


def test_while_the_race_runs_nothing_is_read() -> None:
    state = state_of("doral", censoring="kaplan_meier")
    state.now[0].round = 64
    state.curves.at_risk[:], state.curves.returned[:] = 50.0, 1.0
    refresh(state)
    assert (state.tau[:, :3] == 1.0).all()
    assert state.now[0].read_at == 96


@pytest.mark.parametrize(
    ("base", "options", "reads"),
    [
        ("doral", {}, True),
        ("d-alp", {}, False),
        ("d-linucb", {}, False),
        ("d-linucb", {"half_life": 50.0}, True),
        ("wait-linucb", {"half_life": 9.0}, True),
        ("wait-linucb", {"until_end": False}, False),
        ("wait-linucb", {"until_end": True}, True),
    ],
)
def test_which_policies_read_return_curves(base: str, options: dict[str, Any], reads: bool) -> None:
    assert state_of(base, small_problem(counted="by_end"), **options).limits.reads == reads


def test_time_alone_brings_a_refresh() -> None:
    player = Player(quiet())
    player.state.now[0].must_read = 1
    player.pass_time(50.0)
    assert (player.state.now[0].clock, player.state.now[0].must_read) == (50.0, 0)


def test_the_numbers_of_the_schedule() -> None:
    """They are part of what a policy decides: the digests of decisions rest on them."""
    assert (learn.REFRESH_ROUNDS, learn.REFRESH_SHARE, learn.REFRESH_MOST) == (32, 32, 512)
    assert (learn.CALIBRATE_SHARE, learn.CALIBRATE_FEWEST, learn.CALIBRATE_MOST) == (10, 10, 2_000)
