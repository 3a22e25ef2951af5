"""What a simulation found, as a table that fits: all columns where there is room, otherwise those that matter most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from doral.cli import terminal
from doral.pages.numbers import number, spread
from doral.simulation.results.tables import TOO_LATE

if TYPE_CHECKING:
    from doral.simulation.results.result import SimulationResult
    from doral.simulation.results.stream import StoredRuns

_FRAMED, _PLAIN = (3, 2), (2, 0)  # what a table puts between columns and around them, on a terminal and in a pipe
_SCENARIO, _POLICY = "scenario", "policy"
_SHARE = "% of\noracle"
_INTERVAL, _EXPECTED_INTERVAL = "95%\ninterval", "95%\ninterval "

Row = dict[str, str]  # by the head of the column


def show(result: SimulationResult | StoredRuns, metric: str, *, is_wide: bool) -> None:
    """Print it; a terminal that is too narrow gets a table for each scenario, and fewer columns."""
    rows = rows_of(result, metric)
    console = terminal.output()
    width = console.width if console.is_terminal else terminal.READ_WIDTH
    heads, is_apart = _fitting(rows, list(rows[0]), None if is_wide else width)
    if is_apart:
        for scenario in dict.fromkeys(row[_SCENARIO] for row in rows):
            _show([row for row in rows if row[_SCENARIO] == scenario], heads, title=scenario)
    else:
        _show(rows, heads, is_whole=is_wide)
    if len(heads) + is_apart < len(rows[0]) and console.is_terminal:
        console.print("--wide shows all columns, --out FILE writes everything", style="dim", markup=False)
    for name in result.worthless:
        said = "nothing is worth its cost here: the oracle spends and earns nothing"
        console.print(f"{name}: {said}", markup=False)
    for name in result.too_late:
        console.print(f"{name}: {TOO_LATE}", markup=False)


def rows_of(result: SimulationResult | StoredRuns, metric: str) -> list[Row]:
    """All that a table can show, by columns, in words."""
    rows: list[Row] = []
    less = f"less\n{result.policies[0]}"
    for row in result.summary().filter(metric=metric).iter_rows(named=True):
        is_first = row["policy"] == result.policies_in(row["scenario"])[0]
        share = None if row["regret_share"] is None else 100.0 * (1.0 - row["regret_share"])
        expected = None if row["expected_share"] is None else 100.0 * row["expected_share"]
        lacks_interval = is_first or row["expected_difference_low"] is None
        rows.append(
            {
                _SCENARIO: row["scenario"],
                _POLICY: row["policy"],
                "reward": number(row["reward_mean"]),
                "std.\nerror": number(row["reward_se"]),
                _SHARE: number(share, 1),
                less: "" if is_first else number(row["difference_mean"], signed=True),
                _INTERVAL: "" if is_first else spread(row["difference_low"], row["difference_high"], signed=True),
                "expected,\n%": number(expected, 1),
                "expected\nless": "" if is_first else number(row["expected_difference_mean"], signed=True),
                _EXPECTED_INTERVAL: ""
                if lacks_interval
                else spread(row["expected_difference_low"], row["expected_difference_high"], signed=True),
            }
        )
    return rows


def _fitting(rows: Sequence[Row], heads: list[str], width: int | None) -> tuple[list[str], bool]:
    """The columns to show, and whether each scenario has a table of its own."""
    less = next(head for head in heads if head.startswith("less\n"))
    essential = [_SCENARIO, _POLICY, "reward", _SHARE, less, _INTERVAL]
    for some in (heads, essential):
        if width is None or _width(rows, some) <= width:
            return some, False
    for some in (essential[1:], essential[1:4]):
        if width is not None and _width(rows, some) <= width:
            return some, True
    return essential[1:4], True


def _width(rows: Sequence[Row], heads: Sequence[str]) -> int:
    widest = [max([len(row[head]) for row in rows] + [len(line) for line in head.split("\n")]) for head in heads]
    gap, edges = _FRAMED if terminal.output().is_terminal else _PLAIN
    return sum(widest) + gap * (len(heads) - 1) + edges


def _show(rows: Sequence[Row], heads: Sequence[str], *, title: str = "", is_whole: bool = False) -> None:
    n_words = sum(head in (_SCENARIO, _POLICY) for head in heads)
    cells = [[row[head] for head in heads] for row in rows]
    terminal.show_table(heads, cells, numbers=range(n_words, len(heads)), title=title, is_whole=is_whole)
