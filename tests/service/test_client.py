"""A campaign behind a service is as one that is here: the same calls give the same results and the same errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.client.remote import RemoteStore
from doral.live.export import read_decisions
from doral.live.health import Health
from doral.live.page.facts import CampaignFacts
from tests.live.campaigns import KINDS
from tests.service.harness import Serving, serving
from tests.service.scripts import Waiting, play


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
