"""Campaigns that give their connections back where there are many."""

from __future__ import annotations

import resource
import threading
from pathlib import Path

import pytest

import doral
from doral.service.service import kept_open
from doral.service.settings import ServiceSettings
from tests.service.harness import PROBLEM


def test_campaigns_beyond_so_many_give_their_connections_back_and_go_on(tmp_path: Path) -> None:
    with doral.open(f"sqlite:///{tmp_path / 'campaigns.db'}") as store:
        store._keep_open(3)
        campaigns = [store.create(f"c{number}", PROBLEM, seed=number) for number in range(8)]
        for step in range(3):
            for one in campaigns:
                one.decide("old", key=f"{step}")
        assert [one.session._log is not None for one in campaigns] == [False] * 5 + [True] * 3
        assert [len(list(one.decisions())) for one in campaigns] == [3] * 8
        campaigns[-1].session.close()
        assert len(store._opened) == 2


def test_whoever_is_in_use_keeps_its_connection(tmp_path: Path) -> None:
    with doral.open(f"sqlite:///{tmp_path / 'campaigns.db'}") as store:
        store._keep_open(1)
        first, *others = [store.create(f"c{number}", PROBLEM, seed=number) for number in range(4)]

        def use_others() -> None:
            for one in others:
                one.decide("old")

        def look(log: object, _: object) -> bool:
            use_others()  # in the same thread
            thread = threading.Thread(target=use_others)
            thread.start()
            thread.join()
            return first.session._log is log

        assert first.session.read(look)
        assert [one.report().arrivals for one in (first, *others)] == [0, 2, 2, 2]


@pytest.mark.parametrize(
    ("storage", "workers", "files", "kept"),
    [
        ("memory://", 1, 1_024, None),
        ("sqlite:///c.db", 1, 1_024, 85),
        ("sqlite:///c.db", 1, resource.RLIM_INFINITY, 300),
        ("postgresql://host/c", 1, 1_024, 60),
        ("postgresql://host/c", 2, 1_024, 30),
        ("postgres://host/c", 50, 1_024, 8),
    ],
)
def test_a_service_leaves_room_for_others(
    monkeypatch: pytest.MonkeyPatch, storage: str, workers: int, files: int, kept: int | None
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert kept_open(ServiceSettings(storage=storage, workers=workers)) == kept
