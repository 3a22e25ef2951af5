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
MODULES = (
    *("scenarios", "export", "play", "plain", "known", "own", "standing"),
    *("tables", "page", "environments", "playing"),
)


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
        assert json.loads((folder / "truth.json").read_text())["oracle"] == expected.oracle
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
    """Silence becomes a 0 at the deadline, late answers are ignored, and all ways spend the budget and no more."""

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


def _tape(peers: Any, folder: Path, name: str, rounds: int = 2_000, run: int = 0) -> Any:
    peers.export.export(peers.scenarios.shortened(name, rounds), folder, seed=0, run=run)
    return peers.play.Tape(folder)


def test_ranking_earns_more_than_plain_spending_where_worths_are_known(peers: Any, tmp_path: Path) -> None:
    """By contexts, and by scores where people have features; the others serve the worst as well as the best."""
    for name, gain in (("paper/diverse-pareto", 1.15), ("people/linear", 1.05)):
        folder = tmp_path / name.replace("/", "-")
        tape = _tape(peers, folder, name)
        earned = {}
        for way in peers.plain.Plain.WAYS:
            played = peers.play.play(peers.known.Known(tape, 1, way), tape)
            assert 0.97 * tape.problem.budget <= played.spend <= tape.problem.budget, (name, way)
            earned[way] = played.expected
        best = json.loads((folder / "truth.json").read_text())["oracle"]
        assert earned["rank"] > gain * max(earned["spend"], earned["coin"]), name
        assert 0.95 * best < earned["rank"] < 1.03 * best, name
        assert peers.known.play_known([str(folder)], str(folder))["way"] == "rank"


def test_the_mean_of_what_was_learned_ranks_contexts(peers: Any) -> None:
    """Those of whom nothing is known come first, shares are those that came, and the last in line gets the rest."""
    policy = _first_arm(peers, _problem(n_contexts=3), "rank")
    chances = []
    for learned in ([(0, 0), (0, 0), (0, 0)], [(2, 2), (3, 2), (0, 0)], [(2, 2), (3, 2), (1, 2)]):
        policy._learned[:] = learned
        policy._came[:] = (5, 3, 2)
        chances.append([policy._chance(_arrival(context=c, budget_left=4.0, rounds_left=10), 0) for c in range(3)])
    assert chances[0] == pytest.approx([0.4, 0.4, 0.4])  # all alike: a coin
    assert chances[1] == pytest.approx([(0.4 - 0.5) / 0.5, (0.4 - 0.2) / 0.3, 0.4 / 0.2])
    assert chances[2] == pytest.approx([(0.4 - 0.3) / 0.5, 0.4 / 0.3, (0.4 - 0.8) / 0.2])


def test_the_coin_goes_by_the_arm_that_was_chosen_and_by_what_is_paid(peers: Any) -> None:
    problem = _problem(costs=np.array([[1.0, 4.0, 0.0]]), n_arms=3, paid="on_answer")
    policy = _first_arm(peers, problem, "coin")
    arrival = _arrival(budget_left=20.0, rounds_left=10, costs=(1.0, 4.0, 0.0))
    assert [policy._chance(arrival, arm) for arm in range(3)] == [2.0, 0.5, np.inf]
    for _ in range(1_000):  # nobody pays
        policy.expire(SimpleNamespace(arm=1, context=0, reward=0.0, paid=0.0))
    assert policy._chance(arrival, 1) > 100.0
    free = SimpleNamespace(arm=2, context=0, reward=3.0)
    assert policy.worth(free) == 3.0  # as if it cost what the cheapest does


def test_the_coin_spends_all_where_the_dear_arm_is_always_taken(peers: Any, tmp_path: Path) -> None:
    tape = _tape(peers, tmp_path / "costs", "stress/costs")
    for pick in (min, max):

        class Picking(peers.plain.Plain):  # type: ignore[misc]
            def choose(self, arrival: Any, pick: Any = pick) -> int:
                return int(pick(arrival.available, key=arrival.costs.__getitem__))

            def learn(self, answer: Any, worth: float) -> None:
                pass

        played = peers.play.play(Picking(tape.problem, 1, "coin"), tape)
        served = [i for i, arm in enumerate(played.choices) if arm is not None]
        assert played.spend >= 0.97 * tape.problem.budget
        if pick is max:  # to the end: where the dear arm cannot be paid any more, a cheaper one is
            assert np.median(served) == pytest.approx(tape.rounds / 2, rel=0.1)


def test_the_way_is_chosen_on_a_tape_that_is_not_counted(peers: Any, tmp_path: Path) -> None:
    tapes = [tmp_path / str(run) for run in range(3)]
    for run, folder in enumerate(tapes):
        _tape(peers, folder, "stress/tiny", run=run)
    played: list[tuple[int, str]] = []

    class Told:
        WAYS = ("never", "always")  # to serve nobody earns 0, which is no failure

        def __init__(self, problem: Any, seed: int, way: str) -> None:
            played.append((problem.run, way))
            self._way = way

        def decide(self, arrival: Any) -> int | None:
            return None if self._way != "always" or not arrival.available else int(arrival.available[0])

        def observe(self, answer: Any) -> None:
            pass

    told = {"policy": "", "limit_s": 60.0, "tapes": [str(one) for one in tapes[:2]], "trial": str(tapes[2])}
    found = peers.play.Job(told).played(Told)
    assert played == [(2, "never"), (2, "always"), (0, "always"), (1, "always")]
    assert [run["run"] for run in found["runs"]] == [0, 1]
    assert found["tried"]["never"] == 0.0 < found["tried"]["always"]
    Told.WAYS = ("never", "neither")  # both bring 0: the first of them
    assert peers.play.Job(told).played(Told)["way"] == "never"


def test_who_could_not_finish_is_given_up_with_the_first_run(peers: Any, tmp_path: Path) -> None:
    _tape(peers, tmp_path / "0", "stress/tiny")

    class Slow(peers.plain.Plain):  # type: ignore[misc]
        def choose(self, arrival: Any) -> int:
            np.linalg.inv(np.eye(150))
            return int(arrival.available[0])

        def learn(self, answer: Any, worth: float) -> None:
            pass

    told = {"policy": "", "limit_s": 0.06, "tapes": [str(tmp_path / "0")] * 4, "trial": str(tmp_path / "0")}
    found = peers.play.Job(told).played(Slow)
    (run,) = found["runs"]
    assert run["rounds"] < 800
    assert found["tried"] == {}


def test_half_the_pace_that_is_needed_is_given_up_after_a_third_of_the_time(
    peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, clock = _tape(peers, tmp_path, "stress/tiny"), [0.0]
    monkeypatch.setattr(peers.play, "time", SimpleNamespace(process_time=lambda: clock[0]))

    class Paced:
        def __init__(self, share_of_time: float) -> None:
            self._s = share_of_time / tape.rounds

        def decide(self, arrival: Any) -> None:
            clock[0] += self._s

        def observe(self, answer: Any) -> None:
            pass

    rounds = [peers.play.play(Paced(share), tape, limit_s=1.0).rounds for share in (0.1, 1.5, 6.0)]
    assert rounds[0] == tape.rounds
    assert tape.rounds / 2 < rounds[1] < tape.rounds
    assert rounds[2] < tape.rounds / 6


def test_what_was_played_is_known_by_what_is_on_the_tape(peers: Any, tmp_path: Path) -> None:
    for folder, run in (("a", 0), ("b", 0), ("c", 1)):
        _tape(peers, tmp_path / folder, "stress/tiny", run=run)
    of = [peers.export.digest([str(tmp_path / name) for name in names]) for names in ("ac", "bc", "ca", "aa")]
    assert of[0] == of[1]
    assert len(set(of)) == 3


def _problem(**told: Any) -> Any:
    """As much of one as `plain` asks for."""
    usual = {"n_contexts": 1, "n_arms": 1, "person": [], "paid": "always", "control": None, "baseline": None}
    problem = SimpleNamespace(**{**usual, **told})
    problem.weights = np.ones(problem.n_contexts)
    if "costs" not in told:
        problem.costs = np.ones((problem.n_contexts, problem.n_arms))
    return problem


def _arrival(**told: Any) -> Any:
    return SimpleNamespace(**{"context": 0, "available": (0,), "costs": (1.0,), **told})


def _first_arm(peers: Any, problem: Any, way: str) -> Any:
    class First(peers.plain.Plain):  # type: ignore[misc]
        def choose(self, arrival: Any) -> int:
            return 0

        def learn(self, answer: Any, worth: float) -> None:
            pass

    return First(problem, 1, way)


def test_scenarios_are_mixed_so_that_all_groups_are_begun(peers: Any) -> None:
    names = peers.scenarios.names()
    order = peers.scenarios.mixed(names)
    assert sorted(order) == sorted(names)
    assert all(name.startswith("paper/") for name in order[:4])
    assert {name.partition("/")[0] for name in order[4:8]} == {"stress", "people"}
    assert set(order[-3:]) == {"stress/positives-first", "stress/many-arms", "stress/silent-slow"}


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
        usual = {"rounds": rounds, "horizon": 400, "seconds": 0.5}
        return [{"run": run, "expected": share, **usual} for run, share in enumerate(shares)]

    def played(policy: str, scenario: str, **told: Any) -> dict[str, Any]:
        return {"peer": "rival", "policy": policy, "scenario": scenario, "way": "coin", **told}

    return {
        "asked": {"runs": 3, "rounds": 400, "limit_s": 10.0, "full": False},
        "about": {"date": "2026-11-16", "cores": 2, "processor": "Some", "python": "3.11", "doral": "1.0"},
        "seconds": 600.0,
        "scenarios": [
            {
                "name": name,
                "runs": best,
                "second": {"runs": runs(94.0, 94.0, 94.0)},
                "known": {"way": "rank", "runs": runs(99.0, 99.0, 99.0)},
            }
            for name in ("paper/diverse-pareto", "stress/tiny")
        ],
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
            "own": {"rounds_per_s": 4e6, "import_s": 0.2, "compile_s": 8.0, "peak_mb": 150.0},
            "full": {"rounds_per_s": 2e6},
            "online": {"rounds_per_s": 4e3, "import_s": 0.2, "peak_mb": 150.0},
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
    text, tables = peers.page.page(_found()), peers.page.results(_found())
    own, ahead, slow = (_rows(tables, f"{name} |") for name in ("`doral-otf`", "Rival A", "Rival B"))
    assert [row[1:] for row in own] == [["91.0 ±2.5"], ["91.0 ±2.5"]]
    assert ahead[0][1:] == ["**96.2 ±3.1** c<br>(**−5.2 ±0.7**)"]  # noqa: RUF001
    assert ahead[1][1:] == ["61.2 ±3.1 c<br>(+29.8 ±0.7)"]
    assert [row[1:] for row in slow] == [["too slow (5 ms a round)"], ["failed"]]
    known = "true worths known, plain budget (no library)"
    assert [row[1:] for row in _rows(tables, known)] == [["99.0 ±0.0 r"], ["99.0 ±0.0 r"]]
    assert _rows(text, known)[0][2:4] == ["99.0", "99.0"]
    assert [row[1:] for row in _rows(tables, "`ts-lp`")] == [["94.0 ±0.0"], ["94.0 ±0.0"]]
    summary, speed = _rows(text, "Rival A |")
    assert summary[2:] == ["96.2", "61.2", "–", "+12.3 ±0.3", "1", "0", "**1**", "0"]  # noqa: RUF001
    assert _rows(text, "Gone")[0][-1] == "not installed"
    assert "- Gone: is on no registry." in tables
    assert "- Rival B on paper/diverse-pareto (5 ms a round): too slow." in tables
    assert "- Rival B on stress/tiny: failed: ValueError: no ...." in tables
    target, python, native = (
        _rows(text, words)[0][-1]
        for words in ("`doral-otf` ahead", "`d-linucb` simulated: at least 500", "`d-linucb` simulated: at least 50 ")
    )
    assert (target, python, native) == ("**missed**", "reached", "**missed**")
    assert [row[2] for row in _rows(text, "Vowpal Wabbit RegCB, native")] == ["40", "80"]
    assert speed[1:] == ["5,000", "800", "0.00063", "1.00", "", "99"]
    assert _rows(text, "`d-linucb` simulated (")[0][1:] == ["4,000,000", "1.00", "0.5", "0.20", "8.00", "150"]
    assert _rows(text, "`d-linucb`, one call per decision")[0][1:3] == ["4,000", "1,000"]
    assert "`d-linucb` decides 0.80 times as many rounds a second as Rival A, the fastest peer" in text
    assert all(line.count("|") > 2 for line in (text + tables).splitlines() if line.startswith("|"))


def test_the_page_reaches_its_targets_where_nobody_is_level_or_ahead(peers: Any) -> None:
    found = _found()
    found["played"] = found["played"][1:2]
    found["speed"]["native"] = {"rounds_per_s": 5e4}
    text = peers.page.page(found)
    assert "**missed**" not in text
    assert text.count("| reached |") == 4
