"""Leases: a writer gets a part of the budget for himself, and it comes back."""

from __future__ import annotations

import json
from decimal import Decimal

from doral.live.events import Event, known
from doral.live.fold import Fold


def apply_lease(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    said = json.loads(known(draft.data))
    fold.leases.begin(draft, Decimal(said["amount"]), int(said["arrivals"]))
    return draft


def apply_lease_end(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    said = json.loads(known(draft.data))
    fold.leases.end(draft, said["lease"], Decimal(said["left"]))
    return draft
