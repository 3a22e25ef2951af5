"""A paused campaign skips everybody, says so, takes answers, and is the same when it is read again."""

from __future__ import annotations

import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.state.snapshot import decode_snapshot, encode_snapshot
from doral.live.store import Store
from tests.live.checks import adds_up, log_is_whole
from tests.live.test_own_policy import PATH

PROBLEM = doral.Problem(
    arms=[doral.Arm("letter"), doral.Arm("call", cost=3.0)],
    contexts=["old", "young"],
    budget=300.0,
    horizon=400,
    deadline=50,
)


def _codes(campaign: Campaign, many: int) -> set[str]:
    return {campaign.decide(("old", "young")[number % 2]).reason_code for number in range(many)}


@pytest.mark.parametrize("policy", ["doral-otf", "doral", "d-alp"])
def test_arrivals_are_skipped_until_it_is_resumed(store: Store, policy: str) -> None:
    campaign = store.create("kits", PROBLEM, policy=policy, clock="rounds", seed=1)
    made = [campaign.decide("old") for _ in range(20)]
    campaign.pause_arm("call")
    campaign.pause()
    assert campaign.report().is_paused
    assert campaign.facts().state == "paused"
    one = campaign.decide("old", key="k")
    assert (one.arm, one.reason_code, one.cost) == (None, "paused", 0.0)
    together = campaign.decide_many(["old", "young"] * 3)
    assert {(each.arm, each.reason_code) for each in together} == {(None, "paused")}
    assert campaign.preview("old").reason_code == "paused"
    assert campaign.preview("old").options[0].value >= 0.0
    waiting = [each.id for each in made if campaign.decision(each.id).state == "pending"]
    for each in waiting:
        campaign.feedback(each, 1.0)
    campaign.pause()  # it is so already
    campaign.resume()
    assert campaign.decide("old", key="k").reason_code == "paused"  # what was said is said again
    assert "paused" not in _codes(campaign, 20)
    assert {each.arm for each in campaign.decisions()} <= {None, "letter", "call"}
    before = campaign.report().to_dict()
    assert before["reasons"]["skipped: paused"] == 7
    assert [one.kind for one in campaign.facts().spending.changes] == ["arm paused", "paused", "resumed"]
    campaign.session.close()
    assert campaign.report().to_dict() == before
    assert campaign.verify().n_differences == 0
    adds_up(campaign)
    log_is_whole(campaign)


def test_a_snapshot_is_paused_as_well(store: Store) -> None:
    campaign = store.create("kept", PROBLEM, clock="rounds", seed=1)
    campaign.pause()
    definition, data = campaign.session.read(lambda _, state: (state.definition, encode_snapshot(state)))
    assert decode_snapshot(data, definition, campaign.session.row.tag).arms.is_paused


def test_a_policy_of_ones_own_is_not_asked() -> None:
    with doral.open("memory://", code={"kits": PATH}) as store:
        campaign = store.create("kits", PROBLEM, policy="own", clock="rounds", seed=3)
        _codes(campaign, 10)
        campaign.pause()
        assert _codes(campaign, 10) == {"paused"}
        campaign.resume()
        assert "paused" not in _codes(campaign, 10)
        before = [(one.arm, one.reason_code) for one in campaign.decisions()]
        campaign.session.close()
        assert campaign.verify().n_differences == 0
        assert [(one.arm, one.reason_code) for one in campaign.decisions()] == before


def test_a_closed_campaign_is_not_paused(store: Store) -> None:
    campaign = store.create("over", PROBLEM, clock="rounds", seed=1)
    campaign.close()
    with pytest.raises(doral.live.errors.CampaignClosed):
        campaign.pause()
