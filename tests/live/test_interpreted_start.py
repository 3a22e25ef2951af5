"""Without machine code at hand a campaign interprets its kernels, and ends in the state of one that was compiled."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.compiled.interpret import Interpreter
from doral.engine import engine as engine_module
from doral.engine.options import POLICY_NAMES
from tests.alone import without_a_compiler

ARMS = [doral.Arm("a", features=[1.0, 0.0], cost=1.0), doral.Arm("b", features=[0.3, 0.9], cost=2.0)]
PROBLEMS: dict[str, dict[str, Any]] = {
    "plain": {"arms": ARMS, "contexts": ["x", "y"], "deadline": 9.0},
    "silent": {"arms": ARMS, "contexts": ["x", "y"], "deadline": 9.0, "feedback": "silent"},
    "paid on answer": {"arms": ARMS, "contexts": ["x"], "deadline": 9.0, "paid": "on_answer"},
    "people": {"arms": ARMS, "contexts": ["x", "y"], "deadline": 9.0, "person": ["age", doral.Category("town")]},
}
LIVE_NAMES = tuple(name for name in POLICY_NAMES if name != "oracle")
FIRST, ROUNDS = 40, 90


class Compiling:
    """The program as it is while a child compiles it, until `is_done`."""

    def __init__(self) -> None:
        self.is_done = False


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Compiling:
    program = Compiling()
    monkeypatch.setattr(Interpreter, "start", lambda self: not program.is_done)
    monkeypatch.setattr(Interpreter, "is_over", property(lambda self: program.is_done))
    return program


def play(campaign: Any, n_contexts: int, people: bool, compiling: Compiling | None = None) -> list[Any]:
    """Return what is decided; answers come in an order that depends on nothing but the decisions."""
    rng, pending, decided = random.Random(4), list[str](), list[Any]()
    for i in range(ROUNDS):
        if compiling is not None and i == FIRST:
            compiling.is_done = True
        features = {"features": {"age": rng.random(), "town": rng.choice("pqr")}} if people else {}
        decision = campaign.decide("xy"[rng.randrange(n_contexts)], key=f"k{i}", **features)
        decided.append((decision.arm, decision.probability, decision.reason))
        if decision.arm is not None:
            pending.append(decision.id)
        if pending and rng.random() < 0.6:
            campaign.feedback(pending.pop(rng.randrange(len(pending))), reward=float(rng.random() < 0.4))
    return decided


def engine_of(campaign: Any) -> engine_module.Engine:
    engine: engine_module.Engine = campaign._session.last_seen.engine
    return engine


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("policy", LIVE_NAMES)
def test_a_campaign_that_began_interpreted_equals_one_that_began_compiled(
    policy: str, kind: str, compiling: Compiling
) -> None:
    words = PROBLEMS[kind]
    problem = doral.Problem(budget=60.0, horizon=120, **words)
    size = len(words["contexts"]), "person" in words
    try:
        first = doral.open("memory://").create("kits", problem, policy=policy, seed=3, clock="rounds")
    except doral.DoralError:
        pytest.skip("this policy does not take this problem")
    found = play(first, *size, compiling)
    second = doral.open("memory://").create("kits", problem, policy=policy, seed=3, clock="rounds")
    assert play(second, *size) == found
    began_interpreted, began_compiled = engine_of(first), engine_of(second)
    assert not began_interpreted.is_interpreted
    expected = dict(began_compiled.arrays())
    for name, array in began_interpreted.arrays():
        assert array.tobytes() == expected[name].tobytes(), name


def test_an_interpreted_state_is_not_saved(compiling: Compiling, tmp_path: Path) -> None:
    store = doral.open(f"sqlite:///{tmp_path / 'kits.db'}")
    problem = doral.Problem(budget=60.0, horizon=120, **PROBLEMS["plain"])
    campaign = store.create("kits", problem, policy="doral-otf")
    session: Any = campaign._session
    session.reader.snapshot_every = 5
    for _ in range(12):
        campaign.decide("x")
    assert session.read(lambda log, _: list(log.snapshots())) == []
    compiling.is_done = True
    for _ in range(12):
        campaign.decide("x")
    assert session.read(lambda log, _: list(log.snapshots()))


@pytest.mark.parametrize("policy", ["doral-otf", "doral"])
@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_campaign_without_a_compiler_decides_the_same(
    policy: str, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The self-test fails: decisions, states and snapshots are those of a campaign whose program is compiled."""
    words = PROBLEMS[kind]
    problem = doral.Problem(budget=60.0, horizon=120, **words)
    size = len(words["contexts"]), "person" in words
    try:
        compiled = doral.open("memory://").create("kits", problem, policy=policy, seed=3, clock="rounds")
    except doral.DoralError:
        pytest.skip("this policy does not take this problem")
    expected = play(compiled, *size)
    without_a_compiler(monkeypatch, tmp_path)
    plain = doral.open("memory://").create("kits", problem, policy=policy, seed=3, clock="rounds")
    with pytest.warns(RuntimeWarning, match="runs as Python.*no compiler today"):
        found = play(plain, *size)
    assert found == expected
    assert engine_module.PROGRAM.is_interpreted
    wanted = dict(engine_of(compiled).arrays())
    for name, array in engine_of(plain).arrays():
        assert array.tobytes() == wanted[name].tobytes(), name


COLD = """
import time, sys, doral
arms = [doral.Arm("a", features=[1.0, 0.0]), doral.Arm("b", features=[0.3, 0.9])]
problem = doral.Problem(arms=arms, contexts=["x"], budget=60, horizon=200, deadline=9)
campaign = doral.open(sys.argv[1]).create("kits", problem, policy="doral-otf")
campaign.decide("x")
print(campaign._session.last_seen.engine.is_interpreted, flush=True)
"""


def cold(cache: Path, *arguments: str) -> list[str]:
    environment = {**os.environ, "DORAL_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("DORAL_COMPILE", None)
    done = subprocess.run(
        [sys.executable, "-c", COLD, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")


def test_a_process_that_ends_early_leaves_the_program_to_the_next(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert cold(cache, f"sqlite:///{tmp_path / 'a.db'}")[0] == "True"
    deadline = time.monotonic() + 300.0
    while not list(cache.glob("*/policy-*.code")) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert cold(cache, f"sqlite:///{tmp_path / 'b.db'}")[0] == "False"


@pytest.mark.parametrize(("n_contexts", "is_interpreted"), [(2, True), (engine_module.MOST_CELLS // 20, False)])
@pytest.mark.usefixtures("compiling")
def test_large_states_are_not_interpreted(n_contexts: int, is_interpreted: bool) -> None:
    arms, contexts = [f"a{i}" for i in range(21)], [f"c{i}" for i in range(n_contexts)]
    problem = doral.Problem(arms=arms, contexts=contexts, budget=9, horizon=9, deadline=9)
    campaign = doral.open("memory://").create("kits", problem, policy="random")
    campaign.decide("c0")
    assert engine_of(campaign).is_interpreted is is_interpreted
