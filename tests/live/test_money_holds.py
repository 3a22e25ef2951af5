"""Whatever is added, recorded or told late: the budget holds, and what is paid follows the rules of the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from doral.engine.options import make_policy
from doral.estimators.shrinkage import DOUBT, NOISE
from doral.live.campaign import Campaign
from doral.live.errors import KeyReused, WrongState
from doral.live.store import Store
from doral.problem import Arm, Problem
from tests.live.checks import fold_of


def make(store: Store, policy: str = "d-linucb", seed: int | None = None, **changes: Any) -> Campaign:
    given: dict[str, Any] = {
        "arms": [Arm("small", cost=1), Arm("large", cost=10)],
        "contexts": ["x", "y"],
        "budget": 100,
        "horizon": 100,
        "deadline": 5,
        "paid": "on_answer",
    }
    return store.create("c", Problem(**(given | changes)), policy=policy, clock="rounds", seed=seed)


@pytest.mark.parametrize("cost", [30, {"x": 30, "y": 2}])
def test_an_arm_dearer_than_all_others_is_not_offered_beyond_the_budget(
    cost: Any, open_store: Callable[[str], Store]
) -> None:
    arms = [Arm("small", features=[1.0], cost=1), Arm("large", features=[1.0], cost=10)]
    campaign = make(open_store("memory://"), arms=arms, paid="always", budget=45)
    campaign.add_arm(Arm("huge", features=[9.0], cost=cost))
    spent = [campaign.decide("x").cost for _ in range(99)]
    assert spent[0] == 30.0
    assert 0.0 < sum(spent[1:]) <= 15.0
    fold_of(campaign).check()


def test_the_reserve_knows_the_dearest_arm_that_was_added(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"), policy="doral-otf", reserve=0.99)
    campaign.add_arm(Arm("huge", cost={"x": 30, "y": 2}))
    assert dearest_cost(campaign) == 30.0
    campaign.save_snapshot()
    campaign._session.close()
    assert dearest_cost(campaign) == 30.0


def dearest_cost(campaign: Campaign) -> float:
    state = fold_of(campaign).engine.state
    rows = range(state.dearest.size)
    return float(max(state.list_costs[row, state.dearest[row]] for row in rows))


def open_offer(campaign: Campaign) -> str:
    found = campaign.decide("x", available=["large"])
    assert found.arm == "large"
    return found.id


def wait(campaign: Campaign, rounds: int) -> None:
    for _ in range(rounds):
        campaign.decide("y", available=[])


@pytest.mark.parametrize("expires_first", [False, True])
@pytest.mark.parametrize(("at", "state", "cost"), [(3, "returned", 10.0), (None, "late", 0.0)])
def test_what_an_answer_costs_that_does_not_say_it_goes_by_when_it_came(
    expires_first: bool, at: int | None, state: str, cost: float, open_store: Callable[[str], Store]
) -> None:
    """And not by whether `expire` was called before it was told."""
    campaign = make(open_store("memory://"))
    offer = open_offer(campaign)
    wait(campaign, 9)
    if expires_first:
        assert campaign.expire() == 1
    told = campaign.feedback(offer, 1.0, at=at, key="visit")
    assert (told.state, told.actual_cost) == (state, cost)
    assert campaign.feedback(offer, 1.0, at=at, key="visit") == told  # the same request
    assert campaign.feedback(offer, 1.0).actual_cost == cost
    assert float(campaign.ledger().spent) == cost
    campaign._session.close()
    assert campaign.decision(offer).actual_cost == cost
    fold_of(campaign).check()


def test_an_answer_in_time_that_nothing_is_left_for_can_say_its_cost(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"), budget=10)
    offer = open_offer(campaign)
    wait(campaign, 9)
    campaign.expire()
    second = open_offer(campaign)
    with pytest.raises(WrongState, match="the budget has only 0.* left; say what was paid with actual_cost"):
        campaign.feedback(offer, 1.0, at=3)
    assert campaign.feedback(offer, 1.0, actual_cost=0, at=3).state == "returned"
    assert campaign.decision(second).state == "pending"


@pytest.mark.parametrize(
    ("said", "state", "cost"),
    [
        ({}, "expired", 0.0),  # nothing is paid for what is not answered
        ({"cost": 4}, "expired", 4.0),  # unless somebody says so
        ({"reward": 1, "answered_at": 3}, "returned", 10.0),
        ({"reward": 1, "answered_at": 3, "cost": 4}, "returned", 4.0),
        ({"reward": 1, "answered_at": 9}, "late", 0.0),
    ],
)
def test_a_record_costs_what_the_same_decision_would_have_cost_here(
    said: dict[str, Any], state: str, cost: float, open_store: Callable[[str], Store]
) -> None:
    campaign = make(open_store("memory://"))
    wait(campaign, 20)
    record = campaign.record("x", "large", at=1, spend=True, **said)
    assert (record.state, record.actual_cost) == (state, cost)
    assert float(campaign.ledger().spent) == cost
    fold_of(campaign).check()
    campaign._session.close()
    fold_of(campaign).check()


@pytest.mark.parametrize("spend", [False, True])
def test_records_teach_which_share_is_paid(spend: bool, open_store: Callable[[str], Store]) -> None:
    """A quarter is taken up at half of the list price: an eighth of it is paid, whoever paid it."""
    campaign = make(open_store("memory://"), policy="doral-otf", horizon=1000, budget=10_000)
    wait(campaign, 410)
    for at in range(1, 401):
        taken: dict[str, Any] = {"reward": 1.0, "answered_at": at + 2, "cost": 5.0}
        campaign.record("x", "large", at=at, spend=spend, **(taken if at % 4 == 0 else {}))
    wait(campaign, 40)
    fold = fold_of(campaign)
    fold.check()
    large = fold.problem.arm_index("large")
    assert fold.engine.state.costs.share[0, large] == pytest.approx(0.125, abs=0.02)
    assert float(campaign.ledger().spent) == (500.0 if spend else 0.0)
    assert fold.engine.state.costs.totals[0] == pytest.approx(0.0)  # nothing is open


def test_a_record_that_costs_nothing_is_taken_while_the_reserve_is_lent(open_store: Callable[[str], Store]) -> None:
    problem: dict[str, Any] = {
        "budget": 200,
        "horizon": 900,
        "deadline": 60,
        "reserve": 0.9,
        "arms": [Arm("large", cost=10)],
    }
    campaign = make(open_store("memory://"), policy="doral-otf", **problem)
    waiting: list[tuple[int, str]] = []
    for round_ in range(800):
        while waiting and waiting[0][0] <= round_:
            campaign.feedback(waiting.pop(0)[1], 0.0, actual_cost=0.0)
        one = campaign.decide("x")
        if one.arm is not None:
            waiting.append((round_ + 50, one.id))
        if campaign.ledger().left < 0:
            break
    assert campaign.ledger().left < 0
    assert campaign.record("x", "large", at=1, reward=1.0, answered_at=2).state == "returned"


@pytest.mark.parametrize("changes", [{}, {"paid": "always"}, {"baseline": "observed"}, {"reserve": 0.9}])
def test_a_free_arm_is_added(changes: dict[str, Any], open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"), policy="doral-otf", **changes)
    campaign.add_arm(Arm("letter", cost=0))
    letter = next(one for one in (campaign.decide("x") for _ in range(20)) if one.arm == "letter")
    assert (letter.cost, campaign.feedback(letter.id, 1.0).actual_cost) == (0.0, 0.0)
    campaign.save_snapshot()
    campaign._session.close()
    fold_of(campaign).check()


def test_with_a_half_life_what_was_paid_long_ago_is_forgotten(open_store: Callable[[str], Store]) -> None:
    """First every offer is taken up, then none."""
    options = make_policy("doral-otf", half_life=50.0)
    problem = Problem(
        arms=[Arm("small", cost=1)], contexts=["x"], budget=1e6, horizon=2000, deadline=5, paid="on_answer"
    )
    campaign = open_store("memory://").create("c", problem, policy=options, clock="rounds")
    shares = []
    for round_ in range(800):
        decision = campaign.decide("x")
        if decision.arm is not None:
            campaign.feedback(decision.id, 1.0 + round_ % 2, actual_cost=1.0 if round_ < 400 else 0.0)
        if round_ in (399, 799):
            shares.append(float(fold_of(campaign).engine.state.costs.share[0, 0]))
    assert shares[0] > 0.95
    assert shares[1] < 0.05


@pytest.mark.parametrize("spend", [True, False])
def test_a_record_that_is_sent_again_after_its_deadline_is_the_same(
    spend: bool, open_store: Callable[[str], Store]
) -> None:
    """While it may still be answered it costs the list price, and nothing later: that was never said."""
    campaign = make(open_store("memory://"))
    first = campaign.record("x", arm="large", at=0, key="k", spend=spend)
    wait(campaign, 20)
    assert campaign.record("x", arm="large", at=0, key="k", spend=spend).id == first.id
    with pytest.raises(KeyReused):
        campaign.record("x", arm="large", at=0, key="k", spend=spend, cost=3)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_arm_that_is_added_is_explored_by_how_many_it_is_for(seed: int, open_store: Callable[[str], Store]) -> None:
    """By those who are still to come and can be paid for, and no less than the arm that is known best."""
    arms = [Arm("small", features=[1.0, 0.0]), Arm("large", features=[0.0, 1.0])]
    campaign = make(open_store("memory://"), policy="doral-otf", seed=seed, arms=arms, paid="always", horizon=10_000)
    for i in range(40):
        made = campaign.decide("x")
        if made.arm is not None:
            campaign.feedback(made.id, 0.5 + 0.1 * (i % 3))
    campaign.add_arm(Arm("new", features=[1.0, 1.0]))
    engine = fold_of(campaign).engine
    state, scale = engine.state, engine.state.prior.scale
    payable = min(engine.horizon - 40, engine.budget_left)
    to_come = np.array(engine.shares)[:, None] * payable
    unknown = np.maximum(state.ridge.norm[2:, :3], 2.0 * state.tau_error[:, :3])
    tries = to_come * unknown**2 * scale[NOISE] / scale[DOUBT]
    assert state.ahead[:, :3] == pytest.approx(np.sqrt(np.log1p(tries / 2.3)))
    assert (state.ahead[:, 2] >= state.ahead[:, :2].min(axis=1)).all()
