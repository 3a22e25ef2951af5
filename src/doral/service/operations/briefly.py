"""Campaigns that are looked at in passing: where there are many, they are not all kept ready for that, and those that
others use are not closed to make room for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from doral.live.campaign import Campaign
from doral.live.store import Store

KEPT_OPEN = 50  # campaigns; each has its state in memory, and in SQLite a connection of its own


@contextmanager
def briefly(store: Store, name: str, *, of: int, most: int = KEPT_OPEN) -> Iterator[Campaign]:
    """The campaign; given back afterwards where nobody else in this process uses it, and there are many of them.

    Args:
        store: That holds it.
        name: Of the campaign.
        of: How many campaigns there are.
        most: How many are kept ready.
    """
    campaign = store.campaign(name)
    was_open = campaign.session.is_open
    try:
        yield campaign
    finally:
        if of > most and not was_open:
            campaign.session.close()
