"""Returns: which share of answers comes in time, the cut-off, and outcomes whose delays differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from doral._arrays import Floats
from doral.engine import returns, setup
from doral.engine.events import LEARNED, observe, tick, watch
from doral.engine.learn import rebuild_rewards
from doral.engine.options import policy
from doral.engine.returns import FACTOR_PRIOR_SD, answer_limit, outcome_weight, read_returns
from doral.engine.state import State
from doral.estimators.outcomes import BY, HIGH, INSIDE, LOW, WEIGHT
from doral.problem import Context
from tests.engine.interpreted import ALL_ARMS, decide, first, small_problem, state_of

pytestmark = pytest.mark.usefixtures("interpreted")

GREEDY: dict[str, Any] = {"screening": "none", "pacing": "greedy", "until_end": False}
BY_END = small_problem(counted="by_end")


def watching(base: str = "doral", problem: Any = None, *, points: int = setup.CURVE_POINTS, **options: Any) -> State:
    """Return a first state with return curves at so many ages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setup, "CURVE_POINTS", points)
        return state_of(base, problem, **{**GREEDY, **options})


def play(state: State, context: int, clock: float) -> int:
    state.now[0].clock = clock
    arm = int(decide(state, context, ALL_ARMS).arm)
    assert arm >= 0
    return arm


# --- the age by which an answer has to come --------------------------------------------------------------------------


def test_the_limit_is_the_deadline_or_else_the_cutoff() -> None:
    problem = small_problem(contexts=[Context("x", 0.5, deadline=8.0), Context("y", 0.5)], deadline=None)
    state = watching(problem=problem, cutoff=30.0)
    assert [answer_limit(state, j) for j in (0, 1)] == [8.0, 30.0]
    printed = watching(problem=problem, cutoff=30.0, printed=["returns"])
    assert [answer_limit(printed, j) for j in (0, 1)] == [30.0, 30.0]


def test_near_the_end_the_limit_is_what_is_left_of_time() -> None:
    state = watching(problem=BY_END, until_end=True)
    state.now[0].round, state.now[0].clock = 90, 180.0  # two units of time per round, ten rounds to go
    assert answer_limit(state, 0) == 20.0
    state.now[0].round, state.now[0].clock = 95, 190.0
    assert answer_limit(state, 0) == pytest.approx(10.0)
    for blind in (watching(problem=BY_END), watching(until_end=True)):  # not asked to look, or nothing ends there
        blind.now[0].round, blind.now[0].clock = 95, 190.0
        assert answer_limit(blind, 0) == 20.0


def test_a_young_campaign_knows_no_pace_yet() -> None:
    state = watching(problem=BY_END, until_end=True)
    state.now[0].round, state.now[0].clock = 50, 1.9  # as one batch: below a tenth of the deadline
    assert answer_limit(state, 0) == 20.0
    state.now[0].clock = 2.0
    assert answer_limit(state, 0) == pytest.approx(2.0)


# --- curves ----------------------------------------------------------------------------------------------------------


def counted(delays: Floats, ages: Floats, clock: float) -> tuple[Floats, Floats]:
    """At risk and returned, over decisions made at clocks 1, 2, ... that have passed each age by now."""
    made = np.arange(1.0, delays.size + 1.0)
    starts = np.concatenate([[-math.inf], ages[:-1]])
    passed = clock - made[:, None] > ages[None, :]
    seen = np.where(delays <= clock - made, delays, math.inf)[:, None]
    return (passed & (seen > starts)).sum(axis=0), (passed & (seen > starts) & (seen <= ages)).sum(axis=0)


@pytest.mark.parametrize("by", ["arm", "context"])
def test_every_decision_is_counted_at_every_age_that_it_has_passed(by: str) -> None:
    state = watching(curves_by=by, points=4)
    state.barrier[:, 1:3] = -np.inf
    delays = np.array([2.0, 7.0, math.inf, 1.0, 30.0, 3.0])
    for i, clock in enumerate(range(1, 7)):
        assert play(state, 1, float(clock)) == 0
        assert state.now[0].next == i + 1
    for now in (9.0, 15.0, 28.0):  # in pieces: no decision is counted twice
        for i, delay in enumerate(delays.tolist()):
            if i + 1 + delay <= now and state.ring[i].answer_age == math.inf:
                observe(state, i, 0.5, i + 1 + delay)
        state.now[0].clock = now
        watch(state)
        at_risk, returned = counted(delays, state.curves.ages, now)
        group = 0 if by == "arm" else 3  # of context 1 and arm 0
        assert state.curves.at_risk[group].tolist() == at_risk.tolist()
        assert state.curves.returned[group].tolist() == returned.tolist()
        assert state.curves.at_risk.sum() == at_risk.sum()
    assert at_risk[-1] > 0


def test_at_an_age_a_decision_has_not_passed_it_yet() -> None:
    """Inside while its age is at most the limit: so the order of events within one tick does not matter."""
    state = watching(points=2)
    play(state, 0, 1.0)
    state.now[0].clock = 21.0  # of age 20, the last of the grid
    watch(state)
    assert state.curves.cursor.tolist() == [1, 0]
    state.now[0].clock = 21.1
    watch(state)
    assert state.curves.cursor.tolist() == [1, 1]


def test_decisions_stay_as_long_as_they_are_watched() -> None:
    state = watching(cutoff=5.0)
    for clock in (1.0, 2.0, 12.0):
        play(state, 0, clock)
    tick(state, 8.5)
    watch(state)
    assert (state.now[0].settled, state.now[0].first) == (2, 0)
    state.now[0].clock = 21.5
    watch(state)
    assert state.now[0].first == 1  # older than the last age, which is the deadline


def test_unwatched_a_decision_goes_when_it_leaves_the_cutoff() -> None:
    state = watching("d-linucb", cutoff=5.0)
    for clock in (1.0, 2.0, 12.0):
        play(state, 0, clock)
    tick(state, 8.5)
    assert (state.now[0].settled, state.now[0].first) == (2, 2)


# --- tau -------------------------------------------------------------------------------------------------------------


def curves_with(state: State, at_risk: list[float], returned: list[float], group: int = 0) -> None:
    state.curves.at_risk[group], state.curves.returned[group] = at_risk, returned


def test_tau_is_the_product_limit_by_the_deadline() -> None:
    problem = small_problem(contexts=[Context("x", 0.5, deadline=5.0), Context("y", 0.5)], deadline=20.0)
    state = watching(problem=problem, points=2)
    assert state.curves.ages.tolist() == pytest.approx([0.2, 5.0, 20.0])
    curves_with(state, [10.0, 8.0, 4.0], [2.0, 4.0, 1.0])
    read_returns(state)
    survival = np.cumprod([1 - 2 / 10, 1 - 4 / 8, 1 - 1 / 4])
    assert state.tau[:, 0].tolist() == pytest.approx([1.0 - survival[1], 1.0 - survival[2]])
    assert state.tau[:, 1].tolist() == [1.0, 1.0]  # no decision was watched: optimism
    tau = state.tau[:, 0]
    assert state.tau_error[:, 0].tolist() == pytest.approx(np.sqrt((tau * (1 - tau) + 1 / 11) / 11).tolist())
    assert (state.thinning == 1.0).all()


def test_curves_by_context_give_every_context_a_tau_of_its_own() -> None:
    """Shrunk to the arm's, by as many decisions as the arm counts for; that is shrunk to all arms."""
    state = watching(curves_by="context", points=2)
    curves_with(state, [40.0, 30.0], [10.0, 15.0], group=0)
    curves_with(state, [40.0, 10.0], [30.0, 5.0], group=3)
    state.contexts[0].pulls = state.contexts[1].pulls = 40.0
    read_returns(state)
    borrowed = state.curves.shared[-1]
    assert 1.0 <= borrowed < 100.0
    at_risk, returned = np.array([[40.0, 30.0], [40.0, 10.0]]), np.array([[10.0, 15.0], [30.0, 5.0]])
    n, k = at_risk.sum(axis=0), returned.sum(axis=0)  # no other arm was played
    of_all = [(k[0] + 1.0) / (n[0] + 1.0)]
    of_all.append((k[1] + of_all[0]) / (n[1] + 1.0))
    of_arm = (k + 2.0 * np.array(of_all)) / (n + 2.0)
    for j in (0, 1):
        shrunk = (returned[j] + borrowed * of_arm) / (at_risk[j] + borrowed)
        assert state.tau[j, 0] == pytest.approx(1.0 - np.prod(1.0 - shrunk))


def test_hazards_of_arms_and_ages_borrow_from_each_other() -> None:
    """Beta-binomial posterior means: an age counts like one decision for the next, all arms like two for each."""
    state = watching(curves_by="context", points=2)
    counts = {0: ([40.0, 30.0], [10.0, 15.0]), 1: ([8.0, 0.0], [4.0, 0.0])}  # the third arm was never played
    for arm, (at_risk, returned) in counts.items():
        curves_with(state, at_risk, returned, group=arm)
    read_returns(state)
    of_all = [(14.0 + 1.0) / (48.0 + 1.0)]
    of_all.append((15.0 + of_all[0]) / (30.0 + 1.0))
    for arm in range(3):
        at_risk, returned = counts.get(arm, ([0.0, 0.0], [0.0, 0.0]))
        hazards = [(k + 2.0 * h) / (n + 2.0) for n, k, h in zip(at_risk, returned, of_all, strict=True)]
        assert state.tau[1, arm] == pytest.approx(1.0 - (1.0 - hazards[0]) * (1.0 - hazards[1]))


@pytest.mark.parametrize("n_contexts", [1, 2])
def test_an_arm_that_never_answered_is_not_thought_to(n_contexts: int) -> None:
    """5,000 decisions are silent, none of them as old as the deadline, which is the horizon."""
    contexts = [Context(f"c{j}") for j in range(n_contexts)]
    problem = small_problem(contexts=contexts, deadline=10_000.0, horizon=10_000)
    state = watching("doral-otf", problem=problem, points=16)
    ages = state.curves.ages
    for arm, share in ((0, 0.0), (1, 0.5)):  # the other arm answers half of its decisions at once
        at_risk = np.maximum(0.0, 5_000.0 - ages)
        returned = np.where(ages == ages[0], share * at_risk, 0.0)
        curves_with(state, (at_risk * np.where(ages == ages[0], 1.0, 1.0 - share)).tolist(), returned.tolist(), arm)
    state.contexts[0].pulls = 10_000.0
    read_returns(state)
    assert state.tau[0, 0] < 0.001
    assert state.tau[0, 1] == pytest.approx(0.5, abs=0.01)


def test_the_scaled_learner_is_thinned_by_what_returns_within_the_cutoff() -> None:
    state = watching(points=2, learner="scaled", cutoff=10.1)
    curves_with(state, [10.0, 8.0], [2.0, 4.0])
    read_returns(state)
    between = 0.8 * (1.0 - 0.5 * (10.1 - 0.2) / (20.0 - 0.2))  # the survival in the middle of the last interval
    assert state.thinning[:, 0].tolist() == pytest.approx([1.0 - between] * 2)
    assert state.tau[:, 0].tolist() == pytest.approx([0.6, 0.6])


def test_the_cutoff_follows_the_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returns, "CUTOFF_SHARE", 0.7)
    state = watching(points=3, cutoff="adaptive")
    ages = state.curves.ages
    before = state.now[0].cutoff
    read_returns(state)
    assert state.now[0].cutoff == before == ages[-1]  # no answers yet
    curves_with(state, [100.0, 70.0, 20.0], [30.0, 50.0, 10.0])  # by the ages: 30, 80 and 90 of 100
    read_returns(state)
    assert state.now[0].cutoff == ages[1]  # 0.7 of 90 is 63
    fixed = watching(points=3, cutoff=7.0)
    curves_with(fixed, [100.0, 70.0, 20.0], [30.0, 50.0, 10.0])
    read_returns(fixed)
    assert fixed.now[0].cutoff == 7.0


def test_how_many_rounds_are_lost_at_the_end() -> None:
    state = watching(problem=BY_END, points=2, until_end=True)
    curves_with(state, [10.0, 8.0], [2.0, 4.0])
    state.now[0].round, state.now[0].clock = 30, 60.0
    read_returns(state)
    mean = (0.2 * 0.1 + 0.4 * 0.5 * (0.2 + 20.0)) / 0.6  # of the ages of answers, in the middle of their intervals
    assert state.now[0].lost_rounds == int(mean / 2.0)


def test_tau_of_the_oracle_is_what_is_given() -> None:
    table = np.linspace(0.0, 0.9, 31)[None, None, :] * np.array([1.0, 0.5, 0.2])[None, :, None]
    options = policy("doral", **{**GREEDY, "return_probability": "oracle", "learner": "scaled", "cutoff": 6.0})
    state = first(options, oracle=table)
    read_returns(state)
    for context in (0, 1):
        assert state.tau[context, :3].tolist() == table[0, :, 20].tolist()  # at the deadline
        assert state.thinning[context].tolist() == table[0, :, 6].tolist()  # at the cut-off
    state.now[0].cutoff = math.inf
    read_returns(state)
    assert state.thinning[0].tolist() == table[0, :, -1].tolist()  # constant beyond the table
    assert not state.tau_error[:, :3].any()


def test_where_every_answer_returns_tau_is_one() -> None:
    state = watching(return_probability="one")
    read_returns(state)
    assert (state.tau[:, :3] == 1.0).all()


def test_without_a_measured_noise_the_factor_of_silent_feedback_takes_it_for_one() -> None:
    state = watching("doral", small_problem(feedback="silent"), learner="scaled", prior="fixed")
    state.ridge.estimate[:2, :3], state.tally[0], state.tally[1] = 0.5, 40.0, 4.0
    read_returns(state)
    prior = 1 / FACTOR_PRIOR_SD**2
    assert state.tau[0, 0] == pytest.approx((prior + 2 * 4.0 * 0.5) / (prior + 2 * 40.0 * 0.25))


def test_silent_feedback_gives_the_factor_by_which_rewards_fall_short() -> None:
    state = watching("doral-otf", small_problem(feedback="silent"), learner="scaled")
    state.ridge.estimate[:2, :3] = [[0.5, 0.4, 0.3], [0.2, 0.6, 0.1]]
    state.tally[0], state.tally[1] = 40.0, [[10.0, 4.0, 0.0], [5.0, 9.0, 1000.0]]
    state.prior.scale[0] = 0.25
    read_returns(state)
    estimate = state.ridge.estimate[:2, :3]
    top = 1 / FACTOR_PRIOR_SD**2 + (state.tally[1] * estimate / 0.25).sum(axis=0)
    bottom = 1 / FACTOR_PRIOR_SD**2 + (state.tally[0] * estimate**2 / 0.25).sum(axis=0)
    expected = np.clip(top / bottom, 0.01, 2.0)
    assert expected[2] == 2.0  # more than could be
    for context in (0, 1):
        assert state.tau[context, :3].tolist() == pytest.approx(expected.tolist())
        assert state.tau_error[context, :3].tolist() == pytest.approx((1 / np.sqrt(bottom)).tolist())
        assert state.thinning[context].tolist() == pytest.approx(expected.tolist())  # the learner is scaled by it


# --- outcomes whose delays differ ------------------------------------------------------------------------------------


def splitting() -> State:
    words: dict[str, Any] = {"cutoff": None, "curves_by": "arm", "points": 3, "start_share": 0.0}
    state = watching("doral-otf", outcome_split=0.5, **words)
    state.barrier[:, 1:3] = -np.inf
    return state


def test_an_answer_weighs_what_its_kind_weighs_at_the_age_of_its_decision() -> None:
    state = splitting()
    ages = state.curves.ages
    state.outcomes[WEIGHT, HIGH, 0] = [0.2, 0.4, 0.6, 1.0]
    state.outcomes[WEIGHT, LOW, 0] = [3.0, 2.0, 1.5, 1.0]
    for number, (reward, expected) in enumerate([(0.9, 0.5 * (0.4 + 0.6)), (0.5, 0.5 * (2.0 + 1.5))]):
        play(state, 0, 1.0)
        assert observe(state, number, reward, 1.0 + 0.5 * (ages[0] + ages[1])) == LEARNED  # between two ages
        assert state.ring[number].weight == pytest.approx(expected)
    assert outcome_weight(state, 0, 25.0) == 1.0  # beyond all ages
    state.now[0].cutoff = ages[1]  # a decision that has left it grows no older for its weight
    for age in (ages[1], 25.0):
        assert outcome_weight(state, 0, age) == 0.6


def test_answers_enter_the_tally_with_their_weights() -> None:
    state = splitting()
    state.outcomes[WEIGHT, HIGH, 0] = 0.25
    play(state, 1, 1.0)
    observe(state, 0, 0.8, 2.0)
    assert state.tally[:, 1, 0].tolist() == pytest.approx([0.25, 0.25 * 0.8, 0.25 * 0.64])
    assert state.ridge.weight[1, 0] == pytest.approx(0.25)


def test_passing_an_age_counts_the_kind_and_weighs_the_answer_anew() -> None:
    state = splitting()
    play(state, 1, 1.0)
    observe(state, 0, 0.8, 1.1)
    assert state.ring[0].weight == 1.0
    state.outcomes[WEIGHT, HIGH, 0] = 0.5
    state.now[0].clock = 4.0
    watch(state)
    passed = int((state.curves.ages < 3.0).sum())
    by, inside = state.outcomes[BY, HIGH, 0], state.outcomes[INSIDE, HIGH, 0]
    assert by.tolist() == [1.0] * passed + [0.0] * (by.size - passed)
    assert inside.sum() == 1.0
    assert inside[0] == 1.0
    assert not state.outcomes[:2, LOW].any()
    assert state.ring[0].weight == pytest.approx(0.5)
    assert state.tally[:, 1, 0].tolist() == pytest.approx([0.5, 0.5 * 0.8, 0.5 * 0.64])
    rebuild_rewards(state)
    assert state.ridge.weight[1, 0] == pytest.approx(0.5)


def test_each_decision_passes_an_age_as_what_it_is() -> None:
    state = splitting()
    for number, reward in enumerate((0.8, 0.1, 0.9)):
        play(state, 0, 1.0 + 0.01 * number)
        observe(state, number, reward, 1.05 + 0.01 * number)
    state.now[0].clock = 4.0
    watch(state)
    assert state.outcomes[BY, :, 0, 0].tolist() == [1.0, 2.0]  # of the low kind, and of the high


def test_weights_are_set_when_curves_are_read() -> None:
    state = splitting()
    state.outcomes[BY, :, 0, :3] = [[10.0, 20.0, 40.0], [30.0, 35.0, 40.0]]
    state.outcomes[INSIDE, :, 0, :3] = [[10.0, 10.0, 20.0], [30.0, 5.0, 5.0]]
    read_returns(state)
    weight = state.outcomes[WEIGHT, :, 0]
    assert (weight[LOW, :2] > 1.0).all()  # the low kind is slow: what has come of it stands for more
    assert (weight[HIGH, :2] < 1.0).all()
    assert (weight[:, 3] == 1.0).all()


def test_an_answer_that_is_too_old_to_be_weighed_teaches_nothing() -> None:
    state = watching("doral-otf", outcome_split=0.5, cutoff=100.0)
    play(state, 0, 1.0)
    observe(state, 0, 0.8, 22.0)  # beyond the deadline, inside the cut-off
    assert state.tally.sum() == 0.0
    assert state.ring[0].reward == 0.8  # though it tells when its kind returns
