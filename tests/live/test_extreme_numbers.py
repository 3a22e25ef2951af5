"""Numbers at the edges either work or are refused by name: no crash, no NaN, no hang."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import doral
from doral.engine.options import POLICY_NAMES, make_policy
from doral.errors import InvalidValue

EXTREME = [5e-324, 1e-310, 1e-200, 1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e12, 1e15, 1e100, 1e200, 1e308]
PLAIN: dict[str, Any] = {
    "cost": 1.0,
    "feature": 0.5,
    "weight": 1.0,
    "share": None,
    "deadline": 50.0,
    "budget": 100.0,
    "horizon": 100,
    "cutoff": None,
    "half_life": None,
    "penalty": 1.0,
    "exploration": 1.0,
    "reward": 0.5,
    "actual_cost": None,
}
NAMED = {  # by which words an error names each
    "cost": "cost of arm",
    "feature": "features of arm",
    "weight": "weight of context",
    "share": "context",
    "actual_cost": "actual_cost",
    **{name: name for name in ("deadline", "budget", "horizon", "cutoff", "half_life", "penalty", "exploration")},
    "reward": "reward",
}


def run(name: str, numbers: dict[str, Any], feedback: Any = "explicit") -> None:
    """A campaign with these numbers, for a few decisions and answers."""
    options = {key: numbers[key] for key in ("half_life", "penalty", "exploration") if numbers[key] != PLAIN[key]}
    if numbers["cutoff"] is not None:
        options["cutoff"] = numbers["cutoff"]
    share = numbers["share"]
    problem = doral.Problem(
        arms=[
            doral.Arm("a", features=[numbers["feature"], 0.1], cost=numbers["cost"]),
            doral.Arm("b", features=[0.3, 0.8]),
        ],
        contexts=[
            doral.Context("c", share, weight=numbers["weight"], tier=1),
            doral.Context("d", None if share is None else 1 - share),
        ],
        budget=numbers["budget"],
        horizon=numbers["horizon"],
        deadline=numbers["deadline"],
        feedback=feedback,
        reserves={1: 0.3},
    )
    with doral.open("memory://") as store:
        campaign = store.create("one", problem, policy=make_policy(name, **options), seed=1, clock="rounds")
        for _ in range(12):
            for decision in campaign.decide_many(["c", "d", "c"]):
                assert math.isfinite(decision.probability or 0.0)
                assert not math.isnan(decision.value)
                assert not math.isnan(decision.price)
                if decision.arm is not None:
                    cost = numbers["actual_cost"]
                    campaign.feedback(decision.id, numbers["reward"], actual_cost=cost)
        report = campaign.report()
        assert not math.isnan(report.reward)
        store.campaign("one")._session.read(lambda _, fold: fold.check())


def refused(name: str, numbers: dict[str, Any]) -> doral.DoralError | None:
    try:
        run(name, numbers)
    except doral.DoralError as error:
        return error
    return None


@pytest.mark.parametrize("name", ["doral-otf", "doral", "d-linucb", "d-lints", "eva"])
@pytest.mark.parametrize("field", NAMED)
def test_one_extreme_number_works_or_is_named(field: str, name: str) -> None:
    for size in EXTREME:
        for value in (size, -size):
            refusal = refused(name, {**PLAIN, field: value})
            if isinstance(refusal, InvalidValue):
                assert NAMED[field] in str(refusal) or "share" in str(refusal)
            else:  # or it costs more than was reserved
                assert refusal is None or field == "actual_cost", refusal


@settings(max_examples=150, deadline=None)
@given(data=st.data(), name=st.sampled_from(POLICY_NAMES), feedback=st.sampled_from(["explicit", "silent"]))
def test_several_extreme_numbers_at_once(data: st.DataObject, name: str, feedback: str) -> None:
    if name in ("doral/literal", "oracle"):  # needs the truth
        return
    ranges: dict[str, tuple[float, float]] = {
        "cost": (1e-12, 1e15),
        "feature": (-1e6, 1e6),
        "weight": (1e-9, 1e9),
        "deadline": (1e-9, 1e12),
        "budget": (1e-12, 1e15),
        "reward": (-1e9, 1e9),
    }
    chosen = data.draw(st.lists(st.sampled_from(sorted(ranges)), min_size=1, max_size=6, unique=True))
    numbers = {
        field: data.draw(st.sampled_from(ranges[field]) | st.floats(*ranges[field]), label=field) for field in chosen
    }
    run(name, {**PLAIN, **numbers}, feedback)
