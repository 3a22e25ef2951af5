"""Experiments past one machine: two Dask workers against one, and the memory of very many runs.

    python -m benchmarks.cluster

Workers are processes of one thread each, on this machine: the ratio says what cutting, sending and waiting cost. It
needs two cores that have nothing else to do. One worker and two take turns, each time with an empty folder.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

AT_LEAST = {"cluster/two_workers_per_one": 1.7}
AT_MOST = {"cluster/memory_growth": 1.25}
COMPARE = ("experiment", "compare", "stress/tiny", "stress/urgent", "--quick", "--main-only", "--runs", "60")
TURNS = 3
FEW, MANY = 1_000, 100_000
_PEAK = """
import sys
import doral
from play import peak_mb
doral.simulate_to(sys.argv[1], "random", "stress/tiny", runs=int(sys.argv[2]), n_jobs=1).summary()
print(peak_mb())
"""
_PEERS = Path(__file__).resolve().parent / "peers"  # who know how to measure memory
_ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", str(_PEERS), *sys.path])}


@contextmanager
def dask(workers: int) -> Iterator[str]:
    """The address of a scheduler with so many workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    common = ["--host", "127.0.0.1", "--no-dashboard"]
    started = [_started("dask", "scheduler", "--port", port, *common)]
    try:
        worker = ("dask", "worker", address, "--nthreads", "1", "--no-nanny", *common)
        started += [_started(*worker) for _ in range(workers)]
        from distributed import Client

        with Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
        yield address
    finally:
        for one in reversed(started):
            one.kill()
            one.wait()


def _started(*words: str) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", *words], env=_ENVIRONMENT, stdout=quiet, stderr=quiet)


def compare_s(address: str, out: Path) -> float:
    """How long `doral experiment compare` takes on a cluster, from the first line of progress to the last part.

    Starting the command and drawing the page are the same whoever computes, and are left out.
    """
    words = [sys.executable, "-m", "doral", *COMPARE, "--out-dir", str(out), "--cluster", address]
    started = subprocess.Popen(words, env=_ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    parts = out / "parts"
    while not parts.is_dir() and started.poll() is None:
        time.sleep(0.002)
    began = time.time()
    if started.wait() != 0:
        raise RuntimeError(f"doral experiment compare failed on {address}")
    return max(path.stat().st_mtime for path in parts.glob("*.npz")) - began


def speed_up(*, turns: int = TURNS) -> tuple[float, str]:
    """Two workers against one, in turns; the first turn compiles and is not counted."""
    times: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder, dask(1) as one, dask(2) as two:
        for turn in range(turns + 1):
            for workers, address in ((1, one), (2, two)):
                took = compare_s(address, Path(folder) / f"{turn}-{workers}")
                if turn > 0:
                    times[workers].append(took)
    single, double = (statistics.median(times[workers]) for workers in (1, 2))
    return single / double, f"{single:.1f} s with one, {double:.1f} s with two"


def peak_mb(runs: int) -> float:
    """The most memory that a process held which played so many runs into a file."""
    with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder:
        words = [sys.executable, "-c", _PEAK, f"{folder}/runs.parquet", str(runs)]
        done = subprocess.run(words, env=_ENVIRONMENT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def rows(*, turns: int = TURNS, many: int = MANY) -> list[tuple[str, float, float | None, str, bool]]:
    """Name, figure, what it should be at least (at most where less is better), what it is made of, and that."""
    ratio, says = speed_up(turns=turns)
    few_mb, many_mb = peak_mb(FEW), peak_mb(many)
    return [
        ("cluster/two_workers_per_one", ratio, AT_LEAST["cluster/two_workers_per_one"], says, False),
        (
            "cluster/memory_growth",
            many_mb / few_mb,
            AT_MOST["cluster/memory_growth"],
            f"peak of {many:,} runs {many_mb:.0f} MB, of {FEW:,} {few_mb:.0f} MB",
            True,
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--many", type=int, default=MANY, help="runs whose memory is compared with that of few")
    chosen = parser.parse_args()
    for name, figure, target, said, is_less in rows(turns=chosen.turns, many=chosen.many):
        missed = target is not None and (figure > target if is_less else figure < target)
        print(f"{name:<32}{figure:>8.2f} {'<=' if is_less else '>='} {target}  {said}{'  MISSED' if missed else ''}")
