"""Two versions of the engine on one log: both read the same history, each decides by itself, and nothing is lost."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import doral
from doral.live.store import Store
from tests.live import writer
from tests.live.checks import adds_up, expire_as_before, log_is_whole
from tests.live.conftest import Zygote
from tests.live.test_kills import KILLS, LONGEST_LIFE_S, Witness, wait_for

LIVES = min(KILLS, 60)


def test_taking_turns_under_kills(
    durable_url: str, zygote: Zygote, other_zygote: Zygote, tmp_path: Path, open_store: Callable[[str], Store]
) -> None:
    rng = random.Random(21)
    open_store(durable_url).create("kits", writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")
    witness = Witness()
    for life in range(LIVES):
        notes = tmp_path / f"notes-{life}"
        engine = (zygote, other_zygote)[life % 2]
        pid = engine.start("forever", durable_url, "kits", life, notes)
        wait_for(notes, '"done"' if life < 2 else "")  # each has written once, however busy the machine is
        time.sleep(rng.uniform(0.0, LONGEST_LIFE_S))
        engine.kill(pid)
        pending = witness.read(notes)
        with doral.open(durable_url) as store:
            campaign = store.campaign("kits")
            witness.compare(adds_up(campaign), pending)
            if pending is not None:
                witness.settle(campaign, pending)
    campaign = open_store(durable_url).campaign("kits")
    found = campaign.verify()
    assert found.events == campaign.report().events
    assert len({stretch.engine["sources"] for stretch in found.engines}) == 2
    assert witness.steps_checked > 0


def test_history_is_the_same_to_another_engine(
    durable_url: str, other_zygote: Zygote, tmp_path: Path, open_store: Callable[[str], Store]
) -> None:
    """And back again; each skips the snapshots of the other."""
    campaign = open_store(durable_url).create("kits", writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")
    for i, one in enumerate(campaign.decide_many(writer.CONTEXTS * 60)):
        if one.arm is not None and i % 3:
            campaign.feedback(one.id, (i % 7) / 7)
    expire_as_before(campaign, 100.0, release=True)
    campaign.save_snapshot()
    for turn in range(2):
        before = list(campaign.decisions())
        said = {"decisions": [asdict(one) for one in before], "ledger": campaign.ledger().to_json()}
        assert other_zygote.run("tell", durable_url, "kits", 1, tmp_path / f"told-{turn}") == [0]
        heard = json.loads((tmp_path / f"told-{turn}-0").read_text())
        assert heard == json.loads(json.dumps(said))
        campaign._session.close()
        after = adds_up(campaign)
        if turn == 0:
            assert len(after) == len(before) + 40
            for one, now in zip(before, after, strict=False):
                assert one == now
        log_is_whole(campaign)
        campaign.decide_many(writer.CONTEXTS * 10)
    engines = [stretch.engine["sources"] for stretch in campaign.verify().engines]
    assert len(set(engines)) == 2
    assert engines[0] == engines[-1]
