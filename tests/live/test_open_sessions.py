"""Campaigns that give their connections back where there are many."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import doral
from doral.live.runtime.open_sessions import OpenSessions
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


class _Kept:
    """A session that says what happens while somebody wants to close it."""

    def __init__(self, meanwhile: Callable[[_Kept], None], *, is_idle: bool) -> None:
        self._meanwhile, self._is_idle = meanwhile, is_idle
        self.asked = 0

    def close_if_idle(self) -> bool:
        self.asked += 1
        if self.asked == 1:
            self._meanwhile(self)
        return self._is_idle


@pytest.mark.parametrize("is_idle", [False, True])
@pytest.mark.parametrize("what", ["nothing", "weighed", "used", "closed"])
def test_what_happens_to_a_session_while_it_is_being_closed_is_kept(
    monkeypatch: pytest.MonkeyPatch, what: str, is_idle: bool
) -> None:
    sessions = OpenSessions(most_bytes=100)

    def fold(n_bytes: int, sequence: int = 1) -> Any:
        return SimpleNamespace(n_bytes=n_bytes, sequence=sequence)

    def meanwhile(one: _Kept) -> None:
        monkeypatch.setattr(sessions, "most_bytes", 1_000)  # or it would be asked again at once
        if what == "weighed":
            sessions.rested(one, fold(70, sequence=1_000))
        elif what == "used":
            sessions.used(one)
        elif what == "closed":
            sessions.closed(one)

    old, new = _Kept(meanwhile, is_idle=is_idle), _Kept(lambda _: None, is_idle=False)
    for one, n_bytes in ((old, 50), (new, 60)):
        sessions.used(one)
        sessions.rested(one, fold(n_bytes))
    assert old.asked == 1
    expected = {"nothing": 0 if is_idle else 50, "weighed": 70, "used": 50, "closed": 0}[what]
    assert sessions.n_bytes == 60 + expected
    assert len(sessions) == (2 if expected else 1)


def test_whoever_is_in_use_stays_and_the_next_one_goes() -> None:
    sessions = OpenSessions(most_bytes=100)
    busy, idle, idle_too, last = (_Kept(lambda _: None, is_idle=is_idle) for is_idle in (False, True, True, False))
    for one in (busy, idle, idle_too, last):
        sessions.used(one)
        sessions.rested(one, SimpleNamespace(n_bytes=40, sequence=1))  # type: ignore[arg-type]
    assert list(sessions._order) == [busy, idle_too, last]  # in their order
    assert sessions.n_bytes == 120


@pytest.mark.parametrize(
    ("storage", "files", "kept"),
    [
        ("memory://", 1_024, None),
        ("sqlite:///c.db", 1_024, 85),
        ("sqlite:///c.db", resource.RLIM_INFINITY, 300),
        ("postgresql://host/c", 1_024, 30),
        ("postgres://host/c", 1_024, 30),
    ],
)
def test_a_service_leaves_room_for_others(
    monkeypatch: pytest.MonkeyPatch, storage: str, files: int, kept: int | None
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert kept_open(ServiceSettings(storage=storage)) == kept
