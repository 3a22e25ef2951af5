"""`doral campaign verify`, `backup`, ...: for those who keep campaigns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from doral.cli.campaign_options import DEFAULT_STORAGE, Json, Name, Storage, opened
from doral.cli.campaign_words import counted, json_line, verification_lines
from doral.cli.exits import FAILED, exit_codes, say
from doral.errors import InvalidValue, UnknownName

_ONLY_HELP = "Only this campaign; may be given again. Without it, all."
_FROM_HELP = "Only this campaign of it. Without it, all."
_KEYS_HELP = "The keys of the service, too, as they are stored: hashes, which open nothing."
_BEFORE_HELP = "Only what happened before: seconds since 1970 or 2026-03-01T12:00Z (or a round)."


def verify(name: Name, as_json: Json = False, storage: Storage = DEFAULT_STORAGE) -> None:
    """Check all events; list what would be decided otherwise now."""
    with opened(storage) as store:
        found = store.campaign(name).verify()
        typer.echo(json_line(found.to_dict()) if as_json else "\n".join(verification_lines(name, found)))


def health(name: Name, as_json: Json = False, storage: Storage = DEFAULT_STORAGE) -> None:
    """Whether a campaign can be used, and what to look after. Exits with 1 if its store cannot be read or written."""
    with opened(storage) as store:
        found = store.campaign(name).health()
        typer.echo(json_line(found.to_dict()) if as_json else str(found))
        if not (found.is_readable and found.is_writable):
            raise typer.Exit(FAILED)


def backup(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="To make; it is a store itself.")],
    only: Annotated[list[str] | None, typer.Option("--campaign", "-c", metavar="CAMPAIGN", help=_ONLY_HELP)] = None,
    keys: Annotated[bool, typer.Option("--keys", help=_KEYS_HELP)] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """A copy of all campaigns, also while others write."""
    with opened(storage) as store:
        count = store.backup(path, names=only or None, keys=keys)
        n_keys = len(store.books.all_keys())
        copied = f" and {counted(n_keys, 'key')}" if keys else ""
        typer.echo(f"wrote {counted(count, 'campaign')}{copied} to {path}")
        if n_keys and not keys:
            say("doral: not in it: keys (--keys copies them), sessions, administrative acts and alarms of the service")
        elif n_keys:
            say("doral: not in it: sessions, administrative acts and alarms of the service")


def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="As `backup` wrote it.")],
    name: Annotated[str | None, typer.Option("--campaign", "-c", metavar="CAMPAIGN", help=_FROM_HELP)] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Its keys, too, where they are not there yet.")] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Campaigns from a backup, into this store, all or none."""
    with exit_codes():
        path.stat()  # before a store is made for what is not there
    with opened(storage, create=True) as store:
        for one in store.restore(path, name=name, keys=keys):
            typer.echo(f"restored {one}")


def forget(
    name: Name,
    key: Annotated[str, typer.Argument(metavar="KEY", help="As it was given with --key.")],
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Erase a person's key. Decisions and budget stay, and the key still counts as used."""
    with opened(storage) as store:
        count = store.campaign(name).forget(key)
        typer.echo(f"erased the key from {counted(count, 'event')}" if count else "this key was erased before")


def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Remove a campaign with all its decisions, for good. Asks for its name again."""
    with opened(storage) as store:
        names = store.list()
        if name not in names:
            raise UnknownName("campaign", name, names)
        if not yes:
            _ask_again(name)
        store.delete(name)
        typer.echo(f"deleted {name}")


def _ask_again(name: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidValue("campaign", name, "nobody can be asked here; to delete it for good, add --yes")
    # (Typer's own prompt would put a blank into the output.)
    typer.echo(f"All of {name} will be gone for good. Type its name again: ", err=True, nl=False)
    again = sys.stdin.readline().strip()
    if again != name:
        raise InvalidValue("name", again, f"is not {name}; nothing was deleted")
