"""Random histories of workers with budget leases that are killed, paused and cut off, as many as one likes.

    python benchmarks/lease_histories.py [--histories 100000] [--jobs 2] [--first 0]

Each is checked by somebody who only reads the log (`tests/live/lease_model.py`). The first that fails is told by its
number, with which `lease_model.play` plays it again.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.live import lease_model

from doral.live.events import LEASED

SLICE = 250


def some(first: int, histories: int) -> tuple[Counter[str], str | None]:
    """What happened in these, and the first failure."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + histories):
        try:
            history = lease_model.play(seed)
        except BaseException:  # noqa: BLE001  (one that is killed where it should not be is a failure, too)
            return seen, f"history {seed}:\n{traceback.format_exc()}"
        seen["histories"] += 1
        seen["faults"] += history.fired.total()
        seen["kills"] += sum(count for fault, count in history.fired.items() if fault.startswith("kill"))
        seen["lost connections"] += sum(count for fault, count in history.fired.items() if fault.startswith("lose"))
        seen["pauses"] += sum(count for fault, count in history.fired.items() if fault.startswith("pause"))
        seen["events"] += history.auditor.kinds.total()
        seen["decisions by lease"] += history.auditor.by_lease
        seen["leases"] += history.auditor.kinds[LEASED]
        seen["given back"] += history.auditor.why["returned"]
        seen["recovered"] += history.auditor.why["recovered"]
    return seen, None


def run(histories: int, *, jobs: int, first: int = 0) -> tuple[Counter[str], str | None]:
    """The same in several processes."""
    seen: Counter[str] = Counter()
    began = told = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        slices = range(first, first + histories, SLICE)
        sizes = [min(SLICE, first + histories - start) for start in slices]
        for found, failure in pool.map(some, slices, sizes):
            seen += found
            if failure is not None:
                pool.shutdown(cancel_futures=True)
                return seen, failure
            if time.monotonic() > told + 30:
                told = time.monotonic()
                print(f"{seen['histories']:,} histories, {told - began:,.0f} s", flush=True)
    return seen, None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    given = parser.parse_args()
    start = time.monotonic()
    seen, failure = run(given.histories, jobs=given.jobs, first=given.first)
    print(
        ", ".join(f"{name}: {count:,}" for name, count in seen.items()), f"{time.monotonic() - start:,.0f} s", sep="; "
    )
    if failure is not None:
        sys.exit(failure)
