"""How fast: LinUCB with delays under diverse Pareto delays, ten arms and ten contexts, a budget for every round.

Two things that must not be mixed up. Simulated: `d-linucb` and `doral-otf` by `doral.simulate`, compiled, tapes drawn
and books kept; beside it the C program of engine_vs_c.py, which makes the same decisions. Called from Python, once for
each decision and each answer: every peer, and a campaign in memory, by their own time, without the player's. And the
native pass of Vowpal Wabbit over a file that was written beforehand. One after the other; the best of as many turns.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import engine_vs_c
import export
import numpy as np
import playing
import scenarios
from environments import BUILD, HERE, Peer, environment

import doral
from doral.simulation.scenario.scenario import Scenario

POLICY, FULL_POLICY = "d-linucb", "doral-otf"
LIMIT_S = 3.0  # of processor time, for a run of what Python calls
ROUNDS = 20_000  # of its tape
TURNS = 3  # of everybody, and the best of them counts
NATIVE = "vowpalwabbit"
NATIVE_ROUNDS = 30_000

Found = dict[str, Any]


def timed_scenario(rounds: int | None = None) -> Scenario:
    """The paper's, with a budget for every round: otherwise half of them are none."""
    scenario = scenarios.shortened(scenarios.TIMED, None)
    horizon = scenario.problem.horizon if rounds is None else rounds
    problem = dataclasses.replace(scenario.problem, horizon=horizon, budget=float(horizon))
    return dataclasses.replace(scenario, problem=problem)


def measure(ready: list[Peer], said: Callable[[str], None]) -> Found:
    """Rounds per second, import time and memory of everybody.

    In turns: machines are faster for some minutes and slower for others, and everybody meets both.
    """
    timed = [peer for peer in ready if peer.timed is not None]
    native = next((peer for peer in ready if peer.key == NATIVE), None)
    for policy in (POLICY, FULL_POLICY):
        doral.simulate(policy, timed_scenario(), runs=1, progress=False)  # compiles
    turns: list[Found] = []
    for run in range(TURNS):
        with engine_vs_c.one_core():
            own = {"own": _simulated(POLICY), "full": _simulated(FULL_POLICY), "online": _online(run), "c": _c()}
            turns.append({**own, **{peer.key: _peer(peer, run) for peer in timed}})
        if native is not None:  # not on one core: it parses in a thread of its own
            turns[-1]["native"] = _native(native)
        said(f"turn {run + 1} of {TURNS}")
    found: Found = {name: _best([turn[name] for turn in turns]) for name in turns[0]}
    found["own"].update(_own_process())
    found["peers"] = [found.pop(peer.key) for peer in timed]
    return found


def _best(turns: list[Found]) -> Found:
    """The best of each figure; of one that failed once, that."""
    failed = next((one for one in turns if "error" in one or "why_not" in one), None)
    if failed is not None:
        return failed
    least = ("import_s",)
    return {
        name: value if isinstance(value, str) else (min if name in least else max)(one[name] for one in turns)
        for name, value in turns[0].items()
    }


def _simulated(policy: str) -> Found:
    scenario, runs = timed_scenario(), 2
    started = time.process_time()
    doral.simulate(policy, scenario, runs=runs, progress=False)
    return {"rounds_per_s": runs * scenario.problem.horizon / (time.process_time() - started)}


def _own_process() -> Found:
    """Import, compilation and memory."""
    told = _process("simulate", POLICY)
    with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder:  # where nothing is compiled yet
        cold = _process("simulate", POLICY, DORAL_CACHE_DIR=folder)
    return {**told, "compile_s": cold["first_s"] - told["first_s"]}


def _online(run: int) -> Found:
    return _process("online", POLICY, str(_tape(ROUNDS, run)), str(LIMIT_S))


def _process(*words: str, **settings: str) -> Found:
    command = [sys.executable, str(HERE / "own_process.py"), *words]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def _c() -> Found:
    """The engine's loop alone, and the C program's."""
    try:
        program = engine_vs_c.compile_program()
    except (OSError, subprocess.CalledProcessError) as error:
        return {"why_not": f"no C compiler: {error}"[:160]}
    task = engine_vs_c.paper_task("pareto", POLICY, budget=float(engine_vs_c.HORIZON))
    compared = engine_vs_c.compare(f"{POLICY}/pareto", task, POLICY, program, turns=1, repeats=TURNS)
    return {"rounds_per_s": compared.c_rounds_per_s, "engine_rounds_per_s": compared.engine_rounds_per_s}


def _tape(rounds: int, run: int) -> Path:
    folder = BUILD / "timed" / f"tape-{export.sources_digest()}-{rounds}-{run}"
    export.export(timed_scenario(rounds), folder, seed=scenarios.SEED, run=run)
    return folder


def _peer(peer: Peer, run: int) -> Found:
    kept, path = BUILD / "timed" / f"{peer.key}.jsonl", str(_tape(ROUNDS, run))
    kept.unlink(missing_ok=True)
    job = {"key": path, "policy": peer.timed, "tapes": [path], "limit_s": LIMIT_S, "speed": True}
    playing.play_jobs(peer, [job], kept)
    told = playing.results(kept)[path]
    found = {"peer": peer.key, "policy": peer.timed}
    if "error" in told:
        return {**found, "error": told["error"]}
    (played,) = told["runs"]
    pace = played["rounds"] / max(played["own_seconds"], 1e-9)
    return {**found, "rounds_per_s": pace, "import_s": told["import_s"], "peak_mb": told["peak_mb"]}


def _native(peer: Peer) -> Found:
    """Over answers alone; and over decisions, too: with delays, each is predicted first and learned from later."""
    folder, path = _tape(NATIVE_ROUNDS, 0), BUILD / "timed" / "native.txt"
    found: Found = {}
    for name, decisions in (("rounds_per_s", False), ("with_decisions_per_s", True)):
        costs = write_native(folder, path, decisions=decisions)
        command = [str(peer.python), str(peer.folder / "native.py"), str(path), "1", *map(str, costs)]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300, check=False)
        path.unlink()
        if done.returncode:
            return {"error": (done.stderr.strip().splitlines() or ["no word why"])[-1][:300]}
        found[name] = NATIVE_ROUNDS / json.loads(done.stdout.splitlines()[-1])["seconds"]
    return found


def write_native(tape: Path, path: Path, *, decisions: bool) -> tuple[float, float]:
    """Vowpal Wabbit's text format: arms chosen at random, answers in the order in which they return.

    With `decisions`, there is an example without an answer for each round, too, where it is made. Returns the least and
    the largest cost, for which RegCB asks.
    """
    context, delay = np.load(tape / "context.npy"), np.load(tape / "delay.npy", mmap_mode="r")
    reward, features = np.load(tape / "reward.npy", mmap_mode="r"), np.load(tape / "arm_features.npy")
    n, n_arms = delay.shape
    chosen = np.random.default_rng(0).integers(0, n_arms, n).tolist()
    lines = [
        f"|a arm={arm} " + " ".join(f"f{i}:{value:.6g}" for i, value in enumerate(features[arm].tolist()))
        for arm in range(n_arms)
    ]
    events = [(i + delay[i, arm], 0, i) for i, arm in enumerate(chosen) if np.isfinite(delay[i, arm])]
    if decisions:  # what is answered in a round is heard before it is decided in it
        events += [(float(i), 1, i) for i in range(n)]
    with path.open("w") as file:
        for _, is_decision, i in sorted(events):
            shown = [f"shared |c x{context[i]}:1", *lines]
            if not is_decision:
                arm = chosen[i]
                shown[1 + arm] = f"0:{-reward[i, arm]:.6g}:{1 / n_arms:.6g} {lines[arm]}"
            file.write("\n".join(shown) + "\n\n")
    costs = -reward[np.arange(n), chosen]
    return min(0.0, float(costs.min())), max(0.0, float(costs.max()))
