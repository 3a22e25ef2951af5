"""A dry run says what the next decision will be, and changes nothing."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import doral
from doral.live.errors import CampaignClosed
from doral.live.store import Store
from doral.live.views.decision import SERVED
from tests.live import people
from tests.live.checks import fold_of, log_is_whole
from tests.live.test_campaign import everything, make

SHOWN = ("context", "arm", "cost", "value", "price", "return_here", "probability", "reason_code", "reason")


@pytest.mark.parametrize("policy", ["doral-otf", "doral", "d-linucb", "d-lints", "random"])
def test_it_says_what_the_next_decision_will_be(store: Store, policy: str) -> None:
    campaign = make(store, policy=policy, budget=25.0, horizon=120)
    rng, skipped = random.Random(3), 0
    for _ in range(110):
        context = rng.choice(["old", "young"])
        available = rng.choice([None, ["a"], ["a", "c"], []])
        before = everything(campaign)
        said = campaign.preview(context, available)
        assert everything(campaign) == before
        made = campaign.decide(context, available)
        assert [getattr(said, name) for name in SHOWN] == [getattr(made, name) for name in SHOWN]
        skipped += made.arm is None
        if made.arm is not None and rng.random() < 0.6:
            campaign.feedback(made.id, rng.random())
    assert skipped > 20
    log_is_whole(campaign)


def test_it_leaves_the_state_as_it_is_to_the_bit(open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store("memory://"))
    made = people.busy(campaign, 60, 1)
    before = fold_of(campaign)
    arrays = {name: array.copy() for name, array in before.engine.arrays()}
    said = campaign.preview(made[0].context, features=made[0].features)
    assert said.context == made[0].context
    after = fold_of(campaign)
    assert after is before
    assert all(arrays[name].tobytes() == array.tobytes() for name, array in after.engine.arrays())


def test_options_are_valued_one_by_one(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"), policy=doral.policy("doral", screening="none"), budget=60.0, horizon=400)
    for _ in range(20):
        for one in campaign.decide_many(["old", "young"] * 5):
            if one.arm is not None:
                campaign.feedback(one.id, 0.9 if one.context == "old" else 0.1)
    campaign.pause_arm("b")
    said = campaign.preview("old")
    assert {one.arm for one in said.options} == {"a", "c"}  # those that can be had
    returns = [one.return_here for one in said.options]
    assert returns == sorted(returns, reverse=True)  # type: ignore[type-var]
    assert all(option.return_here == option.value / option.cost for option in said.options)
    if said.reason_code in SERVED:
        assert next(option.value for option in said.options if option.arm == said.arm) == said.value
    assert said.arm is None or said.arm in repr(said)
    assert "old" in said._repr_html_()


def test_what_decide_refuses_is_refused(store: Store) -> None:
    campaign = make(store)
    with pytest.raises(doral.UnknownName):
        campaign.preview("nowhere")
    with pytest.raises(doral.UnknownName):
        campaign.preview("old", ["nothing"])
    campaign.close()
    with pytest.raises(CampaignClosed):
        campaign.preview("old")
