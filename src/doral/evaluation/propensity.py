"""How likely it was that exactly this was done: as told, or counted by context and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from doral import _check
from doral._arrays import Floats, Ints
from doral.errors import InvalidValue, shown
from doral.evaluation.rows import Rows

Propensities = Literal["given", "estimated"]

ENOUGH = 10  # rows of every option that a context has seen, in every bin of time
MOST_BINS = 64
LEAST = 1e-9  # a probability below stands for more arrivals than there are
MOST_COUNTS = 4_000_000  # cells of the table in which bins are tried
MOST_NAMED = 5  # cells
DOUBT = 0.01  # how rarely good probabilities are called bad, over all cells together


@dataclass(frozen=True, kw_only=True, eq=False)
class Chances:
    """By row, and whether they are counted; what is odd about them in words."""

    probability: Floats
    are_estimated: bool
    are_certain: bool = False  # as told, nothing was left to chance: nothing else can be valued
    notes: tuple[str, ...]


def chances_of(rows: Rows, wanted: object) -> Chances:
    """`wanted`: "given", "estimated", or None for what the log has."""
    if wanted is not None and not _check.is_among(wanted, get_args(Propensities)):
        raise InvalidValue("propensities", wanted, "must be 'given', 'estimated' or None")
    told = rows.probability
    known = ~np.isnan(told)
    if wanted == "given" and not known.all():
        raise InvalidValue(
            "propensities",
            wanted,
            f"{int((~known).sum()):,} of {len(rows):,} rows have no probability; say 'estimated'",
        )
    bad = told[known & ~((told >= LEAST) & (told <= 1.0 + 1e-9))]
    if bad.size and wanted != "estimated":
        remedy = f"must be from {LEAST:g} to 1: it is that of what was done"
        raise InvalidValue("probability", float(bad[0]), remedy)
    notes: list[str] = []
    is_certain = bool(known.any()) and bool((told[known] >= 1.0).all())
    if is_certain:
        notes.append("The log is that of a policy that left nothing to chance: all probabilities that it tells are 1.")
    if known.all() and (wanted == "given" or (wanted is None and not is_certain)):
        off, tested, words = (0, 0, []) if is_certain else _miscalibrated(rows)
        notes += words
        if wanted == "given" or 2 * off <= tested:
            return Chances(probability=told, are_estimated=False, are_certain=is_certain, notes=tuple(notes))
        notes.append(
            f"Told probabilities do not go with what was done in {off:,} of {tested:,} cells: they are not used."
        )
    if wanted is None and known.any() and not known.all():
        notes.append(
            f"Probabilities are told for {int(known.sum()):,} of {len(rows):,} rows only: all were counted instead."
        )
    probability, most_bins = counted_by_time(rows)
    notes.append(
        "Probabilities were counted by context and up to "
        f"{most_bins} stretches of time: right if what was done depended on nothing else."
    )
    return Chances(probability=probability, are_estimated=True, notes=tuple(notes))


def counted_by_time(rows: Rows) -> tuple[Floats, int]:
    """The share of each option in the bin of time of its context; and how many bins there are at most.

    Bins of equal size are merged by pairs until each has enough of every option that the context has seen often; what
    it has seen rarely keeps its share of the whole time. One row that is shared out as the context's whole record keeps
    shares of small bins from being extreme.
    """
    n_contexts, n_options = rows.shape
    total = rows.counts()
    size = total.sum(axis=1)
    order = np.argsort(rows.context, kind="stable")  # rows are in the order of time
    start = np.concatenate([[0], np.cumsum(size)[:-1]])
    rank = np.empty(len(rows), dtype=np.int64)
    rank[order] = np.arange(len(rows)) - start[rows.context[order]]
    n_bins = np.ones(n_contexts, dtype=np.int64)
    often = total >= ENOUGH
    is_open = often.any(axis=1)
    bins = MOST_BINS
    while bins > 1:
        if bins * total.size <= MOST_COUNTS:
            counts = _counts(rows, rank * bins // size[rows.context], bins)
            least = np.where(often[:, None, :], counts, ENOUGH).min(axis=(1, 2))
            fits = is_open & (least >= ENOUGH)
            n_bins[fits] = bins
            is_open &= ~fits
        bins //= 2
    bin_ = rank * n_bins[rows.context] // size[rows.context]
    place = (rows.context * int(n_bins.max()) + bin_) * n_options + rows.option
    _, inverse, in_cell = np.unique(place, return_inverse=True, return_counts=True)
    in_bin = np.bincount(place // n_options)[place // n_options]
    share = (total / np.maximum(size, 1)[:, None])[rows.context, rows.option]
    is_split = (n_bins[rows.context] > 1) & often[rows.context, rows.option]
    counted: Floats = np.where(is_split, (in_cell[inverse] + share) / (in_bin + 1.0), share)
    return counted, int(n_bins.max())


def _counts(rows: Rows, bin_: Ints, bins: int) -> Ints:
    n_contexts, n_options = rows.shape
    place = (rows.context * bins + bin_) * n_options + rows.option
    counts: Ints = np.bincount(place, minlength=n_contexts * bins * n_options).reshape(n_contexts, bins, n_options)
    return counts


def _miscalibrated(rows: Rows) -> tuple[int, int, list[str]]:
    """In how many cells told probabilities contradict what was done, of how many that tell, and in words.

    Whoever is done something to with probability p stands for 1/p: in each context these must add up to all.

    Sums that are too low come with few rows, which make their own error look small: there the error is the largest that
    goes with the lowest probability.
    """
    from scipy.special import ndtri

    shape = rows.shape
    inverse = 1.0 / rows.probability
    stands_for = np.bincount(rows.cell, weights=inverse, minlength=shape[0] * shape[1]).reshape(shape)
    variance = np.bincount(rows.cell, weights=inverse**2 - inverse, minlength=shape[0] * shape[1]).reshape(shape)
    most = np.ones(shape[0] * shape[1])
    np.maximum.at(most, rows.cell, inverse)
    counts = rows.counts()
    size = counts.sum(axis=1, keepdims=True)
    seen = counts >= ENOUGH
    if rows.nothing_is_known:
        seen[:, rows.nothing] = False  # nothing rests on it
    limit = float(ndtri(1.0 - DOUBT / (2.0 * max(int(seen.sum()), 1))))
    # Half a row of slack: sums of probabilities that are all 1 have no spread of their own.
    too_many = stands_for - size - 0.5 > limit * np.sqrt(variance)
    too_few = size - stands_for - 0.5 > limit * np.sqrt(size * (most.reshape(shape) - 1.0))
    off = seen & (too_many | too_few)
    notes = []
    for context, option in np.argwhere(off)[:MOST_NAMED].tolist():
        stands, of = float(stands_for[context, option]), int(size[context, 0])
        what = f"{shown(rows.options[option])[1:-1]} in {shown(rows.contexts[context])[1:-1]}"
        if stands > of:
            told, was = counts[context, option] / stands, counts[context, option] / of
            notes.append(
                f"The probabilities told for {what} are too low: {told:.1%} on average where it was done in {was:.1%}."
            )
        else:
            notes.append(
                f"The probabilities told for {what} account for {stands / of:.0%} of the arrivals there: "
                "for the rest it could not be done, or they are too high."
            )
    if int(off.sum()) > MOST_NAMED:
        notes.append(f"So it is with {int(off.sum()) - MOST_NAMED:,} more of {int(seen.sum()):,} cells.")
    return int(off.sum()), int(seen.sum()), notes
