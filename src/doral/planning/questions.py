"""What kind of feedback this is: questions about delays, each answered with an effect and its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.inference.bands import POINTWISE, limits, total_of_answers
from doral.inference.intervals import Z
from doral.inference.survival import ENOUGH, Survival, rows_by_group, share_by, survival_of, weigh_answers
from doral.logs.log import Log
from doral.planning.curves import MOST_ARMS
from doral.planning.facts import Fact, YesNo, percent
from doral.planning.waiting import deadline_of

LEVEL = 0.05
FEW = 0.05  # of answers: fewer that are not above 0 do not matter
ALIKE = 0.1  # delays that differ by a tenth are alike
SAME_SHARE = 0.05  # shares of answers that differ by five in a hundred are the same
_MOST_GROUPS = 20  # the rarest contexts are one group: they say little each
_PARTS = (
    0.1,
    0.25,
    0.5,
    0.75,
    0.9,
)  # of the answers in time: by the ages at which these have come, groups are compared


@dataclass(frozen=True, kw_only=True)
class Finding(Fact):
    """The answer to a question about the log.

    "yes" needs an effect beyond `margin`: its p-value is that of the hypothesis that the effect is no larger than the
    margin, and below 5% after Holm's correction for all questions that were asked. "no" needs an interval of the effect
    inside the margin; all else is "cannot tell". (Whether feedback is silent is
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
    p_value: float | None  # of an effect within the margin, after Holm's correction
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
        found = _mean_delay(delay, watched, came & above), _mean_delay(delay, watched, came & ~above)
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
    beyond = abs(log_ratio) + math.log(1.0 - ALIKE)
    return Finding(
        question="positives_first",
        asked=_ASKED["positives_first"],
        answer="cannot tell",
        effect=float(np.exp(log_ratio)),
        low=float(np.exp(log_ratio - Z * error)),
        high=float(np.exp(log_ratio + Z * error)),
        margin=ALIKE,
        p_value=_two_sided(beyond / error),
        measured="mean delay of answers above 0, over that of the others",
        sentence="",
    )


def _by_context(log: Log, until: float) -> Finding:
    if len(log.contexts) < 2:
        return _cannot("context", "there is one context only")
    group = np.minimum(log.context, _MOST_GROUPS - 1)
    compared = _compare(log, group, until)
    if compared is None:
        return _cannot("context", f"too few of two contexts were watched for {log.clock.shown(until)} under one arm")
    return _of_groups("context", compared, f"largest difference between two contexts of an arm, {_of_what(log)}")


def _over_time(log: Log, until: float) -> Finding:
    half = (np.arange(len(log)) >= len(log) // 2).astype(np.int64)
    late = log.watched[(half == 1) & log.is_served]
    # as long as half of the later ones were watched: of what they do afterwards little is known
    until = min(until, float(np.median(late))) if late.size else until
    compared = _compare(log, half, until, pooled=True) if until > 0.0 else None
    if compared is None:
        return _cannot("time", "too few of the second half were watched long enough")
    return _of_groups("time", compared, f"largest difference of the second half from the first, {_of_what(log)}")


def _of_what(log: Log) -> str:
    """With silent feedback, how many are heard of says how well an arm does, not how fast."""
    if log.feedback == "silent":
        return "in the share of answers in time that have come by an age"
    return "in the share that has answered by an age"


def _of_groups(question: str, compared: _Compared, measured: str) -> Finding:
    return Finding(
        question=question,
        asked=_ASKED[question],
        answer="cannot tell",
        effect=compared.effect,
        low=compared.low,
        high=compared.high,
        margin=SAME_SHARE,
        p_value=compared.p_value,
        measured=measured,
        sentence="",
    )


class _Compared(NamedTuple):
    """The largest difference between groups, over ages and pairs, with an interval that holds for all of them."""

    effect: float
    low: float
    high: float
    p_value: float  # of no difference beyond the margin


def _compare(log: Log, group: Ints, until: float, *, pooled: bool = False) -> _Compared | None:
    """Compare the shares of groups that have answered by some ages, within arms; `pooled`: two groups, over all arms.

    With silent feedback only answers in time are compared, of rows that were watched so long.
    """
    chosen = log.is_served & (log.arm < MOST_ARMS)
    in_time = log.delay <= until
    if log.feedback == "silent":
        chosen &= (log.watched >= until) & in_time
    rows = np.flatnonzero(chosen)
    answered = rows[in_time[rows]]
    if answered.size == 0:
        return None
    ages = np.unique(np.append(np.quantile(log.delay[answered], _PARTS), until))
    delay, watched = np.where(in_time[rows], log.delay[rows], np.inf), np.minimum(log.watched[rows], until)
    n_groups, n_arms = int(group.max(initial=0)) + 1, len(log.arms[:MOST_ARMS])
    cells = rows_by_group(log.arm[rows] * n_groups + group[rows], n_groups * n_arms)
    told = [_shares(delay, watched, one, ages) for one in cells]
    shape = (n_arms, n_groups, ages.size)
    share, error = (np.array([one[side] for one in told]).reshape(shape) for side in (0, 1))
    size = np.array([one.size for one in cells]).reshape(n_arms, n_groups)
    if pooled:
        return _largest(*_pooled(share, error, size))
    first, second = np.triu_indices(n_groups, 1)
    return _largest((share[:, second] - share[:, first]).ravel(), np.hypot(error[:, second], error[:, first]).ravel())


def _shares(delay: Floats, watched: Floats, rows: Ints, ages: Floats) -> tuple[list[float], list[float]]:
    """The share that has answered by each age and its error; NaN where too few were watched so long."""
    found = survival_of(delay[rows], watched[rows]) if rows.size else None
    told = [_share(found, float((watched[rows] >= age).sum()), rows.size, age) for age in ages.tolist()]
    return [one for one, _ in told], [one for _, one in told]


def _share(found: Survival | None, n_watched: float, rows: int, age: float) -> tuple[float, float]:
    if found is None or rows < ENOUGH or n_watched < ENOUGH:
        return math.nan, math.nan
    share, error = share_by(found, age)
    # One row more could have gone the other way: a cell of which all or none answered is not known exactly.
    return share, math.hypot(error, 1.0 / (rows + 1.0))


def _pooled(share: Floats, error: Floats, size: Floats) -> tuple[Floats, Floats]:
    """By age, the second group's share less the first's over all arms in which both are known, and its error."""
    gap, gap_error = share[:, 1] - share[:, 0], np.hypot(error[:, 0], error[:, 1])
    weight = np.where(np.isnan(gap), 0.0, size.sum(axis=1, keepdims=True))
    total = weight.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(weight * gap, axis=0) / total
        return mean, np.sqrt(np.nansum((weight * gap_error) ** 2, axis=0)) / total


def _largest(gaps: Floats, errors: Floats) -> _Compared | None:
    """Bonferroni's correction for all gaps that are known."""
    from scipy.special import ndtri

    known = np.isfinite(gaps) & np.isfinite(errors)
    if not known.any():
        return None
    gap, error = np.abs(gaps[known]), errors[known]
    z = float(-ndtri(0.025 / gap.size))
    low = max(float((gap - z * error).max()), 0.0)
    p_value = min(_two_sided(float(((gap - SAME_SHARE) / error).max())) * gap.size, 1.0)
    return _Compared(float(gap.max()), low, min(float((gap + z * error).max()), 1.0), p_value)


def _two_sided(z: float) -> float:
    """The p-value of a normal deviate; 1 where it is on the other side."""
    return math.erfc(z / math.sqrt(2.0)) if z > 0.0 else 1.0


class _MeanDelay(NamedTuple):
    """The mean delay of some answers, and what each of them changes in it (0 for other rows)."""

    mean: float
    change: Floats


def _mean_delay(delay: Floats, watched: Floats, chosen: Flags) -> _MeanDelay:
    weight = np.where(chosen, weigh_answers(delay, watched).weight, 0.0)
    known = np.where(chosen, delay, 0.0)
    mean = float(weight @ known / weight.sum())
    return _MeanDelay(mean, np.where(chosen, known - mean, 0.0) / weight.sum())


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
    span = f"{one.measured}: {_shown(one, one.effect)} ({_shown(one, one.low)} to {_shown(one, one.high)})"
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
            answer, words = "yes", f"Delays {what}"
        elif one.high < one.margin:
            answer, words = "no", f"Delays do not {what}, or by less than {percent(one.margin)}"
        else:
            words = f"Whether delays {what} cannot be told"
    return replace(one, answer=answer, sentence=f"{words} ({span}).")


def _shown(one: Finding, value: float) -> str:
    return f"{value:.2f}" if one.question == "positives_first" else percent(value)
