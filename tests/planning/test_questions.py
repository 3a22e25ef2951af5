"""Questions about delays: what is there is found, what is not is not, and what is small is not called a yes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from doral.inference.bands import mean_of_answers, total_of_answers
from doral.logs.log import Log
from doral.planning.questions import Finding, findings
from tests.planning.made import made, uniform_watch


def _asked(log: Log) -> dict[str, Finding]:
    return {one.question: one for one in findings(log)}


def _log(seed: int, n: int = 4_000, *, by_context: float = 1.0, by_half: float = 1.0, by_reward: float = 1.0) -> Log:
    """Three arms, two contexts; delays are so many times as long in the second context, half, or for rewards of 0."""
    rng = np.random.default_rng(seed)
    arm, context, reward = rng.integers(0, 3, n), rng.integers(0, 2, n), (rng.random(n) < 0.4).astype(float)
    scale = (5.0 + 5.0 * arm) * by_context**context * by_reward ** (1.0 - reward)
    scale = scale * np.where(np.arange(n) >= n // 2, by_half, 1.0)
    return made(rng.exponential(scale), uniform_watch(n, 300, rng), arm=arm, context=context, reward=reward)


def test_strata_are_not_mixed_up() -> None:
    """Contexts choose different arms; within an arm they are alike."""
    rng = np.random.default_rng(2)
    arm = rng.integers(0, 2, 3_000)
    context = (rng.random(3_000) < 0.2 + 0.6 * arm).astype(np.int64)
    log = made(rng.exponential(5 + 20 * arm), uniform_watch(3_000, 100, rng), arm=arm, context=context)
    assert _asked(log)["context"].answer != "yes"


def test_what_is_there_is_found() -> None:
    assert _asked(_log(3, by_context=1.5))["context"].answer == "yes"
    later = _asked(_log(4, by_half=1.5))["time"]
    assert later.answer == "yes"
    first = _asked(_log(5, by_reward=1.6))["positives_first"]
    assert first.answer == "yes"
    assert first.low is not None
    assert first.high is not None
    assert first.low <= 1 / 1.6 + 0.05
    assert first.high >= 1 / 1.6 - 0.05
    assert first.sentence.startswith("Positive answers come first")
    assert _asked(_log(5, by_reward=0.6))["positives_first"].answer == "no"


def test_what_is_not_there_is_not_found_and_a_long_log_says_so() -> None:
    answers: dict[str, list[str]] = {}
    for seed in range(25):
        for one in findings(_log(100 + seed, 1_000)):
            answers.setdefault(one.question, []).append(one.answer)
    wrong = sum(answers[question].count("yes") for question in ("positives_first", "context", "time"))
    assert wrong <= 5  # Holm: one log in twenty has any
    assert answers["silent"] == ["no"] * 25
    long = _asked(_log(7, 40_000))
    assert (long["context"].answer, long["time"].answer, long["positives_first"].answer) == ("no", "no", "no")
    assert "no" not in answers["positives_first"]  # a short one cannot


def test_a_difference_inside_the_margin_is_not_called_a_yes() -> None:
    """Many rows tell a small difference from none; it is still a small one."""
    rng = np.random.default_rng(0)
    n = 200_000
    context = rng.integers(0, 2, n)
    log = made(rng.exponential(10.0 + 0.3 * context), uniform_watch(n, 300, rng), context=context)
    found = _asked(log)["context"]
    assert found.answer == "no"
    assert found.effect is not None
    assert 0.0 < found.effect < 0.03
    ratio = _asked(_log(6, 200_000, by_reward=1.05))["positives_first"]
    assert (ratio.answer, ratio.p_value) == ("no", 1.0)


def test_curves_that_meet_again_by_the_deadline_differ() -> None:
    """All answer in time, half of them later than the others."""
    rng = np.random.default_rng(1)
    context = rng.integers(0, 2, 5_000)
    log = made(rng.uniform(0.0, 5.0 + 15.0 * context), np.full(5_000, 100.0), context=context)
    assert _asked(log)["context"].answer == "yes"


@pytest.mark.parametrize(("is_silent", "expected"), [(True, "yes"), (False, "no")])
def test_silence_is_recognised_by_the_answers(is_silent: bool, expected: str) -> None:
    rng = np.random.default_rng(8)
    reward = (rng.random(600) < 0.4).astype(float)
    delay = np.where((reward == 0.0) & is_silent, np.inf, rng.exponential(10, 600))
    feedback = "silent" if is_silent else "explicit"
    found = _asked(made(delay, uniform_watch(600, 100, rng), reward=reward, feedback=feedback))
    assert found["silent"].answer == expected
    if is_silent:
        assert "silent" in found["positives_first"].sentence
        assert found["positives_first"].effect is None


def test_silent_feedback_that_differs_only_in_success_does_not_differ_in_delays() -> None:
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng([9, seed])
        context = rng.integers(0, 2, 2_000)
        delay = np.where(rng.random(2_000) < 0.2 + 0.4 * context, rng.exponential(10, 2_000), np.inf)
        log = made(delay, uniform_watch(2_000, 200, rng), context=context, feedback="silent")
        wrong += _asked(log)["context"].answer == "yes"
    assert wrong <= 3


def test_few_answers_or_none_say_why() -> None:
    nobody = made(np.full(30, np.inf), np.linspace(30, 1, 30))
    assert all(one.answer == "cannot tell" and one.effect is None for one in findings(nobody))
    assert all("cannot be told" in one.sentence for one in findings(nobody))
    one_row = findings(made([1.0], [2.0]))
    assert all(one.answer == "cannot tell" for one in one_row)


def test_means_over_open_decisions_are_those_of_a_plain_sample_where_nothing_is_open() -> None:
    rng = np.random.default_rng(10)
    value = rng.normal(1.0, 2.0, 5_000)
    mean, variance = total_of_answers(rng.exponential(1.0, 5_000), np.full(5_000, 1e9), value)
    assert mean == pytest.approx(value.mean())
    assert variance == pytest.approx(value.var() / 5_000, rel=0.03)


def test_intervals_of_means_hold_the_truth_with_censoring() -> None:
    inside, rare = 0, 0
    for seed in range(200):
        rng = np.random.default_rng([11, seed])
        reward = (rng.random(300) < 0.3).astype(float)
        delay = np.where(rng.random(300) < 0.2, np.inf, rng.exponential(10 + 10 * reward))
        watched = uniform_watch(300, 200, rng)
        found = mean_of_answers(np.where(delay <= watched, delay, np.inf), watched, reward)
        assert found is not None
        inside += found.low <= 0.8 * 0.3 <= found.high
        few = (rng.random(300) < 0.02).astype(float)
        average = mean_of_answers(np.zeros(300), watched, few)
        assert average is not None
        rare += average.low <= 0.02 <= average.high
    # 95% of 200 +- three errors
    assert stats.binom.ppf(0.001, 200, 0.95) <= inside <= stats.binom.ppf(0.9995, 200, 0.95)
    assert rare >= stats.binom.ppf(0.001, 200, 0.94)
