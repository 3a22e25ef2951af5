"""Where a campaign stands, in a few numbers out of its state: nothing of the log is read for it."""

from __future__ import annotations

from typing import Any

from doral.engine.explain import view_forecast
from doral.live.campaign import Campaign
from doral.live.events.event import ARM_STATUS_NAMES, IS_PENDING
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log


def summary(name: str, now: CampaignState) -> dict[str, Any]:
    """Members of `models.campaigns.Summary`."""
    engine, ledger = now.engine, now.ledger
    ahead = view_forecast(engine.state)
    return {
        "name": name,
        "created_at": now.definition.created_at,
        "state": now.stage,
        "policy": now.definition.policy.name,
        "clock": now.definition.clock,
        "events": now.sequence,
        "arrivals": now.round,
        "horizon": engine.horizon if ahead is None else now.round + round(ahead.expected),
        "ends_at": None if engine.until is None else now.definition.epoch + engine.until,
        "total": float(ledger.total),
        "spent": float(ledger.spent),
        "reserved": float(ledger.reserved),
        "left": float(ledger.left),
        "reward": float(now.counts.reward),
        "pending": now.counts.states[IS_PENDING],
    }


def shown(campaign: Campaign) -> dict[str, Any]:
    """Members of `models.campaigns.CampaignShown`."""

    def look(_: Log, now: CampaignState) -> dict[str, Any]:
        definition = now.definition
        statuses = zip(now.problem.arm_names, now.arms.status, strict=True)
        return {
            "name": campaign.name,
            "summary": summary(campaign.name, now),
            "problem": now.problem.to_dict(),
            "policy": definition.policy.to_dict(),
            "seed": definition.seed,
            "clock": definition.clock,
            "created_at": definition.created_at,
            "arms": [{"name": name, "status": ARM_STATUS_NAMES[status]} for name, status in statuses],
            "engine": definition.engine,
        }

    return campaign.session.read(look)
