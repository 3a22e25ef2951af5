"""Race: stage 1, step by step and as a whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from doral.engine.decide import PLAYED_RACING, SKIPPED_UNAVAILABLE, Choice, pull
from doral.engine.events import GONE, cancel, is_full, observe
from doral.engine.race import ACCEPTED, RACING, REJECTED, cancel_pull, judge_race, learn_instant_delay
from doral.engine.setup import grown
from doral.engine.state import State
from doral.pacing import NO_ARM
from tests.engine.interpreted import ALL_ARMS, COSTS, Player, as_arrays, as_python, decide, small_problem, state_of

pytestmark = pytest.mark.usefixtures("interpreted")


def racing(**options: Any) -> State:
    state = state_of("doral", options.pop("problem", None), **options)
    assert state.now[0].racing == 1
    return state


def known(state: State, delays: list[float], answers: int = 400) -> State:
    """Every arm has answered so often, always with its delay; a pass is over."""
    for arm, delay in enumerate(delays):
        runner = state.race.arms[arm]
        runner.pulls = runner.answers = answers
        state.race.delays.sums[arm, : answers + 1] = delay * np.arange(answers + 1)
        state.race.delays.held[arm] = answers
    state.race.progress[0].pass_left = 0
    return state


def standings(state: State) -> list[int]:
    return list(state.race.arms.records["standing"])


# --- pulls -----------------------------------------------------------------------------------------------------------


def test_arms_are_pulled_in_turn_in_all_contexts() -> None:
    state = racing()
    choices = [decide(state, context, ALL_ARMS) for context in (0, 1, 1, 0, 0)]
    assert [choice.arm for choice in choices] == [0, 1, 2, 0, 1]
    assert {choice[1:] for choice in choices} == {(1.0, 0.0, 0.0, PLAYED_RACING)}
    assert (state.race.progress[0].rounds, state.race.progress[0].spend) == (5, COSTS[[0, 1, 2, 0, 1]].sum())
    assert state.race.progress[0].pass_left == 3 - 5
    assert state.race.arms.records["pulls"].tolist() == [2, 2, 1]


def test_the_least_pulled_arm_that_can_be_had_and_still_races() -> None:
    state = racing()
    state.allowed[:] = [0, 1, 1]
    assert pull(state).arm == 1
    state.race.arms[1].standing = REJECTED
    assert pull(state).arm == 2
    state.allowed[:] = [1, 1, 0]
    state.race.arms[0].standing = ACCEPTED
    assert pull(state) == Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)


def test_without_a_race_there_is_no_pull() -> None:
    assert pull(state_of("doral-otf")) == Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)


# --- delays ----------------------------------------------------------------------------------------------------------


def test_delays_are_learned_as_they_return() -> None:
    player = Player(racing())
    for clock in (1.0, 2.0, 3.0, 4.0):
        player.decide(0, clock)
    player.answer(0, 0.5, 5.0)
    player.answer(3, 0.5, 6.5)
    state = player.state
    assert state.race.arms.records["answers"].tolist() == [2, 0, 0]
    assert state.race.delays.sums[0, :3].tolist() == [0.0, 4.0, 6.5]


def test_open_pulls_count_with_their_age() -> None:
    """`min_age`: the sums hold the negative clock of an open pull, and its delay once it is known."""
    player = Player(racing(censoring="min_age"))
    for clock in (1.0, 2.0, 3.0, 4.0):
        player.decide(0, clock)
    delays = player.state.race.delays
    assert (delays.held[0], delays.sums[0, 2], delays.open_counts[0, 2]) == (2, -1.0 - 4.0, 2.0)
    player.answer(0, 0.5, 8.0)
    assert (delays.sums[0, 2], delays.open_counts[0, 2]) == (7.0 - 4.0, 1.0)


def test_on_return_curves_the_record_stays_empty() -> None:
    player = Player(racing(censoring="kaplan_meier"))
    player.decide(0, 1.0)
    player.answer(0, 0.5, 3.0)
    assert player.state.race.arms[0].answers == 1
    assert not player.state.race.delays.held.any()


@pytest.mark.parametrize(("delay", "is_known"), [(12.0, True), (math.inf, False)])
def test_instant_delays_are_known_with_the_pull(delay: float, is_known: bool) -> None:
    state = racing(censoring="instant")
    decide(state, 0, ALL_ARMS)
    learn_instant_delay(state, 0, delay)
    assert state.race.arms[0].answers == is_known
    assert state.race.delays.sums[0, 1] == (12.0 if is_known else 0.0)
    observe(state, 0, 0.5, 3.0)
    assert state.race.arms[0].answers == is_known  # it was counted before
    others = racing()
    learn_instant_delay(others, 0, 12.0)
    assert others.race.arms[0].answers == 0


def test_room_for_delays_doubles() -> None:
    state = racing()
    room = state.race.delays.sums.shape[1] - 1
    state.race.arms[1].pulls = room
    assert is_full(state)
    state = as_python(grown(as_arrays(state)))
    assert state.race.delays.sums.shape[1] - 1 == 2 * room
    assert not is_full(state)
    assert grown(as_arrays(state)).race.delays.sums is state.race.delays.sums
    state.now[0].racing = 0
    state.race.arms[1].pulls = 10**9
    assert not is_full(state)  # delays are not recorded any more


# --- the end of stage 1 ----------------------------------------------------------------------------------------------


def test_bounds_are_compared_when_a_pass_is_over() -> None:
    state = known(racing(accept=2), [5.0, 80.0, 6.0])
    state.race.progress[0].pass_left = 1
    judge_race(state, 100.0)
    assert standings(state) == [RACING] * 3
    state.race.progress[0].pass_left = 0
    judge_race(state, 100.0)
    assert standings(state) == [ACCEPTED, REJECTED, ACCEPTED]


def test_the_fastest_arms_go_on_and_the_cutoff_is_their_largest_bound() -> None:
    state = known(racing(accept=2, problem=small_problem(deadline=500.0)), [5.0, 80.0, 6.0])
    state.now[0].round = 1200
    judge_race(state, 100.0)
    width = math.sqrt(2.0 * math.log(16.0 / (1.0 - 50.0**-0.5)) / 400) + 2.0 * 6.0 / 20.0
    assert state.now[0].cutoff == pytest.approx(6.0 + width)
    assert (state.now[0].racing, state.now[0].must_read, state.race.progress[0].ended) == (0, 1, 1201)
    assert (state.barrier[:, :3] == [0.0, -np.inf, 0.0]).all()
    assert state.race.progress[0].is_capped == 0


def test_the_cutoff_over_all_arms() -> None:
    of_accepted, of_all = (
        known(racing(accept=2, printed=printed, problem=small_problem(deadline=500.0)), [5.0, 80.0, 6.0])
        for printed in ([], ["cutoff"])
    )
    for state in (of_accepted, of_all):
        judge_race(state, 100.0)
    assert of_all.now[0].cutoff > 80.0 > of_accepted.now[0].cutoff


def test_a_cutoff_that_is_given_stays() -> None:
    state = known(racing(accept=2, cutoff=33.0), [5.0, 80.0, 6.0])
    judge_race(state, 100.0)
    assert state.now[0].cutoff == 33.0


def test_without_a_deadline_the_cutoff_is_at_most_the_last_age() -> None:
    state = known(racing(accept=2, problem=small_problem(deadline=None)), [50.0, 800.0, 60.0])
    judge_race(state, 100.0)
    assert state.now[0].cutoff == state.curves.ages[-1] == 25.0


def test_a_cutoff_is_never_below_one() -> None:
    state = known(racing(accept=2), [0.0, 80.0, 0.0], answers=1000)
    state.race.delays.sums[[0, 2]] = 0.0
    judge_race(state, 100.0)
    assert state.now[0].cutoff == 1.0


def test_at_the_cap_the_smallest_estimates_go_on() -> None:
    """The next pull might exceed the share of the budget that stage 1 may spend."""
    state = known(racing(accept=2, race_budget_share=0.4), [5.0, 6.5, 6.0], answers=5)
    state.race.progress[0].spend = 18.0  # of 20, and the dearest arm costs 2
    judge_race(state, 100.0)
    assert state.now[0].racing == 1
    state.race.progress[0].spend = 18.5
    judge_race(state, 100.0)
    assert standings(state) == [ACCEPTED, REJECTED, ACCEPTED]
    assert (state.now[0].racing, state.race.progress[0].is_capped) == (0, 1)


def test_only_arms_that_race_can_be_too_dear() -> None:
    state = known(racing(accept=1, race_budget_share=0.4), [5.0, 6.5, 6.0], answers=5)
    state.race.arms[1].standing = REJECTED
    state.race.progress[0].spend = 18.5
    judge_race(state, 100.0)
    assert state.now[0].racing == 1  # the others cost 1


def test_after_the_race_stage_2_chooses_among_the_accepted() -> None:
    player = Player(known(racing(accept=2), [5.0, 80.0, 6.0]))
    player.state.race.progress[0].rounds = 7
    arms = {player.decide(clock % 2, float(clock)).arm for clock in range(2, 30)}
    assert arms <= {NO_ARM, 0, 2}
    assert len(arms) > 1
    assert player.state.race.progress[0].rounds == 7
    assert player.answer(0, 0.5, 40.0) in (GONE, 0, 1)


# --- amendments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("censoring", ["returned", "min_age"])
def test_a_cancelled_pull_gives_its_cost_back(censoring: str) -> None:
    player = Player(racing(censoring=censoring))
    for clock in (1.0, 2.0):
        player.decide(0, clock)
    state = player.state
    cancel_pull(state, 1, 1, COSTS[1], 6.0)
    assert state.race.progress[0].spend == COSTS[0]
    if censoring == "returned":
        assert state.race.arms.records["pulls"].tolist() == [1, 0, 0]
    else:  # it stays, with the age that it had
        assert state.race.delays.sums[1, 1] == 4.0
        assert state.race.delays.open_counts[1, 1] == 0.0


def test_a_decision_of_stage_2_is_none_of_the_race() -> None:
    player = Player(racing())
    player.decide(0, 1.0)
    cancel(player.state, 0, 0, 0, COSTS[0], False, 2.0)
    assert player.state.race.progress[0].spend == COSTS[0]
    player.state.now[0].racing = 0
    cancel(player.state, 0, 0, 0, COSTS[0], True, 2.0)
    assert player.state.race.progress[0].spend == COSTS[0]
