"""Sentences about decisions: what they compare can be told apart, and agrees with what was done."""

from __future__ import annotations

import re

import numpy as np
import pytest

import doral
from doral.engine.decide import PLAYED, PLAYED_MARGINAL, SKIPPED_PACED
from doral.live.reasons import in_words

START = 1_700_000_000.0
COMPARED = re.compile(r"(not served|served).*: a unit of budget brings ([\d.e-]+) (here|elsewhere), \w+ ([\d.e-]+)$")


@pytest.mark.parametrize(
    ("reason", "value", "price", "says"),
    [
        (SKIPPED_PACED, 0.6, 0.42, "not served: a unit of budget brings 0.42 elsewhere, here 0.3"),
        (SKIPPED_PACED, 1.78802, 0.894116, "not served: a unit of budget brings 0.8941 elsewhere, here 0.894"),
        (PLAYED, 3.64, 1.81999, "served: a unit of budget brings 1.82 here, elsewhere 1.81999"),
        (PLAYED_MARGINAL, 2 * (0.1 + 0.2), 0.3, "served: a unit of budget brings 0.3 here, elsewhere 0.3"),
        (
            PLAYED_MARGINAL,
            0.2,
            0.7,
            "served: a unit of budget may bring more here than the 0.1 that is expected; elsewhere 0.7",
        ),
        (
            SKIPPED_PACED,
            1.4,
            0.6,
            "not served: a unit of budget may bring less here than the 0.7 that is expected; elsewhere 0.6",
        ),
    ],
)
def test_what_is_compared_differs_as_the_decision_does(reason: int, value: float, price: float, says: str) -> None:
    assert in_words(reason, value=value, price=price, probability=1.0, unit_cost=2.0) == says


@pytest.mark.parametrize("policy", ["doral-otf", "d-lints"])
def test_who_is_served_brings_no_less_than_others(policy: str) -> None:
    problem = doral.Problem(
        arms=[doral.Arm("a", cost=3.0), doral.Arm("b", cost=3.0)],
        contexts={"x": 0.3, "y": 0.3, "z": 0.4},
        budget=500,
        horizon=500,
        deadline=2_000,
    )
    means = {"x": 0.8, "y": 0.5, "z": 0.3}
    campaign = doral.open("memory://").create("c", problem, policy=doral.PolicyOptions.named(policy), at=START)
    rng, compared = np.random.default_rng(0), 0
    for i in range(500):
        context = str(rng.choice(list(means)))
        decision = campaign.decide(context, at=START + 10.0 * i)
        if decision.arm is not None:
            campaign.feedback(decision.id, reward=float(rng.random() < means[context]), at=START + 10.0 * i + 5.0)
        assert decision.reason.startswith("served" if decision.arm else "not served")
        found = COMPARED.match(decision.reason)
        if found:
            first, second = float(found[2]), float(found[4])
            here, elsewhere = (first, second) if found[3] == "here" else (second, first)
            assert here >= elsewhere if found[1] == "served" else here <= elsewhere, decision.reason
            compared += 1
    assert compared > 100
