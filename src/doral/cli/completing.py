"""What a shell offers for values: names of scenarios, policies and campaigns. Quick, and silent whatever goes wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

import typer

_MOST = 200  # more than anybody reads
_PATIENCE_S = 0.5  # with a database that somebody writes to

# Shells put what is offered on the line as it is: `$(...)` in a name would be run, and a blank would end it.
_PLAIN = re.compile(r"[\w./@%+=:,-]+")

Offer = tuple[str, str]  # a value, and what it is


def scenarios(incomplete: str) -> Iterable[Offer]:
    """Names of the catalogue."""
    from doral.simulation.catalogue.descriptions import SCENARIO_WORDS

    return _fitting(SCENARIO_WORDS, incomplete)


def scenarios_and_files(incomplete: str) -> Iterable[Offer]:
    """Names of the catalogue, JSON files, and folders in which there may be some."""
    return [*scenarios(incomplete), *_problem_files(incomplete)]


def policies(incomplete: str) -> Iterable[Offer]:
    """Names of presets and rivals."""
    from doral.simulation.catalogue.descriptions import RIVAL_WORDS

    return [*presets(incomplete), *_fitting(RIVAL_WORDS, incomplete)]


def presets(incomplete: str) -> Iterable[Offer]:
    """Names of those that a campaign can run."""
    from doral.simulation.catalogue.descriptions import PRESET_WORDS

    return _fitting(PRESET_WORDS, incomplete)


def campaigns(ctx: typer.Context, incomplete: str) -> Iterable[str]:
    """Names of the campaigns in the storage, if that is a file; a server is not asked, it may be far away."""
    storage = ctx.params.get("storage") or os.environ.get("DORAL_STORAGE") or "sqlite:///campaigns.db"
    # A shell must not show a traceback in the middle of a line that somebody types.
    with suppress(Exception):
        fitting = [name for name in _campaigns_of(str(storage)) if name.startswith(incomplete)]
        return [name for name in fitting if _PLAIN.fullmatch(name) and not name.startswith("-")][:_MOST]
    return []


def _campaigns_of(storage: str) -> list[str]:
    """Read as a file, without the engine that a store brings along; nothing is created, locked or migrated."""
    import sqlite3
    from urllib.parse import quote

    from doral.live.storage.urls import read_sqlite

    path = read_sqlite(storage).path
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=_PATIENCE_S)) as file:
        return [str(name) for (name,) in file.execute("SELECT name FROM campaigns ORDER BY name")]


def _fitting(groups: Mapping[str, Mapping[str, str]], incomplete: str) -> list[Offer]:
    return [(name, said) for group in groups.values() for name, said in group.items() if name.startswith(incomplete)]


def _problem_files(incomplete: str) -> Iterator[Offer]:
    """What is typed stays as it is typed, "./" and all."""
    typed, slash, start = incomplete.rpartition("/")
    with suppress(OSError):
        for path in sorted(Path(typed + slash or ".").iterdir())[:_MOST]:
            if not path.name.startswith(start) or (path.name.startswith(".") and not start):
                continue
            if not _PLAIN.fullmatch(path.name):
                continue
            if path.is_dir():
                yield f"{typed}{slash}{path.name}/", "folder"
            elif path.suffix.lower() in (".toml", ".json"):
                yield f"{typed}{slash}{path.name}", "file"
