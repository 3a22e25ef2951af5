"""People who are forgotten: nothing that was known of them is left anywhere, and the campaign goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.errors import BrokenLog, KeyReused
from doral.live.events.codec import decode
from doral.live.events.event import Answered, Decided
from doral.live.state.snapshot import encode_snapshot as encode
from doral.live.store import Store
from tests.live import people
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.damage import rewrite
from tests.live.tapes import same_bits

CLINIC, AGE = "St-Lovelace-of-1815", 71.2345678901
ADA: dict[str, Any] = {"age": AGE, "clinic": CLINIC, "km": 3.5}


def with_ada(store: Store) -> tuple[Campaign, list[doral.Decision]]:
    """Somebody who came three times among others, was answered, corrected, cancelled, and recorded."""
    campaign = people.make(store, problem=people.make_problem(budget=900.0, deadline=20))
    people.busy(campaign, 30, keyed=True)
    made = [campaign.decide(features=ADA, key=f"ada-{i}", deadline=9.0 if i == 2 else None) for i in range(3)]
    for one in made:
        assert one.arm is not None
    campaign.feedback(made[0].id, 0.5, key="ada-answer")
    campaign.correct(made[0].id, 0.75)
    campaign.cancel(made[1].id)
    recorded = campaign.record(None, "a1", at=3, reward=0.4, answered_at=5, features=ADA, key="ada-record")
    people.busy(campaign, 60, 2)
    return campaign, [*made, recorded]


KEYS = ["ada-0", "ada-1", "ada-2", "ada-record"]


def holds_ada(data: bytes) -> bool:
    return CLINIC.encode() in data or repr(AGE).encode() in data or np.float64(AGE).tobytes() in data


def traces(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir() if one.is_file() and holds_ada(one.read_bytes())]


def test_nothing_of_them_is_left(store: Store) -> None:
    campaign, made = with_ada(store)
    campaign.save_snapshot()
    ledger, before = campaign.ledger(), [campaign.decision(one.id) for one in made]
    known = fold_of(campaign)
    assert CLINIC in known.levels.names("clinic")
    assert np.any(known.engine.state.people.traits == AGE)
    assert campaign.forget(KEYS) == 4
    after = fold_of(campaign)
    assert CLINIC not in after.levels.names("clinic")
    assert not any(np.any(array == AGE) for _, array in after.engine.arrays() if array.dtype == np.float64)
    assert not holds_ada(encode(after))
    assert campaign._session.read(lambda log, _: log.snapshots()) == []
    for one, was in zip(map(campaign.decision, (one.id for one in made)), before, strict=True):
        assert (one.features, one.effects, one.base, one.key) == (None, None, None, None)
        assert (one.arm, one.reward, one.state, one.cost, one.deadline) == (
            was.arm, was.reward, was.state, was.cost, was.deadline,
        )  # fmt: skip
    assert campaign.ledger() == ledger
    assert not any(holds_ada(repr(event).encode()) for event in campaign._session.read(lambda log, _: log.after(0)))
    assert campaign.verify().events == after.sequence
    people.busy(campaign, 20, 3)
    campaign.save_snapshot()
    campaign._session.close()
    adds_up(campaign)
    log_is_whole(campaign)
    assert campaign.forget(KEYS) == 0


def test_what_is_left_is_what_an_average_one_would_have_taught(open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store("memory://"))
    made = people.busy(campaign, 120, own=False, keyed=True)
    some = [one for place, one in enumerate(made) if place % 7 == 3]
    campaign.forget([str(one.key) for one in some])
    beside = people.Beside(campaign)
    events = campaign._session.read(lambda log, _: list(map(decode, log.after(1))))
    by_sequence = {int(one.id.split("-")[1]): one for one in made}
    forgotten = {one.id for one in some}
    answers = {one.id: one for one in campaign.decisions()}
    for event in events:
        if isinstance(event, Decided):
            one = by_sequence[event.sequence]
            beside.decide(one, forgotten=one.id in forgotten)
        elif isinstance(event, Answered):
            one = by_sequence[event.about.decision]
            answered = replace(answers[one.id], features=one.features)
            beside.answer(answered, at=event.clock, forgotten=one.id in forgotten)
    assert same_bits(fold_of(campaign).engine.state, beside.engine.state) == []


def test_an_answers_key_forgets_whom_it_is_about(store: Store) -> None:
    campaign, made = with_ada(store)
    assert campaign.forget("ada-answer") == 1
    assert campaign.decision(made[0].id).features is None
    assert campaign.decision(made[0].id).key == "ada-0"  # only what was asked for
    assert campaign.decision(made[2].id).features == ADA
    log_is_whole(campaign)


def test_a_forgotten_key_still_answers_as_used(store: Store) -> None:
    campaign, made = with_ada(store)
    campaign.forget(KEYS)
    assert campaign.decide(features=ADA, key="ada-0").id == made[0].id
    assert campaign.decide(features={**ADA, "age": 5.0}, key="ada-0").id == made[0].id  # nobody knows any more
    others: list[dict[str, Any]] = [{"weight": 2.0}, {"available": ["a0"]}]
    for asked in others:
        with pytest.raises(KeyReused):
            campaign.decide(features=ADA, key="ada-0", **asked)
    assert campaign.feedback(made[2].id, 0.5, at=made[2].decided_at + 1).state == "returned"
    campaign.correct(made[2].id, 0.6)
    log_is_whole(campaign)


def test_no_file_holds_them(tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    campaign, _ = with_ada(open_store(f"sqlite:///{tmp_path / 'campaigns.db'}"))
    campaign.save_snapshot()
    campaign.expire(500)
    people.busy(campaign, 20, 4)
    assert campaign.decide(features=ADA, key="ada-last").features == ADA
    assert traces(tmp_path)
    campaign.forget([*KEYS, "ada-last"])
    assert traces(tmp_path) == []
    campaign.export(tmp_path / "all.csv")
    assert traces(tmp_path) == []
    campaign._session.close()
    adds_up(campaign)
    log_is_whole(campaign)
    assert campaign.verify().events == campaign.report().events


def test_other_processes_forget_them_too(durable_url: str, open_store: Callable[[str], Store]) -> None:
    """Those that know them already, and those that read the log meanwhile; nor do they save what they knew."""
    campaign, made = with_ada(open_store(durable_url))
    other = open_store(durable_url).campaign("kits")
    stale = fold_of(other)
    failed: list[BaseException] = []
    is_done = threading.Event()

    def read() -> None:
        try:
            while not is_done.is_set():
                with doral.open(durable_url) as store:
                    store.campaign("kits").report()
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for key in KEYS:
        campaign.forget(key)
    is_done.set()
    reader.join()
    assert failed == []
    log = other._session._open()
    log.save_snapshot(stale.sequence, encode(stale))
    assert log.snapshots() == []
    assert other.decision(made[0].id).features is None
    assert CLINIC not in fold_of(other).levels.names("clinic")
    assert same_bits(fold_of(other).engine.state, fold_of(campaign).engine.state) == []
    people.busy(other, 10, 9)
    log_is_whole(other)


def test_features_that_vanished_otherwise_are_damage(durable_url: str, open_store: Callable[[str], Store]) -> None:
    campaign, _ = with_ada(open_store(durable_url))
    campaign.forget("ada-0")
    rewrite(campaign, "UPDATE events SET person = NULL WHERE sequence = 5")
    with pytest.raises(BrokenLog, match="the features of event 5 were removed"):
        campaign.report()
