"""How long blocks of time must be that keep bursts together, as far as the times of arrivals say."""

from __future__ import annotations

import math

import numpy as np

from doral._arrays import Floats

MOST_BINS = 2**13  # of time: finer ones say nothing more of how long bursts last
FEWEST = 10  # arrivals, below which nothing can be said of bursts


def block_length(times: Floats, begin: float, end: float) -> float:
    """As a length of time: by the rule of Politis and White (2004), from how counts depend on those before them.

    It makes the error of what blocks say of the spread of a sum the least: their bias is G / b, for G = sum |k| R(k)
    over the lags k of the autocovariance R, and their variance 2 g^2 b / n for blocks side by side and g = sum R(k).
    """
    n = min(times.size, MOST_BINS)
    least = n ** (1.0 / 3.0)  # where counts do not depend on each other: as long as blocks of independent ones
    if n < FEWEST:
        return (end - begin) / n * least
    counts = np.histogram(times, bins=n, range=(begin, end))[0].astype(np.float64)
    covariance = _autocovariance(counts)
    lags = _last_lag(covariance / max(covariance[0], 1e-300), n)
    k = np.arange(1, lags + 1)
    taper = np.clip(2.0 * (1.0 - k / max(lags, 1)), 0.0, 1.0)
    g = covariance[0] + 2.0 * float((taper * covariance[1 : lags + 1]).sum())
    bias = 2.0 * float((taper * k * covariance[1 : lags + 1]).sum())
    bins = (bias * bias / (g * g)) ** (1.0 / 3.0) * least if g > 0.0 else least
    return (end - begin) / n * min(max(bins, least), n / 3.0)


def _autocovariance(counts: Floats) -> Floats:
    n = counts.size
    spectrum = np.fft.rfft(counts - counts.mean(), 2 * n)
    found: Floats = np.fft.irfft(spectrum * spectrum.conj(), 2 * n)[:n] / n
    return found


def _last_lag(correlation: Floats, n: int) -> int:
    """Twice the last lag that is not followed by several which may all be 0."""
    several = max(5, math.ceil(math.sqrt(math.log10(n))))
    most = min(n - 1 - several, math.ceil(math.sqrt(n)) + several)
    is_clear = np.abs(correlation) > 2.0 * math.sqrt(math.log10(n) / n)
    for lag in range(max(most, 0)):
        if not is_clear[lag + 1 : lag + 1 + several].any():
            return min(2 * max(lag, 1), n - 1)
    return min(2 * max(most, 1), n - 1)
