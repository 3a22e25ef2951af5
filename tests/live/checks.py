"""What must be true of a campaign at any time, recomputed from its decisions one by one."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from doral.live.campaign import Campaign
from doral.live.kinds.expire import Expire
from doral.live.runtime.replay import replay
from doral.live.state.state import CampaignState
from doral.live.views.decision import Decision
from tests.live.tapes import same_bits


def fold_of(campaign: Campaign) -> CampaignState:
    return campaign._session.read(lambda _, fold: fold)


def expire_as_before(campaign: Campaign, now: object = None, *, release: bool) -> int:
    """As versions did whose callers said whether the cost comes back: their logs hold such events."""

    class ExpireAsBefore(Expire):
        def validate(self, state: CampaignState, log: Any, stamp: Any) -> Any:
            events, count = super().validate(state, log, stamp)
            return [replace(event, is_released=release) for event in events], count  # type: ignore[call-arg]

    return int(campaign.session.write(ExpireAsBefore(now, None)))


def adds_up(campaign: Campaign) -> list[Decision]:
    """The ledger and the counts, against the decisions themselves."""
    ledger = campaign.ledger()
    assert ledger.spent + ledger.reserved + ledger.left == ledger.total
    assert ledger.left >= 0
    decisions = list(campaign.decisions())
    paid = [one for one in decisions if one.is_in_ledger]
    pending = [Decimal(repr(one.cost)) for one in paid if one.state == "pending"]
    settled = [Decimal(repr(one.actual_cost)) for one in paid if one.actual_cost is not None]
    assert ledger.reserved == sum(pending)
    assert ledger.spent == sum(settled)
    report = campaign.report()
    assert report.ledger == ledger
    assert sum(report.decisions.values()) == len(decisions)
    assert len(paid) == report.arrivals
    for state, count in report.decisions.items():
        assert count == sum(one.state == state for one in decisions)
    fold_of(campaign).check()
    return decisions


def log_is_whole(campaign: Campaign) -> None:
    """Numbers without gaps, keys once, and the whole log, folded from its beginning, gives the state that is in use."""

    def look(log: object, fold: CampaignState) -> None:
        events = []
        last = 0
        while page := log.after(last):  # type: ignore[attr-defined]
            events += page
            last = page[-1].sequence
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        keys = [event.key_hash for event in events if event.key_hash is not None]
        assert len(keys) == len(set(keys))
        again = CampaignState(fold.definition, fold.names.tag)
        again.head = again.salt = events[0].chain or b""
        if events[1:]:
            replay(again, events[1:])
        differ = same_bits(again.engine.state, fold.engine.state)
        assert not differ, differ
        assert again.to_json() == fold.to_json()

    campaign._session.read(look)
