"""Other libraries play what DORAL plays: the player of `benchmarks/peers`, its tapes, and the page that comes of it."""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.programs import loaded

import doral

FOLDER = Path(__file__).parents[2] / "benchmarks" / "peers"
# In this order: each needs some of those before it.
MODULES = ("scenarios", "export", "play", "plain", "own", "standing", "tables", "page", "environments", "playing")


@pytest.fixture(scope="module")
def peers() -> Iterator[Any]:
    """The modules of the folder, which find each other by their names."""
    before = {name: sys.modules.pop(name, None) for name in MODULES}
    yield SimpleNamespace(**{name: loaded(FOLDER / f"{name}.py") for name in MODULES})
    for name, module in before.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module


class Scheduled:
    """A fixed schedule that skips, takes any arm that can be had, and writes down everything that it is told."""

    def __init__(self, problem: Any, seed: int) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.features: list[Any] = []

    def decide(self, arrival: Any) -> int | None:
        known = (arrival.round, arrival.context, arrival.available, arrival.budget_left)
        self.told.append((*known, arrival.rounds_left, arrival.time, arrival.until))
        self.features.append(arrival.features)
        if not arrival.available or arrival.round * 7 % 5 < 2:
            return None
        return int(arrival.available[(arrival.round * 3 + arrival.context) % len(arrival.available)])

    def observe(self, answer: Any) -> None:
        self.told.append((answer.round, answer.decided, answer.context, answer.arm, answer.reward, answer.paid))


def test_the_player_is_told_and_earns_what_simulate_says(peers: Any, tmp_path: Path) -> None:
    """On every scenario, to the bit: arrivals, answers and their order, budget, reward and spend."""
    for name in peers.scenarios.names():
        scenario = peers.scenarios.shortened(name, 600)
        made: list[Scheduled] = []

        def maker(problem: Any, seed: int, made: list[Scheduled] = made) -> Scheduled:
            made.append(Scheduled(problem, seed))
            return made[-1]

        expected = doral.simulate(maker, scenario, runs=1, seed=3, first_run=1).outcomes[0]
        folder = tmp_path / name.replace("/", "-")
        peers.export.export(scenario, folder, seed=3, run=1)
        tape = peers.play.Tape(folder)
        policy = Scheduled(tape.problem, 0)
        played = peers.play.play(policy, tape)

        assert policy.told == made[0].told, name
        found = (played.reward, played.expected, played.decisions, played.spend, played.rounds)
        of = (expected.rewards[0], expected.expected, expected.decisions, expected.spend, tape.rounds)
        assert found == of, name
        assert json.loads((folder / "truth.json").read_text())["clairvoyant"] == expected.clairvoyant
        if not tape.problem.person:
            assert (tape.x.argmax(axis=1) == np.array(tape.context)).all()
            assert (tape.x.sum(axis=1) == 1.0).all()
        for i, one in enumerate(tape.problem.person):
            if one["kind"] == "number":
                assert [row[one["name"]] for row in made[0].features] == [row[i] for row in policy.features]


def test_shortened_scenarios_keep_their_rate_and_some_deadlines(peers: Any) -> None:
    for name in peers.scenarios.names():
        whole, short = (peers.scenarios.shortened(name, rounds).problem for rounds in (None, 2_000))
        assert short.rate == pytest.approx(whole.rate, rel=0.01)
        if whole.until is None:
            assert short.horizon <= max(3_000, 3 * max(whole.deadlines))
            assert short.horizon >= min(whole.horizon, 2 * whole.deadline)


def test_a_plain_policy_learns_from_every_decision_once(peers: Any, tmp_path: Path) -> None:
    """Silence becomes a 0 at the deadline, late answers are ignored, and both ways spend the budget and no more."""

    class Counting(peers.plain.Plain):  # type: ignore[misc]
        def __init__(self, problem: Any, seed: int, way: str) -> None:
            super().__init__(problem, seed, way)
            self.taught: list[tuple[int, float]] = []

        def choose(self, arrival: Any) -> int:
            return int(arrival.available[arrival.round % len(arrival.available)])

        def learn(self, answer: Any, worth: float) -> None:
            self.taught.append((answer.decided, worth))

    for name in ("stress/silent", "stress/never-30", "stress/control"):
        folder = tmp_path / name.replace("/", "-")
        peers.export.export(peers.scenarios.shortened(name, 1_500), folder, seed=0, run=0)
        tape = peers.play.Tape(folder)
        last = tape.rounds - tape.problem.deadlines[0] - 1  # later decisions may still be open
        for way in peers.plain.Plain.WAYS:
            policy = Counting(tape.problem, 1, way)
            played = peers.play.play(policy, tape)
            served = [i + 1 for i, arm in enumerate(played.choices) if arm is not None]
            taught = [round_ for round_, _ in policy.taught]
            assert len(set(taught)) == len(taught)
            assert {round_ for round_ in served if round_ <= last} <= set(taught) <= set(served)
            assert 0.9 * tape.problem.budget <= played.spend <= tape.problem.budget
            if way == "spend":
                assert max(served) < 0.75 * tape.rounds
            else:
                assert max(served) > 0.9 * tape.rounds


def test_a_policy_that_dies_is_a_row_and_the_others_go_on(
    peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers.environments, "BUILD", tmp_path / "build")
    folder, binary = tmp_path / "sick", tmp_path / "build" / "sick" / "bin" / "python"
    folder.mkdir()
    (folder / "requirements.txt").write_text("sick==1.0\n")
    (folder / "adapter.py").write_text(
        "import os\n"
        "from plain import DoesNotApply, Plain\n"
        'PEER, PACKAGE, SPEED = "Sick", "sick", None\n'
        "class Well(Plain):\n"
        '    """Takes the first arm."""\n'
        "    def choose(self, arrival):\n"
        "        return arrival.available[0]\n"
        "    def learn(self, answer, worth):\n"
        "        pass\n"
        "class Dead(Well):\n"
        "    def choose(self, arrival):\n"
        "        os._exit(3)\n"
        "class Wrong(Well):\n"
        "    def choose(self, arrival):\n"
        "        return 99\n"
        "class Other(Well):\n"
        "    def __init__(self, problem, seed, way):\n"
        "        raise DoesNotApply('made for fewer')\n"
        'POLICIES = {"dead": Dead, "wrong": Wrong, "other": Other, "well": Well}\n'
    )
    binary.parent.mkdir(parents=True)
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    (peer,) = peers.environments.peers(tmp_path)
    assert (peer.name, peer.version, peer.policies["well"]) == ("Sick", "1.0", "Takes the first arm.")
    tape = tmp_path / "tape"
    peers.export.export(peers.scenarios.shortened("stress/tiny"), tape, seed=0, run=0)
    jobs = [{"key": key, "policy": key, "tapes": [str(tape)], "limit_s": 60} for key in peer.policies]
    kept = tmp_path / "kept.jsonl"
    kept.write_text('{"begun": "well"}\n{"key": "wel')  # somebody had interrupted it
    peers.playing.play_jobs(peer, jobs, kept)
    found = peers.playing.results(kept)
    assert found["dead"]["error"] == "exit code 3"
    assert "chose arm 99" in found["wrong"]["error"]
    assert found["other"]["left_out"] == "does not apply: made for fewer"
    assert found["well"]["runs"][0]["rounds"] == 800
    large = np.ones(40_000_000)  # 320 MB here, of which a process that is started from here has nothing
    kept.unlink()
    peers.playing.play_jobs(peer, jobs[-1:], kept)
    assert peers.playing.results(kept)["well"]["peak_mb"] < large.nbytes / 2**20
    written = kept.read_text()
    peers.playing.play_jobs(peer, jobs[-1:], kept)  # nothing is left to do
    assert kept.read_text() == written


def test_every_peer_is_pinned_and_says_how_it_is_used(peers: Any) -> None:
    found = peers.environments.peers()
    assert {"mabwiser", "river", "contextualbandits", "vowpalwabbit"} <= {peer.key for peer in found}
    for peer in found:
        if not peer.policies:
            assert peer.why_not
            continue
        assert all(words.endswith(".") for words in peer.policies.values()), peer.key
        assert not re.search(r"^\s*(from|import) doral", (peer.folder / "adapter.py").read_text(), re.MULTILINE)
        assert peer.timed is None or peer.timed in peer.policies
        if not peer.why_not:
            assert peer.version, peer.key
            pins = (peer.folder / "requirements.txt").read_text().split()
            assert all(re.fullmatch(r"[\w.\-]+==[\w.+!]+", pin) for pin in pins), peer.key


def test_a_python_that_is_not_here_is_said(peers: Any, tmp_path: Path) -> None:
    (tmp_path / "python").write_text("2.5 2.4\n")
    peer = peers.environments.Peer(folder=tmp_path, name="Old", package="old", policies={}, timed=None)
    assert peers.environments.install(peer) == "needs Python 2.5 or 2.4, which is not on this machine"


def _found() -> dict[str, Any]:
    """Three runs of two scenarios: one peer that is ahead once, one that is too slow, one that is not there."""
    best = [{"run": run, "reward": 90.0, "expected": 90.0 + run, "best": 100.0} for run in range(3)]

    def runs(*shares: float, rounds: int = 400) -> list[dict[str, Any]]:
        return [{"run": run, "expected": share, "rounds": rounds, "horizon": 400} for run, share in enumerate(shares)]

    def played(policy: str, scenario: str, **told: Any) -> dict[str, Any]:
        return {"peer": "rival", "policy": policy, "scenario": scenario, "way": "coin", **told}

    return {
        "asked": {"runs": 3, "rounds": 400, "limit_s": 10.0, "full": False},
        "about": {"date": "2026-11-16", "cores": 2, "processor": "Some", "python": "3.11", "doral": "1.0"},
        "seconds": 600.0,
        "scenarios": [{"name": name, "runs": best} for name in ("paper/diverse-pareto", "stress/tiny")],
        "peers": [
            {
                "key": "rival",
                "name": "Rival",
                "version": "2.1",
                "policies": {"A": "As is.", "B": "Slow."},
                "why_not": "",
            },
            {"key": "gone", "name": "Gone", "version": "", "policies": {}, "why_not": "is on no registry"},
        ],
        "played": [
            played("A", "paper/diverse-pareto", runs=runs(95.0, 96.0, 97.5)),
            played("A", "stress/tiny", runs=runs(60.0, 61.0, 62.5)),
            played("B", "paper/diverse-pareto", runs=runs(80.0, 1.0, rounds=100)),
            played("B", "stress/tiny", error="ValueError: no\n /home/me/x.py"),
        ],
        "speed": {
            "own": {"rounds_per_s": 4e6, "import_s": 0.2, "peak_mb": 150.0},
            "c": {"rounds_per_s": 8e6, "engine_rounds_per_s": 5e6},
            "native": {"rounds_per_s": 1e5, "with_decisions_per_s": 5e4},
            "peers": [{"peer": "rival", "policy": "A", "rounds_per_s": 5e3, "import_s": 1.0, "peak_mb": 99.0}],
        },
    }


def _rows(text: str, first: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith(f"| {first}")
    ]


def test_the_page_shows_who_is_ahead_too_slow_and_not_there(peers: Any) -> None:
    text = peers.page.page(_found())
    own, ahead, slow = (_rows(text, f"{name} |") for name in ("`doral-otf`", "Rival A", "Rival B"))
    assert [row[1:] for row in own[1:]] == [["91.0 ±2.5"], ["91.0 ±2.5"]]
    assert ahead[1][1:] == ["**96.2 ±3.1** c<br>(**−5.2 ±0.7**)"]  # noqa: RUF001
    assert ahead[2][1:] == ["61.2 ±3.1 c<br>(+29.8 ±0.7)"]
    assert [row[1:] for row in slow[1:]] == [["too slow"], ["failed"]]
    assert ahead[0][2:] == ["96.2", "61.2", "–", "1", "0", "**1**", "0"]  # noqa: RUF001
    assert _rows(text, "Gone")[0][-1] == "not installed"
    assert "- Gone: is on no registry." in text
    assert "- Rival B on paper/diverse-pareto: too slow: 200 of 1,200 rounds." in text
    assert "- Rival B on stress/tiny: failed: ValueError: no ...." in text
    target, python, native = (
        _rows(text, words)[0][-1] for words in ("`doral-otf` ahead", "at least 500", "at least 50 ")
    )
    assert (target, python, native) == ("**missed**", "reached", "**missed**")
    assert [row[2] for row in _rows(text, "Vowpal Wabbit, native")] == ["40", "80"]
    assert ahead[3][1:] == ["5,000", "800", "0.00063", "1.00", "99"]
    assert all(line.count("|") > 2 for line in text.splitlines() if line.startswith("|"))


def test_the_page_reaches_its_targets_where_nobody_is_level_or_ahead(peers: Any) -> None:
    found = _found()
    found["played"] = found["played"][1:2]
    found["speed"]["native"] = {"rounds_per_s": 5e4}
    text = peers.page.page(found)
    assert "**missed**" not in text
    assert text.count("| reached |") == 3
