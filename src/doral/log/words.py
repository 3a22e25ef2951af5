"""A log, and how a file was read, in words."""

from __future__ import annotations

from doral.log.log import Log, Reading
from doral.pages.notebook import card, note, small_table

_MAX_UNUSED = 12


def in_words(reading: Reading) -> str:
    """A dozen lines: how much was kept, which column is what, what was assumed, what was left out."""
    lost = sum(one.rows for one in reading.dropped)
    source = f" from {reading.source}" if reading.source else ""
    kept = reading.rows - lost
    lines = [f"Read {reading.rows:,} rows{source}, kept {'all' if not lost else f'{kept:,}'}."]
    if reading.columns:
        lines.append("Columns:")
        width = max(len(role) for role, _ in reading.columns)
        lines += [
            f"  {role:<{width}}  {name}{' (guessed)' if role in reading.guessed else ''}"
            for role, name in reading.columns
        ]
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
