"""What kind of feedback this is: questions about delays, each answered with an effect and its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from doral.log.kaplan_meier import ENOUGH, rows_by_group, survival_of
from doral.log.log import Log
from doral.planning import delay_groups
from doral.planning.averages import Z, total_of_answers
from doral.planning.bands import POINTWISE, limits
from doral.planning.curves import MOST_ARMS
from doral.planning.deadline import deadline_of
from doral.planning.fact import Fact, YesNo, percent

LEVEL = 0.05
FEW = 0.05  # of answers: fewer that are not above 0 do not matter
ALIKE = 0.1  # delays that differ by a tenth are alike
SAME_SHARE = 0.05  # shares of answers that differ by five in a hundred are the same


@dataclass(frozen=True, kw_only=True)
class Finding(Fact):
    """The answer to a question about the log.

    "yes" needs a p-value below 5% after Holm's correction for all questions that were asked; "no" needs an interval
    of the effect inside `margin` on both sides of nothing; all else is "cannot tell". (Whether feedback is silent is
    told by the share of answers that are not above 0: "yes" where it is surely below the margin and many do not
    answer, "no" where it is surely above.) A question that cannot be asked of this log has None for its numbers, and
    its sentence says why.
    """

    question: str  # "silent", "positives_first", "context", "time"
    asked: str  # the question in words
    answer: YesNo
    effect: float | None  # what it is of stands in `measured`
    low: float | None  # 95% interval of the effect
    high: float | None
    margin: float | None  # an effect smaller than this does not matter
    p_value: float | None  # after Holm's correction
    measured: str  # what the effect is, in words


def findings(log: Log, *, deadline: float | None = None) -> tuple[Finding, ...]:
    """Is feedback silent, do positives come first, do delays depend on the context, do they change over time?"""
    until = deadline_of(log, deadline).age
    rest: tuple[Finding, ...]
    if log.has_delays and until is not None:
        rest = (_positives_first(log, until), _by_context(log, until), _over_time(log, until))
    else:
        why = "the log does not say when answers came" if not log.has_delays else "no answer has come yet"
        rest = tuple(_cannot(question, why) for question in ("positives_first", "context", "time"))
    return tuple(_decided(log, one) for one in _holm((_silent(log), *rest)))


_ASKED = {
    "silent": "Is feedback silent?",
    "positives_first": "Do positive answers come first?",
    "context": "Do delays depend on the context?",
    "time": "Do delays change over time?",
}


def _cannot(question: str, why: str) -> Finding:
    return Finding(
        question=question,
        asked=_ASKED[question],
        answer="cannot tell",
        effect=None,
        low=None,
        high=None,
        margin=None,
        p_value=None,
        measured="",
        sentence=f"{_ASKED[question]} It cannot be told: {why}.",
    )


def _silent(log: Log) -> Finding:
    from scipy.special import bdtr

    rewards = log.reward[log.is_served & log.is_answered]
    if rewards.size == 0:
        return _cannot("silent", "no answer has come yet")
    n_none = int((rewards <= 0.0).sum())
    low, high = limits(np.array([n_none / rewards.size]), np.array([float(rewards.size)]), POINTWISE)
    return Finding(
        question="silent",
        asked=_ASKED["silent"],
        answer="cannot tell",
        effect=n_none / rewards.size,
        low=float(low[0]),
        high=float(high[0]),
        margin=FEW,
        p_value=float(bdtr(n_none, rewards.size, FEW)),  # of so few, if as many as the margin were not above 0
        measured="share of answers that are not above 0",
        sentence="",
    )


def _many_are_silent(log: Log) -> bool:
    """Whether surely more than a few do not answer, however long they are watched."""
    found = survival_of(log.delay[log.is_served], log.watched[log.is_served])
    known = np.flatnonzero(found.at_risk >= ENOUGH)
    if known.size == 0:
        return False
    waiting, variance = float(found.waiting[known[-1]]), float(found.variance[known[-1]])
    return waiting * float(np.exp(-Z * np.sqrt(variance))) > FEW


def _positives_first(log: Log, until: float) -> Finding:
    """The ratio of mean delays within the deadline, positives over others, within arms, then over all arms."""
    if log.feedback == "silent":
        return _cannot("positives_first", "feedback is silent, nobody hears of the others")
    ratios, precisions = [], []
    for rows in rows_by_group(log.arm + 1, len(log.arms) + 1)[1 : MOST_ARMS + 1]:
        delay = np.where(log.delay[rows] <= until, log.delay[rows], np.inf)
        watched = np.minimum(log.watched[rows], until)
        came, above = np.isfinite(delay), log.reward[rows] > 0.0
        if min((came & above).sum(), (came & ~above).sum()) < ENOUGH:
            continue
        found = (
            delay_groups.mean_delay(delay, watched, came & above),
            delay_groups.mean_delay(delay, watched, came & ~above),
        )
        if min(one.mean for one in found) <= 0.0:
            continue
        _, variance = total_of_answers(
            delay, watched, found[0].change / found[0].mean - found[1].change / found[1].mean
        )
        if variance > 0.0:
            ratios.append(float(np.log(found[0].mean / found[1].mean)))
            precisions.append(1.0 / variance)
    if not ratios:
        return _cannot("positives_first", f"no arm has {ENOUGH} answers of each outcome within the deadline")
    weight = float(np.sum(precisions))
    log_ratio, error = float(np.dot(ratios, precisions)) / weight, weight**-0.5
    return Finding(
        question="positives_first",
        asked=_ASKED["positives_first"],
        answer="cannot tell",
        effect=float(np.exp(log_ratio)),
        low=float(np.exp(log_ratio - Z * error)),
        high=float(np.exp(log_ratio + Z * error)),
        margin=ALIKE,
        p_value=delay_groups.two_sided(log_ratio / error),
        measured="mean delay of answers above 0, over that of the others",
        sentence="",
    )


def _by_context(log: Log, until: float) -> Finding:
    if len(log.contexts) < 2:
        return _cannot("context", "there is one context only")
    group = np.minimum(log.context, delay_groups.MOST_GROUPS - 1)  # the rarest are one group: they say little each
    compared = delay_groups.compare(log, group, until)
    if compared is None:
        return _cannot("context", f"too few of two contexts were watched for {log.clock.shown(until)} under one arm")
    return _of_groups("context", compared, "largest difference between two contexts of an arm, in the share that {}")


def _over_time(log: Log, until: float) -> Finding:
    half = (np.arange(len(log)) >= len(log) // 2).astype(np.int64)
    late = log.watched[(half == 1) & log.is_served]
    # as long as half of the later ones were watched: of what they do afterwards little is known
    until = min(until, float(np.median(late))) if late.size else until
    compared = delay_groups.compare(log, half, until, pooled=True) if until > 0.0 else None
    if compared is None:
        return _cannot("time", "too few of the second half were watched long enough")
    return _of_groups("time", compared, "difference of the second half from the first, in the share that {}")


def _of_groups(question: str, compared: delay_groups.Compared, measured: str) -> Finding:
    return Finding(
        question=question,
        asked=_ASKED[question],
        answer="cannot tell",
        effect=compared.effect,
        low=compared.low,
        high=compared.high,
        margin=SAME_SHARE,
        p_value=compared.p_value,
        measured=measured.format(compared.of_what),
        sentence="",
    )


def _holm(asked: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """p-values that hold for all questions at once."""
    known = sorted((one.p_value, i) for i, one in enumerate(asked) if one.p_value is not None)
    corrected: dict[int, float] = {}
    largest = 0.0
    for rank, (p_value, i) in enumerate(known):
        largest = max(largest, min(1.0, p_value * (len(known) - rank)))
        corrected[i] = largest
    return tuple(replace(one, p_value=corrected.get(i)) for i, one in enumerate(asked))


def _decided(log: Log, one: Finding) -> Finding:
    """With its answer and its sentence."""
    if one.p_value is None or one.effect is None or one.low is None or one.high is None or one.margin is None:
        return one
    span = f"{one.measured}: {_shown(one, one.effect)} [{_shown(one, one.low)}, {_shown(one, one.high)}]"
    is_sure = one.p_value < LEVEL
    answer: YesNo = "cannot tell"
    if one.question == "silent":
        if one.low > one.margin:
            answer, words = "no", "Feedback is explicit: people also answer when nothing came of it"
        elif is_sure and _many_are_silent(log):
            answer, words = "yes", "Feedback is silent: next to all answers are successes, the others are not heard of"
        elif is_sure:
            words = "Everybody answered, and next to all with success: whether failures would answer is not known"
        else:
            words = "Whether failures answer cannot be told"
    elif one.question == "positives_first":
        if is_sure:
            answer = "yes" if one.effect < 1.0 else "no"
            words = "Positive answers come first" if one.effect < 1.0 else "Positive answers come later than others"
        elif one.low > 1.0 - one.margin and one.high < 1.0 / (1.0 - one.margin):
            answer, words = "no", "Positive answers take as long as others"
        else:
            words = "Whether positive answers come first cannot be told"
    else:
        what = "depend on the context" if one.question == "context" else "change over time"
        if is_sure:
            is_early = one.low <= 0.0 <= one.high  # curves differ, and meet again
            answer, words = "yes", f"Delays {what}{', before the age at which this is measured' if is_early else ''}"
        elif max(abs(one.low), abs(one.high)) < one.margin:
            answer, words = "no", f"Delays do not {what}, or hardly"
        else:
            words = f"Whether delays {what} cannot be told"
    return replace(one, answer=answer, sentence=f"{words} ({span}).")


def _shown(one: Finding, value: float) -> str:
    return f"{value:.2f}" if one.question == "positives_first" else percent(value)
