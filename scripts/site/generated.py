"""Parts of pages that are made of the library itself, so that they are always in step with it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer.main

from doral.cli.app import app

API = "openapi.json"  # the description of the service's API, in the root of the site
MARKER = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
DIRECTIVE = re.compile(r'^::: (\S+)\n    options:\n      heading: "([^"]+)"', re.MULTILINE)


def _first_sentence(text: str | None) -> str:
    paragraph = " ".join((text or "").strip().split("\n\n")[0].split())
    return re.split(r"(?<=[^.]\.)\s+(?=[A-Z`])", paragraph)[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def names() -> str:
    """A table of the public names: what each is, and where it is described."""
    rows = ["| name | what it is |", "| --- | --- |"]
    for page in sorted(REFERENCE.glob("*.md")):
        for path, shown in DIRECTIVE.findall(page.read_text()):
            value = _object(path)
            rows.append(f"| [`{shown}`][{path}] | {_cell(_first_sentence(value.__doc__))} |")
    return "\n".join([*rows[:2], *sorted(rows[2:], key=str.lower)])


def _object(path: str) -> object:
    module, _, name = path.rpartition(".")
    found = __import__(module, fromlist=[name])
    return getattr(found, name)


def _parameters(command: Any) -> Iterator[str]:
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    if not shown:
        return
    yield "| | what it says | without it |\n| --- | --- | --- |\n"
    for one in shown:
        is_option = one.param_type_name == "option"
        words = (
            ", ".join(f"`{word}`" for word in (*one.opts, *one.secondary_opts))
            if is_option
            else f"`{one.metavar or one.name.upper()}`"
        )
        default = one.default
        if one.required:
            usual = "must be given"
        elif default is None or callable(default) or default == [] or (default is False):
            usual = ""
        else:
            usual = f"`{' '.join(map(str, default)) if isinstance(default, list | tuple) else default}`"
        yield f"| {words} | {_cell(' '.join((getattr(one, 'help', None) or '').split()))} | {usual} |\n"


def _commands(command: Any, words: str) -> Iterator[str]:
    inner = getattr(command, "commands", None)  # a group of commands
    if inner is not None:
        for name in inner:
            if not inner[name].hidden:
                yield from _commands(inner[name], f"{words} {name}")
        return
    yield f"## `{words}`\n\n"
    yield re.sub(r"[\b]\n?", "", (command.help or "")).strip() + "\n\n"
    yield from _parameters(command)
    yield f"\n```\n{command.example}\n```\n\n"


def commands() -> str:
    """Every command with its arguments and options."""
    return "".join(_commands(typer.main.get_command(app), "doral"))


MADE: dict[str, Callable[[], str]] = {"names": names, "commands": commands}


def filled(text: str) -> str:
    """The text of a page with what is made of the library in place of its marker."""
    return MARKER.sub(lambda found: MADE[found.group(1)](), text)


def write_api(folder: Path) -> None:
    """The description of the service's API, by the program that writes it for everybody."""
    subprocess.run([sys.executable, REFERENCE.parents[1] / "scripts" / "openapi.py", folder / API], check=True)
