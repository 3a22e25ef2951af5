"""Taking a lease, giving it back, and ending those of the dead. All of it under the campaign's lock, as any write.

A lease is a share of what nobody has leased, never more than about twice what its holder has used so far, or a tenth of
what all have: so the leases of those who decide little stay small, those of the others grow, and towards the end of
the budget all of them shrink, until everybody asks for every decision again and the last of the budget is used exactly.
"""

from __future__ import annotations

import json
from decimal import Context, Decimal
from typing import NamedTuple

from doral.live.drafts import Planned, Stamp
from doral.live.events import LEASE_ENDED, LEASED, Event
from doral.live.fold import Fold
from doral.live.leases.book import Lease
from doral.live.ledger import minus, plus, times
from doral.live.storage.contract import Log

LEASE_TTL_S = 10.0  # a holder who was silent for so long loses what is left, also if he lives; only use depends on it
FIRST_PART = 10  # of those who came so far, for a first lease: about as many as are decided before all look again
_WHOLE = Context(prec=2_000)
_ZERO = Decimal(0)


class Granted(NamedTuple):
    """A lease as it was when it was taken."""

    amount: Decimal = _ZERO
    arrivals: int = 0


def plan_lease(
    log: Log, fold: Fold, arrivals: int, before: Granted, ttl_s: float, stamp: Stamp
) -> Planned[Granted | None]:
    """A lease for groups of so many arrivals, in the place of the one `before`; None where there is too little left.

    What is left of the old one comes back in both cases.
    """
    log.hold(stamp.writer)
    own = fold.leases.of(stamp.writer)
    if own is not None and own.arrivals >= arrivals and own.left >= times(fold.roster.dearest, arrivals):
        return [], lambda _: before
    drafts = _ends_of_the_gone(log, fold, stamp, ttl_s)
    granted = _share(fold, drafts, arrivals, before, stamp.writer)
    if granted is not None:
        said = {"amount": str(granted.amount), "arrivals": granted.arrivals}
        drafts.append(_draft(fold, stamp, LEASED, said, len(drafts)))
    elif own is not None:
        drafts.append(_end(fold, stamp, own, "returned", len(drafts)))
    return drafts, lambda _: granted


def plan_return(log: Log, fold: Fold, stamp: Stamp) -> Planned[None]:
    """What is left of the own lease comes back."""
    del log
    own = fold.leases.of(stamp.writer)
    return ([] if own is None else [_end(fold, stamp, own, "returned", 0)]), lambda _: None


def recoveries(log: Log, fold: Fold, stamp: Stamp, ttl_s: float) -> list[Event]:
    """Ends of leases whose holders are dead, or were silent for too long, where others hold more than is free, or what
    is free does not pay for every arm.

    Nothing is lost by it: what a holder has decided is acknowledged only after it was appended under this very lock;
    what he appends later is refused, since he finds that his lease has ended.
    """
    free = minus(fold.ledger.left, fold.ledger.leased)
    if free >= fold.ledger.leased and free >= fold.roster.dearest:
        return []
    return _ends_of_the_gone(log, fold, stamp, ttl_s)


def _ends_of_the_gone(log: Log, fold: Fold, stamp: Stamp, ttl_s: float) -> list[Event]:
    gone = [
        lease
        for writer, lease in fold.leases.of_others(stamp.writer).items()
        if abs(stamp.wall - lease.at) > ttl_s or not log.is_held(writer)  # his clock may be ahead
    ]
    return [_end(fold, stamp, lease, "recovered", index) for index, lease in enumerate(gone)]


def _share(fold: Fold, drafts: list[Event], arrivals: int, before: Granted, writer: int) -> Granted | None:
    """Of what is free after these leases have ended: half of an equal share, and what was used last time, twice."""
    ended = {json.loads(draft.data or "")["lease"] for draft in drafts}
    others = [lease for lease in fold.leases.of_others(writer).values() if lease.sequence not in ended]
    parts = 2 * (len(others) + 1)
    free, dearest = fold.ledger.left, fold.roster.dearest
    for lease in others:
        free = minus(free, lease.left)
    own = fold.leases.of(writer)
    used = before.arrivals - own.arrivals if own is not None else 0
    spent = minus(before.amount, own.left) if own is not None else _ZERO
    wanted_arrivals = max(2 * max(arrivals, used), fold.round // (FIRST_PART * (len(others) + 1)))
    if fold.engine.until is None:
        ahead = fold.engine.horizon - fold.round - sum(lease.arrivals for lease in others)
        wanted_arrivals = min(wanted_arrivals, ahead // parts)
    least = times(dearest, arrivals)
    wanted = max(plus(times(least, 2), times(max(spent, _ZERO), 4)), times(dearest, wanted_arrivals))
    amount = min(wanted, _part(free, parts, dearest))
    if wanted_arrivals < arrivals or amount < least:
        return None
    return Granted(amount, wanted_arrivals)


def _part(free: Decimal, parts: int, dearest: Decimal) -> Decimal:
    """In multiples of what a decision costs at most: a plain number with few digits."""
    if not dearest:
        return _ZERO
    return times(dearest, int(_WHOLE.divide_int(free, times(dearest, parts))))


def _end(fold: Fold, stamp: Stamp, lease: Lease, why: str, index: int) -> Event:
    said = {"lease": lease.sequence, "left": str(lease.left), "why": why}
    return _draft(fold, stamp, LEASE_ENDED, said, index)


def _draft(fold: Fold, stamp: Stamp, kind: int, said: dict[str, object], index: int) -> Event:
    """The clock stands still for it: nothing has happened in the campaign."""
    return Event(
        fold.sequence + 1 + index, kind, fold.clock, stamp.wall, stamp.writer, data=json.dumps(said)
    )  # fmt: skip
