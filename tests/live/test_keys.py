"""A key stands for one request, for ever: also for one that changed nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.errors import KeyReused
from doral.live.store import Store
from tests.live.checks import adds_up, fold_of, log_is_whole


@pytest.fixture
def campaign(store: Store) -> Campaign:
    problem = doral.Problem(
        arms=[doral.Arm("a", features=[1.0, 0.0]), doral.Arm("b", features=[0.0, 1.0], cost=0.5)],
        contexts=["old", "young"],
        budget=1_000,
        horizon=1_000,
        deadline=50,
    )
    return store.create("kits", problem, policy="d-linucb", seed=1, clock="rounds")


def refused(campaign: Campaign, act: Callable[..., Any], **asked: Any) -> None:
    before = fold_of(campaign).to_json()
    with pytest.raises(KeyReused, match="'k'"):
        act(**asked)
    assert fold_of(campaign).to_json() == before


def test_a_decision(campaign: Campaign) -> None:
    first = campaign.decide("old", available=["a"], key="k", at=3)
    assert campaign.decide("old", available=["a"], key="k", at=3) == first
    for other in (
        {"available": None, "at": 3},
        {"available": ["b"], "at": 3},
        {"available": ["a", "b"], "at": 3},
        {"available": [], "at": 3},
        {"available": ["a"], "at": 4},
        {"available": ["a"]},
    ):
        refused(campaign, campaign.decide, context="old", key="k", **other)
        refused(campaign, campaign.decide_many, arrivals=["old", {"context": "old", "key": "k", **other}])
    campaign.add_arm(doral.Arm("c", features=[1.0, 1.0]))
    assert campaign.decide("old", available=["a"], key="k", at=3) == first
    assert [one.id for one in campaign.decide_many([{"context": "old", "available": ["a"], "key": "k", "at": 3}])] == [
        first.id
    ]


def test_the_same_key_with_other_content_in_one_batch(campaign: Campaign) -> None:
    batch: list[Any] = [{"context": "old", "key": "k"}, {"context": "old", "key": "k", "available": ["a"]}]
    refused(campaign, campaign.decide_many, arrivals=batch)
    made = campaign.decide_many(["old"] * 2)
    answers = [
        {"decision_id": made[0].id, "reward": 1.0, "key": "k"},
        {"decision_id": made[1].id, "reward": 1.0, "key": "k"},
    ]
    refused(campaign, campaign.feedback_many, answers=answers)
    assert {one.state for one in campaign.decisions()} == {"pending"}


@pytest.mark.parametrize("act", ["feedback", "correct"])
def test_an_answer(campaign: Campaign, act: str) -> None:
    made = campaign.decide("old")
    if act == "correct":
        campaign.feedback(made.id, 0.1)
    call = getattr(campaign, act)
    said = {"decision_id": made.id, "reward": 0.5, "actual_cost": 0.25, "at": 2, "key": "k"}
    first = call(**said)
    assert call(**said) == first
    for other in ({"reward": 0.6}, {"actual_cost": 0.3}, {"actual_cost": None}, {"at": 1}, {"at": None}):
        refused(campaign, call, **{**said, **other})
    refused(campaign, campaign.cancel, decision_id=made.id, key="k")


def test_the_key_of_an_answer_that_was_known_already(campaign: Campaign) -> None:
    made, other = campaign.decide_many(["old"] * 2)
    campaign.feedback(made.id, 0.5)
    assert campaign.feedback(made.id, 0.5, key="k").reward == 0.5
    assert campaign.feedback(made.id, 0.5, key="k").reward == 0.5
    refused(campaign, campaign.feedback, decision_id=other.id, reward=0.5, key="k")
    refused(campaign, campaign.correct, decision_id=made.id, reward=0.7, key="k")
    assert campaign.decision(other.id).state == "pending"
    campaign._session.close()
    refused(campaign, campaign.cancel, decision_id=other.id, key="k")
    assert campaign.report().decisions["returned"] == 1
    adds_up(campaign)
    log_is_whole(campaign)


def test_the_key_of_a_correction_that_changed_nothing(campaign: Campaign) -> None:
    made, other = campaign.decide_many(["old"] * 2)
    campaign.feedback_many([(made.id, 0.5), (other.id, 0.5)])
    campaign.correct(made.id, 0.5, key="k")
    refused(campaign, campaign.correct, decision_id=other.id, reward=0.7, key="k")
    assert campaign.report().corrections == 0


def test_the_key_of_a_cancellation_that_was_made_already(campaign: Campaign) -> None:
    made, other = campaign.decide_many(["old"] * 2)
    campaign.cancel(made.id)
    campaign.cancel(made.id, key="k")
    campaign.cancel(made.id, key="k")
    refused(campaign, campaign.cancel, decision_id=other.id, key="k")
    refused(campaign, campaign.cancel, decision_id=made.id, key="k", at=1)
    assert campaign.decision(other.id).state == "pending"


def test_the_key_of_an_arm_that_was_there_already(campaign: Campaign) -> None:
    arm = doral.Arm("a", features=[1.0, 0.0])
    campaign.add_arm(arm, key="k")
    campaign.add_arm(arm, key="k")
    refused(campaign, campaign.add_arm, arm=doral.Arm("c", features=[1.0, 1.0]), key="k")
    refused(campaign, campaign.top_up, amount=5, key="k")
    assert fold_of(campaign).problem.n_arms == 2


def test_a_change(campaign: Campaign) -> None:
    campaign.top_up(5, key="k")
    campaign.top_up(5, key="k")
    refused(campaign, campaign.top_up, amount=6, key="k")
    refused(campaign, campaign.extend, rounds=5, key="k")
    assert float(campaign.ledger().total) == 1_005


def test_one_visit_may_have_one_key_for_all(campaign: Campaign) -> None:
    made = campaign.decide("old", key="visit-1")
    campaign.feedback(made.id, 0.5, key="visit-1")
    campaign.top_up(1, key="visit-1")
    assert campaign.decision(made.id).reward == 0.5
