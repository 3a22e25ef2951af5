"""What a log can tell, and what it says when it cannot."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import doral
from doral.evaluation.propensity import chances_of, counted_by_time
from doral.evaluation.rows import part_of, rows_of
from doral.logs.log import SKIPPED
from tests.evaluation.worlds import small_world, untold

WORLD = dataclasses.replace(small_world(1), days_after=400.0)
LOG = WORLD.log(2_000, 0)


def test_what_the_log_never_did_is_named() -> None:
    keep = ~((LOG.arm == 1) & (LOG.context == 2))
    log = untold(part_of(LOG, np.flatnonzero(keep)))
    share = float((log.context == 2).mean())
    value = doral.evaluate(log, "always:arm-1").of("always:arm-1")
    said = f"the log never gave arm-1 to context-2 ({share:.0%} of what the policy does)"
    assert value.verdict == f"not supported: {said}"
    assert value.unsupported == pytest.approx(share)
    assert value.needed is None
    others = {"*": "arm-1", "context-2": "arm-0"}
    assert doral.evaluate(log, ("others", others)).of("others").verdict == "supported"


def test_a_log_without_chance_supports_nothing_else() -> None:
    certain = dataclasses.replace(LOG, probability=np.ones(len(LOG)))
    told = doral.evaluate(certain, "uniform", propensities="given")
    assert told.of("uniform").verdict.startswith("not supported: the log left nothing to chance")
    counted = doral.evaluate(certain, "uniform")
    assert "left nothing to chance" in counted.text()
    assert "Probabilities were counted" in counted.text()


def test_effective_size_is_that_of_kish_and_weak_where_few_arrivals_speak() -> None:
    value = doral.evaluate(LOG, "always:arm-0").of("always:arm-0")
    weight = (LOG.arm == 0) / LOG.probability
    assert value.ess == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert dict(value.ess_by_arm) == {"arm-0": pytest.approx(value.ess)}
    assert value.largest_weight == weight.max()
    few = doral.evaluate(part_of(LOG, np.arange(60)), "always:arm-2").of("always:arm-2")
    assert few.verdict.startswith(("weak: the log says as much about it as", "not supported"))


def test_weights_that_do_not_add_up_are_said() -> None:
    """An arm that could not be had in the first half of the log, told by probabilities of the second."""
    half = LOG.time < 50.0
    log = part_of(LOG, np.flatnonzero(~half | (LOG.arm != 0)))
    result = doral.evaluate(log, "always:arm-0")
    value = result.of("always:arm-0")
    assert any("propensities='estimated' counts it over the whole time" in note for note in result.notes)
    counted = doral.evaluate(log, "always:arm-0", propensities="estimated").of("always:arm-0")
    table = np.eye(4)[[0, 0, 0, 0]]
    assert counted.verdict == "supported"
    assert counted.low <= WORLD.value(table, 60.0) <= counted.high
    assert value.verdict.startswith("not supported: as its probabilities tell, the log could have done ")


def test_arrivals_that_are_needed_do_tell_the_difference() -> None:
    """With as many arrivals as are asked for, about 80% of logs tell."""
    table = np.array(WORLD.done)
    table[1, [0, 2]] = table[1, [2, 0]]
    long = doral.evaluate(WORLD.log(100_000, 1), ("swapped", table), deadline=60.0).of("swapped")
    assert long.needed is not None
    told = [
        not doral.evaluate(WORLD.log(long.needed, seed), ("swapped", table), deadline=60.0).of("swapped").is_equal
        for seed in range(80)
    ]
    assert 0.68 <= np.mean(told) <= 0.9


def test_told_probabilities_are_held_against_what_was_done() -> None:
    assert chances_of(rows_of(LOG, deadline=60.0), None).notes == ()
    lies = np.where((LOG.arm == 1) & (LOG.context == 0), 0.5 * LOG.probability, LOG.probability)
    notes = doral.evaluate(dataclasses.replace(LOG, probability=lies), "uniform").notes
    assert any(note.startswith("The probabilities told for arm-1 in context-0 are too low") for note in notes)


def test_probabilities_that_are_wrong_nearly_everywhere_are_not_used() -> None:
    """Those of being served at all, say, instead of what was done."""
    coin = np.where(LOG.is_served, 0.8, 0.2)
    log = dataclasses.replace(LOG, probability=coin)
    result = doral.evaluate(log, "uniform")
    assert any(note.startswith("Told probabilities do not go with what was done in ") for note in result.notes)
    assert result.of("uniform") == doral.evaluate(untold(LOG), "uniform").of("uniform")
    insisted = doral.evaluate(log, "uniform", propensities="given").of("uniform")
    assert insisted.verdict.startswith("not supported: as its probabilities tell, the log could have done ")


def test_good_probabilities_are_rarely_called_bad() -> None:
    bad = sum(bool(chances_of(rows_of(WORLD.log(600, seed), deadline=60.0), None).notes) for seed in range(200))
    assert bad <= 8  # one in a hundred, and skewed sums


def test_counted_probabilities_follow_context_and_time() -> None:
    world = dataclasses.replace(WORLD, done_later=small_world(3).done)
    log = world.log(60_000, 0)
    counted, bins = counted_by_time(rows_of(log, deadline=60.0))
    assert bins > 8
    assert np.abs(counted - log.probability).mean() < 0.02
    still, _ = counted_by_time(rows_of(part_of(log, np.arange(60)), deadline=60.0))  # too few to split
    first = part_of(log, np.arange(60))
    for context in range(4):
        for arm in (*range(3), SKIPPED):
            rows = (first.context == context) & (first.arm == arm)
            assert still[rows] == pytest.approx(rows.sum() / (first.context == context).sum())


def test_arrivals_after_the_budget_was_spent_are_left_out_and_said() -> None:
    spent = LOG.time > 80.0
    log = dataclasses.replace(
        LOG,
        arm=np.where(spent, SKIPPED, LOG.arm),
        delay=np.where(spent, np.inf, LOG.delay),
        reward=np.where(spent, np.nan, LOG.reward),
        probability=np.where(spent, 1.0, LOG.probability),
    )
    result = doral.evaluate(log, "uniform", deadline=60.0)
    whole = doral.evaluate(part_of(LOG, np.flatnonzero(~spent)), "uniform", deadline=60.0)
    assert any("after which nothing was done any more, are left out" in note for note in result.notes)
    assert result.of("uniform").value == pytest.approx(whole.of("uniform").value, abs=0.02)


def test_weak_support_widens_the_interval_by_what_is_not_seen() -> None:
    """B was never given to one in two hundred; nobody knows what it would have brought there."""
    rng = np.random.default_rng(0)
    held, widths = [], []
    for _ in range(60):
        n = 4_000
        context = np.where(rng.random(n) < 0.005, "rare", "usual")
        arm = np.where((rng.random(n) < 0.5) | (context == "rare"), "A", "B")
        chance = np.where(context == "rare", 0.9, np.where(arm == "A", 0.2, 0.4))
        reward = (rng.random(n) < chance).astype(float)
        log = doral.read_log(
            {"context": context, "arm": arm, "reward": reward}, context="context", arm="arm", reward="reward"
        )
        found = doral.evaluate(log, "always:B").of("always:B")
        assert found.verdict.startswith("weak")
        truth = 0.995 * 0.4 + 0.005 * 1.0  # B brings something to all of the rare ones
        held.append(found.low <= truth <= found.high)
        widths.append(found.high - found.low)
    assert np.mean(held) >= 0.95
    assert 0.02 < np.mean(widths) < 0.2
