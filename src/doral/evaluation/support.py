"""Whether a log can tell what a policy would have brought, and in words why not."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.errors import shown
from doral.evaluation.rows import Rows
from doral.evaluation.valuing import Interval, effective_size

FEW = 30.0  # effective rows: below, intervals rest on the shape of rewards
MUCH = 0.1  # of all weight on one row
FAR = 3.0  # standard errors between what weights sum to and what they should
NAMED = 3  # cells
AT_TIMES = "as its probabilities tell, the log could have done"
POWER_Z = 1.959964 + 0.841621  # two-sided 5%, power 80%


class Support(NamedTuple):
    """What of a policy the log has seen."""

    ess: float
    ess_by_arm: tuple[tuple[str, float], ...]
    largest_weight: float
    unsupported: float  # share of what the policy does that the log never did
    lacking: str  # the worst of these cells, in words; "" where there are none
    unseen: float  # share of what the policy does that the log did too late to know what came of it by the deadline
    too_new: str  # the options, in words
    accounted: float  # what weights sum to, of what they should
    is_off: bool  # more than by chance
    share_of_largest: float  # of all weight


def support_of(rows: Rows, table: Floats, weight: Floats, served: Floats) -> Support:
    """`table` (J, A + 1) is what the policy does on average."""
    counts = rows.counts()
    shares = counts.sum(axis=1, keepdims=True) / len(rows)
    wanted = shares * table
    if rows.nothing_is_known:
        wanted[:, rows.nothing] = 0.0
    missing = np.where(counts == 0, wanted, 0.0)
    unsupported = float(missing.sum())
    is_unseen = rows.too_new
    unseen = float(np.where(counts > 0, wanted, 0.0)[:, is_unseen].sum())
    sums = float(weight.sum())
    should = float(served.sum())
    error = math.sqrt(float(((weight - served) ** 2).sum()))
    squared = weight * weight
    if effective_size(squared) < FEW:
        # A few large weights: sums that are too low lack some, and their spread with them. The most that it may be.
        error = math.sqrt(float(weight.max()) * should)
    arms = np.bincount(rows.option, weights=weight, minlength=len(rows.options))
    squares = np.bincount(rows.option, weights=squared, minlength=len(rows.options))
    by_arm = tuple((rows.options[k], float(arms[k] ** 2 / squares[k])) for k in np.flatnonzero(squares > 0.0).tolist())
    return Support(
        ess=effective_size(weight) if should > 0.0 else float(len(rows)),
        ess_by_arm=by_arm,
        largest_weight=float(weight.max()),
        unsupported=unsupported,
        lacking=_in_words(rows, missing) if unsupported > 0.0 else "",
        unseen=unseen,
        too_new=", ".join(_short(rows.options[k]) for k in np.flatnonzero(is_unseen).tolist()[:NAMED]),
        accounted=sums / should if should > 0.0 else 1.0,
        is_off=abs(sums - (should - unsupported * len(rows))) > FAR * error + 1e-9 * len(rows),
        share_of_largest=float(weight.max()) / sums if sums > 0.0 else 0.0,
    )


def _in_words(rows: Rows, missing: Floats) -> str:
    worst = np.argsort(missing, axis=None)[::-1][:NAMED]
    cells = [np.unravel_index(int(one), missing.shape) for one in worst if missing.flat[one] > 0.0]
    names = [
        f"{_short(rows.options[int(option)])} to {_short(rows.contexts[int(context)])}" for context, option in cells
    ]
    more = int((missing > 0.0).sum()) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def _short(name: str) -> str:
    return shown(name)[1:-1]


def verdict_of(support: Support, value: Interval, largest: float, *, is_certain: bool = False) -> str:
    """ "supported", "weak: ..." or "not supported: ..."; `largest` is how much one row may bring, more or less.

    What the log never did, or not at the time, may bring anything: a policy is not supported where that could move its
    value by more than its interval says. `is_certain`: all told probabilities are 1.
    """
    if is_certain and support.is_off:
        return "not supported: the log left nothing to chance and cannot tell what else would have come"
    missing = max(support.unsupported, 1.0 - support.accounted if support.is_off else 0.0)
    how = "weak" if missing * largest < value.high - value.mean else "not supported"
    if support.unsupported > 0.0:
        why = f"the log never gave {support.lacking} ({_percent(support.unsupported)} of what the policy does)"
        return f"{how}: {why}"
    if support.unseen > 0.0:
        how = "weak" if support.unseen * largest < value.high - value.mean else "not supported"
        why = f"nobody who got {support.too_new} was watched until the deadline"
        return f"{how}: {why} ({_percent(support.unseen)} of what the policy does)"
    if support.ess == 0.0:
        return "not supported: the log never did what the policy does"
    if support.is_off and missing > 0.0:
        return f"{how}: {AT_TIMES} {_floor_percent(support.accounted)} of what the policy does when it came to it"
    if support.is_off:
        return f"weak: the log's probabilities account for {support.accounted:.0%} of what the policy does"
    if support.ess < FEW:
        return f"weak: the log says as much about it as {support.ess:.0f} arrivals would"
    if support.share_of_largest > MUCH:
        return f"weak: a single arrival has {support.share_of_largest:.0%} of the weight"
    return "supported"


def not_seen(support: Support) -> float:
    """Return the share of what the policy does of which the log says nothing: that part may bring anything.

    Where a few rows decide, one more row could be of a kind that was not among them.
    """
    missing = max(support.unsupported, 1.0 - support.accounted if support.is_off else 0.0, 0.0) + support.unseen
    few = 1.0 / (1.0 + support.ess) if support.ess < FEW or support.share_of_largest > MUCH else 0.0
    return min(missing + few, 1.0)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "less than 1%"


def _floor_percent(share: float) -> str:
    """Never 100% of what is less."""
    return f"{math.floor(1000.0 * share) / 10.0:.3g}%"


def needed_arrivals(n: int, difference: Interval) -> int | None:
    """So many arrivals of the same kind tell a difference of this size from none, with a power of 80%."""
    if not math.isfinite(difference.error) or difference.mean == 0.0:
        return None
    needed = n * (POWER_Z * difference.error / difference.mean) ** 2
    return max(1, math.ceil(needed)) if needed < 1e15 else None
