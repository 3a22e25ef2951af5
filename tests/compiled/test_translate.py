"""What a kernel computes is what the same Python computes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doral._arrays import Floats, Ints
from doral.compiled import Block, Entry, Program, kernel, rare
from doral.compiled.translate import Unsupported, translate

LIMITS = (2.0, 3.5, 7.0)


class Pair(NamedTuple):
    first: float
    second: int


class Numbers(NamedTuple):
    floats: Floats
    ints: Ints
    small: Any
    cube: Floats


def numbers() -> Numbers:
    draws = np.random.default_rng(7)
    return Numbers(
        draws.normal(size=(4, 5)),
        np.array([3, -2, 0, 7, 5]),
        np.array([1, 255, 0], dtype=np.uint8),
        np.arange(24.0).reshape(2, 3, 4),
    )


@kernel
def divide(n: Numbers, i: int, j: int, x: float) -> float:
    return (i // j) * 1000.0 + i % j if j != 0 else x


@kernel
def divide_by_constants(n: Numbers, i: int, j: int, x: float) -> float:
    return (i // 7) * 1e6 + (i % 7) * 1e3 + i // -3 + j % -5


@kernel
def mixed_types(n: Numbers, i: int, j: int, x: float) -> float:
    total: Any = 0
    for k in range(3):
        total = total + (x if k == 1 else i)
    best = 1 if x > 0 else 2.5
    return total * best + (x > 0) + int(x)


@kernel
def count_down(n: Numbers, i: int, j: int, x: float) -> float:
    total, step = 0.0, -2 if i > 0 else 1 + abs(j)
    for k in range(5, -1, -1):
        total = total * 3 + k
    for k in range(10 if i > 0 else 0, 3 if i > 0 else 12, step):
        total += k * x
    return total


@kernel
def leave_loops(n: Numbers, i: int, j: int, x: float) -> float:
    total, k = 0.0, 0
    while True:
        k += 1
        if k % 3 == 0:
            continue
        if k > 20 or (total > 50 and k != 7):
            break
        for m in range(k):
            if m == 4:
                break
            total += m * 0.5
    return total + k


@kernel
def index_from_the_end(n: Numbers, i: int, j: int, x: float) -> float:
    at = i % 5
    total = n.floats[-1, at] + n.floats[1][at - 5] + n.ints[at - 5] + n.cube[-1][1, -2]
    for at in range(2):
        total += n.floats[at, -at - 1]
    return total


@kernel
def index_a_parameter_that_loops(n: Numbers, i: int, j: int, x: float) -> float:
    return _indexed(n.floats, -1 - j % 4)


@rare
def _indexed(floats: Floats, i: int) -> float:
    total = floats[i, 0]
    for i in range(2):  # the parameter was below 0
        total += floats[i, 1]
    return total


@kernel
def choose_extremes(n: Numbers, i: int, j: int, x: float) -> float:
    return max(min(x, 2.0), i) + min(i, j, 3) - abs(j) + abs(x)


@kernel
def compare(n: Numbers, i: int, j: int, x: float) -> float:
    inside = -1 < x <= i
    either = i == j or (x != x) or not (i < j and x > 0.0)
    return float(inside * 2 + either * 4 + (8 if i else 0) + (16 if x else 0))


@kernel
def swap_and_unpack(n: Numbers, i: int, j: int, x: float) -> float:
    pair = Pair(x, i)
    a, b = pair
    a, b = b, int(a)
    both = (a, (b, 0.5))
    total = 0.0
    for limit in LIMITS:
        total = total * 2 + limit
    return both[0] + both[1][0] * both[1][1] + pair.first + pair.second + total + LIMITS[1]


@kernel
def use_bits(n: Numbers, i: int, j: int, x: float) -> float:
    word = np.uint64(abs(i)) ^ np.uint64(12345)
    bits = np.float64(x).view(np.uint64) >> np.uint64(3)
    return (word << np.uint64(2)) * 1.0 + bits * 1e-9 + (i & 6) + (j | 1) + n.small[1] + n.small[0]


@kernel
def call_mathematics(n: Numbers, i: int, j: int, x: float) -> float:
    y = abs(x) + 0.5
    rounded = math.floor(x) + math.ceil(x) + np.ceil(x)
    return math.sqrt(y) + math.log(y) + math.log1p(y) + math.exp(-y) + y * y + y**0.3 + rounded + math.erfc(x)


KERNELS = [
    divide,
    divide_by_constants,
    mixed_types,
    count_down,
    leave_loops,
    index_from_the_end,
    index_a_parameter_that_loops,
    choose_extremes,
    compare,
    swap_and_unpack,
    use_bits,
    call_mathematics,
]


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(
        name="translated",
        entries={one.__name__: Entry(one, (numbers(), int, int, float), float) for one in KERNELS},
    )


@pytest.mark.parametrize("one", KERNELS, ids=lambda one: one.__name__)
@settings(deadline=None)
@given(i=st.integers(-60, 60), j=st.integers(-60, 60), x=st.floats(-40.0, 40.0))
def test_compiled_code_gives_what_python_gives(program: Program, one: Any, i: int, j: int, x: float) -> None:
    with np.errstate(all="ignore"):
        expected = one(numbers(), i, j, x)
    found = program[one.__name__](Block(numbers()), i, j, x)
    assert found == pytest.approx(float(expected), rel=1e-15, abs=0.0, nan_ok=True)


def test_a_division_of_integers_by_zero_gives_zero() -> None:
    @kernel
    def divided(i: int, j: int) -> int:
        return (i // j) * 10 + i % j

    program = Program(name="zero", entries={"zero": Entry(divided, (int, int), int)})
    assert program["zero"](7, 0) == 0


@kernel
def recursive(i: int) -> int:
    return recursive(i - 1) if i > 0 else 0


@kernel
def two_types(i: int) -> float:
    name: Any = 1.0
    name = (i, i)
    return name[0]


@kernel
def sometimes_nothing(i: int) -> Any:
    if i > 0:
        return 1.0
    return None


@kernel
def keeps_a_list(i: int) -> float:
    return float(len([i]))


@kernel
def cuts_an_array(i: int) -> float:
    return LIMITS[i:][0]


@kernel
def squared(i: int) -> float:
    """Python's power has another last bit than a product."""
    return math.sqrt(i) ** 2


@pytest.mark.parametrize("one", [recursive, two_types, sometimes_nothing, keeps_a_list, cuts_an_array, squared])
def test_what_is_not_known_is_refused(one: Any) -> None:
    with pytest.raises(Unsupported):
        translate({"one": (one, ("int",), float)})
