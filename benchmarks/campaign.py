"""How fast live campaigns are: durable and in memory, next to what the same machine does without them, in one run.

    python benchmarks/campaign.py [--decisions 1000000]

Ratios are of two things measured in turns; the times that they are made of are shown with them. `measure` returns all
by name. "Live calls" of the engine are calls of `Engine.decide` from Python, one per arrival.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import doral
from doral.engine.engine import Engine
from doral.engine.setup import Blueprint
from doral.live.campaign import Campaign
from doral.live.events.event import known
from doral.live.events.row import check, seal
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log

TURNS = 9
SLICE, SLICES = 10, 120  # durable decisions in a row, and how often
BATCH = 100
BATCHES = 20
CALLS = 3_000  # decisions in memory per turn
FILL_BATCH = 5_000

PROBLEM = doral.scenario("paper/diverse-pareto").problem
CONTEXTS = PROBLEM.context_names
POLICY = "doral"

# What each name must reach, and in which direction.
AT_LEAST = {
    "campaign/sqlite_decide_per_bare_commit": 0.7,
    "campaign/decide_many_per_second": 50_000.0,
    "campaign/record_many_per_second": 20_000.0,
    "campaign/decide_many_per_engine_call": 0.3,
}
AT_MOST = {
    "campaign/memory_decide_us": 30.0,
    "campaign/reopen_1m_decisions_s": 0.5,
    "campaign/replay_us_per_event": 12.0,
    "campaign/replay_growth_exponent": 1.1,
}
REPLAYED = (0.1, 0.3, 1.0)  # of the long log: how the time to read it grows
IN_TURNS = 20_000  # decisions, each of which is answered before the next
RECORDS = 2_000


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def bare_database(path: Path) -> sqlite3.Connection:
    """The same durability, one row per commit, and nothing else."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, number REAL, text TEXT)")
    return connection


def commit_rows(connection: sqlite3.Connection, count: int) -> None:
    for number in range(count):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (number, text) VALUES (?, ?)", (0.5 * number, "a row"))
        connection.execute("COMMIT")


def decide_singly(campaign: Campaign, count: int) -> None:
    for number in range(count):
        campaign.decide(CONTEXTS[number % len(CONTEXTS)])


def decide_in_batches(campaign: Campaign, batches: int, size: int) -> None:
    arrivals = [CONTEXTS[number % len(CONTEXTS)] for number in range(size)]
    for _ in range(batches):
        campaign.decide_many(arrivals)


def engine_calls(count: int) -> Callable[[], None]:
    """The engine alone, called from Python once per arrival: no log, no ledger, no names."""
    engine = Engine(Blueprint(options=doral.policy(POLICY), problem=PROBLEM, seed=1))
    everything = np.zeros((1, 0), dtype=np.uint8)
    arrivals = 0

    def work() -> None:
        nonlocal arrivals
        for number in range(count):
            arrivals += 1
            engine.decide(number % len(CONTEXTS), everything, float(arrivals))

    return work


def fast(durations: list[float]) -> float:
    """A low quantile: what the work takes when the disk and the neighbours leave it alone."""
    return sorted(durations)[len(durations) // 5]


def against_bare_commits(durable: Campaign, bare: sqlite3.Connection, slices: int) -> dict[str, float]:
    """Single durable decisions, in short slices, each side first in every other one.

    A disk may need 0.1 ms for a commit now and 3 ms a second later: long turns in a fixed order would compare the disk
    with itself, and on a slow disk any ratio comes near 1. So the times themselves are shown, too.
    """
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(slices):
        pair = [
            (theirs, lambda: commit_rows(bare, SLICE)),
            (ours, lambda: decide_singly(durable, SLICE)),
        ]
        for times, work in pair if number % 2 else reversed(pair):
            times.append(seconds(work) / SLICE)
    return {
        "campaign/sqlite_decide_per_bare_commit": fast(theirs) / fast(ours),
        "campaign/sqlite_decide_us": 1e6 * fast(ours),
        "campaign/bare_commit_us": 1e6 * fast(theirs),
    }


def rates(folder: Path, *, turns: int = TURNS) -> dict[str, float]:
    """Single and batched decisions, against a bare commit, the engine alone, and memory."""
    bare = bare_database(folder / "bare.db")
    kept, fleeting = doral.open(f"sqlite:///{folder / 'campaign.db'}"), doral.open("memory://")
    durable = kept.create("bench", PROBLEM, policy=POLICY, seed=1, clock="rounds")
    memory = fleeting.create("bench", PROBLEM, policy=POLICY, seed=1, clock="rounds")
    engine = engine_calls(CALLS)
    for campaign in (durable, memory):  # compiled code is loaded, files exist
        decide_in_batches(campaign, 2, BATCH)
        decide_singly(campaign, 20)
    commit_rows(bare, 20)
    engine()
    found = against_bare_commits(durable, bare, SLICES)
    many, in_memory, alone = [], [], []
    for _ in range(turns):
        many.append(BATCH * BATCHES / seconds(lambda: decide_in_batches(durable, BATCHES, BATCH)))
        in_memory.append(CALLS / seconds(lambda: decide_singly(memory, CALLS)))
        alone.append(CALLS / seconds(engine))
    bare.close()
    kept.close()
    return {
        **found,
        "campaign/decide_many_per_second": statistics.median(many),
        "campaign/decide_many_per_engine_call": statistics.median(a / b for a, b in zip(many, alone, strict=True)),
        "campaign/decide_many_per_memory_decide": statistics.median(
            a / b for a, b in zip(many, in_memory, strict=True)
        ),
        "campaign/memory_decide_us": 1e6 / statistics.median(in_memory),
        "campaign/engine_call_us": 1e6 / statistics.median(alone),
    }


def replay_s(campaign: Campaign, last: int) -> float:
    """Seconds to read the log from its beginning up to an event, without a snapshot."""
    session = campaign._session

    def work(log: Log, _: CampaignState) -> float:
        return seconds(lambda: session.reader.follow(session.reader.first(log), log, last))

    return session.read(work)


def reading_in_turns() -> float:
    """Microseconds per event of a log in which decisions and answers alternate, so that none can be read together."""
    campaign = doral.open("memory://").create("turns", PROBLEM, policy=POLICY, seed=1, clock="rounds")
    for number in range(IN_TURNS):
        made = campaign.decide(CONTEXTS[number % len(CONTEXTS)])
        if made.arm is not None:
            campaign.feedback(made.id, 0.5)
    events = campaign.report().events
    return 1e6 * replay_s(campaign, events) / events


def chain_us(campaign: Campaign) -> dict[str, float]:
    """Microseconds per event, to write the checksum and to check it."""
    events = campaign._session.read(lambda log, _: log.after(1, limit=20_000))
    before = known(campaign._session.read(lambda log, _: log.after(0, limit=1))[0].chain)

    def seal_all() -> None:
        head = before
        for event in events:
            head = known(seal(event, before=head, salt=before, engine=1).chain)

    sealing = min(seconds(seal_all) for _ in range(3))
    checking = min(seconds(lambda: check(events, before=before, salt=before)) for _ in range(3))
    return {
        "campaign/chain_seal_us": 1e6 * sealing / len(events),
        "campaign/chain_check_us": 1e6 * checking / len(events),
    }


def recording(folder: Path) -> float:
    """Decisions that were made elsewhere, with their answers, per second."""
    with doral.open(f"sqlite:///{folder / 'records.db'}") as store:
        campaign = store.create("records", PROBLEM, policy=POLICY, seed=1, clock="rounds")
        arms = [arm.name for arm in PROBLEM.arms]
        records = [
            {"context": CONTEXTS[i % len(CONTEXTS)], "arm": arms[i % len(arms)], "at": i, "reward": 0.5}
            for i in range(RECORDS)
        ]
        for one in records:
            one["answered_at"] = one["at"]
        return RECORDS / seconds(lambda: campaign.record_many(records))


def reading(folder: Path) -> dict[str, float]:
    """The long log of `reopening`, read from its beginning."""
    with doral.open(f"sqlite:///{folder / 'long.db'}") as store:
        campaign = store.campaign("long")
        events = campaign.report().events
        sizes = [int(share * events) for share in REPLAYED]
        took = [replay_s(campaign, size) for size in sizes]
        verified = seconds(lambda: campaign.verify())
        exponent, _ = np.polyfit(np.log(sizes), np.log(took), 1)
        return {
            **{f"campaign/replay_{size}_events_s": each for size, each in zip(sizes, took, strict=True)},
            "campaign/replay_us_per_event": 1e6 * took[-1] / events,
            "campaign/replay_growth_exponent": float(exponent),
            f"campaign/verify_{events}_events_s": verified,
            **chain_us(campaign),
        }


def reopening(folder: Path, decisions: int) -> float:
    """Seconds until a campaign with so many decisions, half of the played ones answered, can be used again."""
    url = f"sqlite:///{folder / 'long.db'}"
    problem = doral.Problem(
        arms=PROBLEM.arms, contexts=PROBLEM.contexts, budget=decisions / 2, horizon=decisions + 1, deadline=500
    )
    with doral.open(url) as store:
        campaign = store.create("long", problem, policy=POLICY, seed=1, clock="rounds")
        arrivals = [CONTEXTS[number % len(CONTEXTS)] for number in range(FILL_BATCH)]
        for start in range(0, decisions, FILL_BATCH):
            made = campaign.decide_many(arrivals[: decisions - start])
            campaign.feedback_many([(one.id, 0.5) for one in made[::2] if one.arm is not None])
    with doral.open(url) as store:
        took = seconds(lambda: store.campaign("long").decide(CONTEXTS[0]))
        assert store.campaign("long").report().arrivals == decisions + 1
    return took


def measure(*, decisions: int = 1_000_000, turns: int = TURNS) -> dict[str, float]:
    """All figures, by name."""
    with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder:
        found = rates(Path(folder), turns=turns)
        many = "1m" if decisions == 1_000_000 else f"{decisions}"
        found[f"campaign/reopen_{many}_decisions_s"] = reopening(Path(folder), decisions)
        found |= reading(Path(folder))
        found["campaign/replay_in_turns_us_per_event"] = reading_in_turns()
        found["campaign/record_many_per_second"] = recording(Path(folder))
    return found


def show(found: dict[str, float]) -> None:
    """A table for people."""
    print(f"{'figure':<44} {'measured':>12} {'wanted':>12}")
    for name, value in found.items():
        wanted = f">= {AT_LEAST[name]:g}" if name in AT_LEAST else f"<= {AT_MOST[name]:g}" if name in AT_MOST else ""
        print(f"{name:<44} {value:>12.4g} {wanted:>12}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000, help="of the campaign that is reopened")
    figures = measure(decisions=parser.parse_args().decisions)
    show(figures)
    print(json.dumps(figures))
