"""The paper's claims hold, fail or stay open as their intervals say."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from doral._arrays import Floats
from doral.experiments.kit.claim import to_json
from doral.experiments.paper import analysis as claims
from doral.simulation.results.differences import interval
from doral.simulation.results.result import SimulationResult

MakeResult = Callable[..., SimulationResult]

BASE = np.array([1000.0, 1100.0, 900.0, 1050.0, 950.0])
STEADY = np.array([0.0, 1.0, -1.0, 0.5, -0.5])
WILD = np.array([0.0, 400.0, -400.0, 300.0, -300.0])


def _verdicts(result: SimulationResult) -> dict[str, str]:
    return {claim.id: claim.verdict for claim in claims.judge(result)}


def _rewards(doral: Floats, d_alp: Floats, d_linucb: Floats, random: Floats) -> dict[str, Floats]:
    return {"doral": doral, "d-alp": d_alp, "d-linucb": d_linucb, "random": random}


def test_all_sixteen_statements_are_there_and_can_hold(make_result: MakeResult) -> None:
    rewards = _rewards(BASE + 5 + STEADY, BASE, BASE - 200, BASE - 250 + STEADY)
    late = _rewards(BASE / 10, BASE / 10, BASE / 5 + STEADY, BASE / 5)
    found = claims.judge(make_result(rewards, late))
    assert len(found) == len({claim.id for claim in found}) == 16
    assert all(claim.holds for claim in found)


def test_claims_that_the_numbers_contradict_fail(make_result: MakeResult) -> None:
    rewards = _rewards(BASE - 100 + STEADY, BASE, BASE + 50, BASE + 60)
    early = _rewards(BASE / 5 + STEADY, BASE / 10, BASE / 10, BASE / 10)
    assert set(_verdicts(make_result(rewards, early)).values()) == {"fails"}


def test_wide_intervals_show_nothing(make_result: MakeResult) -> None:
    rewards = _rewards(BASE + WILD, BASE, BASE, BASE)
    verdicts = _verdicts(make_result(rewards))
    assert {verdict for id_, verdict in verdicts.items()} == {"not shown"}
    assert not any(claim.holds for claim in claims.judge(make_result(rewards)))


def test_a_single_run_shows_nothing_and_is_valid_json(make_result: MakeResult) -> None:
    one = np.array([1000.0])
    found = claims.judge(make_result(_rewards(one + 100, one, one, one)))
    assert not any(claim.holds for claim in found)
    read = json.loads(to_json(found), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert read[0]["low"] is None
    assert read[0]["estimate"] == pytest.approx(10.0)


def test_estimates_are_paired_and_in_percent(make_result: MakeResult) -> None:
    result = make_result(_rewards(BASE * 1.1, BASE, BASE / 2, BASE / 2))
    found = {claim.id: claim for claim in claims.judge(result)}
    claim = found["2-above-d-alp/diverse-pareto"]
    expected = interval(100 * (BASE * 1.1 - BASE) / BASE.mean())
    assert (claim.estimate, claim.low, claim.high) == pytest.approx((expected.mean, expected.low, expected.high))
    assert found["4-above-random/similar-pareto"].estimate == pytest.approx(120.0)


def test_the_late_start_is_read_inside_the_race(make_result: MakeResult) -> None:
    # The race ends in round 230: the checkpoint at 200 counts, not the one at 300.
    rewards = _rewards(BASE * 10, BASE, BASE, BASE)
    late = _rewards(BASE / 10, BASE, BASE / 5, BASE)
    found = {claim.id: claim for claim in claims.judge(make_result(rewards, late))}
    assert found["5-late-start/diverse-pareto"].estimate == pytest.approx(-50.0)


def test_the_file_has_exactly_the_agreed_keys(make_result: MakeResult) -> None:
    read = json.loads(to_json(claims.judge(make_result(_rewards(BASE, BASE, BASE, BASE)))))
    assert isinstance(read, list)
    keys = ["id", "statement", "scenario", "holds", "estimate", "low", "high", "unit"]
    assert all(list(row) == keys for row in read)
    assert {type(row["holds"]) for row in read} == {bool}


def test_nothing_earned_by_the_other_is_no_crash(make_result: MakeResult) -> None:
    nothing = np.zeros(5)
    found = claims.judge(make_result(_rewards(BASE, BASE, nothing, nothing)))
    assert not next(claim for claim in found if claim.id.startswith("4-")).holds
