"""Budget, horizon and arms change, from a shell."""

from __future__ import annotations

import json

import pytest

from tests.cli.campaign_shell import Shell


@pytest.fixture
def kits(doral_: Shell) -> Shell:
    doral_("create", "kits", doral_.problem, "--seed", 1)
    return doral_


def test_what_is_added_with_a_key_is_added_once(kits: Shell) -> None:
    for _ in range(2):
        assert kits.json("top-up", "kits", 100, "--key", "invoice-17") == [
            {"campaign": "kits", "budget": 500.0, "left": 500.0}
        ]
        assert kits.json("extend", "kits", 500, "--key", "march") == [
            {"campaign": "kits", "horizon": 5_500, "arrivals": 0}
        ]
    assert "used before" in kits("top-up", "kits", 50, "--key", "invoice-17", code=2)
    for words, part in (
        (("top-up", "kits", "-100"), "AMOUNT -100.0:"),
        (("extend", "kits", "-5"), "ARRIVALS -5:"),
    ):
        assert part in kits(*words, code=2)


def test_arms_come_rest_and_go(kits: Shell) -> None:
    for features in (["--features", "-0.5,1"], ["--features", "-0.5", "--features", "1"]):
        (added,) = kits.json("arm", "add", "kits", "new", *features, "--cost", 0.5, "--key", "n1")
        assert added == {"campaign": "kits", "arm": "new", "state": "active"}
    assert kits("arm", "pause", "kits", "new") == "paused new\n"
    assert "new: paused" in kits("show", "kits")
    assert kits("arm", "resume", "kits", "new") == "resumed new\n"
    assert "new: active" in kits("show", "kits")
    assert kits("arm", "retire", "kits", "new") == "retired new\n"
    for words, part in (
        (("resume", "kits", "new"), "retired"),
        (("pause", "kits", "a7"), "unknown arm 'a7'"),
        (("add", "kits", "x", "--features", "1"), "must be 2"),
        (("add", "kits", "x", "--features", "1,one"), "--features 'one':"),
        (("add", "kits", "x", "--features", "1,"), "--features '':"),
        (("add", "kits", "x", "--features", "1,1", "--cost", "-1"), "cost of arm 'x'"),
    ):
        assert part in kits("arm", *words, code=2)


def test_an_arm_costs_nothing_or_by_context(kits: Shell) -> None:
    contexts = [one["name"] for one in json.loads(kits.problem.read_text())["contexts"]]
    costs = json.dumps(dict.fromkeys(contexts, 2.5))
    kits("arm", "add", "kits", "near", "--features", "1,1", "--cost", costs)
    kits("arm", "add", "kits", "free", "--features", "1,1", "--cost", 0)
    shown = kits("show", "kits")
    assert "plays at 2.5 to 2.5" in shown
    assert "plays at 0," in shown
    for cost, part in (
        ('{"x": 1}', "unknown context"),
        (json.dumps({contexts[0]: 1}), "lacks context"),
        ('{"x"', "--cost"),
        ("dear", "--cost 'dear':"),
    ):
        assert part in kits("arm", "add", "kits", "y", "--features", "1,1", "--cost", cost, code=2)


def test_a_problem_whose_end_is_given_as_a_date_need_not_say_another(doral_: Shell) -> None:
    stored = json.loads(doral_.problem.read_text())
    del stored["horizon"]
    stored.setdefault("deadline", 3600.0)
    path = doral_.file("dated.json", json.dumps(stored))
    doral_("create", "dated", path, "--until", "2100-03-31")
    assert "until 2100-04-01" in doral_("show", "dated")
    assert "give horizon" in doral_("create", "endless", path, code=2)
