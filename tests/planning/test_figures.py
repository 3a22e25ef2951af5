"""Figures of a plan: there where they make sense, and readable."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Annotation, Text

from doral.inference.cells import cells_of
from doral.planning.plan import Plan
from doral.planning.report.cell_figures import calendar_locator
from doral.planning.report.drawing import Drawing, apart
from doral.planning.report.figures import FIGURE_NAMES, drawings
from tests.planning.plans import a_plan, hostile_plan, minimal_plan, wide_plan


def drawn(plan: Plan) -> dict[str, Drawing]:
    return {one.name: one for one in drawings(plan)}


@pytest.fixture(scope="module")
def usual() -> dict[str, Drawing]:
    return drawn(a_plan())


@pytest.fixture(scope="module")
def wide() -> dict[str, Drawing]:
    return drawn(wide_plan())


def words(one: Drawing) -> list[str]:
    return [found.get_text() for found in one.figure.findobj(Text) if found.get_text()]


def boxes(one: Drawing, kind: type[Text]) -> list[tuple[float, float, float, float]]:
    canvas = FigureCanvasAgg(one.figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    shown = [found for found in one.figure.findobj(kind) if found.get_text().strip()]
    return [Text.get_window_extent(found, renderer).extents for found in shown]


def overlap(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return (
        min(first[2], second[2]) - max(first[0], second[0]) > 1.0
        and min(first[3], second[3]) - max(first[1], second[1]) > 1.0
    )


def test_a_plan_in_full_has_all_figures(usual: dict[str, Drawing]) -> None:
    assert tuple(usual) == FIGURE_NAMES


def test_figures_without_sense_are_left_out() -> None:
    assert drawn(minimal_plan()) == {}
    assert set(drawn(a_plan(has_delays=False))) == {"earnings", "budget", "cost_gain", "values", "arrivals"}
    alone = drawn(a_plan(arms=("only",), contexts=("everyone",), is_world=False))
    assert set(alone) == set(FIGURE_NAMES)
    assert "only" in words(alone["returns"])
    assert "all together" not in words(alone["returns"])


def test_no_panel_has_more_lines_than_can_be_told_apart_and_the_rest_is_said(
    wide: dict[str, Drawing],
) -> None:
    curves = [line for line in wide["returns"].figure.axes[0].get_lines() if len(line.get_xdata()) > 2]  # type: ignore[arg-type]
    assert len(curves) == 8
    assert len({line.get_color() for line in curves}) == 8
    assert any("7 arms used most of 30" in one for one in words(wide["returns"]))
    assert "16 contexts with most rows of 60" in wide["values"].sees


@pytest.mark.filterwarnings("ignore:Glyph")
def test_words_stay_on_the_sheet_and_labels_do_not_cover_each_other(
    usual: dict[str, Drawing], wide: dict[str, Drawing]
) -> None:
    hostile = drawn(hostile_plan())
    some = [hostile[name] for name in ("returns", "values")]  # the others have no names of arms
    for one in (*usual.values(), wide["returns"], wide["values"], *some):
        found = boxes(one, Annotation)
        pairs = [(a, b) for place, a in enumerate(found) for b in found[place + 1 :] if overlap(a, b)]
        assert pairs == [], one.name
        width, height = one.figure.get_size_inches()
        all_of_it = one.figure.get_tightbbox()
        assert min(all_of_it.x0, all_of_it.y0) > -0.02, one.name
        assert all_of_it.x1 < width + 0.02, one.name
        assert all_of_it.y1 < height + 0.02, one.name


def test_the_status_quo_and_the_best_are_in_the_figure_of_earnings(usual: dict[str, Drawing]) -> None:
    one = usual["earnings"]
    axes = one.figure.axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()][:2] == ["oracle", "doral-otf"]
    assert any(list(line.get_xdata()) == [200.0, 200.0] for line in axes.get_lines())  # type: ignore[arg-type]
    assert "today, 200" in words(one)


def test_the_deadline_and_the_advised_wait_are_marked(usual: dict[str, Drawing]) -> None:
    said = words(usual["returns"])
    assert "wait 9 days" in said
    assert "deadline, 14 days" in said


def test_cells_of_the_figure_are_those_of_the_log() -> None:
    plan = a_plan()
    found = {(one.context, one.arm): one for one in plan.cells}
    cells = cells_of(plan.log, plan.deadline)
    for context, name in enumerate(plan.log.contexts):
        for arm, other in enumerate(plan.log.arm_names()):
            one = found[name, other]
            is_here = (plan.log.context == context) & (plan.log.arm == (arm if arm < 3 else -1))
            assert one.rows == int(is_here.sum())
            assert one.seen == pytest.approx(cells.mean[context * 4 + arm])
            assert one.low is not None
            assert one.high is not None
            assert one.value is not None
            assert 0.0 <= one.low <= one.value <= one.high <= 1.0
    # Thin cells borrow: what is learned together scatters less than what cells say by themselves.
    both = np.array([(one.seen, one.value) for one in found.values()], dtype=np.float64)
    assert both[:, 1].std() < both[:, 0].std()


def test_places_of_labels_are_apart_and_inside() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        wanted = np.sort(rng.random(8) * rng.choice([0.01, 0.3, 1.0]))
        placed = np.array(apart(wanted.tolist(), 0.1, 0.0, 1.0))
        assert (np.diff(placed) >= 0.1 - 1e-9).all()
        assert placed.min() >= -1e-9
        assert placed.max() <= 1.0 + 1e-9


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("hours", [0.05, 0.5, 1.9, 2.9, 7, 25, 50, 96, 240, 1_000, 2_200, 9_000, 30_000])
def test_every_span_has_dates_along_it(hours: float) -> None:
    """Also those for which Matplotlib has no step by itself, and says so to whoever draws."""
    first = datetime(2020, 10, 15, 7, 41)
    ticks = calendar_locator().tick_values(first, first + timedelta(hours=hours))  # type: ignore[arg-type]
    assert 2 <= len(ticks) <= 8
