"""Policies on scenarios as a table in colours; on a narrow terminal in several, each with as many policies as fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from doral.cli import terminal
from doral.experiments.beyond.analysis import SIGNS, SIGNS_KEY, BeyondFindings, depth_of_share
from doral.experiments.beyond.cells import short_name
from doral.pages.numbers import number

COLUMN_GAP = 3  # what the table puts between columns, at most
# Backgrounds from pale to deep, with a text colour that stands out on each.
_SHADES = (
    "black on #eff3ff",
    "black on #c6dbef",
    "black on #9ecae1",
    "black on #6baed6",
    "white on #2171b5",
    "white on #08306b",
)
_CELL = "100.0*"


def show_shares(found: BeyondFindings) -> None:
    """Print it. Scenarios are rows: there may be many of them, and a page is longer than wide."""
    console = terminal.output()
    names = [short_name(name) for name in found.scenarios]
    left = max(len(name) for name in ("scenario", *names))
    for policies in _fitting(found.policies, console.width - left):
        rows: list[list[str | Text]] = [
            [name, *(_cell(found, scenario, policy) for policy in policies)]
            for name, scenario in zip(names, found.scenarios, strict=True)
        ]
        terminal.show_table(["scenario", *policies], rows, numbers=range(1, len(policies) + 1))
    console.print(f"% of the oracle's reward; {SIGNS_KEY}")


def _fitting(policies: Sequence[str], width: int) -> Iterable[tuple[str, ...]]:
    """Policies in groups that fit next to the names of the scenarios, at least one in each."""
    group: list[str] = []
    for name in policies:
        needed = sum(max(len(_CELL), len(one)) + COLUMN_GAP for one in (*group, name))
        if group and needed > width:
            yield tuple(group)
            group = []
        group.append(name)
    yield tuple(group)


def _cell(found: BeyondFindings, scenario: str, policy: str) -> Text:
    row = found.row(scenario, policy)
    depth = depth_of_share(row["share_percent"])
    style = _SHADES[min(len(_SHADES) - 1, int(depth * len(_SHADES)))]
    return Text(number(row["share_percent"], 1) + (SIGNS[row["mark"]] or " "), style=style)
