"""`campaign.health()`, and what the library logs."""

from __future__ import annotations

import json
import logging
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

import doral
from doral.live.errors import BrokenLog, CampaignError
from doral.live.state import snapshot
from doral.live.store import Store
from tests.live.damage import rewrite
from tests.live.test_campaign import make

BEGAN = 1_767_225_600.0  # 2026-01-01T00:00Z

Opener = Callable[[str], Store]


def test_a_new_campaign_is_well(store: Store) -> None:
    campaign = make(store)
    campaign.decide("old")
    before = campaign.report().events
    health = campaign.health()
    assert health.is_well, health.warnings
    assert campaign.report().events == before  # it writes nothing
    assert (health.events, health.error) == (before, None)
    assert health.write_s is not None
    assert health.write_s < 1
    assert (health.last_event_age_s or 0.0) < 60
    assert health.engine in health.engines
    assert json.loads(json.dumps(health.to_dict()))["is_well"] is True
    assert str(health).startswith("campaign kits: well\n")
    assert len(str(health).splitlines()) <= 6
    assert health.schema == (None if store._storage.url == "memory://" else "0006")
    if store._storage.url.startswith("postgres"):
        assert abs(health.server_ahead_s or 99.0) < 5


def test_what_should_be_looked_after(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    campaign = make(store, clock="seconds", at=now - 1_000.0, deadline=5.0)
    made = campaign.decide_many([{"context": "old", "at": now - 900.0 + number} for number in range(12)])
    pending = sum(one.arm is not None for one in made)
    assert pending > 0
    health = campaign.health()
    assert not health.is_well
    assert (health.pending, health.overdue) == (pending, pending)
    assert f"{pending} decisions are overdue, and their budget is still reserved: call expire()" in health.warnings
    assert campaign.expire() == health.overdue
    assert campaign.health().is_well
    monkeypatch.setattr(time, "time", lambda: now - 3 * 3600)
    health = campaign.health()
    assert "the campaign's clock is 3 hours ahead of this host's" in health.warnings[0]
    assert "repair_clock()" in str(health)
    monkeypatch.undo()
    monkeypatch.setattr("doral.live.views.health._FEW_EVENTS", 5)
    assert "call save_snapshot()" in campaign.health().warnings[0]
    campaign.save_snapshot()
    assert campaign.health().is_well


def test_what_is_used_up(store: Store) -> None:
    campaign = make(store, budget=2.0, horizon=20)
    campaign.decide_many(["old"] * 20)
    assert any("extend()" in one for one in campaign.health().warnings)
    campaign.extend(10)
    assert any("top_up()" in one for one in campaign.health().warnings) == (campaign.ledger().left == 0)
    campaign.close()
    assert campaign.health().is_well


def test_a_store_that_cannot_be_used(tmp_path: Path, open_store: Opener) -> None:
    path = tmp_path / "campaigns.db"
    campaign = make(open_store(f"sqlite:///{path}"))
    campaign.decide("old")
    path.rename(tmp_path / "elsewhere.db")
    health = campaign.health()
    assert not health.is_well
    assert not health.is_readable
    assert str(path) in (health.error or "")
    assert "error" in str(health)
    (tmp_path / "elsewhere.db").rename(path)
    assert campaign.health().is_well


def test_a_store_that_is_locked(durable_url: str, open_store: Opener) -> None:
    campaign = make(open_store(durable_url))
    with doral.open(durable_url, lock_timeout_s=0.2) as hasty:
        other = hasty.campaign("kits")
        log = campaign._session._open()
        log.begin()
        health = other.health()
        log.rollback()
        assert (health.is_readable, health.is_writable, health.is_well) == (True, False, False)
        assert "locked" in (health.error or "")
        assert other.health().is_well


@pytest.mark.parametrize("how", ["a role that may only read", "a database that is only read"])
def test_a_store_that_can_only_be_read(how: str, postgres_url: str, open_store: Opener) -> None:
    make(open_store(postgres_url)).decide("old")
    role = f"reader_{secrets.token_hex(3)}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
        try:
            admin.execute(f"GRANT USAGE ON SCHEMA doral TO {role}")
            admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA doral TO {role}")
            if "database" in how:
                admin.execute(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA doral TO {role}")
                admin.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
            parts = urlsplit(postgres_url)
            netloc = f"{role}:x@{parts.netloc.rpartition('@')[2]}"
            with doral.open(urlunsplit(parts._replace(netloc=netloc))) as store:
                health = store.campaign("kits").health()
            assert (health.is_readable, health.is_writable, health.is_well) == (True, False, False)
            assert ("permission denied" if "role" in how else "read-only") in (health.error or "")
        finally:
            admin.execute(f"DROP OWNED BY {role}")
            admin.execute(f"DROP ROLE {role}")


def test_a_damaged_log_is_not_well(durable_url: str, open_store: Opener) -> None:
    campaign = make(open_store(durable_url))
    campaign.decide_many(["old"] * 5)
    rewrite(campaign, "UPDATE events SET price = 5 WHERE sequence = 4")
    health = campaign.health()
    assert not health.is_well
    assert "event 4" in (health.error or "")


# --- what is logged -----------------------------------------------------------------------------------------------

SECRETS = ("visit 4711", "0.123456")


def test_what_is_logged(store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    with caplog.at_level(logging.DEBUG, "doral"):
        campaign = make(store, clock="seconds", at=now - 1_000.0)
        made = campaign.decide("old", key="visit 4711")
        if made.arm is not None:
            campaign.feedback(made.id, 0.123456, key="visit 4711")
        with pytest.raises(doral.InvalidValue):
            campaign.decide("old", key="visit 4711 again", at=now + 1e6)
        assert "a time was refused: it is 11.6 days ahead of this host's clock" in caplog.text
        campaign.decide("old", at=now + 100)
        campaign.decide("old")
        assert "its clock stood still" in caplog.text
        monkeypatch.setattr(time, "time", lambda: now - 800)
        with pytest.raises(CampaignError):
            campaign.decide("old")
        assert "this host's clock is 15 minutes behind" in caplog.text
        campaign.repair_clock()
        assert "its clock was set back by event" in caplog.text
        campaign.save_snapshot()
        assert "a snapshot of event" in caplog.text
        version = snapshot.VERSION
        monkeypatch.setattr(snapshot, "VERSION", 99)
        campaign._session.close()
        campaign.report()
        assert f"is skipped: is of version {version}" in caplog.text
        monkeypatch.setattr("doral.live.runtime.session.engine_name", lambda: '{"doral": "another"}')
        monkeypatch.setattr("doral.live.state.state.engine_name", lambda: '{"doral": "another"}')
        campaign.decide("old")
        assert "another engine writes to it from event" in caplog.text
    assert {record.name for record in caplog.records} == {"doral.live"}
    assert not any(secret in caplog.text for secret in SECRETS)


def test_damage_and_another_log_are_logged(
    durable_url: str, open_store: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    campaign = make(open_store(durable_url))
    campaign.decide_many([{"context": "old", "key": f"visit 4711 {number}"} for number in range(5)])
    rewrite(campaign, "UPDATE events SET price = 5 WHERE sequence = 4")
    with pytest.raises(BrokenLog):
        campaign.report()
    assert "its log is damaged" in caplog.text
    rewrite(campaign, "UPDATE events SET price = 6 WHERE sequence = 4", with_chain=True)
    assert not any(secret in caplog.text for secret in SECRETS)


def test_nothing_is_printed_unless_asked_for(tmp_path: Path) -> None:
    program = f"""
import doral, time
from tests.live.test_campaign import make

BEGAN = 1_767_225_600.0  # 2026-01-01T00:00Z
campaign = make(doral.open("sqlite:///{tmp_path / "campaigns.db"}"), clock="seconds")
campaign.decide("old")
try:
    campaign.decide("old", at=time.time() + 1e9)
except doral.InvalidValue:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused\n", "")


def test_answers_that_all_come_too_late_are_told(store: Store) -> None:
    """Fourteen was meant as days."""
    problem = doral.Problem(arms=["a"], contexts=["x"], budget=10, horizon=20, deadline=14)
    campaign = store.create("kits", problem, at=BEGAN)
    made = [campaign.decide("x", at=BEGAN + i) for i in range(9)]
    served = [one for one in made if one.arm is not None]
    for i, one in enumerate(served):
        campaign.feedback(one.id, reward=1.0, at=BEGAN + 3_600.0 + i)
    said = "came after the deadline of 14 s: deadlines are in seconds, 14 days are 1209600"
    assert any(said in one for one in campaign.health().warnings)
    assert not campaign.health().is_well
    assert said in campaign.page()
