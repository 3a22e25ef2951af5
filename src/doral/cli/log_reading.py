"""Reading a log for a command: what was assumed comes first, and what is unclear is asked before any work."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from doral.cli.campaign_words import json_line
from doral.cli.exits import MISUSED, say
from doral.cli.log_options import as_options

if TYPE_CHECKING:
    from doral.logs.log import Log, Reading, SeenColumn
    from doral.logs.summary import UnclearColumns


def read(path: Path, columns: Mapping[str, Any], *, command_of: Callable[[Mapping[str, Any]], str]) -> Log:
    """Return the log; where its columns are unclear, say what to ask, with the command that `command_of` words."""
    from doral.logs.read import read_log
    from doral.logs.summary import UnclearColumns

    try:
        return read_log(path, **columns)
    except UnclearColumns as error:
        say(question_text(error, command_of(error.suggested)))
        raise typer.Exit(MISUSED) from None


def question_text(error: UnclearColumns, command: str) -> str:
    """What is asked, what each column holds, and the command to run."""
    from doral.logs.summary import question_lines, seen_table

    lines = ["doral: it is not clear which column is what", *(f"  {one}" for one in question_lines(error))]
    lines += ["What each column holds:", seen_table(error.seen), "Run, with the right columns:", f"  {command}"]
    for question in error.questions:
        others = [f"--{question.role.replace('_', '-')} {shlex.quote(one)}" for one in question.candidates[1:]]
        others += [f"--{question.role.replace('_', '-')} ''"] if question.can_be_none else []
        if others:
            lines.append(f"  or instead: {', '.join(others)}")
    return as_options("\n".join(lines))


def words_of(columns: Mapping[str, Any]) -> list[str]:
    """Options as they are typed; False is an empty one."""
    words = []
    for name, value in columns.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is not None:
                words += [f"--{name.replace('_', '-')}", "" if one is False else str(one)]
    return words


def check(path: Path, columns: Mapping[str, Any], *, as_json: bool) -> None:
    """What `doral log check` does: read the log, and say how."""
    from doral.logs.read import read_log
    from doral.logs.summary import UnclearColumns, seen_table

    try:
        log = read_log(path, **columns)
    except UnclearColumns as error:
        command = shlex.join(["doral", "log", "check", str(path), *words_of(error.suggested)])
        if as_json:
            asked = [
                {"role": one.role, "candidates": list(one.candidates), "why": as_options(one.why)}
                for one in error.questions
            ]
            found = {"is_clear": False, "questions": asked, "columns": _seen(error.seen), "command": command}
            typer.echo(json_line(found))
        else:
            say(question_text(error, command))
        raise typer.Exit(MISUSED) from None
    command = shlex.join(["doral", "plan", str(path), *words_of(_settled(log.reading, columns))])
    if as_json:
        assumed = [
            {"option": one.what, "value": one.value, "why": as_options(one.why)} for one in log.reading.assumptions
        ]
        found = {
            "is_clear": True,
            "rows": log.reading.rows,
            "arrivals": len(log),
            "assumptions": assumed,
            "notes": [as_options(one) for one in log.reading.notes],
            "columns": _seen(log.reading.seen),
            "command": command,
        }
        typer.echo(json_line(found))
        return
    typer.echo(as_options(log.reading.text()))
    typer.echo(f"What each column holds:\n{seen_table(log.reading.seen)}" if log.reading.seen else "")
    typer.echo(f"{log!r}\nNext, if this is right:\n  {command}")


def _settled(reading: Reading, columns: Mapping[str, Any]) -> dict[str, Any]:
    """All options by which the log is read in the same way again, guessing nothing."""
    found: dict[str, Any] = {}
    for role, name in reading.columns:
        found.setdefault(role, []).append(name)
    is_plain = {"feedback", "currency"}
    found |= {one.what: one.value for one in reading.assumptions if one.what in is_plain}
    return {**found, **columns}


def _seen(seen: tuple[SeenColumn, ...]) -> list[dict[str, Any]]:
    return [
        {
            "column": one.name,
            "kind": one.kind,
            "levels": one.levels,
            "share_empty": one.share_empty,
            "low": one.low,
            "high": one.high,
        }
        for one in seen
    ]
