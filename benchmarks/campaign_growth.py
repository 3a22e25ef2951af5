"""How what a live campaign costs grows with its events, its open decisions, and the number of campaigns in the store.

    python benchmarks/campaign_growth.py [events|open|campaigns ...] [--most 1000000]

On SQLite, with the policy that campaigns have unless told otherwise. Times are processor time, the best of several: a
disk that is slow now and quick a second later does not enter. Memory is what Python and NumPy ask for (`tracemalloc`),
beyond what was there before.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sqlite3
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fitting import COUNTED_TOLERANCE, Growth, again_if_over, show

import doral
from doral.live.campaign import Campaign
from doral.live.events.row import CREATED, Row, beginning, seal
from doral.live.page.page import page
from doral.live.runtime.session import Session
from doral.live.state.definition import make_definition
from doral.live.state.snapshot import encode_snapshot as encode
from doral.live.state.state import CampaignState
from doral.live.storage.connection import SCHEMA_LOCK
from doral.live.storage.contract import CampaignRow, Log
from doral.live.storage.sql import SqlStorage
from doral.live.storage.sql_log import put_in

NAME = "grows"
SIZES = {
    "events": (1_000, 4_000, 12_000, 24_000, 48_000, 96_000, 192_000, 384_000, 768_000),
    "open": (100, 1_000, 12_500, 25_000, 50_000, 100_000, 200_000, 400_000, 800_000),
    "campaigns": (30, 100, 375, 750, 1_500, 3_000, 6_000, 12_000),
}
MOST = {"events": 96_000, "open": 100_000, "campaigns": 3_000}  # unless more is asked for
BATCH = 1_000
SLICES, SLICE = 30, 4  # calls in a row, and how often: the best slice counts
CREATED_AT_ONCE = 20  # campaigns whose making is timed
OPEN_DEADLINE = 500  # rounds: of the log whose events grow, so many decisions at most are open
PROBLEM = doral.scenario("paper/diverse-pareto").problem
CONTEXTS = PROBLEM.context_names

# What grows, unit, the exponent that it should have, and why.
ORDERS: dict[str, tuple[str, float, str]] = {
    "events/decide": ("us", 0.0, "the state does not grow with the log"),
    "events/feedback": ("us", 0.0, "an index finds the decision"),
    "events/report": ("us", 0.0, "made of the state"),
    "events/page": ("ms", 0.0, "made of the facts, of which there are so many at most"),
    "events/facts_again": ("ms", 0.0, "only what is new is read"),
    "events/reopen": ("ms", 1.0, "a snapshot is read, and the events that it stands for are counted"),
    "events/reopen_anew": ("ms", 1.0, "without a snapshot, every event is read once"),
    "events/replay": ("ms", 1.0, "every event is read once"),
    "events/facts": ("ms", 1.0, "every event is read once"),
    "events/reopen_memory": ("kB", 0.0, "the state does not grow with the log"),
    "events/replay_memory": ("kB", 0.0, "the log is read in parts"),
    "events/snapshot_bytes": ("kB", 0.0, "the state does not grow with the log"),
    "events/disk_bytes": ("kB", 1.0, "every event is a row"),
    "open/decide": ("us", 0.0, "a ring, of which an arrival looks at the ends"),
    "open/feedback": ("us", 0.0, "an index and a place in the ring"),
    "open/expire_none": ("us", 0.0, "an index finds the oldest"),
    "open/expire_all": ("ms", 1.0, "every open decision is looked at once"),
    "open/reopen": ("ms", 1.0, "every open decision is in the snapshot"),
    "open/snapshot": ("ms", 1.0, "every open decision is in the snapshot"),
    "open/snapshot_bytes": ("kB", 1.0, "every open decision is in the snapshot"),
    "open/memory": ("kB", 1.0, "every open decision has its place"),
    "campaigns/create": ("us", 0.0, "an index knows which names are taken"),
    "campaigns/open": ("us", 0.0, "an index finds the name"),
    "campaigns/decide": ("us", 0.0, "campaigns know nothing of each other"),
    "campaigns/list": ("us", 1.0, "every name is told"),
    "campaigns/disk_bytes": ("kB", 1.0, "every campaign has its rows"),
}
_SCALE = {"us": 1e6, "ms": 1e3, "kB": 1e-3}


class Found:
    """Costs by name, size after size."""

    def __init__(self) -> None:
        self._costs: dict[str, list[float]] = {}

    def add(self, name: str, cost: float) -> None:
        """`cost` is in seconds or in bytes."""
        self._costs.setdefault(name, []).append(cost * _SCALE[ORDERS[name][0]])

    def growths(self, sizes: tuple[int, ...]) -> list[Growth]:
        axis_names = {"open": "open decisions"}
        return [
            Growth(
                name=name,
                of=axis_names.get(name.partition("/")[0], name.partition("/")[0]),
                unit=ORDERS[name][0],
                order=ORDERS[name][1],
                why=ORDERS[name][2],
                sizes=sizes,
                costs=tuple(costs),
                **({"tolerance": COUNTED_TOLERANCE} if ORDERS[name][0] == "kB" else {}),
            )
            for name, costs in self._costs.items()
        ]


def seconds(work: Callable[[], Any]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def best(work: Callable[[], Any], *, times: int = 3) -> float:
    return min(seconds(work) for _ in range(times))


def per_call(work: Callable[[int], Any]) -> float:
    """Seconds of one call, in the best slice of several."""
    return min(
        seconds(lambda first=first: [work(first + number) for number in range(SLICE)]) / SLICE  # type: ignore[misc]
        for first in range(0, SLICES * SLICE, SLICE)
    )


def peak_bytes(work: Callable[[], Any]) -> float:
    tracemalloc.start()
    try:
        kept = work()  # noqa: F841  (alive until it was measured)
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def disk_bytes(file: Path) -> float:
    """Of a store that nobody has open."""
    return float(sum(one.stat().st_size for one in file.parent.glob(f"{file.name}*")))


@contextmanager
def copied(file: Path, *, snapshots: bool) -> Iterator[str]:
    """The store once more, as a URL, with or without what saves time; the original must be closed."""
    with tempfile.TemporaryDirectory(prefix="doral-bench-", dir=file.parent) as folder:
        copy = Path(shutil.copy(file, folder))
        if not snapshots:
            connection = sqlite3.connect(copy)
            with connection:
                connection.execute("DELETE FROM snapshots")
            connection.close()
        yield f"sqlite:///{copy}"


def opened(url: str) -> doral.Store:
    """A store whose campaign has been read."""
    store = doral.open(url, create=False)
    store.campaign(NAME).ledger()
    return store


def _reopen(url: str) -> None:
    opened(url).close()


def _decide(campaign: Campaign, number: int) -> None:
    campaign.decide(CONTEXTS[number % len(CONTEXTS)])


def _answered(campaign: Campaign, count: int) -> int:
    """So many arrivals, two of three answered, the rest expired after a while; the number of the last event."""
    made = campaign.decide_many([CONTEXTS[number % len(CONTEXTS)] for number in range(count)])
    served = [one for one in made if one.arm is not None]
    campaign.feedback_many([(one.id, 0.5) for number, one in enumerate(served) if number % 3])
    campaign.expire()
    return campaign.report().events


def _problem(arrivals: int, *, budget: float, deadline: float) -> doral.Problem:
    return doral.Problem(
        arms=PROBLEM.arms, contexts=PROBLEM.contexts, budget=budget, horizon=arrivals, deadline=deadline
    )


def measure_events(sizes: tuple[int, ...]) -> list[Growth]:
    """One campaign that grows; at each size it is looked at, closed, and opened again."""
    found, problem = Found(), _problem(2 * sizes[-1], budget=sizes[-1], deadline=OPEN_DEADLINE)
    with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder:
        file = Path(folder) / "events.db"
        url = f"sqlite:///{file}"
        with doral.open(url) as store:
            store.create(NAME, problem, seed=1, clock="rounds")
        for size in sizes:
            with doral.open(url) as store:
                _grow_events(found, store.campaign(NAME), size)
            found.add("events/disk_bytes", disk_bytes(file))
            with copied(file, snapshots=True) as copy:
                found.add("events/reopen", best(partial(_reopen, copy)))
                found.add("events/reopen_memory", peak_bytes(partial(opened, copy)))
            with copied(file, snapshots=False) as copy:
                found.add("events/reopen_anew", best(partial(_reopen, copy), times=2))
                found.add("events/replay_memory", peak_bytes(partial(opened, copy)))
    return found.growths(sizes)


def _grow_events(found: Found, campaign: Campaign, size: int) -> None:
    events = campaign.report().events
    while events < size:
        events = _answered(campaign, min(BATCH, max(50, (size - events) // 2)))
    found.add("events/facts", seconds(campaign.facts))  # this store has not seen any of it
    served: list[doral.Decision] = []
    while len(served) < SLICES * SLICE:
        served += [one for one in campaign.decide_many(list(CONTEXTS) * 10) if one.arm is not None]
    found.add("events/feedback", per_call(lambda number: campaign.feedback(served[number].id, 0.5)))
    found.add("events/decide", per_call(partial(_decide, campaign)))
    found.add("events/report", per_call(lambda _: campaign.report()))
    campaign.facts()
    again = []
    for _ in range(5):
        campaign.decide(CONTEXTS[0])
        again.append(seconds(campaign.facts))
    found.add("events/facts_again", min(again))
    facts = campaign.facts()
    found.add("events/page", best(lambda: page(facts)))
    found.add("events/replay", campaign.session.read(partial(_replayed_s, campaign.session)))
    campaign.save_snapshot()
    found.add("events/snapshot_bytes", campaign.session.read(lambda _, fold: len(encode(fold))))


def _replayed_s(session: Session, log: Log, fold: CampaignState) -> float:
    return seconds(lambda: session.reader.follow(session.reader.first(log), log, fold.sequence))


def measure_open(sizes: tuple[int, ...]) -> list[Growth]:
    """One campaign whose decisions nobody answers."""
    found, problem = Found(), _problem(2 * sizes[-1], budget=2 * sizes[-1], deadline=2 * sizes[-1])
    with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder:
        file = Path(folder) / "open.db"
        url = f"sqlite:///{file}"
        with doral.open(url) as store:
            store.create(NAME, problem, seed=1, clock="rounds")
        for size in sizes:
            with doral.open(url) as store:
                _grow_open(found, store.campaign(NAME), size)
            with copied(file, snapshots=True) as copy:
                found.add("open/reopen", best(partial(_reopen, copy)))
                found.add("open/memory", peak_bytes(partial(opened, copy)))
                with opened(copy) as store:
                    campaign = store.campaign(NAME)
                    late = campaign.report().arrivals + 2 * sizes[-1] + 1
                    found.add("open/expire_all", seconds(partial(campaign.expire, now=late)))
    return found.growths(sizes)


def _grow_open(found: Found, campaign: Campaign, size: int) -> None:
    def pending() -> int:
        return campaign.report().decisions["pending"]

    while (missing := size - pending()) > 0:
        campaign.decide_many([CONTEXTS[number % len(CONTEXTS)] for number in range(min(BATCH, missing))])
    found.add("open/decide", per_call(partial(_decide, campaign)))
    few = campaign.decision_page(limit=SLICES * SLICE, state="pending").decisions  # the oldest
    found.add("open/feedback", per_call(lambda number: campaign.feedback(few[number].id, 0.5)))
    found.add("open/expire_none", per_call(lambda _: campaign.expire()))
    found.add("open/snapshot", best(lambda: campaign.session.read(lambda _, fold: encode(fold))))
    found.add("open/snapshot_bytes", campaign.session.read(lambda _, fold: len(encode(fold))))
    campaign.save_snapshot()


def measure_campaigns(sizes: tuple[int, ...]) -> list[Growth]:
    """One store whose campaigns become more."""
    found, problem = Found(), _problem(10_000, budget=5_000, deadline=OPEN_DEADLINE)
    with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder:
        file = Path(folder) / "campaigns.db"
        url, made = f"sqlite:///{file}", 0
        for size in sizes:
            with doral.open(url) as store:
                _put(store, [f"campaign-{number}" for number in range(made, size - CREATED_AT_ONCE)], problem)
                made = size - CREATED_AT_ONCE
                taken = []
                while made < size:
                    name = f"campaign-{made}"
                    taken.append(seconds(lambda name=name: store.create(name, problem, seed=1, clock="rounds")))  # type: ignore[misc]
                    made += 1
                found.add("campaigns/create", sorted(taken)[len(taken) // 4])
                found.add("campaigns/list", per_call(lambda _: store.list()))
                found.add("campaigns/decide", per_call(partial(_decide, store.campaign("campaign-3"))))
            found.add("campaigns/open", best(lambda: _open_one(url), times=8))
            found.add("campaigns/disk_bytes", disk_bytes(file))
    return found.growths(sizes)


def _put(store: doral.Store, names: Sequence[str], problem: doral.Problem) -> None:
    """Campaigns that nobody opens: all that `create` stores, in one transaction."""
    storage = store._storage
    assert isinstance(storage, SqlStorage)
    connection = storage._opened()
    connection.begin(SCHEMA_LOCK, within_s=60.0)
    for name in names:
        now, tag = time.time(), secrets.token_hex(4)
        definition = make_definition(
            name=name, problem=problem, policy="doral-otf", seed=1, clock="rounds", created_at=now
        )
        first = Row(1, CREATED, 0.0, now, secrets.randbits(62), data=definition.to_json())
        first = seal(first, before=beginning(tag), salt=b"", engine=1)
        put_in(
            connection,
            CampaignRow(id=0, name=name, tag=tag, created_at=now),
            lambda first=first: iter([[first]]),  # type: ignore[misc]
            if_taken="choose another",
        )
    connection.commit()
    connection.close()


def _open_one(url: str) -> None:
    with doral.open(url, create=False) as store:
        store.campaign("campaign-5").ledger()


AXES = {"events": measure_events, "open": measure_open, "campaigns": measure_campaigns}


def growths(names: list[str] | None = None, *, most: int | None = None) -> list[Growth]:
    """All axes, or those of these names; what is over its bound was measured again."""
    found = []
    for name in names or AXES:
        sizes = tuple(size for size in SIZES[name] if size <= (most or MOST[name]))
        found += again_if_over(partial(AXES[name], sizes), tries=2)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("axes", nargs="*", choices=list(AXES), default=list(AXES))
    parser.add_argument("--most", type=int, help="the largest size; without it, what `make bench` has time for")
    given = parser.parse_args()
    show(growths(given.axes, most=given.most))
