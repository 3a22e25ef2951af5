"""The figure of `lease_loss.py`: loss by number of workers, a panel for each scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

_SHADES = {"rest": ("#8c2d04", "#d94801", "#fd8d3c", "#fdbe85"), "past": ("#08306b", "#2171b5", "#6baed6", "#9ecae1")}
_SHADES["every"] = ("#00441b", "#238b45", "#74c476")
_MARKS = {"rest": "o", "past": "s", "every": "^"}


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """As a PNG."""
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    figure = Figure(figsize=(3.3 * len(scenarios) + 1.9, 4.0), layout="constrained")
    panels = figure.subplots(1, len(scenarios), sharey=True, squeeze=False)[0]
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    for panel, scenario in zip(panels, scenarios, strict=True):
        panel.axhline(0.0, color="#666666", linewidth=0.8)
        for i, rule in enumerate(rules):
            here = sorted(
                (row for row in rows if row["scenario"] == scenario and row["rule"] == rule),
                key=lambda row: row["workers"],
            )
            kind = rule.split()[0]
            shade = _SHADES[kind][[one for one in rules if one.startswith(kind)].index(rule) % len(_SHADES[kind])]
            panel.errorbar(
                [row["workers"] * 1.03 ** (i - len(rules) / 2) for row in here],
                [row["percent"] for row in here],
                [[row["percent"] - row["low"] for row in here], [row["high"] - row["percent"] for row in here]],
                color=shade,
                marker=_MARKS[kind],
                markersize=4,
                linewidth=1.2,
                elinewidth=0.8,
                label=rule,
            )
        panel.set_xscale("log", base=2)
        panel.set_yscale("symlog", linthresh=1.0)
        panel.set_yticks([0, 0.5, 1, 2, 5, 10, 20, 50], ["0", "0.5", "1", "2", "5", "10", "20", "50"])
        panel.set_ylim(-0.4, 65)
        panel.set_xlim(0.8, 80)
        panel.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
        panel.minorticks_off()
        panel.set_title(f"{scenario}, {here[0]['runs']} runs", fontsize=10)
        panel.set_xlabel("workers")
        panel.grid(axis="y", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
    panels[0].set_ylabel("loss against one decider, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, title="looks again")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
