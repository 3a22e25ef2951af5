"""Which arms answer in time, and which answer later than the fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from doral._arrays import Flags, Floats
from doral.inference import bands
from doral.inference.survival import ENOUGH, mean_wait, rows_by_group, share_by, survival_of
from doral.logs.log import Log
from doral.planning.facts import Fact, named, percent
from doral.planning.waiting import deadline_of

Standing = Literal["responsive", "slow", "cannot tell"]

MARGIN = 0.1  # of the mean wait of all arms: who answers later by less than this is as good as the fastest
_RIVALS = 50  # arms that may be the fastest: more of them are not compared one by one


@dataclass(frozen=True, kw_only=True)
class ArmSpeed(Fact):
    """How soon the answers of one arm come. Intervals hold for all arms at once (95%)."""

    arm: str
    rows: int
    share: float | None  # returned by the deadline
    low: float | None
    high: float | None
    # E[min(delay, deadline)], what the ranking goes by: a smaller one is sooner. With silent feedback it is the mean
    # delay of those heard of in time: the others say how well an arm does, not how fast.
    mean_wait: float | None
    wait_low: float | None
    wait_high: float | None
    rank: int | None  # 1 answers soonest
    rank_low: int | None  # the ranks that the intervals allow
    rank_high: int | None
    standing: Standing


@dataclass(frozen=True, kw_only=True)
class Responsiveness(Fact):
    """The arms from the soonest to the latest.

    "slow" is an arm whose mean wait is surely longer than that of another, by more than `margin` of the mean wait over
    all decisions; "responsive" is one of which that is surely not so, whichever arm is the fastest; the rest "cannot
    tell".
    """

    deadline: float | None
    arms: tuple[ArmSpeed, ...]  # as ranked; those without a rank last
    responsive: tuple[str, ...]
    slow: tuple[str, ...]
    margin: float  # a share of the mean wait over all decisions


class _Measured(NamedTuple):
    """By arm."""

    rows: Floats
    is_known: Flags
    share: Floats
    low: Floats
    high: Floats
    wait: Floats
    error: Floats


def responsiveness(log: Log, *, deadline: float | None = None, margin: float = MARGIN) -> Responsiveness:
    """How soon each arm answers, ranked, and who surely answers late."""
    until = deadline_of(log, deadline)
    if not log.has_delays or until.age is None:
        why = "Which arms answer in time is not known: "
        why += "the log does not say when answers came." if not log.has_delays else "no answer has come yet."
        return Responsiveness(deadline=until.age, arms=(), responsive=(), slow=(), margin=margin, sentence=why)
    found = _measure(log, until.age)
    typical = (
        float(np.average(found.wait[found.is_known], weights=found.rows[found.is_known]))
        if found.is_known.any()
        else 0.0
    )
    standings = _standings(found, margin * typical)
    wait_low, wait_high = _simultaneous(found, until.age)
    known = np.flatnonzero(found.is_known)
    rank = np.zeros(found.rows.size, dtype=np.int64)
    rank[known[np.argsort(found.wait[known], kind="stable")]] = np.arange(1, known.size + 1)
    lows, highs = np.sort(wait_low[known]), np.sort(wait_high[known])
    speeds: list[ArmSpeed] = []
    for a in [*known[np.argsort(found.wait[known], kind="stable")].tolist(), *np.flatnonzero(~found.is_known).tolist()]:
        is_known = bool(found.is_known[a])
        speeds.append(
            ArmSpeed(
                arm=log.arms[a],
                rows=int(found.rows[a]),
                share=float(found.share[a]) if is_known else None,
                low=float(found.low[a]) if is_known else None,
                high=float(found.high[a]) if is_known else None,
                mean_wait=float(found.wait[a]) if is_known else None,
                wait_low=float(wait_low[a]) if is_known else None,
                wait_high=float(wait_high[a]) if is_known else None,
                rank=int(rank[a]) if is_known else None,
                rank_low=1 + int(np.searchsorted(highs, wait_low[a], side="left")) if is_known else None,
                rank_high=int(np.searchsorted(lows, wait_high[a], side="right")) if is_known else None,
                standing=standings[a],
                sentence=_of_arm(log, a, found, standings[a], until.age),
            )
        )
    fast = tuple(one.arm for one in speeds if one.standing == "responsive")
    slow = tuple(one.arm for one in speeds if one.standing == "slow")
    return Responsiveness(
        deadline=until.age,
        arms=tuple(speeds),
        responsive=fast,
        slow=slow,
        margin=margin,
        sentence=_sentence(fast, slow, len(log.arms)),
    )


def _measure(log: Log, deadline: float) -> _Measured:
    n = len(log.arms)
    table = np.full((7, n), np.nan)
    for a, rows in enumerate(rows_by_group(log.arm + 1, n + 1)[1:]):
        table[0, a], table[1, a] = rows.size, 0.0
        # nobody knows how many answer by an age until which nobody was watched
        if rows.size < ENOUGH or float(log.watched[rows].max()) < deadline:
            continue
        found = survival_of(log.delay[rows], log.watched[rows])
        share, error = share_by(found, deadline)
        size = share * (1.0 - share) / error**2 if error > 0.0 else float((log.watched[rows] >= deadline).sum())
        of_share = size
        if log.feedback == "silent":
            heard = rows[(log.watched[rows] >= deadline) & (log.delay[rows] <= deadline)]
            if heard.size < ENOUGH:
                continue
            found, size = survival_of(log.delay[heard], log.watched[heard]), float(heard.size)
        wait, wait_error = mean_wait(found, deadline)
        # One row more could have gone the other way: without this, arms of which all or none answer are surely so.
        wait_error = float(np.hypot(wait_error, deadline / (size + 1.0)))
        table[1:, a] = 1.0, share, of_share, 0.0, wait, wait_error
    is_known = table[1] == 1.0
    low, high = np.full(n, np.nan), np.full(n, np.nan)
    if is_known.any():
        z = _factor(0.05, int(is_known.sum()))
        low[is_known], high[is_known] = bands.limits(table[2, is_known], table[3, is_known], 0.5 * z * z)
    return _Measured(table[0], is_known, table[2], low, high, table[5], table[6])


def _factor(level: float, comparisons: int) -> float:
    """Of the error, so that so many two-sided intervals hold at once (Bonferroni)."""
    from scipy.special import ndtri

    return float(-ndtri(0.5 * level / max(comparisons, 1)))


def _simultaneous(found: _Measured, deadline: float) -> tuple[Floats, Floats]:
    half = _factor(0.05, int(found.is_known.sum())) * found.error
    return np.maximum(found.wait - half, 0.0), np.minimum(found.wait + half, deadline)


def _standings(found: _Measured, margin: float) -> list[Standing]:
    """By differences of mean waits, with limits that hold for all pairs of arms."""
    known = np.flatnonzero(found.is_known)
    standings: list[Standing] = ["cannot tell"] * found.rows.size
    if known.size == 0:
        return standings
    z = _factor(0.05, max(known.size * (known.size - 1) // 2, 1))
    # Only those that may be the fastest matter: the rest is later than one of these.
    rivals = known[np.argsort(found.wait[known] - z * found.error[known], kind="stable")][:_RIVALS]
    for a in known.tolist():
        others = rivals[rivals != a]
        later = found.wait[a] - found.wait[others]
        half = z * np.hypot(found.error[a], found.error[others])
        if (later - half > margin).any():
            standings[a] = "slow"
        elif (later + half <= margin).all():
            standings[a] = "responsive"
    return standings


def _of_arm(log: Log, a: int, found: _Measured, standing: Standing, deadline: float) -> str:
    name, rows = log.arms[a], int(found.rows[a])
    if not found.is_known[a]:
        why = f"only {rows:,} decisions" if rows < ENOUGH else "too few were watched so long"
        return f"{name}: how many answer within {log.clock.shown(deadline)} is not known ({why})."
    share = f"{percent(found.share[a])} ({percent(found.low[a])} to {percent(found.high[a])})"
    end = {
        "responsive": "as soon as any",
        "slow": "surely later than the fastest",
        "cannot tell": "whether later than the fastest cannot be told",
    }[standing]
    return f"{name}: {share} answer within {log.clock.shown(deadline)}, {end}."


def _sentence(fast: tuple[str, ...], slow: tuple[str, ...], n_arms: int) -> str:
    if n_arms == 1:
        return "There is one arm only: no other answers sooner or later."
    rest = n_arms - len(fast) - len(slow)
    if rest == n_arms:
        return "Which arms answer sooner than others cannot be told from this log."
    parts = []
    if fast:
        parts.append(f"answers come soonest from {named(fast)}")
    if slow:
        parts.append(f"{'' if fast else 'answers come '}surely later from {named(slow)}")
    if rest:
        parts.append(f"of {rest} {'arm' if rest == 1 else 'arms'} the log cannot tell")
    words = "; ".join(parts)
    return words[:1].upper() + words[1:] + "."
