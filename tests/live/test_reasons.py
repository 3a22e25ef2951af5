"""Sentences about decisions: what they compare can be told apart, and agrees with what was done."""

from __future__ import annotations

import numpy as np
import pytest

import doral
from doral.engine import decide
from doral.live.events.event import MADE_ELSEWHERE
from doral.live.views.decision import SERVED, code_of, in_words

START = 1_700_000_000.0


@pytest.mark.parametrize(
    ("code", "here", "price", "says"),
    [
        ("paced", 0.3, 0.42, ("0.3", "0.42")),
        ("paced", 0.89401, 0.894116, ("0.894", "0.8941")),
        ("best", 1.82, 1.81999, ("1.82", "1.81999")),
        ("marginal", 0.1 + 0.2, 0.3, ("0.3", "0.3")),
        ("marginal", 0.1, 0.7, ("may return more than the expected 0.1", "0.7")),
        ("paced", 0.7, 0.6, ("may return less than the expected 0.7", "0.6")),
    ],
)
def test_what_is_compared_differs_as_the_decision_does(
    code: str, here: float, price: float, says: tuple[str, str]
) -> None:
    first, second = in_words(code, value=2 * here, price=price, probability=1.0, here=here).split("; ")
    assert first.startswith("Served" if code in SERVED else "Skipped")
    assert f"{says[0]} per unit of budget" in first
    assert f"buys {says[1]} per unit elsewhere" in second


def test_every_reason_has_a_code_and_a_sentence() -> None:
    reasons = [value for name, value in vars(decide).items() if name.startswith(("PLAYED", "SKIPPED_"))]
    assert len({code_of(reason) for reason in reasons}) == len(reasons) >= 11
    for reason in [*reasons, MADE_ELSEWHERE]:
        code = code_of(reason)
        for here in (None, 0.3):
            said = in_words(code, value=0.6, price=0.4, probability=0.5, here=here)
            assert "newer version" not in said
            assert said.startswith("Made" if reason == MADE_ELSEWHERE else "Served" if code in SERVED else "Skipped")
    assert "newer version" in in_words(code_of(77), value=0.6, price=0.4, probability=0.5, here=None)


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
        assert (decision.reason_code in SERVED) == (decision.arm is not None)
        if (
            decision.reason_code in ("best", "marginal", "paced")
            and decision.price > 0
            and "expected" not in decision.reason
        ):
            here, elsewhere = decision.return_here, decision.price
            assert here is not None
            is_served = decision.arm is not None
            assert here >= elsewhere * (1 - 1e-6) if is_served else here <= elsewhere * (1 + 1e-6), decision.reason
            compared += 1
    assert compared > 100
