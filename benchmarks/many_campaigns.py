"""Ten thousand campaigns in one PostgreSQL: how they are made, served and listed, and what a killed worker costs.

    python benchmarks/many_campaigns.py [--campaigns 10000] [--seconds 5]

A real `doral serve` with one worker and with two, with and without homes for campaigns, and the requests of 64 kept
connections from another process: campaigns chosen all alike, by Zipf's law, and one alone. Then one of two workers is
killed while its campaigns are asked for, and every decision that was acknowledged is looked for in the logs. All share
one machine: figures of different ways are to be compared within one run. `rows` also says what they should be.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from _service_process import Served
from service_faults import postgres

import doral
from doral.service.spreading.homes import home_of
from service import CONNECTIONS, PROBLEM, Measured, load

CAMPAIGNS = 10_000
SECONDS = 5.0
_THREADS = 4
_PROBES = 24
_KILLED_S = 6.0
_KEEPING = ("--watch-every", "3600", "--expire-every", "0")  # what is measured is requests

AT_LEAST = {"many/exact_after_kill": 1.0}


def names(count: int) -> list[str]:
    """Of the campaigns."""
    return [f"campaign-{number:06d}" for number in range(count)]


def create_all(url: str, every: list[str]) -> float:
    """Seconds that it took."""
    began = time.perf_counter()
    with doral.open(url) as store, ThreadPoolExecutor(_THREADS) as threads:
        for _ in threads.map(lambda number: store.create(every[number], PROBLEM, seed=number), range(len(every))):
            pass
    return time.perf_counter() - began


def resident_bytes(pids: list[int]) -> int:
    """Memory of these processes; on Linux."""
    found = [Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in pids]
    return sum(map(int, found)) * os.sysconf("SC_PAGE_SIZE")


def ask(served: Served, path: str, *, post: object = None) -> tuple[int, bytes, float]:
    """Status, content and seconds, through a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    headers = {"Authorization": f"Bearer {served.key}", "Content-Type": "application/json"}
    began = time.perf_counter()
    try:
        connection.request("GET" if post is None else "POST", path, None if post is None else json.dumps(post), headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), time.perf_counter() - began
    finally:
        connection.close()


def measure_way(url: str, every: list[str], way: str, *, seconds: float) -> tuple[dict[str, float], dict[str, str]]:
    """One way of serving: how quick, and how large."""
    workers, words = (1, ()) if way == "1" else (2, () if way == "2_spread" else ("--no-spread",))
    figures: dict[str, float] = {}
    says: dict[str, str] = {}
    with Served(url, workers=workers, words=(*words, *_KEEPING)) as served:
        served.start()
        pids = served.workers() or [served.pid]

        def run(law: str, **more: Any) -> Measured:
            return load(served, "many", run=f"{way}-{law}-{time.time_ns()}", law=law, contexts=PROBLEM.context_names,
                        **{"names": every, "seconds": seconds, **more})  # fmt: skip

        empty = resident_bytes(pids)
        first = run("turns", seconds=600.0)  # each once
        figures[f"many/first_{way}_per_s"] = first.per_s
        says[f"many/first_{way}_per_s"] = f"every campaign once: {first.says}"
        figures[f"many/kept_kib_{way}"] = (resident_bytes(pids) - empty) / len(every) / 1024
        says[f"many/kept_kib_{way}"] = f"of memory for each campaign, in {len(pids)} processes together"
        for law in ("random", "zipf", "hot"):
            found = run(law)
            figures[f"many/{law}_{way}_per_s"] = found.per_s
            figures[f"many/{law}_{way}_per_processor_s"] = found.per_processor_s
            figures[f"many/{law}_{way}_p99_ms"] = found.p99_ms
            says[f"many/{law}_{way}_per_s"] = found.says
        figures[f"many/kept_kib_{way}"] = max(
            figures[f"many/kept_kib_{way}"], (resident_bytes(pids) - empty) / len(every) / 1024
        )
        if way == "2_spread":
            figures.update(listing(served, every))
    return figures, says


def listing(served: Served, every: list[str]) -> dict[str, float]:
    """How long those wait who look at all of them, in milliseconds."""
    found: dict[str, float] = {}
    for name, path in (
        ("list_page", "/v1/campaigns?limit=100"),
        ("list_last_page", f"/v1/campaigns?limit=100&after={every[-101]}"),
        ("ready", "/readyz"),
        ("unknown_name", "/v1/campaigns/no-such-campaign"),
        ("metrics", "/metrics"),
        ("page", "/"),
        ("page_again", "/"),
    ):
        status, content, took_s = ask(served, path)
        found[f"many/{name}_ms"] = 1e3 * took_s
        if status >= 500:
            raise SystemExit(f"{path}: {status} {content[:500]!r}")
        if name.startswith("page"):
            found[f"many/{name}_kib"] = len(content) / 1024
    return found


class Probe(threading.Thread):
    """Asks for decisions of campaigns at home with one worker, one after the other, and notes what is acknowledged."""

    def __init__(self, served: Served, own: list[str], number: int) -> None:
        super().__init__()
        self._served, self._names, self._number = served, own, number
        self.acknowledged: list[tuple[str, str]] = []  # campaign and key
        self.asked: list[tuple[float, float]] = []  # from when to when
        self.is_over = False

    def run(self) -> None:
        draw, n = random.Random(self._number), 0
        while not self.is_over:
            name, key = draw.choice(self._names), f"probe-{self._number}-{n}"
            n += 1
            began = time.monotonic()
            while not self.is_over:  # the same key until it is acknowledged
                with suppress(OSError, http.client.HTTPException):
                    status, _, _ = ask(
                        self._served, f"/v1/campaigns/{name}/decisions", post={"context": "old", "key": key}
                    )
                    if status == 200:
                        self.acknowledged.append((name, key))
                        self.asked.append((began, time.monotonic()))
                        break


def measure_kill(url: str, every: list[str]) -> tuple[dict[str, float], dict[str, str]]:
    """A worker is killed while its campaigns are asked for."""
    with Served(url, workers=2, words=_KEEPING) as served:
        served.start()
        time.sleep(1.0)
        victim = served.workers()[0]  # whose place is the first
        own = [name for name in every if home_of(name, range(2)) == 0][:200]
        probes = [Probe(served, own, number) for number in range(_PROBES)]
        for one in probes:
            one.start()
        time.sleep(_KILLED_S / 2)
        killed_at = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        time.sleep(_KILLED_S)
        for one in probes:
            one.is_over = True
        for one in probes:
            one.join()
        # The first that each of them asked for after the kill, and those that were under way.
        again = [min((end for begin, end in one.asked if begin > killed_at), default=float("inf")) for one in probes]
        again_s = sorted(end - killed_at for end in again)
        cut = [end - begin for one in probes for begin, end in one.asked if begin <= killed_at < end]
        usual = sorted(end - begin for one in probes for begin, end in one.asked if end <= killed_at)
        _, text, _ = ask(served, "/metrics")
    handed = [line for line in text.decode().splitlines() if line.startswith("doral_handed_on_total")]
    told = Counter(pair for one in probes for pair in one.acknowledged)
    lost = twice = wrong = 0
    with doral.open(url) as store:
        for name in own:
            campaign = store.campaign(name)
            stored = Counter(one.key for one in campaign.decisions() if one.key and one.key.startswith("probe-"))
            lost += sum(stored[key] == 0 for where, key in told if where == name)
            twice += sum(count > 1 for count in stored.values())
            try:
                wrong += campaign.verify().n_differences > 0
            except doral.DoralError:
                wrong += 1
    figures = {
        "many/takeover_ms": 1e3 * again_s[len(again_s) // 2],
        "many/takeover_last_ms": 1e3 * again_s[-1],
        "many/cut_off_ms": 1e3 * max(cut, default=0.0),
        "many/before_the_kill_ms": 1e3 * usual[len(usual) // 2],
        "many/exact_after_kill": float(lost == twice == wrong == 0),
    }
    says = {
        "many/takeover_ms": "from the kill until a caller had a decision of a campaign of that worker; the middle one",
        "many/takeover_last_ms": f"the last of {_PROBES} callers",
        "many/cut_off_ms": "the longest that was under way at the kill, asked again with its key",
        "many/before_the_kill_ms": "how long one took before, in the middle",
        "many/exact_after_kill": f"{len(told)} acknowledged: {lost} lost, {twice} twice, {wrong} logs wrong; {handed}",
    }
    return figures, says


def measure(*, campaigns: int = CAMPAIGNS, seconds: float = SECONDS) -> tuple[dict[str, float], dict[str, str]]:
    """All figures by name, and what is to be said of some."""
    every = names(campaigns)
    with postgres() as url:
        created_s = create_all(url, every)
        figures = {"many/created_per_s": campaigns / created_s}
        says = {"many/created_per_s": f"{campaigns} in {created_s:.1f} s, {_THREADS} threads of one process"}
        for way in ("1", "2_apart", "2_spread"):
            found, said = measure_way(url, every, way, seconds=seconds)
            figures |= found
            says |= said
            print(way, {name: round(value, 1) for name, value in found.items()}, file=sys.stderr, flush=True)
        for law in ("random", "zipf", "hot"):
            # By what the service's own processes used: neighbours on the machine hardly change it.
            figures[f"many/{law}_2_spread_per_apart"] = (
                figures[f"many/{law}_2_spread_per_processor_s"] / figures[f"many/{law}_2_apart_per_processor_s"]
            )
        figures["many/random_2_spread_per_1"] = (
            figures["many/random_2_spread_per_processor_s"] / figures["many/random_1_per_processor_s"]
        )
        found, said = measure_kill(url, every)
        figures |= found
        says |= said
    return figures, says


def rows(*, campaigns: int = CAMPAIGNS, seconds: float = SECONDS) -> list[tuple[str, float, float | None, str]]:
    """Name, figure, what it should be at least, and what it is made of."""
    figures, says = measure(campaigns=campaigns, seconds=seconds)
    return [(name, figure, AT_LEAST.get(name), says.get(name, "")) for name, figure in figures.items()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS, help="how many")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each kind of request")
    given = parser.parse_args()
    print(f"{CONNECTIONS} connections")
    for name, figure, target, said in rows(campaigns=given.campaigns, seconds=given.seconds):
        aim = "" if target is None else f">= {target:g}"
        missed = "  MISSED" if target is not None and figure < target else ""
        print(f"{name:<42}{figure:>12,.2f} {aim:>10}  {said}{missed}")
