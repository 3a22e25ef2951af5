"""`doral.evaluate` as a whole: what it returns, and logs of every odd kind."""

from __future__ import annotations

import dataclasses
import io
import json
import time
from typing import Any

import numpy as np
import pytest

import doral
from doral.evaluation.rows import part_of
from doral.logs.log import SKIPPED, Log
from tests.evaluation.worlds import mixed, small_world, untold

WORLD = small_world(1)
LOG = WORLD.log(400, 0)
N = len(LOG)
POLICIES: list[Any] = ["uniform", "nothing", "best", "lp", "always:arm-0"]


def changed(**arrays: Any) -> Log:
    return dataclasses.replace(LOG, **arrays)


def odd_logs() -> dict[str, Log]:
    answered = np.where(LOG.is_answered, 1.0, np.nan)
    served = np.flatnonzero(LOG.is_served)
    return {
        "one arrival": part_of(LOG, np.flatnonzero(LOG.is_answered)[:1]),
        "one that is open": part_of(LOG, np.flatnonzero(~LOG.is_answered & LOG.is_served)[:1]),
        "two": part_of(LOG, np.arange(2)),
        "five": part_of(LOG, np.arange(5)),
        "all pending": changed(delay=np.full(N, np.inf), reward=np.full(N, np.nan)),
        "no skips": part_of(LOG, served),
        "only skips": part_of(LOG, np.flatnonzero(~LOG.is_served)),
        "one arm": dataclasses.replace(part_of(LOG, np.flatnonzero(LOG.arm <= 0)), arms=("arm-0",)),
        "one context": changed(context=np.zeros(N, dtype=np.int64), contexts=("all",)),
        "equal rewards": changed(reward=answered),
        "only zeros": changed(reward=0.0 * answered),
        "probabilities of some": changed(probability=np.where(np.arange(N) % 3 == 0, np.nan, LOG.probability)),
        "certain": changed(probability=np.ones(N)),
        "free": changed(cost=np.zeros(N), paid=np.zeros(N)),
        "not known what was paid": changed(paid=np.full(N, np.nan)),
        "answers at once": changed(delay=np.where(LOG.is_answered, 0.0, np.inf), watched=np.zeros(N), has_delays=False),
        "watched for ever": changed(watched=np.full(N, np.inf)),
        "harm": changed(reward=-5.0 * LOG.reward),
        "odd names": changed(arms=("=cmd()", "$x_{1$", "ü" * 300), contexts=("<b>", "a\nb", "x" * 500, "{}")),
    }


@pytest.mark.parametrize("name", odd_logs())
def test_odd_logs_are_answered_in_words(name: str) -> None:
    log = odd_logs()[name]
    for propensities in (None, "estimated"):
        policies = [*POLICIES[:-1], f"always:{log.arms[0]}"]
        result = doral.evaluate(log, policies, propensities=propensities)
        assert result.text()
        assert result.table().height == len(result.values)
        json.dumps(result.to_dict(), allow_nan=False)
        for one in result.values:
            assert one.low <= one.value <= one.high
            assert one.verdict.split(":")[0] in ("supported", "weak", "not supported")
    result.plot().savefig(io.BytesIO(), format="svg")


def test_nothing_can_be_valued_where_nothing_has_come() -> None:
    result = doral.evaluate(odd_logs()["all pending"], "uniform")
    assert result.values == ()
    assert result.text() == "No answer has come yet: nothing can be valued."
    with pytest.raises(doral.InvalidValue, match="there is no best"):
        result.best()


def test_some_probabilities_are_as_good_as_none_and_that_is_said() -> None:
    log = odd_logs()["probabilities of some"]
    result = doral.evaluate(log, "uniform")
    assert any(note.startswith("Probabilities are told for 266 of 400 rows only") for note in result.notes)
    assert result.of("uniform") == doral.evaluate(untold(LOG), "uniform").of("uniform")
    with pytest.raises(doral.InvalidValue, match="134 of 400 rows have no probability; say 'estimated'"):
        doral.evaluate(log, "uniform", propensities="given")


def test_ten_thousand_arms_take_seconds() -> None:
    rng = np.random.default_rng(0)
    log = dataclasses.replace(
        WORLD.log(3_000, 0),
        arms=tuple(f"a{one}" for one in range(10_000)),
        arm=rng.integers(0, 10_000, 3_000),
        probability=np.full(3_000, 1e-4),
    )
    started = time.process_time()
    result = doral.evaluate(log, ["uniform", "best", "lp"])
    assert time.process_time() - started < 10.0
    assert result.of("uniform").verdict.startswith("not supported: the log never gave a")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"deadline": -1}, "deadline"),
        ({"deadline": "soon"}, "deadline"),
        ({"deadline": True}, "deadline"),
        ({"budget": -1.0}, "budget"),
        ({"budget": float("nan")}, "budget"),
        ({"propensities": "guess"}, "propensities"),
        ({"estimators": ["dm"]}, "must be among ips, snips, dr"),
        ({"estimators": []}, "estimators"),
        ({"seed": -1}, "seed"),
        ({"policies": []}, "policies"),
        ({"policies": ["uniform", "uniform"]}, "appears twice"),
        ({"policies": [3]}, "must be a word, a mapping"),
        ({"policies": 3}, "policies"),
    ],
)
def test_wrong_options_are_said(options: dict[str, Any], said: str) -> None:
    with pytest.raises(doral.DoralError, match=said):
        doral.evaluate(LOG, **{"policies": "uniform", **options})


@pytest.mark.parametrize("log", [None, "log.csv", 3, {}])
def test_what_is_no_log_is_refused(log: Any) -> None:
    with pytest.raises(doral.InvalidValue, match="source"):
        doral.evaluate(log)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"probability": np.full(N, 1e-300)}, "probability = 1e-300"),
        ({"probability": np.full(N, 1.5)}, "probability = 1.5"),
        ({"probability": np.zeros(N)}, "probability = 0.0"),
        ({"reward": np.where(LOG.is_answered, 1e300, np.nan)}, "reward = 1e"),
    ],
)
def test_numbers_that_cannot_be_are_refused(arrays: dict[str, Any], said: str) -> None:
    with pytest.raises(doral.InvalidValue, match=said):
        doral.evaluate(changed(**arrays), "uniform")


def test_same_seed_same_bits() -> None:
    one, two, other = (doral.evaluate(LOG, POLICIES, seed=seed) for seed in (1, 1, 2))
    assert one.values == two.values
    assert one.of("best").value != other.of("best").value


def test_doing_nothing_is_worth_what_the_log_says() -> None:
    unknown = doral.evaluate(LOG, "nothing").of("nothing")
    assert (unknown.value, unknown.low, unknown.high, unknown.cost) == (0.0, 0.0, 0.0, 0.0)
    skipped = LOG.arm == SKIPPED
    known = changed(
        delay=np.where(skipped, 0.5, LOG.delay),
        reward=np.where(skipped, np.arange(N) % 2, LOG.reward),
        watched=np.maximum(LOG.watched, 0.5),
    )
    result = doral.evaluate(known, "nothing")
    value = result.of("nothing")
    assert value.low <= 0.5 <= value.high
    assert value.high - value.low < 0.5
    assert not any(note.startswith("Doing nothing is taken") for note in result.notes)


def test_values_per_unit_of_budget_follow_the_delta_method() -> None:
    """Against the scatter over many logs."""
    table = mixed(WORLD, 0)
    found = [doral.evaluate(WORLD.log(600, seed), ("mixed", table), deadline=20.0).of("mixed") for seed in range(100)]
    ratios = np.array([one.per_cost for one in found])
    errors = [(one.per_cost_high - one.per_cost_low) / 3.93 for one in found if one.per_cost_high and one.per_cost_low]
    assert np.mean(errors) == pytest.approx(float(ratios.std()), rel=0.2)
    assert found[0].per_cost == pytest.approx(found[0].value / found[0].cost)


def test_words_say_what_numbers_say() -> None:
    result = doral.evaluate(WORLD.log(3_000, 0), ["uniform", ("same", WORLD.done)], deadline=25.0)
    text = result.text()
    assert "Valued per arrival: what came within 25 units, of 3,000 arrivals." in text
    assert "same would have brought" in text
    assert "which the log cannot tell from 0 (about" in text
    assert "12,000 halve the interval" in text
    assert "chosen on one half and valued on the other (uniform)" in text
    row = result.table().filter(policy="uniform", estimator="dr").row(0, named=True)
    assert row["value"] == result.of("uniform").value
    assert result.to_dict()["values"][0]["policy"] == "status-quo"
    with pytest.raises(doral.InvalidValue, match="was not valued so; known: status-quo, uniform, same"):
        result.of("other")


def test_many_rows_take_seconds() -> None:
    log = WORLD.log(300_000, 0)
    started = time.process_time()
    doral.evaluate(log, ["uniform", "best", "lp", "always:arm-1", ("mixed", mixed(WORLD, 0))])
    assert time.process_time() - started < 10.0
