"""Rules that find what somebody should look after, and mostly nothing where nothing is wrong."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lifelines.statistics import logrank_test

import doral
from doral.live.events.event import (
    IS_PENDING,
    IS_RETURNED,
    About,
    Answered,
    Arrived,
    Choice,
    Decided,
    Event,
    Place,
    Settlement,
)
from doral.live.views.health import Health
from doral.service.operations.alarm_rules import (
    Facts,
    compare_curves,
    find_budget_early,
    find_clock_wrong,
    find_moved_curve,
    find_overdue,
    find_pace_off,
    find_silent_arms,
    find_store_ails,
    find_used_up,
    is_used_after_all,
    missing_answers,
    threshold,
)
from doral.service.operations.alarm_statistics import (
    FALSE_ALARMS,
    MOST_LIVES,
    Lives,
    Past,
    chance_of_test,
    hazard,
    log_rank,
    number_of_test,
)
from doral.service.operations.keeper import Watched
from tests.service.harness import PROBLEM

DAY_S = 86_400.0
WELL = Health(name="x", is_readable=True, is_writable=True)


def _facts(past: Past, **changed: Any) -> Facts:
    facts = Facts(
        name="x", now=0.0, is_in_seconds=True, is_closed=False, arrivals=past.arrivals, fewest_to_come=1_000.0,
        most_to_come=1_000.0, time_share=0.5, total=1_000.0, left=500.0, arms=("letter", "call"), plays=(2_000, 0),
        answers=(1_000, 0), silent_arms=frozenset(), past=past, health=WELL, tolerance_s=300.0, overdue_since_s=0.0,
    )  # fmt: skip
    return replace(facts, **changed)


def _decided(number: int, at: float, round_: int, *, arm: int | None = 0, cost: float = 1.0) -> Decided:
    return Decided(Place(number, at, 0.0, 0), Arrived(0), Choice(number, arm, cost, round_, 1, None, None, 1.0))


def _spent(rng: np.random.Generator, per_arrival: float, n: int = 1_000) -> Past:
    past = Past()
    costs = rng.binomial(1, per_arrival / 2.0, n) * 2.0
    past.read([_decided(i + 1, float(i), i + 1, arm=0 if c else None, cost=float(c)) for i, c in enumerate(costs)])
    return past


# --- chances ----------------------------------------------------------------------------------------------------------


def test_all_looks_together_use_up_what_is_stated() -> None:
    assert sum(map(chance_of_test, range(1, 20_000))) < FALSE_ALARMS
    assert sum(map(chance_of_test, range(1, 20_000))) > 0.99 * FALSE_ALARMS
    looks = [number_of_test(count, 100) for count in range(3_000)]
    assert looks[:100] == [0] * 100
    assert looks == sorted(looks)
    assert set(looks) == set(range(max(looks) + 1))  # none is left out


def test_the_log_rank_test_is_that_of_lifelines() -> None:
    rng = np.random.default_rng(1)
    times = np.ceil(rng.exponential(10.0, 300))  # with ties
    ended, second = rng.random(300) < 0.7, rng.random(300) < 0.3
    ours = log_rank(times, ended, second)
    theirs = logrank_test(times[~second], times[second], ended[~second], ended[second])
    assert ours.chance == pytest.approx(theirs.p_value, rel=1e-6)


def test_a_hazard_grows_by_answers_over_those_at_risk() -> None:
    known = hazard(np.array([1.0, 2.0, 2.0, 3.0]), np.array([True, True, False, True]))
    assert known.at(np.array([0.5, 1.0, 2.5, 9.0])) == pytest.approx([0.0, 1 / 4, 1 / 4 + 1 / 3, 1 / 4 + 1 / 3 + 1.0])


# --- money ------------------------------------------------------------------------------------------------------------


def test_a_budget_that_ends_early_is_found_and_noise_is_not() -> None:
    rng = np.random.default_rng(2)
    found = find_budget_early(_facts(_spent(rng, 1.2)), 5)
    assert found is not None
    assert "Top it up" in found.words
    assert "417" in found.words or "ends after about" in found.words
    false = sum(
        find_budget_early(_facts(_spent(rng, 0.5)), 1) is not None for _ in range(30)
    )  # exactly at pace: what is left lasts
    assert false == 0
    at_the_limit = [find_budget_early(_facts(_spent(rng, 500 / 900)), 1) is not None for _ in range(60)]
    assert sum(at_the_limit) <= 3  # of a rate that is just not too high


def test_what_ends_shortly_before_the_end_is_nothing() -> None:
    past = _spent(np.random.default_rng(3), 1.0)
    assert find_budget_early(_facts(past, left=40.0, fewest_to_come=42.0, time_share=0.96), 1) is None
    assert find_budget_early(_facts(past, is_closed=True), 1) is None
    assert find_budget_early(_facts(Past()), 1) is None


def test_much_that_will_be_left_over_is_found() -> None:
    rng = np.random.default_rng(4)
    slow, right = _spent(rng, 0.1), _spent(rng, 0.5)
    found = find_pace_off(_facts(slow), 3)
    assert found is not None
    assert "left over" in found.words
    assert find_pace_off(_facts(right), 3) is None
    assert find_pace_off(_facts(slow, time_share=0.1), 3) is None  # it has only begun
    assert not is_used_after_all(_facts(slow))
    assert is_used_after_all(_facts(right))


# --- answers ----------------------------------------------------------------------------------------------------------


def _lives(
    rng: np.random.Generator, n: int, now: float, *, stopped: float = math.inf, mean: float = DAY_S, chance: float = 0.6
) -> Lives:
    """Decisions at an even pace until now; answers that were not heard of by then are missing."""
    made = np.linspace(0.0, now, n, endpoint=False)
    delay = np.where(rng.random(n) < chance, rng.exponential(mean, n), np.inf)
    heard = made + delay
    gone = heard > min(now, stopped)
    return Lives(made, np.zeros(n, dtype=np.int64), np.where(gone, np.nan, delay), np.where(gone, np.nan, heard))


def _past(lives: Lives) -> Past:
    past, sequences = Past(), dict[int, int]()
    events: list[Event] = []
    moments = [(made, 0, place) for place, made in enumerate(lives.made)]
    moments += [(heard, 1, place) for place, heard in enumerate(lives.heard) if not math.isnan(heard)]
    for number, (at, kind, place) in enumerate(sorted(moments), 1):
        if kind == 0:
            sequences[place] = number
            events.append(_decided(number, at, place + 1))
        else:
            about = About(sequences[place], place, 0, 0, 1.0, 1)
            settlement = Settlement(IS_PENDING, IS_RETURNED, 1.0, None)
            events.append(Answered(Place(number, at, 0.0, 0), about, settlement, 1.0, float(lives.delay[place])))
    past.read(events)
    return past


def test_an_arm_that_fell_silent_is_found_and_a_quiet_one_is_not() -> None:
    rng, now = np.random.default_rng(5), 20 * DAY_S
    silent = _past(_lives(rng, 1_000, now, stopped=18.5 * DAY_S))
    found = find_silent_arms(_facts(silent, now=now))
    assert [one.subject for one in found] == ["letter"]
    assert "no answer" in found[0].words
    false = 0
    for _ in range(60):
        lives = _lives(rng, 400, now)
        past = _past(lives)
        false += bool(find_silent_arms(_facts(past, now=now)))
    assert false == 0
    # Nobody is served any more, and all have answered who will: then nothing is to be expected.
    lives = _lives(rng, 1_000, now + 100 * DAY_S)
    served = lives.where(lives.made < now)
    assert find_silent_arms(_facts(_past(served), now=now + 100 * DAY_S)) == []


def test_spells_between_answers_are_exponential_on_their_scale() -> None:
    """Time rescaling, on which the stated rate of false alarms rests."""
    rng, now, spells = np.random.default_rng(6), 20 * DAY_S, []
    for _ in range(150):
        lives = _lives(rng, 600, now)
        expected, learned_from = missing_answers(lives, now)
        assert learned_from > 200
        spells.append(expected)
    # The last spell is cut off at an arbitrary moment: the time since the last event of a Poisson process is
    # exponential, too.
    assert np.mean(spells) == pytest.approx(1.0, abs=0.3)
    assert max(spells) < threshold(300, 300, 1)


def test_answers_that_are_reported_once_a_day_are_no_silence() -> None:
    rng, now = np.random.default_rng(7), 20.9 * DAY_S
    lives = _lives(rng, 1_000, now)
    daily = np.ceil(lives.heard / DAY_S) * DAY_S
    late = daily > now
    lives = Lives(lives.made, lives.context, np.where(late, np.nan, daily - lives.made), np.where(late, np.nan, daily))
    facts = _facts(_past(lives), now=now)
    assert find_silent_arms(facts) == []
    assert find_moved_curve(facts, 0, 1) is None


def test_a_return_curve_that_moved_is_found_and_one_that_did_not_is_not() -> None:
    rng, now = np.random.default_rng(8), 20 * DAY_S
    before, after = _lives(rng, 1_000, now), _lives(rng, 1_000, now, chance=0.3)
    moved = Lives(*(np.where(before.made < 15 * DAY_S, one, other) for one, other in zip(before, after, strict=True)))
    found = find_moved_curve(_facts(_past(moved), now=now), 0, 10)
    assert found is not None
    assert "by chance: " in found.words
    assert "e-" not in found.words.partition("chance")[2].partition(")")[0]  # numbers as people say them
    assert "rarer or later" in found.words
    false = 0
    for _ in range(150):
        test = compare_curves(_lives(rng, 300, now), now)
        assert test is not None
        false += test.chance < 0.05
    assert 1 <= false <= 18  # as often as it says: 7.5 are expected


def test_other_contexts_are_not_taken_for_a_change() -> None:
    rng, now = np.random.default_rng(9), 20 * DAY_S
    often, rarely = _lives(rng, 2_000, now, chance=0.9), _lives(rng, 2_000, now, chance=0.2)
    recent = often.made > 15 * DAY_S
    lives = Lives(*(np.where(recent, one, other) for one, other in zip(rarely, often, strict=True)))
    assert compare_curves(lives, now).chance < 1e-6  # type: ignore[union-attr]
    mixed = rng.random(2_000) < np.where(recent, 0.9, 0.1)
    lives = Lives(*(np.where(mixed, one, other) for one, other in zip(rarely, often, strict=True)))
    by_context = lives._replace(context=mixed.astype(np.int64))
    assert compare_curves(lives._replace(context=np.zeros(2_000, dtype=np.int64)), now).chance < 1e-6  # type: ignore[union-attr]
    assert compare_curves(by_context, now).chance > 1e-3  # type: ignore[union-attr]


def test_what_is_remembered_does_not_grow_with_the_log() -> None:
    rng = np.random.default_rng(10)
    past = _past(_lives(rng, MOST_LIVES + 2_000, 20 * DAY_S))
    assert past.lives(0).made.size == MOST_LIVES
    assert past.rates(20) is not None
    assert len(past._points) <= 2_049


# --- health -----------------------------------------------------------------------------------------------------------


def test_what_health_tells_of() -> None:
    past = Past()
    ahead = replace(WELL, clock_ahead_s=1_000.0, server_ahead_s=-900.0)
    assert [one.subject for one in find_clock_wrong(_facts(past, health=ahead))] == ["campaign", "server"]
    assert find_clock_wrong(_facts(past)) == []
    late = replace(WELL, overdue=5)
    assert find_overdue(_facts(past, health=late, overdue_since_s=10.0)) == []
    assert len(find_overdue(_facts(past, health=late, overdue_since_s=1_000.0))) == 1
    assert find_store_ails(WELL) == []
    broken = Health(name="x", is_readable=False, is_writable=False, error="gone", write_s=9.0)
    assert [one.subject for one in find_store_ails(broken)] == ["read", "slow"]
    gone = replace(WELL, budget_left_share=0.0, time_left_share=0.4)
    assert find_used_up(_facts(past, health=gone))[0].subject == "budget"
    over = replace(WELL, budget_left_share=0.2, time_left_share=0.0)
    assert find_used_up(_facts(past, health=over))[0].subject == "time"
    assert find_used_up(_facts(past, health=over, is_closed=True)) == []


# --- a campaign under watch -------------------------------------------------------------------------------------------


def test_an_alarm_is_raised_stays_and_is_cleared() -> None:
    now = time.time()
    with doral.open("memory://") as store:
        campaign = store.create("x", PROBLEM, seed=3, at=now - DAY_S)
        books = store.books
        watched = Watched(campaign, books)
        watched.look(now)
        assert books.alarms() == []
        campaign.decide_many([{"context": "young", "at": now - DAY_S + 60.0 * i} for i in range(PROBLEM.horizon)])
        watched.look(now)
        raised = {row.rule for row in books.alarms(campaign="x")}
        assert "used-up" in raised
        since = [row.since for row in books.alarms() if row.rule == "used-up"]
        watched.look(now + 30.0)
        assert [row.since for row in books.alarms() if row.rule == "used-up"] == since
        campaign.extend(rounds=500)
        watched.look(now + 60.0)
        assert "used-up" in {row.rule for row in books.alarms()}  # once is no proof
        watched.look(now + 90.0)
        assert "used-up" not in {row.rule for row in books.alarms()}


def test_a_test_is_used_once_however_often_the_service_is_restarted(tmp_path: Path) -> None:
    now, used = time.time(), []
    url = f"sqlite:///{tmp_path / 'campaigns.db'}"
    with doral.open(url) as store:
        campaign = store.create("x", PROBLEM, seed=3, at=now - DAY_S)
        campaign.decide_many([{"context": "young", "at": now - DAY_S + 60.0 * i} for i in range(400)])
    for _ in range(3):  # processes that begin anew, or replicas
        with doral.open(url) as store:
            watched = Watched(store.campaign("x"), store.books)
            used.append([watched._is_due(("pace-off", ""), number) for number in (1, 2, 2)])
    assert used == [[True, True, False], [False, False, False], [False, False, False]]


def test_what_is_muted_is_not_raised() -> None:
    now = time.time()
    with doral.open("memory://") as store:
        campaign, books = store.create("x", PROBLEM, seed=3, at=now - DAY_S), store.books
        campaign.decide_many([{"context": "young", "at": now - DAY_S + 60.0 * i} for i in range(PROBLEM.horizon)])
        watched = Watched(campaign, books)
        watched.look(now)
        subject = next(row.subject for row in books.alarms() if row.rule == "used-up")
        books.mute_alarm(campaign.session.row.tag, "used-up", subject, now + 100.0)
        watched.look(now + 1.0)
        assert "used-up" not in {row.rule for row in books.alarms()}
        watched.look(now + 101.0)
        assert "used-up" in {row.rule for row in books.alarms()}
