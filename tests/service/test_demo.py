"""`doral serve --demo`: within seconds a newcomer sees a page that moves, and nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

import doral
from doral.live.errors import WrongState
from doral.service.demo.population import MAIN, populations
from doral.service.settings import ServiceSettings
from tests.cli.processes import environment
from tests.service.harness import Serving, serving

_START_S = 60.0  # of a machine that does a lot else


@dataclass(frozen=True, kw_only=True)
class Demo:
    link: str
    key: str
    began: float  # when the command was typed
    process: subprocess.Popen[str]
    folder: Path  # where it may leave something behind

    @property
    def url(self) -> str:
        return self.link.partition("/demo")[0]


@contextmanager
def _started(folder: Path) -> Iterator[Demo]:
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "doral", "serve", "--demo", "--port", "0"],
        env={**environment(), "TMPDIR": str(folder), "DORAL_STORAGE": "sqlite:///of-somebody.db"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    too_late = threading.Timer(2 * _START_S, process.kill)  # a command that says nothing would be waited for for ever
    too_late.start()
    try:
        page, key = process.stdout.readline(), process.stdout.readline()
        link, secret = re.fullmatch(r"page +(\S+)\n", page), re.fullmatch(r"key +(\S+)\n", key)
        assert link is not None, page
        assert secret is not None, key
        too_late.cancel()
        yield Demo(link=link[1], key=secret[1], began=began, process=process, folder=folder)
    finally:
        too_late.cancel()
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with _started(tmp_path_factory.mktemp("demo")) as one:
        yield one


def _wait_until(is_true: Callable[[], bool], within_s: float = 30.0) -> None:
    until = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.02)


def _arrivals(client: httpx2.Client) -> dict[str, int]:
    listed = client.get("/v1/campaigns").raise_for_status().json()["campaigns"]
    return {one["name"]: one["arrivals"] for one in listed}


def test_it_moves_within_seconds(demo: Demo) -> None:
    with httpx2.Client(base_url=demo.url, headers={"Authorization": f"Bearer {demo.key}"}) as client:
        assert client.get("/readyz").status_code == 200
        ready_s = time.monotonic() - demo.began
        before = _arrivals(client)
        assert set(before) == {one.name for one in populations()}
        assert before[MAIN] > 3_000
        while _arrivals(client)[MAIN] == before[MAIN]:
            assert time.monotonic() - demo.began < _START_S
            time.sleep(0.05)
        moved_s = time.monotonic() - demo.began
        sys.stdout.write(f"demo: ready after {ready_s:.1f} s, moved after {moved_s:.1f} s\n")  # pytest -s shows it
        facts = client.get(f"/v1/campaigns/{MAIN}/facts").raise_for_status().json()
        assert len(facts["arms"]) == 3
        assert facts["spending"]["pace"] == "on plan"


def test_its_link_signs_one_browser_in_once(demo: Demo) -> None:
    with httpx2.Client(base_url=demo.url) as browser:
        wrong = browser.get("/demo", params={"token": "é" * 43})
        assert (wrong.status_code, wrong.headers["location"]) == (303, "/")
        assert "set-cookie" not in wrong.headers
        assert browser.get("/v1/me").status_code == 401
        right = browser.get(demo.link)
        assert (right.status_code, right.headers["location"]) == (303, f"/campaigns/{MAIN}")
        assert "HttpOnly; SameSite=Strict" in right.headers["set-cookie"]
        assert right.headers["cache-control"] == "no-store"
        assert browser.get("/v1/me").json()["name"] == "demonstration"
    with httpx2.Client(base_url=demo.url) as stranger:
        again = stranger.get(demo.link)
        assert "set-cookie" not in again.headers
        assert stranger.get("/v1/campaigns").status_code == 401


def test_the_smaller_campaign_has_an_alarm(demo: Demo) -> None:
    headers = {"Authorization": f"Bearer {demo.key}"}
    with httpx2.Client(base_url=demo.url, headers=headers) as client:
        _wait_until(lambda: bool(client.get("/v1/alarms").raise_for_status().json()["alarms"]))
        alarms = client.get("/v1/alarms").json()["alarms"]
    assert {one["campaign"] for one in alarms} == {"reminders"}
    assert {one["subject"] for one in alarms} == {"text message"}


def test_ctrl_c_ends_it_and_nothing_is_left_behind(demo: Demo) -> None:
    """The last of those who use it."""
    os.kill(demo.process.pid, signal.SIGINT)
    assert demo.process.wait(timeout=_START_S) == 0
    assert not list(demo.folder.rglob("*.db*"))
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{demo.url}/healthz")


@pytest.fixture(scope="module")
def inside() -> Iterator[Serving]:
    """The same in this process, whose store can be looked at."""
    with serving(settings=ServiceSettings(storage="memory://", is_demo=True)) as one:
        yield one


def test_answers_come_back_by_themselves(inside: Serving) -> None:
    campaign = inside.store.campaign(MAIN)
    before = campaign.report().decisions["returned"]
    _wait_until(lambda: campaign.report().decisions["returned"] > before)


def test_people_go_on_coming_where_somebody_plays_with_the_campaign(inside: Serving) -> None:
    campaign = inside.store.campaign(MAIN)
    for one in list(campaign.decisions("pending"))[:100]:
        with suppress(WrongState):  # it was answered in this very moment
            campaign.cancel(one.id)  # whoever had an answer to it is not heard
    campaign.add_arm(doral.Arm("drone", cost=0.5))
    for name in ("by post", "pharmacy", "home visit"):
        campaign.pause_arm(name)
    before = campaign.report().arrivals
    _wait_until(lambda: campaign.report().arrivals > before + 3)
    for name in ("by post", "pharmacy", "home visit"):
        campaign.resume_arm(name)


def test_nobody_comes_to_a_campaign_that_was_closed_or_deleted_and_the_other_goes_on(inside: Serving) -> None:
    """The last of those who use it."""
    main, other = (inside.store.campaign(one.name) for one in populations())
    other.close()
    arrivals = other.report().arrivals
    before = main.report().arrivals
    _wait_until(lambda: main.report().arrivals > before + 2)
    assert other.report().arrivals == arrivals
    inside.store.delete(other.name)
    before = main.report().arrivals
    _wait_until(lambda: main.report().arrivals > before + 2)


def test_a_campaign_near_its_end_is_extended() -> None:
    from doral.service.demo.feeding import go_on

    main = populations()[0]
    store = doral.open("memory://")
    problem = doral.Problem(
        arms=main.problem.arms, contexts=main.problem.contexts, budget=100, horizon=100, deadline=main.problem.deadline
    )
    campaign = store.create(main.name, problem)
    campaign.decide_many(["worker"] * 80)
    assert go_on(campaign, main) is False
    campaign.decide_many(["worker"] * 10)
    assert go_on(campaign, main) is True
    assert go_on(campaign, main) is False
    assert float(campaign.ledger().total) == 100 + main.problem.budget / 2
