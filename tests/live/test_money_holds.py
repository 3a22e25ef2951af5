"""Whatever is added, recorded or told late: the budget holds, and what is paid follows the rules of the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from doral.live.campaign import Campaign
from doral.live.store import Store
from doral.problem import Arm, Problem
from tests.live.checks import fold_of


def make(store: Store, policy: str = "d-linucb", **changes: Any) -> Campaign:
    given: dict[str, Any] = {
        "arms": [Arm("small", cost=1), Arm("large", cost=10)],
        "contexts": ["x", "y"],
        "budget": 100,
        "horizon": 100,
        "deadline": 5,
        "paid": "on_answer",
    }
    return store.create("c", Problem(**(given | changes)), policy=policy, clock="rounds")


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
    assert fold_of(campaign).engine.state.costs.dearest == 30.0
    campaign.save_snapshot()
    campaign._session.close()
    assert fold_of(campaign).engine.state.costs.dearest == 30.0
