"""Our counter-based generator is NumPy's, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from doral.numerics.kernels import ARRIVAL, AVAILABILITY, COIN, PARAMETERS, coin, philox, to_uniform

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # words of 64 bits wrap around

WORDS = st.integers(0, 2**64 - 1)
WORD_BITS = 64


def numpy_words(seed: int, run: int, index: int, purpose: int, lane: int) -> list[int]:
    """NumPy steps its 256-bit counter before the first block, so it has to start one earlier."""
    counter = index | purpose << WORD_BITS | lane << (2 * WORD_BITS)
    generator = np.random.Philox(counter=(counter - 1) % 2**256, key=seed | run << WORD_BITS)
    return [int(word) for word in generator.random_raw(4)]


@given(seed=WORDS, run=WORDS, index=WORDS, purpose=WORDS, lane=WORDS)
def test_equals_numpy(seed: int, run: int, index: int, purpose: int, lane: int) -> None:
    ours = philox(*(np.uint64(word) for word in (seed, run, index, purpose, lane)))
    assert [int(word) for word in ours] == numpy_words(seed, run, index, purpose, lane)


@given(word=WORDS)
def test_uniforms_are_those_of_numpy(word: int) -> None:
    uniform = to_uniform(np.uint64(word))
    assert 0.0 <= uniform < 1.0
    assert uniform == (word >> 11) / 2**53


@given(seed=WORDS, run=WORDS, round_=st.integers(1, 2**62))
def test_the_coin_of_a_round(seed: int, run: int, round_: int) -> None:
    word = numpy_words(seed, run, round_, COIN, 0)[0]
    assert coin(np.uint64(seed), np.uint64(run), round_) == (word >> 11) / 2**53


def test_coins_are_uniform_and_independent_of_round_and_run() -> None:
    coins = np.array([[coin(np.uint64(5), np.uint64(run), round_) for round_ in range(1, 5001)] for run in range(4)])
    assert stats.kstest(coins.ravel(), "uniform").pvalue > 0.001
    neighbours = np.corrcoef(coins[:, :-1].ravel(), coins[:, 1:].ravel())[0, 1]
    runs = np.corrcoef(coins)[np.triu_indices(4, 1)]
    assert abs(neighbours) < 0.04
    assert np.abs(runs).max() < 0.08


def test_purposes_share_no_draw() -> None:
    assert len({ARRIVAL, AVAILABILITY, PARAMETERS, COIN}) == 4
    words = {
        philox(np.uint64(1), np.uint64(0), np.uint64(9), np.uint64(purpose), np.uint64(0))[0]
        for purpose in (ARRIVAL, AVAILABILITY, PARAMETERS, COIN)
    }
    assert len(words) == 4
