"""Tapes as files: what every arm would bring in every round, and when, for players that know nothing of DORAL.

A tape is a folder of `.npy` files and `problem.json`; `play.py` tells a policy what it may know of it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.compiled import Block, Entry, Program, kernel
from doral.person import Category
from doral.problem import Problem
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.tape import (
    ALWAYS,
    BY_ROW,
    WORLD,
    Tape,
    World,
    draw_delay,
    draw_reward,
    example,
    is_taken_up,
    new_tape,
    phase_of,
    row_of,
)
from doral.simulation.world.truth import Truth, make_truth

RARE_SHARE = 1 / 64  # levels of a category that fewer have go together
WRITTEN = "digest"  # the last file of a tape: one that has it is whole


class Tables(NamedTuple):
    """By round and arm."""

    reward: Floats
    delay: Floats
    worth: Floats  # expected, of what counts
    paid_share: Floats  # of its list price; (0, A) where everything is paid
    deadlines: Floats  # (J,) or (N,) of people


@kernel
def fill(tables: Tables, world: World, tape: Tape) -> None:
    """What every arm would bring, with the draws that the arms of a round share."""
    for i in range(tape.context.size):
        who = tape.context[i]
        for arm in range(tables.reward.shape[1]):
            reward = draw_reward(world, i + 1, who, arm, tape.noise[i])
            delay = draw_delay(world, who, arm, reward, tape.delay[i])
            tables.reward[i, arm], tables.delay[i, arm] = reward, delay
            tables.worth[i, arm] = world.counted[phase_of(world, i + 1), who, arm]
            if tables.paid_share.shape[0] > 0:
                uniform = tape.payment[i] if tape.payment.size > 0 else 0.0
                share = 0.0
                if delay <= tables.deadlines[who] and (reward != 0.0 or not world.silent):
                    if world.payments.kind == BY_ROW:
                        share = world.payments.shares[row_of(world, who, arm, tape.noise[i])]
                    elif is_taken_up(world.payments, who, arm, reward, uniform):
                        share = 1.0
                tables.paid_share[i, arm] = share


def _entries() -> dict[str, Entry]:
    world, tape = example()
    nothing = np.zeros((1, 1))
    return {"fill": Entry(fill, (Tables(nothing, nothing, nothing, nothing, np.zeros(1)), world, tape))}


PROGRAM = Program(name="peers-export", entries=_entries)


@functools.cache
def sources_digest() -> str:
    """Of DORAL and of what makes tapes: part of the name of each, so that whoever changes them gets new ones."""
    here = Path(__file__).resolve().parent
    sources = here.parents[1] / "src" / "doral"
    files = (*sorted(sources.rglob("*.py")), here / "export.py", here / "scenarios.py", here / "speed.py")
    return _digest(path.read_bytes() for path in files)


def _digest(parts: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:12]


def export(scenario: Scenario, folder: Path, *, seed: int, run: int) -> None:
    """Write one run, unless it is there; the scenario's shape is part of the folder's name, or should be."""
    if (folder / WRITTEN).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    truth = make_truth(scenario, seed=seed, run=run)
    tape = new_tape(truth.world, truth.rounds)
    WORLD["record"](Block(tape), truth.block, seed, run, 1)
    for name, table in _tables(scenario, truth, tape).items():
        if table.size:
            np.save(folder / f"{name}.npy", table)
    np.save(folder / "arm_features.npy", truth.features.reshape(scenario.problem.n_arms, -1))
    who, told = tape.context, _told(scenario, truth)
    classes = truth.classes[who] if truth.classes.size else who
    np.save(folder / "context.npy", classes)
    x, features = _known(scenario.problem, truth, who)
    np.save(folder / "x.npy", x)
    if features is not None:
        np.save(folder / "features.npy", features)
    told.update(run=run, n_x=x.shape[1])
    (folder / "truth.json").write_text(json.dumps({"oracle": truth.oracle}))
    (folder / "problem.json").write_text(json.dumps(told, indent=1))
    (folder / WRITTEN).write_text(_digest(path.read_bytes() for path in sorted(folder.iterdir())))


def digest(folders: list[str]) -> str:
    """Of what is on these tapes: who played them need not play others that are the same."""
    return _digest((Path(folder) / WRITTEN).read_bytes() for folder in folders)


def _tables(scenario: Scenario, truth: Truth, tape: Tape) -> dict[str, Floats]:
    shape = (truth.rounds, scenario.problem.n_arms)
    deadlines = scenario.problem.deadlines.copy()
    is_billed = truth.world.payments.kind != ALWAYS
    tables = Tables(
        reward=np.zeros(shape),
        delay=np.zeros(shape),
        worth=np.zeros(shape),
        paid_share=np.zeros(shape if is_billed else (0, shape[1])),
        deadlines=deadlines[truth.classes] if truth.classes.size else deadlines,
    )
    PROGRAM["fill"](Block(tables), truth.block, Block(tape))
    nothing = np.zeros(0)
    if truth.world.nothing.shape[1]:
        phases = np.minimum(np.arange(truth.rounds) // truth.world.phase_rounds, truth.world.means.shape[0] - 1)
        nothing = truth.world.nothing[phases, tape.context]
    named = tables._asdict() | {"available": tape.available, "times": truth.times, "nothing": nothing}
    return {name: table for name, table in named.items() if name != "deadlines"}


def _told(scenario: Scenario, truth: Truth) -> dict[str, Any]:
    """The problem in plain values; JSON knows no infinity."""
    problem = scenario.problem
    costs = np.broadcast_to(problem.costs_by_context, (problem.n_contexts, problem.n_arms))
    return {
        "name": scenario.name,
        "n_arms": problem.n_arms,
        "arm_names": list(problem.arm_names),
        "n_contexts": problem.n_contexts,
        "context_names": list(problem.context_names),
        "shares": None if problem.shares is None else problem.shares.tolist(),
        "costs": costs.tolist(),
        "weights": problem.weights.tolist(),
        "deadlines": [None if math.isinf(one) else one for one in problem.deadlines.tolist()],
        "budget": problem.budget,
        "expected_rounds": problem.expected_rounds,
        "until": problem.until,
        "feedback": problem.feedback,
        "counted": problem.counted,
        "paid": problem.paid,
        "baseline": list(problem.baseline) if isinstance(problem.baseline, tuple) else None,
        "control": problem.control,
        "person": _person(problem, truth),
    }


def _person(problem: Problem, truth: Truth) -> list[dict[str, Any]]:
    if truth.people is None:
        return []
    return [
        {
            "name": feature.name,
            "kind": "category" if isinstance(feature, Category) else "number",
            "levels": int(np.unique(truth.people.crowd.columns[feature.name]).size),
        }
        for feature in problem.person
    ]


def _known(problem: Problem, truth: Truth, who: Any) -> tuple[Floats, Floats | None]:
    """What is known of everybody who arrives: ready for a linear model, and as it is."""
    contexts = np.eye(problem.n_contexts)
    if truth.people is None:
        return contexts[who], None
    columns: list[Floats] = [contexts[truth.classes]] if problem.n_contexts > 1 else [np.ones((truth.classes.size, 1))]
    raw: list[Floats] = []
    for feature in problem.person:
        column = truth.people.crowd.columns[feature.name]
        if isinstance(feature, Category):
            levels, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
            common = np.flatnonzero(counts >= RARE_SHARE * column.size)
            place = np.full(levels.size, common.size)
            place[common] = np.arange(common.size)
            columns.append(np.eye(common.size + 1)[place[codes]])
            raw.append(codes.astype(np.float64))
        else:
            spread = column.std()
            columns.append(((column - column.mean()) / (spread if spread > 0 else 1.0))[:, None])
            raw.append(column.astype(np.float64))
    return np.column_stack(columns)[who], np.column_stack(raw)[who]
