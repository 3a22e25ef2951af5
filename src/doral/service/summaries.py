"""Where a campaign stands, in a few numbers out of its state: nothing of the log is read for it."""

from __future__ import annotations

from typing import Any

from doral.engine.explain import view_forecast
from doral.live.campaign import Campaign
from doral.live.events import IS_PENDING
from doral.live.fold import Fold
from doral.live.roster import ARM_STATUS_NAMES
from doral.live.storage.contract import Log


def summary(name: str, fold: Fold) -> dict[str, Any]:
    """Members of `models.campaigns.Summary`."""
    engine, ledger = fold.engine, fold.ledger
    ahead = view_forecast(engine.state)
    return {
        "name": name,
        "created_at": fold.definition.created_at,
        "state": "closed" if fold.closed else "racing" if engine.is_racing else "open",
        "policy": fold.definition.policy.name,
        "clock": fold.definition.clock,
        "events": fold.sequence,
        "arrivals": fold.round,
        "horizon": engine.horizon if ahead is None else fold.round + round(ahead.expected),
        "ends_at": None if engine.until is None else fold.definition.epoch + engine.until,
        "total": float(ledger.total),
        "spent": float(ledger.spent),
        "reserved": float(ledger.reserved),
        "left": float(ledger.left),
        "reward": float(fold.counts.reward),
        "pending": fold.counts.states[IS_PENDING],
    }


def shown(campaign: Campaign) -> dict[str, Any]:
    """Members of `models.campaigns.CampaignShown`."""

    def look(_: Log, fold: Fold) -> dict[str, Any]:
        definition = fold.definition
        statuses = zip(fold.problem.arm_names, fold.roster.status, strict=True)
        return {
            "name": campaign.name,
            "summary": summary(campaign.name, fold),
            "problem": fold.problem.to_dict(),
            "policy": definition.policy.to_dict(),
            "seed": definition.seed,
            "clock": definition.clock,
            "created_at": definition.created_at,
            "arms": [{"name": name, "status": ARM_STATUS_NAMES[status]} for name, status in statuses],
            "engine": definition.engine,
        }

    return campaign.session.read(look)
