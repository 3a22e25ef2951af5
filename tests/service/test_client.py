"""A campaign behind a service is as one that is here: the same calls give the same results and the same errors."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doral
from doral.client.remote import RemoteStore
from doral.live.page.facts import CampaignFacts
from doral.live.storage.service_tables import AlarmRow
from doral.live.views.export import read_decisions
from doral.live.views.health import Health
from tests.live.campaigns import KINDS
from tests.service.harness import Serving, serving
from tests.service.scripts import PROBLEM, Waiting, play


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def remote(served: Serving) -> Iterator[RemoteStore]:
    with doral.connect(served.url, key=served.key, timeout_s=20) as store:
        yield store


def same(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert one == other, (place, one, other)


def test_every_call_gives_what_a_local_campaign_gives() -> None:
    with doral.open("memory://") as store:
        here = play(store, "script")
    with serving() as served, doral.connect(served.url, key=served.key, timeout_s=20) as store:
        same(play(store, "script"), here)
    with serving() as served, asyncio.Runner() as runner:
        awaited = doral.connect_async(served.url, key=served.key, timeout_s=20)
        try:
            same(play(Waiting(awaited, runner.get_loop()), "script"), here)
        finally:
            runner.run(awaited.close())


def timeless(facts: CampaignFacts) -> str:
    """What is not of the moment in which it was asked."""
    pending = replace(facts.pending, oldest_age=None, middle_age=None)
    return repr(replace(facts, made_at=0.0, pending=pending))


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_looked_at_is_what_a_local_campaign_shows(
    kind: str, served: Serving, remote: RemoteStore, tmp_path: Path
) -> None:
    local = KINDS[kind](served.store)
    far = remote.campaign(local.name)
    assert far.problem == local.problem
    assert far.ledger().to_json() == local.ledger().to_json()
    ours, theirs = local.report(), far.report()
    assert replace(theirs, ledger=ours.ledger) == ours
    assert theirs.ledger.to_dict() == ours.ledger.to_dict()
    assert str(replace(theirs, ledger=ours.ledger)) == str(ours)
    assert timeless(far.facts()) == timeless(local.facts())
    assert far.verify() == local.verify()
    assert isinstance(far.health(), Health)
    assert far.health().events == local.health().events
    assert list(far.decisions()) == list(local.decisions())
    assert list(far.decisions("pending")) == list(local.decisions("pending"))
    for feature in theirs.person:
        assert theirs.served_by(feature) == ours.served_by(feature)
    for ending in ("csv", "parquet"):
        n = far.export(tmp_path / f"far.{ending}")
        assert n == local.export(tmp_path / f"local.{ending}") == len(list(local.decisions()))
        assert read_decisions(tmp_path / f"far.{ending}").equals(read_decisions(tmp_path / f"local.{ending}"))
    text = far.page(tmp_path / "far.html")
    assert "<html" in text
    assert text == (tmp_path / "far.html").read_text()


def test_what_a_local_campaign_has_and_a_remote_one_has_not_is_told() -> None:
    names = {name for name in dir(doral.Campaign) if not name.startswith("_")}
    told = doral.RemoteCampaign.__doc__ or ""
    missing = {name for name in names if not hasattr(doral.RemoteCampaign, name)}
    assert missing - set(re.findall(r"`(\w+)`", told)) == {"session", "is_gone"}
    assert {name for name in dir(doral.RemoteCampaign) if not name.startswith("_")} <= set(dir(doral.AsyncCampaign))
    page = (Path(__file__).parent.parent.parent / "docs" / "reference" / "service.md").read_text()
    for name in vars(doral.RemoteCampaign):
        is_call = not name.startswith("_") and name not in ("name", "problem", "report", "page", "export")
        assert not is_call or re.search(rf"`{name}[`(]", page), name


def test_arguments_are_those_of_local_campaigns() -> None:
    for kind in (doral.RemoteCampaign, doral.AsyncCampaign):
        for name in ("decide", "decide_many", "feedback", "feedback_each", "correct", "record", "extend", "forget"):
            ours, theirs = (inspect.signature(getattr(one, name)) for one in (doral.Campaign, kind))
            assert ours == theirs, name
    assert inspect.signature(doral.RemoteCampaign.decisions) == inspect.signature(doral.Campaign.decisions)


def test_times_as_people_give_them(remote: RemoteStore) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    problem = replace(PROBLEM, horizon=0, until=86_400.0)
    campaign = remote.create("times", problem, at=now - timedelta(days=1), until=(now + timedelta(days=9)).date())
    made = campaign.decide("old", at=now - timedelta(hours=1))
    assert made.decided_at == (now - timedelta(hours=1)).timestamp()
    assert campaign.decide("old", at=np.float64(made.decided_at)).decided_at == made.decided_at
    campaign.extend(until="2099-01-01")
    assert campaign.report().until == datetime(2099, 1, 2, tzinfo=UTC).timestamp()
    for wrong in (datetime(2026, 1, 1), "yesterday", float("nan"), now + timedelta(days=2), now - timedelta(days=9)):
        with pytest.raises(doral.InvalidValue, match="^at = "):
            campaign.decide("old", at=wrong)


def test_a_model_cannot_be_sent(remote: RemoteStore) -> None:
    class Model:
        def fit(self, X: Any, y: Any) -> None: ...  # noqa: N803

        def predict(self, X: Any) -> Any: ...  # noqa: N803

    with pytest.raises(doral.InvalidValue, match="doral.open"):
        remote.create("model", PROBLEM, policy=doral.external(Model()))  # type: ignore[arg-type]


def test_policies_keep_their_names(remote: RemoteStore) -> None:
    for i, policy in enumerate(
        (
            doral.policy("doral"),
            doral.policy("doral-otf", label="calmer", exploration=0.25),
            doral.PolicyOptions(name="mine", accept=2),
        )
    ):
        campaign = remote.create(f"policy {i}/?", PROBLEM, policy=policy, clock="rounds")
        assert campaign.definition()["policy"] == policy.to_dict()
        assert campaign.name in remote.list()


def test_alarms(served: Serving, remote: RemoteStore) -> None:
    campaign = remote.create("alarmed", PROBLEM, clock="rounds")
    assert campaign.alarms() == []
    raised = AlarmRow(campaign="alarmed", rule="arm-silent", subject="call", since=1.0, words="look")
    served.store.books.raise_alarm(raised)
    assert [one["rule"] for one in campaign.alarms()] == ["arm-silent"]
    assert campaign.alarms() == [one for one in remote.alarms() if one["campaign"] == "alarmed"]
