"""Campaigns and stores for notebooks and terminals. Nothing here raises: what cannot be read is said instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from doral.errors import DoralError
from doral.live.events.event import Created
from doral.live.runtime.session import Session
from doral.live.state.definition import Definition
from doral.live.state.state import CampaignState
from doral.live.storage.contract import CampaignRow, Log, Storage
from doral.live.views.report_text import report_card
from doral.live.views.text import moment, share
from doral.pages.names import short
from doral.pages.notebook import card, note, small_table
from doral.pages.numbers import figure

if TYPE_CHECKING:
    from doral.live.campaign import Campaign

_MOST_CAMPAIGNS = 50


def campaign_repr(session: Session) -> str:
    """As it was when somebody last asked: looking at an object reads nothing."""
    name = short(session.row.name, 60)
    now = session.last_seen
    if session.is_gone:
        return f"<Campaign {name!r}, deleted>"
    if now is None:
        return f"<Campaign {name!r}>"
    state = "closed" if now.closed else "open"
    came = f"{now.round:,} of {now.engine.horizon:,} arrivals"
    return f"<Campaign {name!r}: {state}, {came}, {share(_used(now))} of the budget used>"


def _used(now: CampaignState) -> float:
    return float(1 - now.ledger.left / now.ledger.total)


def campaign_card(campaign: Campaign) -> str:
    """Its report; where the store cannot be read, why."""
    title = f"Campaign {short(campaign.name, 60)}"
    try:
        return report_card(campaign.report(), title)
    except DoralError as error:
        return card(title, parts=[note(str(error))])


def store_card(storage: Storage, opened: Mapping[str, CampaignState | None], *, is_closed: bool) -> str:
    """Its campaigns. Only those that were opened are known well: opening all of them could take long."""
    title = f"Store {storage.url}"
    if is_closed:
        return card(f"{title}, closed")
    try:
        with storage.reading() as found:
            there = len(found)
            rows = [_row(row, log, opened.get(row.name)) for row, log in found[:_MOST_CAMPAIGNS]]
    except DoralError as error:
        return card(title, parts=[note(str(error))])
    if not rows:
        return card(title, parts=[note("no campaign yet: make one with create()")])
    heads = ("campaign", "state", "created (UTC)", "events", "budget", "used")
    parts = [small_table(heads, rows, numbers=(3, 4, 5))]
    if there > len(rows):
        parts.append(note(f"the first {len(rows)} of {there:,} campaigns"))
    return card(title, parts=parts)


def _row(row: CampaignRow, log: Log, now: CampaignState | None) -> tuple[str, ...]:
    begun = moment(row.created_at, "seconds")
    try:
        events = log.head()[0]
        state = ""  # the log has no index of it
        if now is not None:
            state = "closed" if now.closed else "open"
            budget, used = figure(float(now.ledger.total)), share(_used(now))
        else:
            first = log.events([1])[1]
            assert isinstance(first, Created)
            budget, used = figure(Definition.from_json(first.definition).problem.budget), "not opened"
    except (DoralError, KeyError, TypeError, ValueError):
        return short(row.name, 40), "cannot be read", begun, "", "", ""
    return short(row.name, 40), state, begun, f"{events:,}", budget, used
