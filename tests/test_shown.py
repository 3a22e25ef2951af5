"""What objects show of themselves: one short line each, and cards for notebooks in which nothing can run."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import doral
from doral import delays
from doral.engine.options import OPTION_NAMES

EVIL = "<script>alert('x')</script>[0]\N{GREEK SMALL LETTER ALPHA}" + "\"'" * 10


def scenario_of(problem: doral.Problem, **more: Any) -> doral.Scenario:
    means = np.full((problem.n_contexts, problem.n_arms), 0.25)
    return doral.Scenario(name=EVIL, problem=problem, means=means, delays=delays.Fixed(2), **more)


EVIL_PROBLEM = doral.Problem(
    arms=[doral.Arm(EVIL, features=[1]), doral.Arm("b" * 200, features=[2], cost={EVIL: 1, "y": 2})],
    contexts=[EVIL, "y"],
    budget=10,
    horizon=20,
    deadline=5,
)
MANY = doral.Problem(
    arms=[doral.Arm(f"arm {i}", features=range(30)) for i in range(1000)],
    contexts=[f"context {i}" for i in range(100)],
    budget=1e6,
    until=1e6,
    baseline="observed",
    feedback="silent",
    person=[f"feature {i}" for i in range(50)],
)
SHOWN: list[Any] = [
    EVIL_PROBLEM,
    *EVIL_PROBLEM.arms,
    *EVIL_PROBLEM.contexts,
    doral.Context("x", 0.5, weight=2, deadline=3, tier=1),
    MANY,
    MANY.arms[0],
    scenario_of(EVIL_PROBLEM, availability=0.5),
    doral.scenario("stress/until"),
    doral.scenario("stress/pay-on-success"),
    doral.scenario("people/categories"),
    doral.scenario("stress/many-arms"),
    doral.policy("doral-otf"),
    doral.policy("doral", label=EVIL, accept=3),
    dataclasses.replace(doral.policy("eva"), **{**doral.policy("doral/literal").to_dict(), "name": "mine"}),
    doral.rival("a/b"),
    doral.rival("status-quo", shares=[1.0] * 500, label=EVIL),
    doral.external(Ridge(), label=EVIL),
    doral.Calendar(np.arange(5000.0), day=24),
    doral.Arrivals(number=1e6, day=24, hours=range(24), bursts=doral.Bursts(share=0.1, arrivals=5, length=2)),
    delays.Empirical(np.arange(5000.0)),
    delays.Never(delays.Geometric(3), 0.1),
    doral.Number("age"),
]


@pytest.mark.parametrize("thing", SHOWN, ids=lambda thing: type(thing).__name__)
def test_a_line_is_short_and_a_card_is_safe(thing: Any) -> None:
    line = repr(thing)
    assert len(line) <= 250, line
    assert "\n" not in line
    if hasattr(thing, "_repr_html_"):
        card = thing._repr_html_()
        assert "<script" not in card
        assert len(card) < 20_000


def test_a_line_says_what_matters() -> None:
    assert repr(doral.policy("doral-otf")) == "<Policy 'doral-otf'>"
    assert (
        repr(doral.policy("doral-otf", exploration=0.5, label="calm"))
        == "<Policy 'calm': doral-otf with exploration=0.5>"
    )
    assert "2 arms, 2 contexts, budget 10, horizon 20, deadline 5" in repr(EVIL_PROBLEM)
    card = doral.policy("doral", accept=3)._repr_html_()
    assert all(option in card for option in OPTION_NAMES)


def test_what_is_shown_changes_nothing_else() -> None:
    again = doral.Problem.from_dict(EVIL_PROBLEM.to_dict())
    assert again == EVIL_PROBLEM
    assert hash(again) == hash(EVIL_PROBLEM)
    assert pickle.loads(pickle.dumps(EVIL_PROBLEM)) == EVIL_PROBLEM
    assert doral.PolicyOptions(**doral.policy("eva").to_dict()) == doral.policy("eva")
    assert len({doral.policy("eva"), doral.PolicyOptions.named("eva")}) == 1


def test_contexts_without_shares_come_equally_often() -> None:
    made = scenario_of(EVIL_PROBLEM)
    assert made.shares == (0.5, 0.5)
    assert "2 contexts that come equally often" in repr(made)
    assert "equally often" not in repr(scenario_of(EVIL_PROBLEM, shares=[0.3, 0.7]))
    assert doral.Scenario.from_dict(made.to_dict()) == made
    by_hand = {"name": "s", "problem": EVIL_PROBLEM.to_dict(), "means": [[1, 2], [3, 4]]}
    by_hand["delays"] = delays.Fixed(1).to_dict()
    assert doral.Scenario.from_dict(by_hand).shares == (0.5, 0.5)
