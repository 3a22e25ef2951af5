"""Campaigns that are at home with one of several workers: what changes them is handed on, and none of it is needed.

Two workers in threads of this process, on one SQLite file: each has a store of its own. (With processes and PostgreSQL
it is the same code; `test_running.py` starts those.)
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

import doral
from doral.service.operations import scraped
from doral.service.operations.metrics import FOLDER_VARIABLE
from doral.service.settings import Limits, ServiceSettings
from doral.service.spreading import link as links
from doral.service.spreading.door import Door
from doral.service.spreading.frames import (
    ANSWER,
    ASK,
    FAILED,
    PART_BYTES,
    PING,
    PONG,
    REFUSED,
    Broken,
    Frame,
    Reader,
    packed,
)
from doral.service.spreading.homes import home_of
from doral.service.spreading.link import Link
from doral.service.spreading.spread import Neighbours
from tests.service.harness import PROBLEM, Serving, serving
from tests.service.processes import until

NAMES = ["kits", "visits", "letters", "calls", "a/b", "ärzte", "100 %"]


def at_home(place: int) -> str:
    """A campaign that is at home with one of two."""
    return next(name for name in NAMES if home_of(name, range(2)) == place)


# --- who is at home where ---------------------------------------------------------------------------------------------


def test_campaigns_are_spread_evenly_and_a_death_moves_only_those_of_the_dead() -> None:
    names = [f"campaign-{number}" for number in range(20_000)]
    for n_workers in (2, 3, 8):
        homes = {name: home_of(name, range(n_workers)) for name in names}
        counts = Counter(homes.values())
        even = len(names) / n_workers
        assert max(abs(count - even) for count in counts.values()) < 5 * even**0.5
        left = [place for place in range(n_workers) if place != 1]
        after = {name: home_of(name, left) for name in names}
        assert all(after[name] == home for name, home in homes.items() if home != 1)
        moved = Counter(after[name] for name, home in homes.items() if home == 1)
        assert set(moved) == set(left)  # and those are spread over all that are left
        assert max(moved.values()) < 1.3 * counts[1] / len(left)


# --- two workers ------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Two:
    """Workers, and what stands between them."""

    storage: str
    folder: Path
    workers: list[Serving]

    def neighbours(self, place: int) -> Neighbours:
        return Neighbours(place=place, of=2, folder=str(self.folder))


@pytest.fixture
def storage(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/campaigns.db"
    with doral.open(url) as store:
        for name in NAMES:
            store.create(name, PROBLEM)
    return url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "s"
    made.mkdir(mode=0o700)
    return made


@contextmanager
def worker(storage: str, folder: Path, place: int, **limits: Any) -> Iterator[Serving]:
    settings = ServiceSettings(storage=storage, limits=Limits(**limits))
    where = Neighbours(place=place, of=2, folder=str(folder))
    with serving(storage, settings, where=where) as found:
        until(lambda: (folder / f"worker-{place}").exists())
        yield found


def decide(
    serving: Serving,
    name: str,
    *,
    key: str | None,
    more: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> httpx2.Response:
    body = {"context": "old", **({} if key is None else {"key": key}), **(more or {})}
    with serving.client() as client:
        return client.post(f"/v1/campaigns/{quote(name, safe='')}/decisions", json=body, headers=headers)


def handed(serving: Serving) -> dict[str, float]:
    """How many were handed on, by outcome."""
    with serving.client() as client:
        lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith("doral_handed_on_total{")]
    return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in lines}


def is_read(serving: Serving, name: str) -> bool:
    """Whether this worker has the state of the campaign."""
    return serving.store.campaign(name).session.last_seen is not None


def until_handed(first: Serving, name: str, key: str) -> None:
    """Workers find each other within a moment of their start."""
    before = handed(first).get("answered", 0.0)

    def is_so() -> bool:
        assert decide(first, name, key=key).status_code == 200
        return handed(first).get("answered", 0.0) > before

    until(is_so)


@pytest.mark.filterwarnings("ignore")
def test_what_changes_a_campaign_is_served_at_its_home_and_anywhere_when_that_is_gone(
    storage: str, folder: Path
) -> None:
    theirs, own = at_home(1), at_home(0)
    with worker(storage, folder, 0) as first:
        with worker(storage, folder, 1) as second:
            until_handed(first, theirs, "first")
            for name in NAMES:
                answer = decide(first, name, key="one")
                assert (answer.status_code, answer.json()["key"]) == (200, "one")
                assert answer.headers["content-type"] == "application/json"
                assert "x-request-id" in answer.headers
                again = decide(first, name, key="one", headers={"x-handed-on": "here", "handed_on": "here"})
                assert again.json() == answer.json()
            expected = sum(home_of(name, range(2)) == 1 for name in NAMES)
            assert handed(first)["answered"] >= 2 * expected
            assert handed(second) == {}  # what was handed on is not handed on again
            with first.client() as client:
                answer = client.post(f"/v1/campaigns/{theirs}/decisions", json={"context": "nobody"})
                assert (answer.status_code, answer.json()["field"]) == (422, "context")
                reader = first.make_key("read")
                headers = {"Authorization": f"Bearer {reader}"}
                answer = client.post(f"/v1/campaigns/{theirs}/decisions", json={"context": "old"}, headers=headers)
                assert answer.status_code == 403
                # What only looks stays where it came.
                assert client.get(f"/v1/campaigns/{theirs}").json()["summary"]["arrivals"] == 2
            counted = handed(first)
        # The home has ended: whoever is asked serves it.
        assert decide(first, theirs, key="alone").status_code == 200
        assert handed(first).get("answered") == counted["answered"]
        with worker(storage, folder, 1) as second:  # and when it is back, it is at home there again
            until_handed(first, theirs, "back")
        assert decide(first, own, key="last").status_code == 200
    with doral.open(storage) as store:
        keys = [one.key for one in store.campaign(theirs).decisions()]
        assert keys == ["first", "one", "alone", "back"]
        assert all(store.campaign(name).verify().n_differences == 0 for name in NAMES)


def ask_inside(where: Neighbours, name: str, key: str | None) -> Frame:
    """As another worker of the same user would."""
    headers = [] if key is None else [b"authorization", f"Bearer {key}".encode()]
    head = [b"id", b"127.0.0.1", b"http", b"POST", f"/v1/campaigns/{name}/decisions".encode(), b"", b"",
            b"content-type", b"application/json", *headers]  # fmt: skip

    async def ask() -> Frame:
        line = Link(where.path(where.place))
        task = asyncio.create_task(line.keep_up())
        while not line.is_up:
            await asyncio.sleep(0.01)
        try:
            return await line.ask(head, b'{"context": "old", "key": "inside"}')
        finally:
            task.cancel()

    return asyncio.run(ask())


def test_the_inner_door_is_for_this_user_alone_and_looks_at_keys_again(storage: str, folder: Path) -> None:
    theirs = at_home(1)
    with worker(storage, folder, 0) as first:
        where = Neighbours(place=0, of=2, folder=str(folder))
        path = Path(where.path(0))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for key, status in ((None, b"401"), ("doral_" + 56 * "x", b"401"), (first.make_key("read"), b"403")):
            assert ask_inside(where, theirs, key).head[0] == status
        assert first.store.campaign(theirs).report().arrivals == 0
        found = ask_inside(where, theirs, first.key)  # at home elsewhere, and still served here: it was handed on
        assert (found.kind, found.head[0]) == (ANSWER, b"200")
        assert json.loads(found.body)["key"] == "inside"
        for bad in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", bytes(64), packed(ASK, 1, [b"x"], b"")):
            with socket.socket(socket.AF_UNIX) as visitor:
                visitor.settimeout(5)
                visitor.connect(str(path))
                visitor.sendall(bad)
                visitor.shutdown(socket.SHUT_WR)
                got = visitor.recv(1_000)
                assert got == b"" or next(iter(Reader().read(got))).kind != ANSWER
        assert decide(first, theirs, key="still here").status_code == 200


def test_a_rate_is_counted_once_where_the_request_came(storage: str, folder: Path) -> None:
    theirs = at_home(1)
    with (
        worker(storage, folder, 0, rate_per_s=0.001, burst=50) as first,
        worker(storage, folder, 1, rate_per_s=0.001, burst=1),
    ):
        until_handed(first, theirs, "first")
        assert [decide(first, theirs, key=str(number)).status_code for number in range(3)] == [200] * 3


def numbers(serving: Serving, begin: str) -> dict[str, float]:
    """Of /metrics, those whose lines begin so."""
    with serving.client() as client:
        lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith(begin)]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_a_path_that_leads_nowhere_has_the_same_name_wherever_it_is_served(storage: str, folder: Path) -> None:
    with worker(storage, folder, 0) as first, worker(storage, folder, 1):
        until_handed(first, at_home(1), "first")
        counted = handed(first)["answered"]
        with first.client() as client:
            for name in (at_home(0), at_home(1)):
                assert client.post(f"/v1/campaigns/{name}/nonsense", json={}).status_code == 404
        assert handed(first)["answered"] == counted + 1
        found = numbers(first, "doral_responses_total")
        assert [key for key in found if "404" in key] == [
            'doral_responses_total{method="POST",route="(none)",status="404"}'
        ]
        assert sum(count for key, count in found.items() if "404" in key) == 2.0


def test_whoever_goes_away_in_the_middle_of_a_body_is_no_failure_of_ours(
    storage: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with worker(storage, folder, 0) as first, worker(storage, folder, 1):
        until_handed(first, at_home(1), "first")
        address = first.url.removeprefix("http://")
        for name in (at_home(0), at_home(1)):
            with socket.create_connection(("127.0.0.1", int(address.partition(":")[2]))) as leaving:
                head = f"POST /v1/campaigns/{name}/decisions HTTP/1.1\r\nHost: {address}\r\n"
                head += f"Authorization: Bearer {first.key}\r\nContent-Type: application/json\r\n"
                leaving.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
                time.sleep(0.1)

        def gone() -> float:
            found = numbers(first, "doral_responses_total")
            assert not [key for key in found if 'status="5' in key]
            return sum(count for key, count in found.items() if 'status="499"' in key)

        until(lambda: gone() == 2.0)
        assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_one_worker_looks_up_the_numbers_of_all(
    storage: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each would read all campaigns, and tell of what it has read."""
    (tmp_path / "counts").mkdir()
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "counts"))
    with worker(storage, folder, 0) as first, worker(storage, folder, 1) as second:
        until(lambda: len(first.spread.alive()) == len(second.spread.alive()) == 2)
        here, other = (first, second) if home_of("", range(2)) == 0 else (second, first)
        assert numbers(other, "doral_budget_total") == numbers(here, "doral_budget_total")
        assert numbers(here, "doral_budget_total") == {
            f'doral_budget_total{{campaign="{name}"}}': 1_000.0 for name in NAMES
        }
        assert here.store in scraped._standings
        assert other.store not in scraped._standings
    with worker(storage, folder, 0) as alone:  # and whoever is left does it
        assert len(numbers(alone, "doral_budget_total")) == len(NAMES)


def test_wrong_keys_from_an_address_are_counted_where_they_came(storage: str, folder: Path) -> None:
    """The home sees only requests whose keys were right: it refuses none for what others from there have tried."""
    theirs = at_home(1)
    with (
        worker(storage, folder, 0, sign_in_failures=3) as first,
        worker(storage, folder, 1, sign_in_failures=3) as second,
    ):
        until_handed(first, theirs, "first")
        for number in range(5):
            with second.client(f"doral_{number:012d}_{64 * 'a'}") as stranger:
                refused = stranger.get("/v1/me").status_code
        assert refused == 429
        key = first.make_key("decide")  # which the second has never seen
        counted = handed(first)["answered"]
        with first.client(key) as client:
            answer = client.post(f"/v1/campaigns/{theirs}/decisions", json={"context": "old", "key": "good"})
        assert answer.status_code == 200
        assert handed(first)["answered"] == counted + 1


def test_a_worker_makes_itself_ready_for_campaigns_at_home_with_it(storage: str, folder: Path) -> None:
    """Whether or not the others are there already: they will be."""
    with worker(storage, folder, 1) as only:
        assert [is_read(only, name) for name in NAMES] == [home_of(name, range(2)) == 1 for name in NAMES]


# --- homes that fail --------------------------------------------------------------------------------------------------


@contextmanager
def pretended(path: str, behave: Callable[[socket.socket], None]) -> Iterator[None]:
    """A home that does something else with what it is handed."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        over = threading.Event()

        def run() -> None:
            while not over.is_set():
                try:
                    visitor, _ = listening.accept()
                except OSError:
                    return
                with visitor:
                    behave(visitor)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield
        over.set()
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(timeout=10)
    os.unlink(path)  # noqa: PTH108


def _asked(visitor: socket.socket) -> Frame | None:
    reader = Reader()
    while data := visitor.recv(65_536):
        for frame in reader.read(data):
            if frame.kind == ASK:
                return frame
            assert frame.kind == PING
            visitor.sendall(packed(PONG, 0))
    return None


def refuses(visitor: socket.socket) -> None:
    while (frame := _asked(visitor)) is not None:
        visitor.sendall(packed(REFUSED, frame.number))


def dies(visitor: socket.socket) -> None:
    _asked(visitor)


def is_silent(visitor: socket.socket) -> None:
    if _asked(visitor) is not None:
        while visitor.recv(65_536):
            pass


def raves(visitor: socket.socket) -> None:
    if _asked(visitor) is not None:
        visitor.sendall(b"\xff" * 100)
        visitor.recv(65_536)


@pytest.mark.parametrize("behave", [refuses, dies, is_silent, raves])
def test_a_home_that_does_not_answer_costs_nothing_but_time(
    storage: str, folder: Path, behave: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "_SILENT_S", 0.3)
    monkeypatch.setattr(links, "_LOOK_S", 0.1)
    theirs = at_home(1)
    where = Neighbours(place=1, of=2, folder=str(folder))
    with ExitStack() as stack:
        stack.enter_context(pretended(where.path(1), behave))
        first = stack.enter_context(worker(storage, folder, 0))

        def is_up() -> bool:
            assert decide(first, theirs, key="any").status_code == 200
            return bool(handed(first))

        until(is_up)
        outcome = "refused" if behave is refuses else "lost"
        assert set(handed(first)) == {outcome}
        statuses: set[int] = set()
        bodies: Iterator[dict[str, Any]] = itertools.cycle(
            [{}, {"available": []}]
        )  # an empty list is no list of things with keys

        def ask_without_key() -> bool:
            n_lost = handed(first).get("lost", 0.0)
            answer = decide(first, theirs, key=None, more=next(bodies))
            assert (answer.status_code == 503) == (handed(first).get("lost", 0.0) > n_lost)
            statuses.add(answer.status_code)
            if answer.status_code == 503:
                assert answer.json()["type"] == "urn:doral:problem:outcome-unknown"
                assert answer.headers["retry-after"]
            return behave is refuses or answer.status_code == 503

        for _ in range(2):
            until(ask_without_key)  # while no line is up, it is served here
        assert statuses <= ({200} if behave is refuses else {200, 503})
    with doral.open(storage) as store:
        assert [one.key for one in store.campaign(theirs).decisions()].count("any") == 1


def test_a_home_that_is_stopped_is_no_home(storage: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system takes connections for a process that does nothing: one that says nothing is not there."""
    monkeypatch.setattr(links, "_SILENT_S", 0.3)
    monkeypatch.setattr(links, "_LOOK_S", 0.1)
    where = Neighbours(place=1, of=2, folder=str(folder))
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(where.path(1))
        stopped.listen()
        with worker(storage, folder, 0) as first:
            since = time.monotonic()
            while time.monotonic() < since + 1.0:
                assert decide(first, at_home(1), key=None).status_code == 200
            assert handed(first) == {}


def ask_door(folder: Path, serve: Callable[..., Any], bodies: list[bytes]) -> list[Frame]:
    """What a door answers."""

    async def ask() -> list[Frame]:
        where = Neighbours(place=1, of=2, folder=str(folder))
        door, link = Door(where.path(1), serve), Link(where.path(1))
        await door.open()
        task = asyncio.create_task(link.keep_up())
        while not link.is_up:
            await asyncio.sleep(0.01)
        try:
            return list(await asyncio.gather(*(asyncio.wait_for(link.ask([b"x"], one), 20) for one in bodies)))
        finally:
            await door.close()
            task.cancel()

    return asyncio.run(ask())


def test_an_answer_that_cannot_be_put_into_a_message_is_a_failure(folder: Path) -> None:
    """Whoever handed the request on waits for something, and pings are answered: it would wait for ever."""

    async def serve(head: tuple[bytes, ...], body: bytes) -> tuple[list[bytes], bytes]:
        return [b"200", b"x-note", b"a\nb"], b""

    assert [one.kind for one in ask_door(folder, serve, [b"", b"a"])] == [FAILED, FAILED]


def test_answers_of_whatever_size_come_whole_and_do_not_mix(folder: Path) -> None:
    """What was stored must not become a failure because it is much to tell."""
    sizes = [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES, 65 * 1024 * 1024]

    async def serve(head: tuple[bytes, ...], body: bytes) -> tuple[list[bytes], bytes]:
        await asyncio.sleep(0)
        return [b"200", b"size", body], (body * (int(body) // len(body) + 1))[: int(body)]

    found = ask_door(folder, serve, [b"%d" % size for size in sizes])
    assert [(one.kind, one.head) for one in found] == [(ANSWER, (b"200", b"size", b"%d" % size)) for size in sizes]
    for size, one in zip(sizes, found, strict=True):
        mark = b"%d" % size
        assert len(one.body) == size
        assert one.body == (mark * (size // len(mark) + 1))[:size]


def test_where_a_door_cannot_be_opened_its_socket_is_closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    async def serve(head: tuple[bytes, ...], body: bytes) -> tuple[list[bytes], bytes]:
        raise AssertionError

    async def open_it() -> None:
        with pytest.raises(OSError, match="too long"):
            await Door(str(folder / ("x" * 200)), serve).open()

    monkeypatch.setattr(socket, "socket", Noted)
    asyncio.run(open_it())
    ours = [one for one in made if one.family == socket.AF_UNIX and one.type == socket.SOCK_STREAM]
    assert ours
    assert [one.fileno() for one in ours] == [-1] * len(ours)


def test_frames_arrive_whole_in_whatever_pieces() -> None:
    sent = [(ASK, 7, [b"a", b"", b"c"], b"body\n"), (ANSWER, 8, [b"200"], b""), (PING, 0, [], b"")]
    data = b"".join(packed(*one) for one in sent)
    for size in (1, 3, 17, 1_000):
        reader = Reader()
        found = [one for at in range(0, len(data), size) for one in reader.read(data[at : at + size])]
        assert [(one.kind, one.number, list(one.head), one.body) for one in found] == sent
    with pytest.raises(Broken):
        packed(ASK, 1, [b"a\nb"])
    with pytest.raises(Broken):
        list(Reader().read(b"\x09" + bytes(20)))
