"""`make bench-peers`: DORAL beside the libraries that a user might pick instead, on the same tapes.

What is done is kept under build/peers; a call that was interrupted goes on. Only a call for everything writes
docs/benchmarks.md and RESULTS.md here, others the same names in build/peers. README.md says how to add a peer.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # these files, and those of the other benchmarks

import export  # noqa: E402
import known  # noqa: E402
import own  # noqa: E402
import page  # noqa: E402
import playing  # noqa: E402
import scenarios  # noqa: E402
import speed  # noqa: E402
from environments import BUILD, Peer, install, peers  # noqa: E402

from doral.simulation.results.differences import FEWEST_RUNS  # noqa: E402

ROOT = HERE.parents[1]
PAGE, TABLES = ROOT / "docs" / "benchmarks.md", ROOT / "benchmarks" / "peers" / "RESULTS.md"
TRIED, TRIED_TABLES = BUILD / "benchmarks.md", BUILD / "RESULTS.md"  # of a call for some of it
RESULTS = BUILD / "results.json"
RUNS, LIMIT_S, MINUTES, WORKERS = 6, 6.0, 22.0, 2
MOST_RUNS = 20
FULL_RUNS, FULL_LIMIT_S, FULL_MINUTES = 20, 3_600.0, 1e6
OUT_OF_TIME = "no time: another call goes on with it"


def main() -> None:
    given = _arguments()
    chosen = [peer for peer in peers() if _is_named(peer.key, given.peers)]
    places = [name for name in scenarios.names() if _is_named(name, given.scenarios)]
    _refuse_unknown("peer", given.peers, [peer.key for peer in peers()])
    _refuse_unknown("scenario", given.scenarios, scenarios.names())
    said = _Words()
    with ThreadPoolExecutor(max_workers=1) as pool:  # packages are fetched and unpacked while tapes are written
        installing = pool.submit(_install_all, chosen, said)
        rows, tapes = _own_and_tapes(places, given, said)
        problems = installing.result()
    played = _play_all([peer for peer in chosen if not problems[peer.key]], places, tapes, given, said)
    timed = None
    if not given.no_speed:
        said("speed, one after the other")
        timed = speed.measure([peer for peer in chosen if not problems[peer.key]], said)
    found = {
        "asked": {"runs": given.runs, "rounds": given.rounds, "limit_s": given.limit, "full": given.full},
        "scenarios": rows,
        "peers": [_told(peer, problems[peer.key]) for peer in chosen],
        "played": played,
        "speed": timed,
        "about": page.about(),
        "seconds": said.seconds,
    }
    RESULTS.write_text(json.dumps(found, indent=1))
    said(f"wrote {RESULTS.relative_to(ROOT)}")
    is_whole = given.peers == given.scenarios == ["*"] and timed is not None
    paths = (PAGE, TABLES) if is_whole else (TRIED, TRIED_TABLES)
    for path, text in zip(paths, (page.page(found), page.results(found)), strict=True):
        path.write_text(text)
        said(f"wrote {path.relative_to(ROOT)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-peers", description=__doc__)
    parser.add_argument("--peers", nargs="*", default=["*"], help="folders of benchmarks/peers; * stands for anything")
    parser.add_argument("--scenarios", nargs="*", default=["*"], help="names of scenarios; * stands for anything")
    parser.add_argument("--runs", type=int, help=f"of each scenario, {FEWEST_RUNS} or more ({RUNS})")
    parser.add_argument("--rounds", type=int, help=f"to which scenarios are shortened ({scenarios.ROUNDS:,})")
    parser.add_argument("--limit", type=float, help=f"processor seconds for a policy on a scenario ({LIMIT_S:g})")
    parser.add_argument("--minutes", type=float, help=f"after which nothing more is begun to be played ({MINUTES:g})")
    parser.add_argument("--full", action="store_true", help="scenarios as long as they are, 20 runs: days, not minutes")
    parser.add_argument("--no-speed", action="store_true", help="leave out the speed table")
    given = parser.parse_args()
    for name in ("rounds", "limit", "minutes"):
        value = getattr(given, name)
        if value is not None and not value > 0:
            parser.error(f"--{name} must be above 0, not {value:g}")
    given.rounds = None if given.full else given.rounds or scenarios.ROUNDS
    given.runs = (FULL_RUNS if given.full else RUNS) if given.runs is None else given.runs
    given.limit = given.limit or (FULL_LIMIT_S if given.full else LIMIT_S)
    given.minutes = given.minutes or (FULL_MINUTES if given.full else MINUTES)
    if given.runs < FEWEST_RUNS:
        parser.error(f"--runs must be {FEWEST_RUNS} or more: intervals are made of them")
    return given


def _refuse_unknown(what: str, patterns: list[str], known: list[str]) -> None:
    """Each of them has to mean something."""
    unknown = [pattern for pattern in patterns if not fnmatch.filter(known, pattern)]
    if unknown or not patterns:
        raise SystemExit(f"no {what} {' '.join(unknown) or 'is named'}; known: {' '.join(known)}")


def _is_named(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


class _Words:
    """Says what is done, and how long it has taken; from several threads."""

    def __init__(self) -> None:
        self._started, self._lock = time.perf_counter(), threading.Lock()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def __call__(self, words: str) -> None:
        with self._lock:
            print(f"{self.seconds:7.0f} s  {words}", flush=True)


def _install_all(chosen: list[Peer], said: _Words) -> dict[str, str]:
    problems: dict[str, str] = {}

    def one(peer: Peer) -> None:
        problems[peer.key] = install(peer)
        said(f"{peer.name}: {problems[peer.key] or 'installed'}")

    playing.side_by_side([functools.partial(one, peer) for peer in chosen], WORKERS)
    return problems


def _own_and_tapes(
    places: list[str], given: argparse.Namespace, said: _Words
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """What `doral-otf` earns, and the tapes of all runs as files; the last is for trials, and is not counted."""
    rows, tapes, digest = [], {}, export.sources_digest()
    for old in (BUILD / "tapes").glob("*"):
        if digest not in old.name:
            shutil.rmtree(old)
    for name in places:
        scenario = scenarios.shortened(name, given.rounds)
        folder = BUILD / "tapes" / f"{name.replace('/', '_')}-{digest}-{given.rounds}"
        runs = _runs(scenarios.arriving(scenario), given)
        tapes[name] = [str(folder / str(run)) for run in range(runs + 1)]
        for run, path in enumerate(tapes[name]):
            export.export(scenario, Path(path), seed=scenarios.SEED, run=run)
        earned, second = (
            own.play_own(scenario, one, runs=runs, seed=scenarios.SEED) for one in (own.POLICY, own.SECOND)
        )
        rows.append(
            {
                "name": name,
                "rounds": scenarios.arriving(scenario),
                "whole": scenarios.arriving(scenarios.shortened(name, None)),
                "runs": earned,
                "second": {"runs": second},
                "known": known.play_known(tapes[name][:-1], tapes[name][-1]),
            }
        )
    said(f"{own.POLICY} has played {len(places)} scenarios, and their tapes are written")
    return rows, tapes


def _runs(rounds: int, given: argparse.Namespace) -> int:
    """More of a scenario that is shorter than the others, at the same price."""
    return max(given.runs, min(MOST_RUNS, given.runs * (given.rounds or rounds) // rounds))


def _play_all(
    ready: list[Peer], places: list[str], tapes: dict[str, list[str]], given: argparse.Namespace, said: _Words
) -> list[dict[str, Any]]:
    parts: list[tuple[int, Peer, list[dict[str, Any]], Path]] = []
    order = scenarios.mixed(places)
    for peer in ready:
        jobs = [_job(peer, policy, place, tapes[place], given) for place in order for policy in peer.policies]
        size = playing.TOGETHER * len(peer.policies)
        for number, part in enumerate(playing.in_parts(jobs, size)):
            parts.append((number, peer, part, BUILD / "played" / f"{peer.key}-{number}.jsonl"))
    parts.sort(key=lambda part: part[0])  # scenarios that are begun are played by all: all are equally far in the end
    left, is_begun = [len(parts)], {}

    def task(number: int, peer: Peer, jobs: list[dict[str, Any]], kept: Path) -> None:
        if is_begun.setdefault(number, said.seconds < 60.0 * given.minutes):
            playing.play_jobs(peer, jobs, kept)
        left[0] -= 1
        said(f"{peer.name} has played {jobs[0]['scenario']} to {jobs[-1]['scenario']}; {left[0]} parts to go")

    tasks: list[Callable[[], None]] = [functools.partial(task, *part) for part in parts]
    playing.side_by_side(tasks, WORKERS)
    found = []
    for _, peer, jobs, kept in parts:
        done = playing.results(kept)
        found += [_shown(peer, job, done.get(job["key"], {"left_out": OUT_OF_TIME})) for job in jobs]
    return found


def _job(peer: Peer, policy: str, place: str, tapes: list[str], given: argparse.Namespace) -> dict[str, Any]:
    longer = scenarios.arriving(scenarios.shortened(place, given.rounds)) / (given.rounds or scenarios.ROUNDS)
    limit = round(given.limit * max(1.0, longer), 1)
    *counted, trial = tapes
    key = f"{policy} | {place} | {len(counted)} runs | {limit:g} s | {export.digest(tapes)} | {peer.digest}"
    return {"key": key, "policy": policy, "scenario": place, "limit_s": limit, "tapes": counted, "trial": trial}


def _shown(peer: Peer, job: dict[str, Any], done: dict[str, Any]) -> dict[str, Any]:
    told = {name: value for name, value in done.items() if name != "key"}
    return {"peer": peer.key, "policy": job["policy"], "scenario": job["scenario"], **told}


def _told(peer: Peer, problem: str) -> dict[str, Any]:
    return {
        "key": peer.key,
        "name": peer.name,
        "version": peer.version,
        "policies": peer.policies,
        "timed": peer.timed,
        "why_not": problem,
    }


if __name__ == "__main__":
    main()
