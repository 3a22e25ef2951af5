"""Randomness as an input: Philox4x64-10, a counter-based generator.

Every draw is a pure function of (seed, run, round, purpose), so a draw can be made in any order, in any process,
and made again when a log is replayed. The generator is the one of Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3" (SC 2011); NumPy's `Philox` is the same one and serves as the oracle in our tests.
"""

from __future__ import annotations

import numpy as np

from doral.compiled.kernels import kernel, whole_product

# Purposes: the second counter word, so that no two uses ever share a draw.
ARRIVAL = 0  # context, delay and reward noise of a round
AVAILABILITY = 1
PARAMETERS = 2  # theta and features of a run
COIN = 3  # the policy's own randomisation
POSTERIOR = 4  # Thompson sampling

_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_DROPPED_BITS = np.uint64(11)  # 64 - 53: what a float64 in [0, 1) cannot hold
_UNIT = 2.0**-53


@kernel
def philox(
    seed: np.uint64, run: np.uint64, index: np.uint64, purpose: np.uint64, lane: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Four random 64-bit words for the counter (index, purpose, lane, 0) under the key (seed, run)."""
    c0, c1, c2, c3 = index, purpose, lane, np.uint64(0)
    k0, k1 = seed, run
    for _ in range(10):
        high_0, low_0 = whole_product(_MULTIPLIER_0, c0)
        high_1, low_1 = whole_product(_MULTIPLIER_1, c2)
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, low_1, high_0 ^ c3 ^ k1, low_0
        k0 += _WEYL_0
        k1 += _WEYL_1
    return c0, c1, c2, c3


@kernel
def to_uniform(word: np.uint64) -> float:
    """A float64 in [0, 1) from the upper 53 bits."""
    return (word >> _DROPPED_BITS) * _UNIT


@kernel
def coin(seed: np.uint64, run: np.uint64, round_: int) -> float:
    """The policy's uniform draw for one round."""
    word, _, _, _ = philox(seed, run, np.uint64(round_), np.uint64(COIN), np.uint64(0))
    return to_uniform(word)
