"""Amendments: cancellations, corrections, and changes of budget, horizon and arms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from doral._arrays import leaves, replace_leaves
from doral.engine.engine import Engine
from doral.engine.events import cancel, correct, observe, recompute, refresh, tick, watch
from doral.engine.options import POLICY_NAMES, policy, policy_of
from doral.engine.race import ACCEPTED, RACING
from doral.engine.setup import Blueprint, first_state, widened
from doral.engine.state import RESERVED, SPENT, State
from doral.problem import Arm, Context, Problem
from tests.engine.interpreted import (
    ALL_ARMS,
    COSTS,
    SEED,
    Player,
    as_arrays,
    as_python,
    decide,
    first,
    small_problem,
    state_of,
)

pytestmark = pytest.mark.usefixtures("interpreted")

GREEDY: dict[str, Any] = {"screening": "none", "pacing": "greedy", "until_end": False}


def deciding(learner: str = "returned", **options: Any) -> State:
    return state_of("doral", **{**GREEDY, "learner": learner, "cutoff": 5.0, **options})


def play(state: State, context: int, clock: float) -> int:
    tick(state, clock)
    arm = int(decide(state, context, ALL_ARMS).arm)
    assert arm >= 0
    return arm


def learned(state: State) -> dict[str, Any]:
    """What has been learned of rewards and returns."""
    return {name: array.copy() for name, array in leaves(as_arrays(state)) if name.split(".")[0] in ("ridge", "tally")}


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for name, array in ours.items():
        if name.removeprefix("ridge.") not in ("updates", "is_touched", "direction", "shadow", "scratch"):
            np.testing.assert_allclose(array, theirs[name], rtol=1e-12, atol=1e-14, err_msg=name)


# --- cancel ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "pending", "is_settled"),
    [
        ("returned", "ignored", False),
        ("returned", "ignored", True),
        ("returned", "expected", False),
        ("returned", "expected", True),
        ("thinned", "ignored", False),
        ("thinned", "ignored", True),
        ("scaled", "ignored", False),
        ("scaled", "ignored", True),
        ("scaled", "expected", False),
        ("early", "ignored", False),
        ("early", "ignored", True),
        ("early", "expected", False),
        ("early", "expected", True),
    ],
)
def test_a_cancelled_decision_leaves_no_trace(learner: str, pending: str, is_settled: bool) -> None:
    state = deciding(learner, pending=pending)
    budget, before = state.now[0].budget_left, learned(state)
    arm = play(state, 1, 1.0)
    if is_settled:
        tick(state, 9.0)
    cancel(state, 0, 1, arm, float(state.list_costs[0, arm]), False, 9.0)
    assert state.now[0].budget_left == budget
    assert not state.tiers[SPENT].any()
    assert state.contexts[1].pulls == 0.0
    assert math.isnan(state.ring[0].answer_age)
    assert_same(learned(state), before)


@pytest.mark.parametrize("by", ["arm", "context"])
def test_a_cancelled_decision_was_never_at_risk(by: str) -> None:
    cancelled, alone = deciding(curves_by=by), deciding(curves_by=by)
    for state in (cancelled, alone):
        state.barrier[:, 1:3] = -np.inf  # always the same arm
        play(state, 1, 1.0)
    play(cancelled, 1, 2.0)
    for state in (cancelled, alone):
        tick(state, 9.0)
        watch(state)
    assert (cancelled.curves.at_risk > alone.curves.at_risk).any()
    cancel(cancelled, 1, 1, 0, float(cancelled.list_costs[0, 0]), False, 9.0)
    for clock in (9.0, 90.0):  # neither now nor later
        for state in (cancelled, alone):
            tick(state, clock)
            watch(state)
        assert (cancelled.curves.at_risk == alone.curves.at_risk).all()
    assert alone.curves.at_risk.any()


@pytest.mark.parametrize("clock", [2.5, 9.0, 18.0, 60.0])
def test_a_cancelled_decision_was_no_trial(clock: float) -> None:
    """Open, settled, or no longer watched: neither in the trials nor in the norms that count open decisions."""
    words: dict[str, Any] = {"pending": "expected", "prior": "noise", "curves_by": "context"}
    cancelled, alone = deciding("early", **words), deciding("early", **words)
    for state in (cancelled, alone):
        state.barrier[:, 1:3] = -np.inf  # always the same arm
        play(state, 1, 1.0)
    play(cancelled, 1, 2.0)
    for state in (cancelled, alone):
        tick(state, clock)
        watch(state)
    cancel(cancelled, 1, 1, 0, float(cancelled.hulls.costs[0, 0]), False, clock)
    for later in (clock, 25.0, 90.0):
        for state in (cancelled, alone):
            tick(state, max(later, clock))
            watch(state)
            state.now[0].must_read = 1
            refresh(state)
        assert (cancelled.silence.passed == alone.silence.passed).all()
        assert_same(learned(cancelled), learned(alone))
    assert alone.tally[0, 1, 0] == 1.0  # the deadline is over
    assert alone.ridge.weight[3, 0] == 1.0


@pytest.mark.parametrize("learner", ["thinned", "scaled"])
def test_of_two_decisions_one_is_cancelled(learner: str) -> None:
    state, alone = deciding(learner), deciding(learner)
    for one in (state, alone):
        one.barrier[:, 1:3] = -np.inf
        play(one, 1, 1.0)
    play(state, 1, 1.5)
    for one in (state, alone):
        tick(one, 9.0)
    cancel(state, 1, 1, 0, float(state.list_costs[0, 0]), False, 9.0)
    assert_same(learned(state), learned(alone))
    assert alone.ridge.weight[1, 0] == 1.0


def test_counts_do_not_go_below_zero() -> None:
    state = deciding("thinned")
    cancel(state, 0, 1, 2, float(state.list_costs[0, 2]), False, 9.0)
    assert state.contexts[1].pulls == 0.0
    assert state.ridge.weight[1, 2] == 0.0


# --- correct ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["returned", "thinned", "scaled", "early"])
@pytest.mark.parametrize("is_settled", [False, True])
def test_a_corrected_reward_is_as_if_it_had_been_right_at_once(learner: str, is_settled: bool) -> None:
    corrected, right = deciding(learner), deciding(learner)
    for state, reward in ((corrected, 0.2), (right, 0.9)):
        state.thinning[:] = 0.5 if learner == "scaled" else 1.0
        play(state, 1, 1.0)
        observe(state, 0, reward, 3.0)
        if is_settled:
            tick(state, 9.0)
    assert (corrected.ridge.target != right.ridge.target).any() or (learner == "scaled" and not is_settled)
    correct(corrected, 0, 1, corrected.ring[0].arm, 0.2, 0.9)
    tick(corrected, 20.0)
    tick(right, 20.0)
    assert_same(learned(corrected), learned(right))


@pytest.mark.parametrize("learner", ["returned", "early"])
def test_a_correction_counts_for_what_is_still_remembered(learner: str) -> None:
    state = deciding(learner, half_life=10.0)
    arm = play(state, 1, 1.0)
    observe(state, 0, 0.2, 3.0)
    state.now[0].read_last = 20
    correct(state, 0, 1, arm, 0.2, 0.9)
    assert state.ridge.target[1, arm] == pytest.approx(0.9 * 0.25)
    state.now[0].first = 1
    correct(state, 0, 1, arm, 0.9, 0.2)  # too old to be watched
    assert state.ridge.target[1, arm] == pytest.approx(0.9 * 0.25)


def test_with_a_half_life_trials_and_answers_fade_alike() -> None:
    state = deciding("early", half_life=10.0, prior="noise")
    state.barrier[:, 1:3] = -np.inf
    play(state, 1, 1.0)
    observe(state, 0, 0.8, 3.0)
    tick(state, 30.0)
    watch(state)
    state.now[0].must_read = 1
    refresh(state)
    state.now[0].round = 21
    before = {name: state.tally[i, 1, 0] for i, name in enumerate(("count", "reward", "square"))}
    assert before["count"] == pytest.approx(0.5 ** (1 / 10))
    state.now[0].must_read = 1
    refresh(state)
    for i, name in enumerate(("count", "reward", "square")):
        assert state.tally[i, 1, 0] == pytest.approx(before[name] * 0.25)


def test_when_the_only_success_was_a_mistake_cells_are_as_before_any_data() -> None:
    wrong, never = (state_of("doral-otf", small_problem(feedback="silent"), until_end=False) for _ in range(2))
    players = [Player(wrong), Player(never)]
    for clock in range(1, 41):
        for player in players:
            player.decide(clock % 2, float(clock))
        if clock == 10:
            made = wrong.ring[3]
            players[0].answer(3, 1.0, 9.0)
            context, arm = made.context, made.arm
    assert wrong.ridge.deviation.any()
    correct(wrong, 3, context, arm, 1.0, 0.0)
    for player in players:
        player.pass_time(40.0)
    for name in ("deviation", "noisiness", "effect", "effect_variance", "offset", "precision"):
        assert (getattr(wrong.ridge, name) == getattr(never.ridge, name)).all(), name


def test_a_correction_weighs_what_the_answer_weighs() -> None:
    state = deciding(outcome_split=0.5)
    play(state, 0, 1.0)
    arm = play(state, 1, 1.0)
    observe(state, 1, 0.2, 3.0)
    state.ring[1].weight = 3.0
    correct(state, 1, 1, arm, 0.2, 0.9)
    assert state.ridge.target[1, arm] == pytest.approx(0.2 + 3.0 * 0.7)
    assert state.ring[1].reward == 0.9  # from now on it is of the high kind


# --- budget and horizon ----------------------------------------------------------------------------------------------


@pytest.fixture
def engine() -> Engine:
    """Return an engine that reserves half of its budget for the urgent context."""
    problem = small_problem(contexts=[Context("x", 0.6), Context("y", 0.4, tier=1)], reserves={1: 0.5})
    return Engine(Blueprint(options=policy("doral-otf"), problem=problem, seed=SEED))


def test_a_refund_goes_back_to_the_budget_and_its_depth(engine: Engine) -> None:
    engine.state.tiers[SPENT] = [4.0, 6.0]
    engine.give_back(0, 1.5)
    engine.give_back(1, -0.5)
    assert engine.budget_left == 51.0
    assert engine.state.tiers[SPENT].tolist() == [4.5, 4.5]


def test_more_budget_reserves_more(engine: Engine) -> None:
    engine.top_up(10.0)
    assert (engine.state.now["budget"][0], engine.budget_left) == (60.0, 60.0)
    assert engine.state.tiers[RESERVED].tolist() == pytest.approx([0.0, 30.0])


def test_decimal_amounts_add_up_exactly(engine: Engine) -> None:
    for _ in range(10):
        engine.top_up(0.1)
    now = engine.state.now
    assert math.fsum((engine.budget_left, now["budget_rest"][0], now["budget_dust"][0])) == 51.0


def test_more_arrivals_are_expected(engine: Engine) -> None:
    engine.extend(20)
    assert (engine.horizon, engine.state.now["must_read"][0]) == (120, 1)


# --- arms ------------------------------------------------------------------------------------------------------------


def test_a_retired_arm_is_out_for_good(engine: Engine) -> None:
    engine.state.now["must_read"] = 0
    engine.retire(0)
    assert (engine.state.barrier[:, 0] == -np.inf).all()
    assert (engine.state.barrier[:, 1:3] == 0.0).all()
    assert (engine.state.now["must_read"][0], engine.state.now["n_stale"][0]) == (1, 2)
    offered = np.zeros((1, 0), dtype=np.uint8)
    assert 0 not in {engine.decide(clock % 2, offered, float(clock)).arm for clock in range(1, 40)}


def test_an_arm_is_retired_once(engine: Engine) -> None:
    engine.retire(0)
    engine.state.now["must_read"] = 0
    engine.retire(0)
    assert engine.state.now["must_read"][0] == 0


def wider(problem: Problem) -> Problem:
    return Problem(
        arms=[*problem.arms, Arm("d", features=[0.8, 0.3], cost=1.5)],
        contexts=problem.contexts,
        budget=problem.budget,
        horizon=problem.horizon,
        deadline=problem.deadline,
        feedback=problem.feedback,
    )


def with_one_more(state: State, name: str, problem: Problem | None = None) -> State:
    """As `Engine.add_arm` does it."""
    narrow = problem or small_problem()
    before, after = (
        first_state(
            Blueprint(options=policy_of(name, {}), problem=one, seed=SEED, oracle=np.full((1, one.n_arms, 30), 0.5))
        )
        for one in (narrow, wider(narrow))
    )
    state = as_python(widened(as_arrays(state), before, after))
    recompute(state)
    return state


@pytest.mark.parametrize("name", [name for name in POLICY_NAMES if name not in ("doral/literal", "oracle")])
def test_with_one_more_arm_the_others_are_known_as_before(name: str) -> None:
    player = Player(first(policy_of(name, {})))
    rng = np.random.default_rng(1)
    for clock in range(1, 60):
        player.decide(int(rng.integers(2)), float(clock))
        if clock % 2:
            player.answer(player.state.now[0].next - 1, float(rng.normal(0.5, 0.1)), clock + 0.5)
    old = player.state
    new = with_one_more(old, name)
    assert new.allowed.size == 4
    for part in ("weight", "target"):
        assert (getattr(new.ridge, part)[:, :3] == getattr(old.ridge, part)).all()
        assert not getattr(new.ridge, part)[:, 3].any()
    assert (new.tally[:, :, :3] == old.tally).all()
    assert not new.tally[:, :, 3].any()
    n_rows = old.curves.at_risk.shape[0] // 3
    for part in ("at_risk", "returned"):
        ours, theirs = (getattr(one.curves, part).reshape(n_rows, n, -1) for one, n in ((new, 4), (old, 3)))
        assert (ours[:, :3] == theirs).all()
        assert not ours[:, 3].any()
    assert new.ridge.features[3, -2:].tolist() == ([] if policy_of(name, {}).features == "none" else [0.8, 0.3])
    assert new.hulls.costs.tolist() == [[*COSTS.tolist(), 1.5]]
    assert new.now[0].n_stale == 2
    again = Player(new)
    arms = {again.decide(int(rng.integers(2)), float(clock)).arm for clock in range(60, 90)}
    assert max(arms) <= 3


def test_with_one_more_arm_what_came_in_silence_stays() -> None:
    """Trials, answers and cells of the others are as they were; the new arm has none of its own, and is tried first."""
    problem = small_problem(feedback="silent", budget=500.0, horizon=1000)
    player = Player(first(policy("doral-otf", start_share=0.05), problem))
    rng = np.random.default_rng(1)
    for clock in range(1, 200):
        made = player.decide(int(rng.integers(2)), float(clock))
        if made.arm >= 0 and rng.random() < 0.4:
            player.answer(player.state.now[0].next - 1, 1.0, clock + 0.5)
    old = player.state
    assert old.start.is_open[0] == 0.0
    new = with_one_more(old, "doral-otf", problem)
    assert (new.silence.passed[:, :3] == old.silence.passed).all()
    assert (new.silence.counts[:, :3] == old.silence.counts).all()
    assert not new.silence.passed[:, 3].any()
    assert not new.silence.counts[:, 3].any()
    assert (new.silence.shares[3] == 1.0).all()  # until the next refresh
    assert new.ridge.deviation.shape == (2, 4)
    assert np.isfinite(new.ridge.estimate).all()
    assert np.isfinite(new.ridge.norm).all()
    assert (new.ridge.norm[:2, 3] > new.ridge.norm[:2, :3].max(axis=1)).all()
    again = Player(new)
    assert {again.decide(1, float(clock)).arm for clock in range(200, 204)} - {-1} == {3}
    assert again.state.silence.passed[1, 3, 0] >= 1.0


@pytest.mark.parametrize("is_racing", [True, False])
def test_a_new_arm_joins_a_race_that_runs_and_is_accepted_after_it(is_racing: bool) -> None:
    state = state_of("doral")
    state.now[0].racing = is_racing
    new = with_one_more(state, "doral")
    assert new.race.arms[3].standing == (RACING if is_racing else ACCEPTED)
    assert (new.barrier[:, 3] == (-np.inf if is_racing else 0.0)).all()


# --- arrays by name --------------------------------------------------------------------------------------------------


def test_every_array_has_a_name_and_can_be_exchanged() -> None:
    state = as_arrays(state_of("doral"))
    names = [name for name, _ in leaves(state)]
    assert len(names) == len(set(names))
    assert {"now", "ring", "ridge.weight", "race.delays.sums", "hulls.edges.slope"} <= set(names)
    other = np.full_like(state.ridge.weight, 7.0)
    changed = replace_leaves(state, {"ridge.weight": other})
    assert changed.ridge.weight is other
    assert type(changed) is type(state)
    assert changed.ridge.target is state.ridge.target
