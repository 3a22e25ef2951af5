"""`kill -9` of processes that hold a lease: what they were told is there, and the rest of their lease comes back."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path

import doral
from doral.live.campaign import Campaign
from doral.live.events import LEASE_ENDED, LEASED
from tests.live import writer
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.conftest import Zygote
from tests.live.test_kills import wait_for

KILLS = 3


def test_killed_holders(postgres_url: str, zygote: Zygote, tmp_path: Path) -> None:
    """Beside another holder, who lives and goes on."""
    with doral.open(postgres_url) as store, doral.open(postgres_url, leases=True) as other:
        judge = store.create("kits", writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")
        beside = other.campaign("kits")
        acknowledged: dict[str, str | None] = {}
        for life in range(KILLS):
            notes = tmp_path / f"notes-{life}"
            pid = zygote.start("lease", postgres_url, "kits", life, notes)
            wait_for(notes)
            began = time.monotonic()
            # Both lease once each has seen that the other writes, which on a busy machine takes a while.
            while (waited_s := time.monotonic() - began) < 0.3 or (waited_s < 30.0 and len(_holders(judge)) < life + 2):
                acknowledged |= {one.id: one.arm for one in beside.decide_many(["old", "young"])}
            zygote.kill(pid)
            lines = notes.read_text().split("\n")[:-1]  # what follows the last one was cut off by the kill
            acknowledged |= {id_: arm for line in lines for id_, arm in json.loads(line)}
            there = {one.id: one.arm for one in adds_up(judge)}
            assert acknowledged.items() <= there.items()
            assert len(there) <= len(acknowledged) + 7 * (life + 1)  # groups that were stored, and not told any more
        log_is_whole(judge)
        assert len(_holders(judge)) == KILLS + 1
        # Somebody who needs the budget gets what the dead had.
        last = store.campaign("kits")
        while last.ledger().left - last.ledger().leased >= Decimal("0.1") and last.report().time_share < 1.0:
            last.decide_many(["old"] * 50)
        beside.session.close()
        last.decide("old")
        assert not fold_of(last).leases or last.ledger().left >= 2 * last.ledger().leased
        ends = last.session.read(lambda log, _: log.of_kinds((LEASE_ENDED,)))
        assert "recovered" in {json.loads(str(one.data))["why"] for one in ends}
        adds_up(last)
        log_is_whole(last)
        assert last.verify().n_differences == 0


def _holders(campaign: Campaign) -> set[int]:
    return {event.writer for event in campaign.session.read(lambda log, _: log.of_kinds((LEASED,)))}
