"""`kill -9` of a writing process at random moments: what was acknowledged is there, once, and the ledger adds up.

`DORAL_TORTURE=300` makes it that many kills on each storage.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.errors import WrongState
from doral.live.store import Store
from tests.live import writer
from tests.live.checks import adds_up, log_is_whole
from tests.live.conftest import Zygote, clear_postgres

KILLS = int(os.environ.get("DORAL_TORTURE", "12"))
LONGEST_LIFE_S = 0.25
LONGEST_START_S = 30.0


class Witness:
    """What the killed processes were told, compared with what is there."""

    def __init__(self) -> None:
        self.decided: dict[str, str | None] = {}  # id -> arm
        self.rewards: dict[str, float] = {}
        self.cancelled: set[str] = set()
        self.steps_checked = 0

    def read(self, notes: Path) -> dict[str, Any] | None:
        """Take the notes of a process; returns its last intention if that was not answered."""
        pending: dict[str, Any] | None = None
        text = notes.read_text() if notes.exists() else ""
        for line in text.splitlines():
            try:
                fact = json.loads(line)
            except ValueError:  # the very last line, cut off by the kill: it was not said
                continue
            if "intent" in fact:
                pending = fact
            else:
                assert pending is not None
                self.take(pending, fact["done"])
                pending = None
        return pending

    def take(self, intent: dict[str, Any], done: list[Any]) -> None:
        self.steps_checked += 1
        name = intent["intent"]
        for decision_id, arm, reward, state in done:
            if name in ("decide", "decide_many"):
                assert decision_id not in self.decided
                self.decided[decision_id] = arm
            elif name in ("feedback", "correct"):
                assert reward == intent["reward"]
                self.rewards[decision_id] = reward
            elif name == "cancel":
                assert state == "cancelled"
                self.cancelled.add(decision_id)

    def compare(self, decisions: list[doral.Decision], pending: dict[str, Any] | None) -> None:
        there = {one.id: one for one in decisions}
        for decision_id, arm in self.decided.items():
            assert there[decision_id].arm == arm
        touched = None if pending is None else pending.get("decision_id")
        for decision_id, reward in self.rewards.items():
            if decision_id != touched:
                assert there[decision_id].reward == reward
        for decision_id in self.cancelled:
            assert there[decision_id].state == "cancelled"
        unsaid = set(there) - set(self.decided)
        asked = 0 if pending is None else {"decide": 1, "decide_many": 4}.get(pending["intent"], 0)
        assert len(unsaid) in (0, asked)
        answered = {one.id for one in decisions if one.reward is not None}
        assert answered - set(self.rewards) <= {touched}

    def settle(self, campaign: Campaign, pending: dict[str, Any]) -> None:
        """Ask again for what was never answered, with the same key: it happens exactly once."""
        arguments = {name: value for name, value in pending.items() if name not in ("step", "intent")}
        first = getattr(campaign, pending["intent"])(**arguments)
        events = campaign.report().events
        if pending["intent"] != "expire":
            assert getattr(campaign, pending["intent"])(**arguments) == first
        assert campaign.report().events == events
        if isinstance(first, int):
            return
        shown = first if isinstance(first, list) else [first]
        self.take(pending, [[one.id, one.arm, one.reward, one.state] for one in shown])


def test_killed_writers(durable_url: str, zygote: Zygote, tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    rng = random.Random(20)
    open_store(durable_url).create("kits", writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")
    witness = Witness()
    for life in range(KILLS):
        if life % 40 == 39:  # a campaign of moderate length keeps the checks quick
            witness = Witness()
            durable_url = _fresh(durable_url, tmp_path, life, open_store)
        notes = tmp_path / f"notes-{life}"
        pid = zygote.start("forever", durable_url, "kits", life, notes)
        if life % 2 == 1:
            wait_for(notes)  # on a busy machine a short life may be over before the first step
        time.sleep(rng.uniform(0.0, LONGEST_LIFE_S))
        zygote.kill(pid)
        pending = witness.read(notes)
        store = doral.open(durable_url)
        campaign = store.campaign("kits")
        witness.compare(adds_up(campaign), pending)
        if life % 4 == 3:
            log_is_whole(campaign)
        if pending is not None:
            witness.settle(campaign, pending)
        store.close()
    assert witness.steps_checked > 0


def wait_for(notes: Path, word: str = "") -> None:
    """Until the writer has begun, or has noted this."""
    until = time.monotonic() + LONGEST_START_S
    while time.monotonic() < until:
        if notes.exists() and notes.stat().st_size and word in notes.read_text():
            return
        time.sleep(0.005)


def _fresh(url: str, tmp_path: Path, life: int, open_store: Callable[[str], Store]) -> str:
    if url.startswith("sqlite"):
        url = f"sqlite:///{tmp_path / f'life-{life}.db'}"
        open_store(url).create("kits", writer.PROBLEM, policy=writer.POLICY, seed=life, clock="rounds")
        return url
    clear_postgres(url)
    open_store(url).create("kits", writer.PROBLEM, policy=writer.POLICY, seed=life, clock="rounds")
    return url


def test_the_witness_notices_a_lost_answer(open_store: Callable[[str], Store]) -> None:
    """A check that cannot fail would be worth nothing."""
    campaign = open_store("memory://").create("kits", writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")
    made = campaign.decide("old", key="k")
    witness = Witness()
    witness.take({"intent": "decide"}, [[made.id, made.arm, None, "pending"]])
    witness.compare(adds_up(campaign), None)
    witness.take({"intent": "feedback", "reward": 0.5}, [[made.id, made.arm, 0.5, "returned"]])
    with pytest.raises(AssertionError):
        witness.compare(adds_up(campaign), None)
    campaign.feedback(made.id, 0.5)
    witness.compare(adds_up(campaign), None)
    campaign.decide("old")
    with pytest.raises(AssertionError):
        witness.compare(adds_up(campaign), None)
    with pytest.raises(WrongState):
        campaign.cancel(made.id)
