"""One hot campaign on a real PostgreSQL: decisions per second of 1, 2 and 4 workers, with and without budget leases.

    python benchmarks/leases.py [--seconds 4] [--turns 3]

Each worker is a process that decides in batches of 100 as fast as it can; with answers, it also answers 20 of each
batch. The campaign is one for all, with 300,000 decisions behind it: a hot one is not young for long, and while it is
young workers look at each other's decisions all the time. All ways take turns, so that a busy machine enters all of
them alike; the figures are medians over turns, and their ratios what counts. After each the ledger adds up, and every
decision that a worker was told of is in the log, once; in the end all of the log is verified.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from service_faults import postgres

import doral
from doral.live.campaign import Campaign
from doral.live.events import DECIDED, LEASED

BATCH = 100
ANSWERED = 20  # of each batch
SECONDS = 4.0
TURNS = 3
PROBLEM = doral.scenario("paper/diverse-pareto").problem
BUDGET, HORIZON = 40_000_000.0, 80_000_000
DEADLINE_S = 10.0  # so that open decisions do not pile up from one way to the next
BEFORE, BEFORE_BATCH = 300_000, 5_000
READ = 20_000  # events of another one
NAME = "hot"

AT_LEAST = {"leases/two_per_one": 1.6, "leases/four_per_two": 1.0}


@dataclass(frozen=True)
class Way:
    """How a campaign is worked on."""

    workers: int
    leases: bool
    answers: bool = False

    @property
    def name(self) -> str:
        """
        >>> Way(2, True, True).name
        '2_leased_answers'
        """
        return f"{self.workers}_{'leased' if self.leases else 'ordinary'}{'_answers' if self.answers else ''}"


WAYS = tuple(
    Way(workers, leases, answers)
    for answers in (False, True)
    for workers, leases in ((1, False), (1, True), (2, False), (2, True), (4, True))
)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What all workers of one way did."""

    per_s: float
    per_processor_s: float  # of the workers
    server_us: float  # of processor, for each decision
    p50_ms: float
    p99_ms: float
    leases: int
    answers_per_s: float
    table_bytes: float  # for each event, with all indexes
    wal_bytes: float  # likewise


def make(store: doral.Store) -> Campaign:
    """The campaign, after its youth."""
    problem = doral.Problem(
        arms=PROBLEM.arms, contexts=PROBLEM.contexts, budget=BUDGET, horizon=HORIZON, deadline=DEADLINE_S
    )
    campaign = store.create(NAME, problem, policy="doral-otf", seed=1)
    contexts = [PROBLEM.context_names[i % PROBLEM.n_contexts] for i in range(BEFORE_BATCH)]
    for _ in range(BEFORE // BEFORE_BATCH):
        served = [one.id for one in campaign.decide_many(contexts) if one.arm is not None]
        campaign.feedback_many([(one, 1.0) for one in served[:: BATCH // ANSWERED]])
    return campaign


def measure(url: str, way: Way, *, seconds: float) -> Measured:
    """One way for some seconds."""
    with doral.open(url) as store:
        campaign = store.campaign(NAME)
        since = campaign.session.read(lambda log, _: log.head()[0])
        told = {
            "url": url,
            "campaign": NAME,
            "contexts": PROBLEM.context_names,
            "batch": BATCH,
            "answers": ANSWERED if way.answers else 0,
            "leases": way.leases,
            "seconds": seconds,
        }
        before = _sizes(url)
        found, server_s = _worked(told, way.workers, _server(url))
        table_bytes, wal_bytes = (after - size for after, size in zip(_sizes(url), before, strict=True))
        leases = _checked(campaign, found, since)
    events = sum(len(one["sequences"]) + one["answers"] for one in found)
    decisions, processor_s = sum(one["decisions"] for one in found), sum(one["processor_s"] for one in found)
    return Measured(
        per_s=sum(one["decisions"] / one["wall_s"] for one in found),
        per_processor_s=decisions / processor_s,
        server_us=1e6 * server_s / decisions,
        p50_ms=statistics.median(one["p50_ms"] for one in found),
        p99_ms=max(one["p99_ms"] for one in found),
        leases=leases,
        answers_per_s=sum(one["answers"] / one["wall_s"] for one in found),
        table_bytes=table_bytes / events,
        wal_bytes=wal_bytes / events,
    )


def _sizes(url: str) -> tuple[int, int]:
    """Of the table of events with its indexes, and of all that was ever written ahead."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT sum(pg_total_relation_size(oid))::bigint, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint "
            "FROM pg_class WHERE relname = 'events'"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def _server(url: str) -> int:
    with psycopg.connect(url) as connection:
        return int(_stat(connection.info.backend_pid)[1])


def _stat(pid: int) -> list[str]:
    """What Linux says of a process, after its name."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()


def _processor_s(server: int) -> float:
    """Of all processes of a server, those included that have ended."""
    own = _stat(server)
    ticks = sum(map(int, own[11:15]))
    for one in Path(f"/proc/{server}/task/{server}/children").read_text().split():
        with suppress(FileNotFoundError):  # it has ended just now
            ticks += sum(map(int, _stat(int(one))[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def reading_us(url: str) -> float:
    """Of processor, for each decision of another process, without those that are decided here."""
    with doral.open(url) as one, doral.open(url) as other:
        writing, reading = one.campaign(NAME), other.campaign(NAME)
        contexts = [PROBLEM.context_names[i % PROBLEM.n_contexts] for i in range(BATCH)]
        reading.ledger()
        for _ in range(READ // BATCH):
            writing.decide_many(contexts)
        began = time.process_time()
        reading.ledger()
        return 1e6 * (time.process_time() - began) / READ


def _worked(told: dict[str, Any], workers: int, server: int) -> tuple[list[dict[str, Any]], float]:
    """What each worker did, and seconds of processor that the server took for it."""
    program = [sys.executable, str(Path(__file__).with_name("_lease_worker.py")), json.dumps(told)]
    started = [
        subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        for _ in range(workers)
    ]
    try:
        for one in started:
            if _line(one) != "ready":
                raise SystemExit("a worker did not get ready; see above")
        used_s = _processor_s(server)
        for one in started:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        found = [json.loads(_line(one)) for one in started]
        used_s = _processor_s(server) - used_s
        if any(one.wait(timeout=60) for one in started):
            raise SystemExit("a worker failed; see above")
        return found, used_s
    finally:
        for one in started:
            if one.poll() is None:
                one.kill()
                one.wait()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _checked(campaign: Campaign, found: list[dict[str, Any]], since: int) -> int:
    """What must hold afterwards; how many leases were taken."""
    ledger = campaign.ledger()
    assert ledger.spent + ledger.reserved + ledger.left == ledger.total, f"the ledger does not add up: {ledger}"
    told = [sequence for one in found for sequence in one["sequences"]]
    assert len(told) == len(set(told)), "a decision was given to two callers"
    stored, leases = _stored(campaign, since)
    assert stored == set(told), f"{len(stored):,} decisions in the log, and {len(told):,} were told"
    return leases


def _stored(campaign: Campaign, since: int) -> tuple[set[int], int]:
    """The numbers of all decisions after this event, and how many leases there were."""

    def look(log: Any, fold: Any) -> tuple[set[int], int]:
        found, leases, last = set(), 0, since
        while page := log.after(last):
            found |= {event.sequence for event in page if event.kind == DECIDED}
            leases += sum(event.kind == LEASED for event in page)
            last = page[-1].sequence
        return found, leases

    return campaign.session.read(look)


def measure_all(*, seconds: float = SECONDS, turns: int = TURNS) -> tuple[dict[str, list[Measured]], float]:
    """All ways in turns, and what it takes to read a decision."""
    found: dict[str, list[Measured]] = {way.name: [] for way in WAYS}
    reading: list[float] = []
    with postgres() as url:
        with doral.open(url) as store:
            make(store)
        for _ in range(turns):
            for way in WAYS:
                found[way.name].append(measure(url, way, seconds=seconds))
            reading.append(reading_us(url))
        with doral.open(url) as store:
            verified = store.campaign(NAME).verify()
            assert verified.n_differences == 0, f"the log is not as it must be: {verified}"
    return found, statistics.median(reading)


def rows(*, seconds: float = SECONDS, turns: int = TURNS) -> list[tuple[str, float, float | None, str]]:
    """Name, figure, what it should be at least, and what it is made of."""
    measured, reading = measure_all(seconds=seconds, turns=turns)

    def ratio(over: str, *under: str) -> float:
        """The median over turns, each against the best of those below in the same turn."""
        return statistics.median(
            one.per_s / max(measured[name][turn].per_s for name in under) for turn, one in enumerate(measured[over])
        )

    figures = {"leases/reading_us": reading}
    figures |= {f"leases/{name}_per_s": statistics.median(one.per_s for one in many) for name, many in measured.items()}
    for end in ("", "_answers"):
        figures |= {
            f"leases/two_per_one{end}": ratio(f"2_leased{end}", f"1_ordinary{end}", f"1_leased{end}"),
            f"leases/four_per_two{end}": ratio(f"4_leased{end}", f"2_leased{end}"),
            f"leases/two_without_per_one{end}": ratio(f"2_ordinary{end}", f"1_ordinary{end}"),
        }
    says = {f"leases/{name}_per_s": _says(many) for name, many in measured.items()}
    says["leases/reading_us"] = "of processor, for each decision of another process"
    says["leases/two_per_one"] = "one worker: the better of ordinary and leased, in the same turn"
    return [(name, figure, AT_LEAST.get(name), says.get(name, "")) for name, figure in figures.items()]


def _says(many: list[Measured]) -> str:
    middle = sorted(many, key=lambda one: one.per_s)[len(many) // 2]
    answers = f", {middle.answers_per_s:,.0f} answers/s" if middle.answers_per_s else ""
    bytes_ = f"{middle.table_bytes:.0f} bytes an event in its table, {middle.wal_bytes:.0f} written ahead"
    processor = f"{middle.per_processor_s:,.0f} per second of processor, the server's {middle.server_us:.0f} us each"
    return (
        f"{processor}{answers}; batch p50 {middle.p50_ms:.1f} ms, p99 {middle.p99_ms:.1f} ms; "
        f"{middle.leases} leases; {bytes_}; "
        f"turns {min(one.per_s for one in many):,.0f} to {max(one.per_s for one in many):,.0f}/s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each way, in each turn")
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    for name, figure, target, said in rows(seconds=given.seconds, turns=given.turns):
        aim = "" if target is None else f">= {target:g}"
        missed = "  MISSED" if target is not None and figure < target else ""
        print(f"{name:<42}{figure:>12,.2f} {aim:>10}  {said}{missed}")
