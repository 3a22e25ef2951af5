"""Exponents of `make bench`: the fit is right, noise does not decide, and a cost that grows too fast fails it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.programs import loaded

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def fitting() -> Iterator[ModuleType]:
    yield loaded(FOLDER / "fitting.py")
    del sys.modules["fitting"]


@pytest.fixture(scope="module")
def bench(fitting: ModuleType) -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        known = set(sys.modules)
        yield loaded(FOLDER / "bench.py", name="benchmark_of_everything")
        for name in set(sys.modules) - known:  # programs of the folder, whose names are short
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == FOLDER:
                del sys.modules[name]


def growth(fitting: ModuleType, costs: list[float], *, name: str = "made_up", order: float = 1.0) -> object:
    sizes = tuple(100 * 2**number for number in range(len(costs)))
    return fitting.Growth(name=name, of="things", unit="us", order=order, why="", sizes=sizes, costs=tuple(costs))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, -0.3])
def test_a_power_is_found_at_the_large_end(fitting: ModuleType, exponent: float) -> None:
    """Constants, which matter at the small end only, are not seen."""
    sizes = [1, 3, 10, 10_000, 20_000, 40_000, 80_000]
    costs = [7.0, 9.0, 4.0, *(3.0 * size**exponent for size in sizes[3:])]
    found = fitting.fit(sizes, costs)
    assert found.exponent == pytest.approx(exponent, abs=1e-12)
    assert found.half_width == pytest.approx(0.0, abs=1e-9)
    assert found.sizes == (10_000, 20_000, 40_000, 80_000)


def test_its_interval_holds_the_truth_as_often_as_it_says(fitting: ModuleType) -> None:
    rng, sizes = np.random.default_rng(0), [1_000, 2_000, 4_000, 8_000]
    held = 0
    for _ in range(400):
        costs = [size**0.5 * float(np.exp(rng.normal(0.0, 0.1))) for size in sizes]
        found = fitting.fit(sizes, costs)
        held += abs(found.exponent - 0.5) <= found.half_width
    assert 0.92 <= held / 400 <= 0.98


@pytest.mark.parametrize(
    ("sizes", "costs"),
    [([1], [1.0]), ([1, 2], [1.0]), ([2, 1], [1.0, 1.0]), ([1, 2], [1.0, 0.0]), ([1, 1], [1.0, 2.0])],
)
def test_what_cannot_be_fitted_is_refused(fitting: ModuleType, sizes: list[int], costs: list[float]) -> None:
    with pytest.raises(ValueError, match="sizes"):
        fitting.fit(sizes, costs)


def test_one_busy_moment_does_not_fail_it(fitting: ModuleType) -> None:
    """The smaller of two times counts; what costs too much in every measurement stays over its bound."""
    turns = iter([[1.0, 2.0, 4.0, 40.0], [5.0, 2.0, 4.0, 8.0]])
    found = fitting.again_if_over(lambda: [growth(fitting, next(turns))])
    assert found[0].costs == (1.0, 2.0, 4.0, 8.0)
    assert not found[0].is_over
    asked = []

    def square() -> list[object]:
        asked.append(1)
        return [growth(fitting, [1.0, 4.0, 16.0, 64.0])]

    assert fitting.again_if_over(square)[0].is_over
    assert len(asked) == fitting.TRIES


def test_a_cost_that_grows_too_fast_fails_the_benchmark(
    fitting: ModuleType, bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After everything was printed and written; a missed ratio fails nothing, nor does a part without its database."""

    def fails() -> list[object]:
        raise SystemExit("no PostgreSQL here")

    def exponents(last: float) -> list[object]:
        found: list[object] = bench.exponent_rows([growth(fitting, [1.0, 2.0, 4.0, last])])
        return found

    missed = [bench.Row("ratio", 0.5, 1.0, "half of it")]
    quiet = {"without": fails, "growth": lambda: exponents(8.0), "last": lambda: missed}
    assert bench.main(quiet, folder=tmp_path) == 0
    assert "over their bounds" not in capsys.readouterr().err
    assert bench.main({**quiet, "growth": lambda: exponents(32.0)}, folder=tmp_path) == 1
    shown = capsys.readouterr()
    assert "growth/made_up_exponent" in shown.err
    assert shown.out.count("OVER ITS BOUND") == shown.out.count("not measured: SystemExit: no PostgreSQL here") == 1
    assert "ratio" in shown.out.splitlines()[-1]
    assert shown.out.splitlines()[-1].endswith("MISSED")
    written = json.loads((tmp_path / "bench.json").read_text())
    assert written["growth/made_up_exponent"] > 1.2
    assert written["without/measured"] == 0.0
    assert bench.main({"growth": fails}, folder=tmp_path) == 1, "exponents that nobody has measured"


def test_every_part_has_a_name_of_its_own_and_every_bound_a_reason(bench: ModuleType) -> None:
    from_campaigns, from_growth = sys.modules["campaign_growth"], sys.modules["growth"]
    assert set(bench.WITH_ROWS) <= set(bench.PARTS)
    for order in [
        *(one[1] for one in from_campaigns.ORDERS.values()),
        *(one[0] for one in from_growth.ORDERS.values()),
    ]:
        assert order in (0.0, 0.5, 1.0, 2.0)
    assert {name.partition("/")[0] for name in from_campaigns.ORDERS} == set(from_campaigns.AXES)
    assert set(from_growth.ORDERS) == set(from_growth.AXES) - {"runs"}
