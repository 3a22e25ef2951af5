"""How fast live campaigns are: durable and in memory, next to what the same machine does without them, in one run.

    python benchmarks/campaign.py [--decisions 1000000]

Every figure that a machine's speed enters is a ratio of two things measured in turns. `measure` returns them by name.
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

import doral
from doral.live.campaign import Campaign

TURNS = 9
SINGLES = 200  # durable decisions per turn
BATCH = 100
BATCHES = 20
CALLS = 3_000  # decisions in memory per turn
FILL_BATCH = 5_000

PROBLEM = doral.scenario("paper/diverse-pareto").problem
CONTEXTS = PROBLEM.context_names
POLICY = "doral"

# What each name must reach, and in which direction.
AT_LEAST = {
    "campaign/sqlite_decide_per_bare_commit": 0.6,
    "campaign/decide_many_per_second": 20_000.0,
    "campaign/decide_many_per_memory_decide": 0.3,
}
AT_MOST = {"campaign/memory_decide_us": 30.0, "campaign/reopen_1m_decisions_s": 2.0}


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


def rates(folder: Path, *, turns: int = TURNS) -> dict[str, float]:
    """Single and batched decisions, against a bare commit and against memory."""
    bare = bare_database(folder / "bare.db")
    kept, fleeting = doral.open(f"sqlite:///{folder / 'campaign.db'}"), doral.open("memory://")
    durable = kept.create("bench", PROBLEM, policy=POLICY, seed=1, clock="rounds")
    memory = fleeting.create("bench", PROBLEM, policy=POLICY, seed=1, clock="rounds")
    for campaign in (durable, memory):  # compiled code is loaded, files exist
        decide_in_batches(campaign, 2, BATCH)
        decide_singly(campaign, 20)
    commit_rows(bare, 20)
    to_commit, many, in_memory = [], [], []
    for _ in range(turns):
        to_commit.append(seconds(lambda: commit_rows(bare, SINGLES)) / seconds(lambda: decide_singly(durable, SINGLES)))
        many.append(BATCH * BATCHES / seconds(lambda: decide_in_batches(durable, BATCHES, BATCH)))
        in_memory.append(CALLS / seconds(lambda: decide_singly(memory, CALLS)))
    bare.close()
    kept.close()
    return {
        "campaign/sqlite_decide_per_bare_commit": statistics.median(to_commit),
        "campaign/decide_many_per_second": statistics.median(many),
        "campaign/decide_many_per_memory_decide": statistics.median(
            batched / single for batched, single in zip(many, in_memory, strict=True)
        ),
        "campaign/memory_decide_us": 1e6 / statistics.median(in_memory),
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
