"""Policies as people write them down, and what is said when they are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doral
from doral._arrays import Floats
from doral.evaluation.policies import Learner, table_of
from doral.logs.log import Log
from tests.evaluation.worlds import small_world

CONTEXTS, OPTIONS = ("young", "old"), ("A", "B", "nothing")
WORLD = small_world(1)
LOG = WORLD.log(600, 0)


def table(policy: Any) -> list[list[float]]:
    return table_of(policy, contexts=CONTEXTS, options=OPTIONS, name="p").tolist()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("uniform", [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]),
        ("nothing", [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]),
        ("always:B", [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]),
        ({"young": "A", "old": {"B": 0.25}}, [[1.0, 0.0, 0.0], [0.0, 0.25, 0.75]]),
        ({"*": "nothing", "old": {"A": 0.5, "nothing": 0.5}}, [[0.0, 0.0, 1.0], [0.5, 0.0, 0.5]]),
        (lambda context: "A" if context == "old" else {}, [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
        (np.array([[1.0, 0.0, 0.0], [0.2, 0.2, 0.6]]), [[1.0, 0.0, 0.0], [0.2, 0.2, 0.6]]),
    ],
)
def test_policies_become_tables(policy: Any, expected: list[list[float]]) -> None:
    assert table(policy) == pytest.approx(np.array(expected))


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("unifrom", "did you mean 'uniform'"),
        ("always:C", "unknown arm 'C'"),
        ({"young": "A"}, "does not say what to do in 'old'"),
        ({"yuong": "A", "old": "A"}, "unknown context 'yuong'; did you mean 'young'"),
        ({"young": "A", "old": {"A": 0.7, "B": 0.7}}, "must not sum to more than 1"),
        ({"young": "A", "old": {"A": -0.1}}, "must be a number from 0 to 1"),
        ({"young": "A", "old": {"A": float("nan")}}, "must be a number from 0 to 1"),
        ({"young": "A", "old": {"A": "0.5"}}, "must be a number from 0 to 1"),
        ({"young": "A", "old": 3}, "unknown arm 3"),
        (np.ones((2, 2)), "contexts by arms, and a last column for doing nothing"),
        (np.ones((2, 3)), "must hold probabilities that sum to 1"),
        (np.array([[np.nan, 0, 1], [0, 0, 1]]), "must hold probabilities that sum to 1"),
        (3.5, "must be a word, a mapping"),
        (None, "must be a word, a mapping"),
    ],
)
def test_what_cannot_be_a_policy_is_said(policy: Any, said: str) -> None:
    with pytest.raises(doral.DoralError, match=said):
        table(policy)


def test_policies_from_files(tmp_path: Path) -> None:
    good = tmp_path / "mine.json"
    good.write_text(json.dumps({"*": {"arm-0": 0.5}}), encoding="utf-8")
    told = doral.evaluate(LOG, [str(good), ("named", good)])
    assert told.policies == ("status-quo", "mine", "named")
    assert told.of("mine").value == told.of("named").value
    for text in ("{", "[1]", "\x00\xff"):
        (tmp_path / "bad.json").write_text(text, encoding="latin-1")
        with pytest.raises(doral.InvalidValue, match="no JSON|must hold a mapping"):
            doral.evaluate(LOG, str(tmp_path / "bad.json"))
    with pytest.raises(doral.InvalidValue, match="cannot be read"):
        doral.evaluate(LOG, str(tmp_path / "none.json"))


class FirstSeen:
    """Learns which half it was given, and does the same to everybody."""

    name = "first-seen"

    def __init__(self) -> None:
        self.halves: list[Log] = []

    def allocation(self, log: Log) -> Floats:
        self.halves.append(log)
        learned = np.zeros((len(log.contexts), len(log.arms) + 1))
        learned[:, len(self.halves) - 1] = 1.0
        return learned


def test_a_learner_is_valued_on_what_it_has_not_seen() -> None:
    learner = FirstSeen()
    assert isinstance(learner, Learner)
    result = doral.evaluate(LOG, learner)
    one, two = learner.halves
    assert len(one) + len(two) == len(LOG)
    assert abs(len(one) - len(two)) <= 1
    assert not set(one.time.tolist()) & set(two.time.tolist())
    # What was learned first, arm-0 for all, is done to the half that was shown second.
    shown_second = np.isin(LOG.time, two.time)
    is_done = np.where(shown_second, LOG.arm == 0, LOG.arm == 1)
    weight = is_done / LOG.probability
    assert result.of("first-seen", "ips").ess == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


def test_a_learner_that_returns_anything_else_is_refused() -> None:
    class Odd(FirstSeen):
        def allocation(self, log: Log) -> Any:
            return [[1.0]]

    with pytest.raises(doral.InvalidValue, match="shape of policy 'first-seen'"):
        doral.evaluate(LOG, Odd())


def test_the_best_and_the_lp_are_what_they_should_be_where_much_is_known() -> None:
    log = WORLD.log(60_000, 0)
    result = doral.evaluate(log, ["best", "lp", "uniform"], deadline=25.0, budget=1.0)
    assert result.deadline is not None
    came, shares = WORLD.came(25.0), WORLD.shares
    assert result.allocations["best"].argmax(axis=2).tolist() == [came.argmax(axis=1).tolist()] * 2
    # Against HiGHS on the true values.
    from scipy.optimize import linprog

    n_contexts, n_options = came.shape
    costs = np.append(WORLD.costs, 0.0)
    solved = linprog(
        -(shares[:, None] * came).ravel(),
        A_ub=[(shares[:, None] * costs[None, :]).ravel()],
        b_ub=[1.0],
        A_eq=np.kron(np.eye(n_contexts), np.ones(n_options)),
        b_eq=np.ones(n_contexts),
    )
    lp, most = result.of("lp"), -float(solved.fun or 0.0)
    assert WORLD.value(result.allocations["lp"].mean(axis=0), 25.0) == pytest.approx(most, rel=0.01)
    assert lp.low <= most <= lp.high
    assert lp.cost == pytest.approx(1.0, rel=0.05)
    assert result.best().policies == ("best", "best")
