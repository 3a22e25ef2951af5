"""Peers at work: jobs for `play.py`, in their environments, two at a time; what is done stays done."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from environments import HERE, Peer, environment

TOGETHER = 3  # scenarios of one process: enough to make up for the import, few enough to share the work evenly
SLACK_S = 900.0  # of the wall clock, on top of the limits: machines are shared

Found = dict[str, Any]


def play_jobs(peer: Peer, jobs: list[Found], kept: Path) -> None:
    """Plays what is not there yet; a process that dies in a job is started again with the others."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    while left := [job for job in jobs if job["key"] not in results(kept)]:
        asked = kept.with_suffix(".json")
        asked.write_text(json.dumps(left))
        command = [str(peer.python), str(HERE / "play.py"), str(peer.folder), str(asked), str(kept)]
        limit = sum(job["limit_s"] for job in left) + SLACK_S
        known = _whole_lines(kept)
        words = _ended(command, limit)
        done, begun = results(kept), {told["begun"] for told in list(_told(kept))[known:] if "begun" in told}
        failed = [job["key"] for job in left if job["key"] in begun and job["key"] not in done]
        if not failed and not any(job["key"] in done for job in left):
            failed = [job["key"] for job in left]  # its library cannot even be imported
        with kept.open("a") as file:
            file.writelines(json.dumps({"key": key, "error": words}) + "\n" for key in failed)
        asked.unlink()


def _ended(command: list[str], limit: float) -> str:
    """Its last words."""
    try:
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return "it did not end"
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]


def _told(kept: Path) -> Iterator[Found]:
    for line in kept.read_text().splitlines() if kept.exists() else ():
        with suppress(json.JSONDecodeError):  # cut off when somebody interrupted
            yield json.loads(line)


def _whole_lines(kept: Path) -> int:
    """How many there are, the last one ended or left out: what was begun then and not finished was interrupted."""
    whole = list(_told(kept))
    kept.write_text("".join(json.dumps(told) + "\n" for told in whole))
    return len(whole)


def results(kept: Path) -> dict[str, Found]:
    """By key of the job."""
    return {told["key"]: told for told in _told(kept) if "key" in told}


def in_parts(jobs: list[Found], size: int) -> Iterator[list[Found]]:
    for first in range(0, len(jobs), size):
        yield jobs[first : first + size]


def side_by_side(tasks: list[Callable[[], None]], workers: int) -> None:
    """The first that fails ends it, when those that run have ended."""
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for task in [pool.submit(task) for task in tasks]:
            task.result()
