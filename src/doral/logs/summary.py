"""A log, how a file was read, and what is asked of the caller, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from doral.errors import InvalidValue, shown
from doral.logs.log import Log, Reading, SeenColumn
from doral.pages.notebook import card, note, small_table

_MAX_UNUSED = 12
_MAX_SEEN = 20  # columns that a message shows
_WIDTH = 34  # characters of a cell


@dataclass(frozen=True, kw_only=True)
class Question:
    """One thing that only the caller knows."""

    role: str  # the option that answers it
    candidates: tuple[str, ...]  # columns, the likeliest first; none: no column looks like it
    why: str
    can_be_none: bool = False  # whether there may be no such column


class UnclearColumns(InvalidValue):
    """A table of which it is not clear which column is what.

    Attributes:
        questions: What only the caller knows.
        seen: What each column holds.
        suggested: All options of `read_log` of a complete call, with the likeliest answers.
        source: The name of the table.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        seen: Sequence[SeenColumn],
        suggested: Mapping[str, Any],
        source: str,
    ) -> None:
        self.questions, self.seen = tuple(questions), tuple(seen)
        self.suggested, self.source = dict(suggested), source
        first = self.questions[0]
        super().__init__(first.role, list(first.candidates) or None, "; ".join(one.why for one in self.questions))
        self.args = (self.questions, self.seen, self.suggested, self.source)

    def __str__(self) -> str:
        return question_text(self)


def in_words(reading: Reading) -> str:
    """What was assumed, then which column is what, what was noted, and what was left out."""
    lost = sum(one.rows for one in reading.dropped)
    source = f" from {reading.source}" if reading.source else ""
    kept = reading.rows - lost
    lines = [f"Read {reading.rows:,} rows{source}, kept {'all' if not lost else f'{kept:,}'}."]
    if reading.assumptions:
        lines.append("Assumed, as nothing else was said:")
        lines += [f"  {one.sentence}" for one in reading.assumptions]
    if said := [(role, name) for role, name in reading.columns if role not in reading.guessed]:
        lines.append("Columns, as was said:")
        width = max(len(role) for role, _ in said)
        lines += [f"  {role:<{width}}  {name}" for role, name in said]
    lines += [f"- {note}" for note in reading.notes]
    if reading.unused:
        more = f" and {len(reading.unused) - _MAX_UNUSED} more" if len(reading.unused) > _MAX_UNUSED else ""
        lines.append(f"Not used: {', '.join(reading.unused[:_MAX_UNUSED])}{more}.")
    if lost:
        lines.append(f"Left out {lost:,} row{'s' if lost > 1 else ''}:")
        for one in reading.dropped:
            examples = f" ({'; '.join(one.examples)})" if one.examples else ""
            lines.append(f"  {one.rows:,} {one.why}{examples}")
    return "\n".join(lines)


def seen_table(seen: Sequence[SeenColumn], *, most: int = _MAX_SEEN) -> str:
    """What each column holds: kind, number of levels, share that is empty, range."""
    heads = ("column", "holds", "levels", "empty", "range or examples")
    rows = [
        (shown(one.name)[:_WIDTH], one.kind, f"{one.levels:,}", f"{one.share_empty:.0%}", one.range[:_WIDTH])
        for one in seen[:most]
    ]
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(len(heads))]
    numbers = (2, 3)
    lines = [
        "  "
        + "  ".join(
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]
    return "\n".join([*lines, *([f"  and {len(seen) - most:,} more columns"] if len(seen) > most else [])])


def question_text(error: UnclearColumns) -> str:
    """What is asked, what each column holds, and a complete call with the likeliest answers."""
    calls = ", ".join(f"{name}={value!r}" for name, value in error.suggested.items())
    lines = [*question_lines(error), "Columns:", seen_table(error.seen), "For example:"]
    return "\n".join([*lines, f"  doral.read_log({error.source!r}, {calls})"])


def question_lines(error: UnclearColumns) -> list[str]:
    """A line for each question."""
    return [
        f"{one.role}: {one.why}" + (f"; {one.role}=False: none" if one.can_be_none else "") for one in error.questions
    ]


def log_card(log: Log) -> str:
    """For a notebook: what it is, how it was read, and how often each arm was used."""
    n_answered = int(log.is_answered.sum())
    since = "" if log.start is None else f", from {log.start:%Y-%m-%d}"
    facts = [
        ("Arrivals", f"{len(log):,}, {n_answered:,} answered"),
        ("Time", f"over {log.clock.shown(log.span)}{since}"),
        ("Contexts", f"{len(log.contexts):,}: {_some(log.contexts)}"),
        ("Feedback", log.feedback),
        ("Columns", "; ".join(f"{role}: {name}" for role, name in log.reading.columns)),
    ]
    lost = sum(one.rows for one in log.reading.dropped)
    if lost:
        facts.append(("Left out", f"{lost:,} of {log.reading.rows:,} rows"))
    rows = []
    for arm, name in enumerate(log.arms[:_MAX_UNUSED]):
        mine = log.arm == arm
        rows.append((name, f"{int(mine.sum()):,}", f"{int((mine & log.is_answered).sum()):,}"))
    table = small_table(("Arm", "Used", "Answered"), rows, numbers=(1, 2))
    more = len(log.arms) - len(rows)
    parts = [table, *([note(f"and {more:,} more arms")] if more > 0 else [])]
    return card(f"Log {log.name}", facts, parts=[*parts, note("print(log.reading.text()) says how it was read.")])


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - _MAX_UNUSED
    return ", ".join(names[:_MAX_UNUSED]) + (f" and {more:,} more" if more > 0 else "")
