"""How a file was read, in words."""

from __future__ import annotations

from doral.log.log import Reading

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
