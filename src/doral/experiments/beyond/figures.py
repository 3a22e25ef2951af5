"""The figures: two heat maps, reward and regret on the paper's scenarios, the course over time, one per sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

from doral._arrays import Floats
from doral.experiments.beyond.analysis import SIGNS, SIGNS_KEY, BeyondFindings, depth_of_share, worth_depth
from doral.experiments.beyond.cells import (
    DIVERSE_PARETO,
    INGREDIENTS,
    PAPER_SCENARIOS,
    REFERENCE,
    SWEEPS,
    BeyondExtent,
    Sweep,
    changed_words,
    short_name,
)
from doral.experiments.kit.claim import METRIC, oracle_rewards, regret, share_percent
from doral.experiments.kit.drawing import (
    DEPTHS,
    DIGITS_COLOUR,
    SIDES,
    banded_curve,
    banded_line,
    ends_of,
    mean_words,
    runs_words,
)
from doral.pages.images import as_bytes
from doral.pages.numbers import number
from doral.simulation.results.differences import Interval, interval
from doral.simulation.results.plots import bands, clean, colour_of, dash_of, paths_of

LEAST_WIDTH_INCHES = 6.0  # for what stands above


def _heatmap(
    *,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    depths: Floats,
    words: Sequence[Sequence[str]],
    colours: Colormap,
    least: float,
) -> Figure:
    longest = max(len(name) for name in rows)
    width = max(LEAST_WIDTH_INCHES, 0.8 + 0.085 * longest + 0.82 * len(columns))
    figure = Figure(figsize=(width, 1.5 + 0.36 * len(rows)), layout="constrained")
    figure.suptitle(title, fontsize="medium", x=0.01, ha="left")
    axes = figure.subplots()
    axes.imshow(depths, cmap=colours, vmin=least, vmax=1.0, aspect="auto")
    for row in range(len(rows)):
        for column in range(len(columns)):
            is_bold = words[row][column].endswith((SIGNS["best"], SIGNS["tied"]))
            axes.text(
                column,
                row,
                words[row][column],
                ha="center",
                va="center",
                fontsize="small",
                color=DIGITS_COLOUR,
                fontweight="bold" if is_bold else "normal",
            )
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="left", rotation_mode="anchor")
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    # White lines between the cells.
    axes.set_xticks(np.arange(1, len(columns)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(rows)) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    return figure


def shares_heatmap(found: BeyondFindings) -> Figure:
    """Every policy on every scenario."""
    cells = [[found.row(scenario, policy) for policy in found.policies] for scenario in found.scenarios]
    runs = mean_words(cells[0][0]["runs"])
    return _heatmap(
        title=f"% of the oracle's reward, {runs}\n{SIGNS_KEY}",
        rows=[short_name(name) for name in found.scenarios],
        columns=list(found.policies),
        depths=np.array([[depth_of_share(cell["share_percent"]) for cell in row] for row in cells]),
        words=[[number(cell["share_percent"], 1) + SIGNS[cell["mark"]] for cell in row] for row in cells],
        colours=DEPTHS,
        least=0.0,
    )


def ingredients_heatmap(frame: pl.DataFrame, scenarios: Sequence[str]) -> Figure:
    """What is lost without each ingredient."""
    rows = {(row["without"], row["scenario"]): row for row in frame.iter_rows(named=True)}
    names = [changed_words(variant.policy.name) for variant in INGREDIENTS]
    cells = [[rows[name, scenario] for scenario in scenarios] for name in names]
    runs = mean_words(frame["runs"][0])
    return _heatmap(
        title=f"Points lost with this changed, in % of the oracle's reward\n({runs}; pale: cannot be told from 0)",
        rows=names,
        columns=[short_name(name) for name in scenarios],
        depths=np.array([[worth_depth(cell) for cell in row] for row in cells]),
        words=[[number(cell["worth_points"], 1, signed=True) for cell in row] for row in cells],
        colours=SIDES,
        least=-1.0,
    )


SCENARIO = DIVERSE_PARETO
POLICIES = (REFERENCE, "doral", "d-alp", "d-linucb", "random")
"""Those of the paper, and the one that is to be better."""
SIZE_INCHES = (6.4, 4.6)
_ORACLE_COLOUR = "#8a8a8a"


def shown_policies(found: BeyondFindings) -> list[str]:
    """Whose curves are drawn; none where the scenario was not played."""
    return [name for name in POLICIES if name in found.policies] if SCENARIO in found.scenarios else []


def reward_figure(found: BeyondFindings) -> Figure:
    """In percent of all that the oracle earns, so that runs with different rewards can be averaged."""
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    shown = shown_policies(found)
    rounds = found.compared.of(SCENARIO, shown[0])[0].rounds
    words = "oracle: 100%"
    axes.plot([0, rounds[-1]], [0.0, 100.0], color=_ORACLE_COLOUR, linewidth=4, alpha=0.45, label=words)
    for position, name in enumerate(shown):
        best = oracle_rewards(found.compared, SCENARIO, name)
        paths = 100.0 * paths_of(found.compared, SCENARIO, name, METRIC) / best[:, None]
        end = float(share_percent(found.compared, SCENARIO, name).mean())
        banded_curve(axes, rounds, bands(paths), position=position, label=f"{name}: {end:.1f}%")
    runs = len(found.compared.of(SCENARIO, shown[0]))
    axes.set_title(f"Reward over time, diverse Pareto delays\n({runs_words(runs)})", fontsize="medium", loc="left")
    axes.set_xlabel("round")
    axes.set_ylabel("% of all that the oracle earns")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(0, rounds[-1])
    axes.set_ylim(0, 105)
    clean(axes)
    # Outside, where it can cover no line.
    legend = figure.legend(
        loc="outside lower left", ncols=3, frameon=False, handlelength=3, title="Rewards in the end", alignment="left"
    )
    legend.get_title().set_fontweight("bold")
    return figure


WIDTH_INCHES = 5.8  # narrow enough for its words to be read on a phone
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DARK_GRID = "#353d46"
_DARK: dict[Any, str] = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "#14181d"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#e4e8ec"),
}


def figure_name(sweep: Sweep) -> str:
    """The name of the files of a sweep."""
    return f"choice_{sweep.name}"


FIGURE_NAMES = ("heatmap", "ingredients", "reward", "regret", "course", *(figure_name(sweep) for sweep in SWEEPS))


def figures(found: BeyondFindings, extent: BeyondExtent) -> dict[str, Figure]:
    """All figures by the name of their files."""
    drawn = {"heatmap": shares_heatmap(found), **_pictures(found, extent)}
    if found.ingredients is not None:
        drawn["ingredients"] = ingredients_heatmap(found.ingredients, found.scenarios)
    return drawn


def _pictures(found: BeyondFindings, extent: BeyondExtent) -> dict[str, Figure]:
    """Those that the page shows as pictures; heat maps are tables there."""
    drawn = {}
    if shown_policies(found):
        drawn["reward"] = reward_figure(found)
    if any(name in PAPER_SCENARIOS for name in found.scenarios):
        drawn["regret"] = _regret_figure(found)
    if found.courses is not None:
        drawn["course"] = _course_figure(found.courses)
    if found.sweeps is not None:
        for sweep in extent.sweeps:
            drawn[figure_name(sweep)] = _sweep_figure(sweep, found.sweeps.filter(choice=sweep.name))
    return drawn


def dark_pictures(found: BeyondFindings, extent: BeyondExtent) -> dict[str, bytes]:
    """The page's pictures (PNG) for readers in the dark."""
    with mpl.rc_context(_DARK):
        drawn = _pictures(found, extent)
        for figure in drawn.values():
            for axes in figure.axes:
                axes.grid(color=_DARK_GRID)
        return {name: as_bytes(figure, "png") for name, figure in drawn.items()}


def _legend_below(figure: Figure, axes: Axes, *, columns: int) -> None:
    """Outside, where it can cover no line."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=columns, frameon=False, fontsize="small")


def _regret_figure(found: BeyondFindings) -> Figure:
    """In percent of the oracle's reward, where 0.5 against 10 is the whole point: a log axis."""
    figure = Figure(figsize=(WIDTH_INCHES, 1.8 + 0.36 * len(found.policies)), layout="constrained")
    axes = figure.subplots()
    played = [name for name in found.scenarios if name in PAPER_SCENARIOS]
    for position, scenario in enumerate(played):
        offset = 0.16 * (position - (len(played) - 1) / 2)
        for row, policy in enumerate(found.policies):
            lost = regret(found.compared, scenario, policy)
            shown = interval(100.0 * lost / oracle_rewards(found.compared, scenario, policy))
            label = short_name(scenario) if row == 0 else None
            _dot(axes, shown, row + offset, position=position, label=label)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(found.policies)), found.policies)
    axes.set_ylim(len(found.policies) - 0.5, -0.5)
    runs = len(found.compared.of(played[0], found.policies[0]))
    axes.set_title(f"Regret on the paper's scenarios ({runs_words(runs)})", fontsize="medium", loc="left")
    axes.set_xlabel("regret, % of the oracle's reward (log scale)")
    clean(axes)
    _legend_below(figure, axes, columns=2)
    return figure


def _course_figure(frame: pl.DataFrame) -> Figure:
    """m and the arms in play against the share of the horizon that is over, which scenarios have in common."""
    figure = Figure(figsize=(WIDTH_INCHES, 5.6), layout="constrained")
    runs = int(frame["runs"].max())  # type: ignore[arg-type]
    figure.suptitle(f"How doral-otf goes about it ({runs_words(runs)})", fontsize="medium", x=0.01, ha="left")
    above, below = figure.subplots(2, 1, sharex=True)
    for position, scenario in enumerate(frame["scenario"].unique(maintain_order=True)):
        own = frame.filter(scenario=scenario)
        rounds = own["round"].to_numpy()
        passed = 100.0 * rounds / rounds[-1]
        mean, low, high = (own[f"cutoff_{end}"].cast(float).to_numpy() for end in ("mean", "low", "high"))
        banded_curve(above, passed, (mean, low, high), position=position, label=short_name(scenario))
        below.plot(passed, own["arms_in_play"], color=colour_of(position), linestyle=dash_of(position), linewidth=1.7)
    above.set_ylim(bottom=0)
    below.set_ylim(bottom=0)
    above.set_ylabel("cut-off m, rounds")
    below.set_ylabel("arms in play\n(mean over contexts)")
    below.set_xlabel("% of the horizon")
    for axes in (above, below):
        clean(axes)
    _legend_below(figure, above, columns=3)
    return figure


def _dot(axes: Axes, found: Interval, y: float, *, position: int, label: str | None) -> None:
    is_known = np.isfinite(found.low) and np.isfinite(found.high)
    reach = np.array([[found.mean - found.low], [found.high - found.mean]]) if is_known else None
    colour, marker = colour_of(position), _MARKERS[position]
    axes.errorbar(found.mean, y, xerr=reach, fmt=marker, markersize=5, color=colour, capsize=2, label=label)


def _sweep_figure(sweep: Sweep, frame: pl.DataFrame) -> Figure:
    """Panels side by side."""
    panels = list(dict.fromkeys(point.panel for point in sweep.points))
    widths = [max(2, len({point.x for point in sweep.points if point.panel == panel})) for panel in panels]
    figure = Figure(figsize=(WIDTH_INCHES, 4.0), layout="constrained")
    figure.suptitle(f"{sweep.question}\n({runs_words(frame['runs'][0])})", fontsize="medium", x=0.01, ha="left")
    row = figure.subplots(1, len(panels), squeeze=False, width_ratios=widths)[0]
    for axes, panel in zip(row, panels, strict=True):
        _panel(axes, sweep, frame.filter(panel=panel))
        axes.set_title(panel, fontsize="medium")
        axes.set_xlabel(sweep.x_label)
    row[0].set_ylabel("% of the oracle's reward")
    _legend_below(figure, row[0], columns=3)
    return figure


def _panel(axes: Axes, sweep: Sweep, frame: pl.DataFrame) -> None:
    places = {x: place for place, x in enumerate(dict.fromkeys(frame["x"].to_list()))}
    lines = list(dict.fromkeys(frame["line"].to_list()))
    draw: Callable[..., None] = _joined if sweep.is_ordered else _side_by_side
    for position, line in enumerate(lines):
        own = frame.filter(line=line)
        at = np.array([places[x] for x in own["x"].to_list()], dtype=np.float64)
        draw(axes, at, ends_of(own, "share_percent"), label=line, position=position, lines=len(lines))
    if sweep.default in places:
        axes.axvline(places[sweep.default], color="#8a8a8a", linewidth=1, linestyle=":", zorder=0)
    axes.set_xticks(range(len(places)), [_tick(x, sweep) for x in places])
    axes.set_xlim(-0.5, len(places) - 0.5)
    clean(axes)


def _tick(x: str, sweep: Sweep) -> str:
    shown = f"{x}\n(default)" if x == sweep.default else x
    return shown if sweep.is_ordered else shown.replace("-", "-\n")


def _joined(
    axes: Axes, at: Floats, values: tuple[Floats, Floats, Floats], *, label: str, position: int, lines: int
) -> None:
    banded_line(axes, at, values, position=position, label=label, marker=_MARKERS[position])


def _side_by_side(
    axes: Axes, at: Floats, values: tuple[Floats, Floats, Floats], *, label: str, position: int, lines: int
) -> None:
    """A line between scenarios would mean nothing."""
    mean, low, high = values
    moved = at + 0.2 * (position - (lines - 1) / 2)
    reach = np.array([mean - low, high - mean]) if np.isfinite(low).all() else None
    marker = _MARKERS[position]
    axes.errorbar(moved, mean, yerr=reach, fmt=marker, color=colour_of(position), capsize=3, label=label)
