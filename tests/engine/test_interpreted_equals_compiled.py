"""Kernels in Python and kernels compiled decide alike: what tests of single pieces show holds for compiled code."""

from __future__ import annotations

import numpy as np
import pytest

from doral._arrays import Floats, leaves
from doral.engine.engine import Engine, Heard
from doral.engine.options import POLICY_NAMES, policy_of
from doral.engine.setup import Blueprint
from tests.engine.interpreted import SEED, Player, as_arrays, first, small_problem, true_values

ROUNDS = 90
MAY_DIFFER = ("values", "gamma", "allowed", "ridge.shadow", "ridge.direction", "ridge.scratch")  # scratch
ORACLE: Floats = np.linspace(0.1, 0.9, 200).reshape(1, 1, -1).repeat(3, axis=1)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_campaign_goes_the_same_way(name: str) -> None:
    options = policy_of(name, {"min_answers": 3})
    oracle = ORACLE if options.return_probability == "oracle" else None
    problem = small_problem()
    truth = true_values(options, problem)
    compiled = Engine(Blueprint(options=options, problem=problem, seed=SEED, oracle=oracle, true_values=truth))
    player = Player(first(options, problem, oracle=oracle))
    rng, due = np.random.default_rng(7), dict[int, list[tuple[int, float]]]()
    for clock in range(1, ROUNDS + 1):
        for number, reward in due.pop(clock, []):
            assert compiled.answer([Heard(number, reward, float(clock))]) == [
                player.answer(number, reward, float(clock))
            ]
        context, offered = int(rng.integers(2)), (rng.random((1, 3)) < 0.8).astype(np.uint8)
        decided = compiled.decide(context, offered, float(clock))
        choice = player.decide(context, float(clock), offered[0])
        assert (decided.arm, decided.reason) == (choice.arm, choice.reason)
        assert (decided.probability, decided.value, decided.price) == pytest.approx(
            (choice.probability, choice.value, choice.price), rel=1e-12, abs=1e-300
        )
        if decided.arm >= 0:
            due.setdefault(clock + int(rng.integers(1, 30)), []).append((decided.number, float(rng.normal(0.5, 0.2))))
    assert compiled.played > 10
    for (where, ours), (_, theirs) in zip(leaves(as_arrays(player.state)), leaves(compiled.state), strict=True):
        if where not in MAY_DIFFER:
            for field in ours.dtype.names or [...]:
                np.testing.assert_allclose(ours[field], theirs[field], rtol=1e-9, atol=1e-12, err_msg=where)
