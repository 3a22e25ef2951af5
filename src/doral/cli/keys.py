"""`doral keys ...`: who may use the service on a store. What the commands need is imported when they run."""

from __future__ import annotations

import getpass
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from doral.cli.command import command, group, json_line, say, show
from doral.cli.options import DEFAULT_STORAGE, DryRun, Json, Storage, offer_campaigns, opened, parse_time
from doral.errors import InvalidValue, UnknownName

app = group("keys", "Keys of the service: which programs and people may do what.")

_ROLE_HELP = "admin (may do everything), decide, feedback or read. May be given again."
_CAMPAIGN_HELP = "Only for this campaign; may be given again. Without it, for all."
_EXPIRES_HELP = "When it ends by itself: after 90d, 12h, or at 2027-03-31T18:00Z. Without it, never."
_ENDS = "a time from now on, as 90d, 12h; or a moment, as 2027-03-31T18:00Z"
_UNITS_S = {"s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)")


@command(app, example="doral keys create shop --role decide --role feedback")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people call it, such as the program that uses it.")],
    role: Annotated[list[str], typer.Option("--role", "-r", metavar="ROLE", help=_ROLE_HELP)],
    campaign: Annotated[
        list[str] | None,
        typer.Option("--campaign", "-c", metavar="CAMPAIGN", help=_CAMPAIGN_HELP, autocompletion=offer_campaigns),
    ] = None,
    expires: Annotated[str | None, typer.Option(metavar="TIME", help=_EXPIRES_HELP)] = None,
    as_json: Json = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Make a key, and print it: this once, for only its checksum is kept."""
    now = time.time()
    from doral.live.storage.urls import redacted
    from doral.service.access.keys import act_by_hand, described, new_key

    ends = None if expires is None else _end(expires, now)  # before a file is made
    row, key = new_key(name, role, now=now, campaigns=campaign or None, expires_at=ends)
    with opened(storage, create=True) as store:
        store.books.add_key(row, act_by_hand("key created", described(row), at=now, who=_user()))
        missing = sorted(set(row.campaigns or ()) - set(store.list()))
        typer.echo(json_line({**described(row), "key": key}) if as_json else key)
    if missing:
        say(f"doral: there is no campaign {_listed(missing)} yet; the key is for whatever will have that name")
    if not as_json:
        say(f"key {row.id} ({row.name}), for a service on {redacted(storage)}: keep it, it is not shown again")
        say(f"`doral keys revoke {row.id}` ends it")


@command(app, "list", example="doral keys list")
def list_keys(as_json: Json = False, storage: Storage = DEFAULT_STORAGE) -> None:
    """All keys, the oldest first, with those that ended. No secret is among it."""
    with opened(storage) as store:
        from doral.cli.terminal import show_table
        from doral.service.access.keys import described, state_of

        now = time.time()
        rows = store.books.all_keys()
        if as_json:
            found = [{**described(one), "revoked_at": one.revoked_at, "state": state_of(one, now)} for one in rows]
            typer.echo(json_line(found))
            return
        if not rows:
            typer.echo("no keys yet: `doral keys create` makes one, and so does the first `doral serve`")
            return
        heads = ("ID", "Name", "Roles", "Campaigns", "Created", "Expires", "State")
        lines = [
            (
                one.id,
                one.name,
                ", ".join(one.roles),
                "all" if one.campaigns is None else ", ".join(one.campaigns),
                _moment(one.created_at),
                "never" if one.expires_at is None else _moment(one.expires_at),
                state_of(one, now),
            )
            for one in rows
        ]
        show_table(heads, lines)


@command(app, example="doral keys revoke 3f9a --dry-run")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Of the key, as `doral keys list` shows it.")],
    as_json: Json = False,
    dry_run: DryRun = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """End a key, with the sessions of whoever signed in with it. A service that runs knows within 2 seconds."""
    with opened(storage) as store:
        from doral.service.access.keys import act_by_hand, read_key

        whole = read_key(key_id)  # somebody may have nothing else at hand; its secret is not shown again
        wanted = key_id if whole is None else whole.id
        known = {one.id: one for one in store.books.all_keys()}
        if wanted not in known:
            raise UnknownName("key", wanted, known)
        now = time.time()
        details = {"id": wanted, "name": known[wanted].name}
        if dry_run:
            is_new = known[wanted].revoked_at is None
            say("doral: a dry run: nothing was stored")
        else:
            is_new = store.books.revoke_key(wanted, now, act_by_hand("key revoked", details, at=now, who=_user()))
        text = f"revoked {wanted} ({known[wanted].name})" if is_new else f"{wanted} was revoked before"
        show(text, {"revoked": wanted, "name": known[wanted].name, "was_valid": is_new}, as_json=as_json)


@command(app, example="doral keys log --limit 20", renamed={"-n": "--limit"})
def log(
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many, at most.")] = 50,
    as_json: Json = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """What administrators have done, the newest first: in the service, and to its keys."""
    with opened(storage) as store:
        import json

        from doral.cli.terminal import show_table

        rows = store.books.acts(limit=limit)
        if as_json:
            for one in rows:
                typer.echo(json_line({**vars(one), "details": json.loads(one.details)}))
            return
        lines = [
            (_moment(one.at), one.act, one.campaign or "", one.key_id, one.key_name, one.address, one.details)
            for one in rows
        ]
        show_table(("When", "What", "Campaign", "Key", "Who", "From", "Details"), lines)


def _end(word: str, now: float) -> float:
    """When a key ends."""
    span = _SPAN.fullmatch(word.strip())
    if span is not None:
        found = now + float(span[1]) * _UNITS_S[span[2]]
    elif re.fullmatch(r"[\d.]+", word.strip()):
        raise InvalidValue("expires", word, f"must say its unit: {_ENDS}")
    else:
        try:
            found = float(parse_time("expires", word))
        except InvalidValue:
            raise InvalidValue("expires", word, f"must be {_ENDS}") from None
    if not now < found < 1e11:
        raise InvalidValue("expires", word, "must be in the future, and not thousands of years away")
    return found


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(one) for one in names)


def _user() -> str:
    """Who types this, as the machine knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
