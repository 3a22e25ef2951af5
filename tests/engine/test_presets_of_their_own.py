"""Every preset is compiled as a composition of its own: the same decisions and the same state as with all pieces at
hand, bit for bit.

The other tests play all policies with the one composition that holds all pieces. Here each preset is compiled, which
takes some seconds: a test each, so that they are spread over the workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from doral.compiled import Block
from doral.engine.blueprint import Blueprint
from doral.engine.choice import PLAYED
from doral.engine.compose import chosen_pieces
from doral.engine.engine import Engine, Heard
from doral.engine.events import LEARNED
from doral.engine.leaves import leaves
from doral.engine.presets import POLICY_NAMES, policy
from doral.engine.state import State
from doral.simulation.world.players import CompiledPlayer
from doral.simulation.world.returns import true_return_table
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth
from tests.engine.cases import QUICK_RACE, SILENT, UNIT, Case

SEED = 5
ALL_ARMS = np.zeros((1, 0), dtype=np.uint8)


def _cases() -> list[Case]:
    """Every preset; with silent answers again those that bring a piece which none before has had."""
    found: dict[tuple[str, ...], Case] = {}
    for scenario in (UNIT, SILENT):
        for name in POLICY_NAMES:
            options = policy(name, **(QUICK_RACE if policy(name).screening == "race" else {}))
            pieces = chosen_pieces(options, scenario.problem)
            if scenario is UNIT or not set(pieces) <= {piece for one in found for piece in one}:
                found.setdefault(pieces, Case(f"{name} {scenario.name}", options, scenario))
    return list(found.values())


def _played(case: Case) -> CompiledPlayer:
    truth = make_truth(case.scenario, seed=SEED, run=0)
    oracle = true_return_table(case.scenario) if case.options.return_probability == "oracle" else None
    player = CompiledPlayer(case.options, case.scenario, truth, seed=SEED, run=0, true_returns=oracle)
    tape = new_tape(truth.world, case.scenario.problem.horizon)
    WORLD["record"](Block(tape), truth.block, SEED, 0, 1)
    player.play(tape, 1)
    return player


def _differences(alone: State, with_all: State) -> list[str]:
    """Arrays that differ in any bit."""
    others = dict(leaves(with_all))
    return [name for name, array in leaves(alone) if array.tobytes() != others[name].tobytes()]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: str(case.name))
def test_a_preset_decides_alike_on_its_own(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DORAL_COMPOSE", "any")
    with_all = _played(case)
    monkeypatch.delenv("DORAL_COMPOSE")
    alone = _played(case)
    states: list[Any] = [with_all.state.tree, alone.state.tree]
    pieces = chosen_pieces(case.options, case.scenario.problem)
    assert [type(state).composition.name for state in states] == ["any", "+".join(pieces)]
    ours, theirs = (one.outcome(keep_decisions=True).log for one in (alone, with_all))
    assert ours is not None
    assert theirs is not None
    assert ours.round.size > 20
    for column in ("round", "context", "arm", "reward", "delay"):
        assert (getattr(ours, column) == getattr(theirs, column)).all()
    assert _differences(states[1], states[0]) == []


def test_live_a_preset_decides_alike_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that a campaign may ask of it."""
    states = []
    for compose in ("any", ""):
        monkeypatch.setenv("DORAL_COMPOSE", compose)
        engine = Engine(Blueprint(options=policy("doral-otf"), problem=UNIT.problem, seed=SEED))
        played = []
        for round_ in range(1, 201):
            decided = engine.decide(round_ % 3, ALL_ARMS, float(round_))
            if decided.arm >= 0:
                played.append((decided.number, round_ % 3, decided.arm))
            if len(played) > 3 and round_ % 2:
                engine.answer([Heard(played[-3][0], 0.3 + 0.1 * (round_ % 5), round_ + 0.5)])
        assert len(played) > 50
        [outcome] = engine.answer([Heard(played[-1][0], 0.2, 201.0)])
        assert outcome == LEARNED
        number, context, arm = played[-1]
        engine.correct(number=number, context=context, arm=arm, reason=PLAYED, previous=0.2, reward=0.9)
        number, context, arm = played[-2]
        engine.cancel(number=number, context=context, arm=arm, cost=1.0, reason=PLAYED, clock=202.0)
        engine.pass_time(230.0)
        states.append(engine.state)
    assert _differences(states[1], states[0]) == []
