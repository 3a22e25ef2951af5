"""Workers with budget leases that crash, pause and lose their connections: nothing is spent twice, lost or kept.

`benchmarks/lease_histories.py` does the same 100,000 times.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import doral
from doral.live.errors import BrokenLog
from doral.live.events import LEASE_ENDED, LEASED
from doral.live.fold import Fold
from doral.live.leases import planning
from doral.live.leases import session as leases_session
from doral.live.leases.scratch import Scratch
from doral.live.leases.session import LeasedSession
from doral.live.storage.memory import MemoryStorage
from doral.live.store import Store
from tests.live import lease_model

HISTORIES = 5 * int(os.environ.get("DORAL_TORTURE", "0")) or 300
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_happens_the_budget_holds(part: int) -> None:
    """And what happens is what should: leases are taken, used, given back and recovered, and faults are everywhere."""
    seen: Counter[str] = Counter()
    for seed in range(part, HISTORIES, PARTS):
        history = lease_model.play(seed)
        seen += history.fired
        seen["leases"] += history.auditor.kinds[LEASED]
        seen["ended"] += history.auditor.kinds[LEASE_ENDED]
        seen["by lease"] += history.auditor.by_lease
        seen += history.auditor.why
    assert min(seen["leases"], seen["ended"], seen["by lease"], seen["returned"], seen["recovered"]) > 10
    for fault in ("kill after append", "kill after commit", "lose before commit", "lose after commit"):
        assert seen[fault] > 0


def _told_too_soon(log: lease_model.BreakingLog) -> None:
    log.rollback()


# What histories must find, if it were so.
WRONG: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "ordinary writers spend what others have leased": (Fold, "may_spend", lambda fold, _: fold.ledger.left),
    "a lease is no limit": (Scratch, "has_room", lambda *_: True),
    "an unknown outcome is taken for a failure": (LeasedSession, "_is_stored", lambda *_: False),
    "a decision is told before it is stored": (lease_model.BreakingLog, "commit", _told_too_soon),
    "nothing is ever recovered": (planning, "_ends_of_the_gone", lambda *_: []),
}


@pytest.mark.parametrize("what", list(WRONG))
def test_a_broken_protocol_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*WRONG[what])
    with pytest.raises((AssertionError, BrokenLog)):
        _play_all(1_000)


def _play_all(histories: int) -> None:
    for seed in range(histories):
        lease_model.play(seed)


def test_the_last_of_a_dead_holder_is_recovered_however_little_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is less than what is free, but what is free pays for nobody."""
    monkeypatch.setattr(leases_session, "UNHEARD_SHARE", 1e9)
    storage = MemoryStorage()
    problem = doral.Problem(
        arms=[doral.Arm("a", cost=0.2), doral.Arm("b", cost=0.3)], contexts=["x"], budget=4.4, horizon=99, deadline=99
    )
    Store(storage).create("end", problem, policy="d-linucb", seed=1, clock="rounds")
    holder, other = Store(storage, leases=True).campaign("end"), Store(storage).campaign("end")
    holder.decide("x", available=["a"])
    other.decide("x", available=["a"])  # whoever is alone takes no lease
    first = holder.decide("x", available=["a"])
    holder.decide("x", available=["a"])
    holder.decide("x", available=["a"])
    holder.decide("x", available=["b"])
    for arm in ("b",) * 10 + ("a",):
        other.decide("x", available=[arm])
    other.feedback(first.id, 1.0, actual_cost=0.05)
    assert (other.ledger().left, other.ledger().leased) == (Decimal("0.25"), Decimal("0.1"))
    storage._kept["end"].holders.clear()  # the holder is gone
    while other.decide("x").arm is not None:
        pass
    assert other.ledger().leased == 0
    assert other.ledger().left < Decimal("0.2")
