"""The numbers behind the report's plots, for the script that draws them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from doral._arrays import Floats
from doral.experiments.paper.analysis import PaperFindings
from doral.experiments.paper.names import FIGURES, SCENARIO_NAMES, SHORT_TITLES, SHOWN_NAMES, PaperFigure
from doral.simulation.results.outcome import METRICS
from doral.simulation.results.plots import bands, paths_of

PLOTTED_POINTS = 200  # of each curve; more cannot be seen


def plot_data(found: PaperFindings) -> dict[str, Any]:
    """Everything that is drawn."""
    data: dict[str, Any] = {"figures": {one.name: _figure(found, one) for one in FIGURES}}
    if found.horizon is not None:
        data["horizon"] = {
            f"horizon-{position}": {
                "title": SHORT_TITLES[scenario],
                "x_title": "horizon T, rounds",
                "lines": [
                    {
                        "name": shown,
                        "x": (own := found.horizon.filter(scenario=scenario, policy=policy))["horizon"].to_list(),
                        **_shares(own),
                    }
                    for policy, shown in SHOWN_NAMES.items()
                ],
            }
            for position, scenario in enumerate(SCENARIO_NAMES, start=1)
        }
    if found.accept is not None:
        data["accept"] = {
            "accept": {
                "title": "",
                "x_title": "A', accepted arms",
                "lines": [
                    {
                        "name": SHORT_TITLES[scenario],
                        "x": (own := found.accept.filter(scenario=scenario))["accept"].to_list(),
                        **_shares(own),
                    }
                    for scenario in SCENARIO_NAMES
                ],
            }
        }
    return data


def as_script(data: dict[str, Any]) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _figure(found: PaperFindings, one: PaperFigure) -> dict[str, Any]:
    result = found.comparison
    thin = _thinned(result.of(one.scenario, "doral")[0].rounds.size)
    race_ends = [outcome.race_ended for outcome in result.of(one.scenario, "doral") if outcome.race_ended > 0]
    return {
        "title": one.title,
        "rounds": result.of(one.scenario, "doral")[0].rounds[thin].tolist(),
        "race_end": float(np.median(race_ends)) if race_ends else None,
        "lines": [
            {
                "name": shown,
                "metrics": {
                    metric: {
                        "reward": _band(own := paths_of(result, one.scenario, policy, metric)[:, thin]),
                        "difference": _band(own - paths_of(result, one.scenario, "doral", metric)[:, thin]),
                    }
                    for metric in METRICS
                },
            }
            for policy, shown in SHOWN_NAMES.items()
        ],
    }


def _thinned(size: int) -> Any:
    """Indices of some checkpoints, the last included."""
    return np.unique(np.linspace(0, size - 1, min(size, PLOTTED_POINTS)).round().astype(np.int64))


def _band(paths: Floats) -> dict[str, list[float | None]]:
    return {
        end: [None if np.isnan(value) else round(value, 1) for value in values.tolist()]
        for end, values in zip(("mean", "low", "high"), bands(paths), strict=True)
    }


def _shares(frame: Any) -> dict[str, list[float | None]]:
    columns = {"mean": "share_percent", "low": "share_percent_low", "high": "share_percent_high"}
    return {
        end: [None if value is None else round(value, 3) for value in frame[column].to_list()]
        for end, column in columns.items()
    }
