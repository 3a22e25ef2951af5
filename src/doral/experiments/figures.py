"""The figures as files, PNG and PDF, the same bytes from the same numbers."""

from __future__ import annotations

import io
from collections.abc import Iterable

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from doral.experiments.analysis import Analysis
from doral.experiments.claims import METRIC, SHOWN_NAMES
from doral.experiments.paper import FIGURES, SCENARIO_NAMES, SHORT_TITLES
from doral.simulation.plots import clean, colour_of, dash_of, plot

PNG_DOTS_PER_INCH = 160
# Without dates and program versions, which would make every file a new one.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


def draw_all(analysis: Analysis) -> dict[str, Figure]:
    """All figures by the name of their files."""
    figures = {}
    for one in FIGURES:
        figure = plot(analysis.comparison, kind="reward", metric=METRIC, scenario=one.scenario)
        runs = len(analysis.comparison.of(one.scenario, "doral"))
        axes = figure.axes[0]
        axes.set_title(f"{one.title} ({runs_words(runs)})", fontsize="medium", loc="left")
        for line in axes.get_lines():
            line.set_label(SHOWN_NAMES[str(line.get_label())])
        axes.legend(frameon=False, handlelength=3)
        figures[one.name] = figure
    if analysis.horizon is not None:
        figures["sweep_horizon"] = _horizon_figure(analysis.horizon)
    if analysis.accept is not None:
        figures["sweep_accept"] = _accept_figure(analysis.accept)
    return figures


def as_files(figures: dict[str, Figure]) -> dict[str, bytes]:
    """Every figure as PNG and as PDF: the content of the files by their names."""
    return {f"{name}.{kind}": as_bytes(figure, kind) for name, figure in figures.items() for kind in _METADATA}


def as_bytes(figure: Figure, kind: str) -> bytes:
    """A figure as the content of one file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=PNG_DOTS_PER_INCH, metadata=_METADATA[kind])
    return buffer.getvalue()


def runs_words(runs: int) -> str:
    """How many runs a figure shows."""
    return f"mean of {runs} runs, 95% interval" if runs > 1 else "one run"


def _panels(title: str) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(8.0, 5.6), layout="constrained")
    figure.suptitle(title, fontsize="medium", x=0.01, ha="left")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    return figure, list(panels.flat)


def _line(axes: Axes, frame: pl.DataFrame, x: str, *, label: str, position: int) -> None:
    mean, low, high = (frame[f"share_percent{end}"].cast(float).to_numpy() for end in ("", "_low", "_high"))
    colour = colour_of(position)
    axes.plot(frame[x], mean, marker="o", markersize=4, color=colour, linestyle=dash_of(position), label=label)
    axes.fill_between(frame[x], low, high, color=colour, alpha=0.15, linewidth=0)


def _finish(axes: Axes, scenario: str) -> None:
    axes.set_title(SHORT_TITLES[scenario], fontsize="medium")
    clean(axes)


def _label_outside(panels: Iterable[Axes], x: str, y: str) -> None:
    for axes in panels:
        if axes.get_subplotspec().is_last_row():  # type: ignore[union-attr]
            axes.set_xlabel(x)
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel(y)


def _horizon_figure(frame: pl.DataFrame) -> Figure:
    figure, panels = _panels(
        f"Sweep over the horizon T, which the paper does not give ({runs_words(frame['runs'][0])})"
    )
    for axes, scenario in zip(panels, SCENARIO_NAMES, strict=True):
        for position, (policy, shown) in enumerate(SHOWN_NAMES.items()):
            _line(axes, frame.filter(scenario=scenario, policy=policy), "horizon", label=shown, position=position)
        axes.set_xticks(frame["horizon"].unique().sort())
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        _finish(axes, scenario)
    panels[0].legend(frameon=False, handlelength=3)
    _label_outside(panels, "horizon T, rounds", "% of the clairvoyant's reward")
    return figure


def _accept_figure(frame: pl.DataFrame) -> Figure:
    figure, panels = _panels(f"Sweep over A', the arms that DORAL's race accepts ({runs_words(frame['runs'][0])})")
    for axes, scenario in zip(panels, SCENARIO_NAMES, strict=True):
        _line(axes, frame.filter(scenario=scenario), "accept", label="DORAL", position=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(axes, scenario)
    _label_outside(panels, "A', accepted arms", "% of the clairvoyant's reward")
    return figure
