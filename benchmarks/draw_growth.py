"""What `growth.py` and `campaign_growth.py` measure, as a table and a picture: costs against sizes, both logarithmic.

    python benchmarks/draw_growth.py docs/img/growth.png [--measured build/growth.json]

What was measured is written to build/growth.json; with --measured it is read from such a file instead.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import campaign_growth
import growth
import matplotlib as mpl
from fitting import Growth

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

MEASURED = Path(__file__).resolve().parent.parent / "build" / "growth.json"
PANELS = {
    "a run of a simulation": ("rounds", "runs", "runs_memory"),
    "a round of a simulation": ("contexts", "arms", "features", "people_features", "people_arms"),
    "a campaign, by events": (
        "events/decide", "events/report", "events/facts_again", "events/reopen", "events/replay", "events/facts",
        "events/disk_bytes",
    ),
    "a campaign, by open decisions": (
        "open/decide", "open/feedback", "open/expire_none", "open/expire_all", "open/snapshot", "open/snapshot_bytes",
    ),
    "a store, by campaigns": (
        "campaigns/create", "campaigns/open", "campaigns/decide", "campaigns/list", "campaigns/disk_bytes",
    ),
}  # fmt: skip
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = "osD^vP*"


def draw(found: Sequence[Growth], path: Path) -> None:
    """Costs in times of the smallest, so that only their slopes differ; the line is the fit."""
    by_name = {one.name: one for one in found}
    figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
    for panel, (title, names) in zip(axes.flat, PANELS.items(), strict=False):
        shown = [by_name[name] for name in names if name in by_name]
        for one, colour, marker in zip(shown, COLOURS, MARKERS, strict=False):
            _curve(panel, one, colour, marker)
        panel.set(title=title, xscale="log", yscale="log")
        panel.set_xlabel("size" if len({one.of for one in shown}) > 1 else shown[0].of)
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, frameon=False, loc="upper left")
        low, high = panel.get_ylim()
        panel.set_ylim(min(low, 0.5), max(high, 3.0) * 20)  # room for the names
    axes[0, 0].set_ylabel("cost, in times of that at the smallest size")
    axes[1, 0].set_ylabel("cost, in times of that at the smallest size")
    _exponents(axes.flat[-1], found)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _curve(panel: Axes, one: Growth, colour: str, marker: str) -> None:
    first, fit = one.costs[0], one.fit
    name = f"{one.name.partition('/')[2] or one.name}: {fit.exponent:.2f}".replace("_", " ")
    costs = [cost / first for cost in one.costs]
    panel.plot(one.sizes, costs, marker, color=colour, markersize=5, label=name)
    panel.plot(one.sizes, costs, color=colour, linewidth=0.6, alpha=0.5)
    end = [cost for size, cost in zip(one.sizes, costs, strict=True) if size in fit.sizes]
    middle = 1.0
    for size, cost in zip(fit.sizes, end, strict=True):
        middle *= (cost / size**fit.exponent) ** (1 / len(end))
    panel.plot(fit.sizes, [middle * size**fit.exponent for size in fit.sizes], color=colour, linewidth=2)


def _exponents(panel: Axes, found: Sequence[Growth]) -> None:
    """Every exponent with its interval, in its place below its bound."""
    for place, one in enumerate(reversed(found)):
        colour = "#D55E00" if one.is_over else "#0072B2"
        panel.plot([one.order, one.bound], [place, place], color="#bbbbbb", linewidth=4, solid_capstyle="butt")
        panel.plot([one.bound], [place], "|", color="#000000", markersize=7)
        half = min(one.fit.half_width, 1.0)
        panel.errorbar(one.fit.exponent, place, xerr=half, fmt="o", color=colour, markersize=3.5, linewidth=0.8)
    panel.set_yticks(range(len(found)), [one.name for one in reversed(found)], fontsize=6)
    panel.set(title="exponents, 95% intervals; |: the bound", xlim=(-0.6, 2.8), xlabel="exponent")
    panel.grid(alpha=0.3, axis="x")


def table(found: Sequence[Growth]) -> str:
    """For a page of the documents."""
    lines = [
        "| row of `make bench` | against | exponent | over | should be | bound | cost, smallest and largest size |",
        "| --- | --- | ---: | --- | ---: | ---: | --- |",
    ]
    for one in found:
        fit = one.fit
        over = " **over**" if one.is_over else ""
        lines.append(
            f"| `growth/{one.name}_exponent` | {one.of} | {fit.exponent:.2f} ± {fit.half_width:.2f}{over} "
            f"| {fit.sizes[0]:,} to {fit.sizes[-1]:,} | {one.order:g}: {one.why} | {one.bound:.1f} "
            f"| {_few(one.costs[0])} and {_few(one.costs[-1])} {one.unit} |"
        )
    return "\n".join(lines)


def _few(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}" if number < 10 else f"{number:.0f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--measured", type=Path)
    given = parser.parse_args()
    if given.measured is None:
        measured = [*growth.growths(), *campaign_growth.growths()]
        MEASURED.parent.mkdir(exist_ok=True)
        MEASURED.write_text(json.dumps([dataclasses.asdict(one) for one in measured]))
    else:
        stored = json.loads(given.measured.read_text())
        measured = [Growth(**{**one, "sizes": tuple(one["sizes"]), "costs": tuple(one["costs"])}) for one in stored]
    print(table(measured))
    draw(measured, given.picture)
