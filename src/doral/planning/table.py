"""A table of a plan: plain rows for a file, and which of their columns a page shows, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from doral.planning.plan import Plan

How = Literal["text", "name", "count", "number", "signed", "share", "times", "yes"]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A column of the page; with `ends` it is followed by an interval."""

    head: str
    key: str
    how: How = "text"
    ends: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows with the same keys. Times are in the unit that people read, which their keys name."""

    name: str  # of its file
    caption: str
    keys: tuple[str, ...]
    rows: Sequence[Row]
    shown: tuple[Shown, ...] = ()  # none: only in the file
    on_page: Sequence[Row] | None = None  # where the page shows fewer rows than the file has


def table_of(name: str, caption: str, keys: Sequence[str], rows: Sequence[Row], shown: Sequence[Shown] = ()) -> Table:
    """A table with all its rows on the page, where it is there at all."""
    return Table(name=name, caption=caption, keys=tuple(keys), rows=rows, shown=tuple(shown))


class Times:
    """Durations in the unit that people read."""

    def __init__(self, plan: Plan) -> None:
        self.unit = plan.log.clock.told
        self._size = plan.log.clock.size_of(self.unit)

    def __call__(self, duration: float | None) -> float | None:
        return None if duration is None else duration / self._size
