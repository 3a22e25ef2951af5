"""`doral campaign`: create, look, change, keep. What is decided is in `decisions.py`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doral.cli import decisions
from doral.cli.command import FAILED, Group, command, counted, json_line, say, show
from doral.cli.command import group as new_group
from doral.cli.options import (
    DEFAULT_STORAGE,
    At,
    DryRun,
    Json,
    Key,
    Name,
    Result,
    Storage,
    Tolerance,
    confirm_name,
    offer_presets,
    on_campaign,
    opened,
    parse_number,
    parse_optional_time,
    refuse_memory,
)
from doral.errors import InvalidValue, UnknownName

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.live.campaign import Campaign
    from doral.live.views.verify import Verification
    from doral.problem import Problem

app = typer.Typer(
    name="campaign", help="Live campaigns: decide, take answers, report.", no_args_is_help=True, cls=Group
)
arms = new_group("arm", "Arms that come, rest and go: add, pause, resume, retire.")

MOST_LINES = 20  # of differences; there can be as many as decisions
_CHANGES, _KEEPING = "Changes while it runs", "Keeping"

_PROBLEM_HELP = (
    "TOML or JSON as `doral init` writes it: arms, contexts, budget, horizon (or until), deadline. "
    "The deadline is a number of seconds, or 14d, 36h (with --clock rounds: of rounds)."
)
_POLICY_HELP = "A name from `doral policies`, except those in Python, with options as in doral:accept=3."
_UNTIL_HELP = "The end, in place of the problem's: 2027-03-31 (that day included, UTC) or 2027-03-31T18:00Z."
_SERVED_HELP = "Shares served by each feature of people, too; reads all decisions."
_HTML_HELP = "Write a page of it instead, to be opened in a browser: charts, tables, the latest decisions."
_PAGE_HELP = "Where --html writes to; CAMPAIGN.html if not given."
_CLOCK_HELP = "What delays, deadline and cut-off are measured in: seconds or rounds."
_FEATURES_HELP = 'As many numbers as the other arms have, such as "0.5,0.5". May be given again.'
_COST_HELP = 'What one use takes from the budget; by context as in {"near": 8, "far": 20}.'
_KEYS_HELP = "The keys of the service, too, as they are stored: hashes, which open nothing."
_ONLY_HELP = "Only this campaign; may be given again. Without it, all."

Campaigns = Annotated[list[str] | None, typer.Option("--campaign", "-c", metavar="CAMPAIGN", help=_ONLY_HELP)]
ArmName = Annotated[str, typer.Argument(metavar="ARM", help="Name of the arm.")]


@command(app, example="doral campaign create kits problem.toml", renamed={"--problem": "", "-f": ""})
def create(
    name: Name,
    problem: Annotated[Path, typer.Argument(metavar="FILE", help=_PROBLEM_HELP)],
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="POLICY", help=_POLICY_HELP, autocompletion=offer_presets)
    ] = "doral-otf",
    option: Annotated[list[str] | None, typer.Option("--option", hidden=True)] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the policy's coin; drawn if not given.")] = None,
    clock: Annotated[str, typer.Option(metavar="UNIT", help=_CLOCK_HELP)] = "seconds",
    at: At = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help=_UNTIL_HELP)] = None,
    as_json: Json = False,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Start a campaign. With --at in the past, what was decided since then can be recorded."""
    refuse_memory(storage)  # before a file is made
    from doral.cli.simulate import read_problem

    began = parse_optional_time("at", at)
    stored = read_problem(problem, clock=clock, until=until)
    options = _policy(policy, option or [])
    with opened(storage, create=True, clock_tolerance=clock_tolerance) as store:
        store.create(name, stored.problem, policy=options, seed=seed, clock=clock, at=began, until=stored.until)
        show(f"created {name}", {"created": name}, as_json=as_json)
    if sys.stderr.isatty():
        say("\n".join(["what to type next:", *_next_steps(name, stored.problem, storage)]))


def _policy(word: str, old: list[str]) -> PolicyOptions:
    """Return the policy that a campaign runs; `old` options have a spelling of their own."""
    from doral.cli.catalogue import parse_policy
    from doral.engine.options import POLICY_NAMES, PolicyOptions
    from doral.engine.options import policy as policy_by_name

    if old:
        say("doral: --option NAME=VALUE is now --policy doral:NAME=VALUE; the old spelling ends with the next release")
        return policy_by_name(word, **dict(_old_option(one) for one in old))  # type: ignore[arg-type]
    policy = parse_policy(word)
    if not isinstance(policy, PolicyOptions):
        raise InvalidValue("policy", word, f"is for simulations and plans; a campaign runs {', '.join(POLICY_NAMES)}")
    return policy


def _old_option(word: str) -> tuple[str, Any]:
    name, is_there, value = word.partition("=")
    if not is_there:
        raise InvalidValue("option", word, "must be written NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _next_steps(name: str, problem: Problem, storage: str) -> list[str]:
    """Decide, take the answer, look: three commands as they can be typed."""
    where = [] if storage == DEFAULT_STORAGE else ["--storage", storage]
    context = [problem.context_names[0]] if problem.n_contexts > 1 else []
    person = [word for one in problem.person_names for word in ("--feature", f"{one}=...")]
    called = ["--", name] if name.startswith("-") else [name]
    return [
        f"  {shlex.join(['doral', 'campaign', 'decide', *where, *person, *called, *context])}",
        f"  {shlex.join(['doral', 'campaign', 'feedback', *where, *called])} DECISION 1",
        f"  {shlex.join(['doral', 'campaign', 'show', *where, *called])}",
    ]


@command(app, "list", example="doral campaign list --storage sqlite:///kits.db")
def list_campaigns(as_json: Json = False, storage: Storage = DEFAULT_STORAGE) -> None:
    """List the names of all campaigns."""
    with opened(storage) as store:
        names = store.list()
        if as_json:
            typer.echo(json_line(names))
            return
        for name in names:
            typer.echo(name)


@command(app, "show", example="doral campaign show kits --html")
@on_campaign(changes=False)
def show_campaign(
    campaign: Campaign,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help=_PAGE_HELP, show_default=False)] = None,
    html: Annotated[bool, typer.Option("--html", help=_HTML_HELP)] = False,
    served: Annotated[bool, typer.Option("--served", help=_SERVED_HELP)] = False,
) -> Result:
    """Show where a campaign stands: budget, decisions, rewards, arms. With --html, as a page."""
    if html:
        from doral.live.page.file import page_name, page_path

        path = page_path(page_name(campaign.name) if file is None else file)
        campaign.page(path)
        return f"wrote {path}", {"file": str(path)}
    if file is not None:
        raise InvalidValue("FILE", str(file), "is where a page is written to: say --html, too")
    report = campaign.report()
    text = "\n".join([str(report), *(report.served_lines() if served else [])])
    return text, {**report.to_dict(), **({"served": report.served()} if served else {})}


@command(app, example="doral campaign pause kits")
@on_campaign()
def pause(campaign: Campaign, key: Key = None) -> Result:
    """Skip every arrival until the campaign is resumed; answers are taken."""
    campaign.pause(key=key)
    return f"paused {campaign.name}", {"paused": campaign.name}


@command(app, example="doral campaign resume kits")
@on_campaign()
def resume(campaign: Campaign, key: Key = None) -> Result:
    """Decide again after a pause."""
    campaign.resume(key=key)
    return f"resumed {campaign.name}", {"resumed": campaign.name}


@command(app, example="doral campaign close kits --dry-run")
@on_campaign()
def close(campaign: Campaign, key: Key = None) -> Result:
    """End a campaign: no more decisions; answers are still taken."""
    campaign.close(key=key)
    return f"closed {campaign.name}", {"closed": campaign.name}


decisions.register(app)


@command(app, panel=_CHANGES, example="doral campaign top-up kits 100 --key invoice-17", takes_numbers=True)
@on_campaign()
def top_up(
    campaign: Campaign,
    amount: Annotated[float, typer.Argument(metavar="AMOUNT", help="What is added to the budget.")],
    key: Key = None,
) -> Result:
    """Add to the budget. With a key, a repeated command adds it once."""
    campaign.top_up(amount, key=key)
    ledger = campaign.ledger()
    text = f"the budget of {campaign.name} is {ledger.total}, of which {ledger.left} is left"
    return text, {"campaign": campaign.name, "budget": float(ledger.total), "left": float(ledger.left)}


@command(app, panel=_CHANGES, example="doral campaign extend kits 500 --key until-march", takes_numbers=True)
@on_campaign()
def extend(
    campaign: Campaign,
    rounds: Annotated[int | None, typer.Argument(metavar="ARRIVALS", help="So many more arrivals.")] = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help="To this date, where the end is one.")] = None,
    key: Key = None,
) -> Result:
    """Expect more arrivals, or end at a later date. With a key, a repeated command counts once."""
    campaign.extend(rounds, key=key, until=until)
    report = campaign.report()
    text = f"{campaign.name} expects {report.horizon:,} arrivals, of which {report.arrivals:,} have come"
    return text, {"campaign": campaign.name, "horizon": report.horizon, "arrivals": report.arrivals}


@command(app, panel=_CHANGES, example="doral campaign repair-clock kits --dry-run")
@on_campaign(has_clock=True)
def repair_clock(
    campaign: Campaign,
    to: Annotated[str | None, typer.Option(metavar="TIME", help="To this time, if not to this host's.")] = None,
    key: Key = None,
) -> Result:
    """Set the clock back after a wrong one carried it away."""
    time = parse_optional_time("to", to)
    campaign.repair_clock(time, key=key)
    text = f"the clock of {campaign.name} shows {to or 'the time of this host'}"
    return text, {"campaign": campaign.name, "clock": None if time is None else float(time)}


@command(arms, "add", example="doral campaign arm add kits clinic-c --cost 1.5")
@on_campaign()
def add_arm(
    campaign: Campaign,
    arm: ArmName,
    features: Annotated[list[str] | None, typer.Option(metavar="NUMBERS", help=_FEATURES_HELP)] = None,
    cost: Annotated[str, typer.Option(metavar="COST", help=_COST_HELP)] = "1",
    key: Key = None,
) -> Result:
    """Add an arm, about which nothing is known yet."""
    from doral.problem import Arm

    numbers = [parse_number("features", one.strip()) for word in features or () for one in word.split(",")]
    campaign.add_arm(Arm(arm, features=numbers, cost=_cost(cost)), key=key)
    return f"added {arm} to {campaign.name}", {"campaign": campaign.name, "arm": arm, "state": "active"}


def _cost(word: str) -> Any:
    """Return a number, or one for each context.

    >>> _cost("2.5"), _cost('{"near": 8, "far": 20}')
    (2.5, {'near': 8, 'far': 20})
    """
    if not word.lstrip().startswith("{"):
        return parse_number("cost", word)
    try:
        return json.loads(word)
    except ValueError as error:
        raise InvalidValue("cost", word, f'must be a number, or JSON such as {{"near": 8}}: {error}') from None


@command(arms, "pause", example="doral campaign arm pause kits clinic-b")
@on_campaign()
def pause_arm(campaign: Campaign, arm: ArmName, key: Key = None) -> Result:
    """Stop offering an arm until it is resumed."""
    campaign.pause_arm(arm, key=key)
    return f"paused {arm}", {"campaign": campaign.name, "arm": arm, "state": "paused"}


@command(arms, "resume", example="doral campaign arm resume kits clinic-b")
@on_campaign()
def resume_arm(campaign: Campaign, arm: ArmName, key: Key = None) -> Result:
    """Offer a paused arm again."""
    campaign.resume_arm(arm, key=key)
    return f"resumed {arm}", {"campaign": campaign.name, "arm": arm, "state": "active"}


@command(arms, "retire", example="doral campaign arm retire kits clinic-b --dry-run")
@on_campaign()
def retire_arm(campaign: Campaign, arm: ArmName, key: Key = None) -> Result:
    """Stop offering an arm for good; answers to it are still taken."""
    campaign.retire_arm(arm, key=key)
    return f"retired {arm}", {"campaign": campaign.name, "arm": arm, "state": "retired"}


app.add_typer(arms, rich_help_panel=_CHANGES)


@command(app, panel=_KEEPING, example="doral campaign verify kits")
@on_campaign(changes=False)
def verify(campaign: Campaign) -> Result:
    """Check all events; list what would be decided otherwise now."""
    verification = campaign.verify()
    return "\n".join(verification_lines(campaign.name, verification)), verification.to_dict()


def verification_lines(name: str, verification: Verification) -> list[str]:
    """Return what was checked, which versions wrote it, and what this version would have done otherwise."""
    events, head, n = verification.events, verification.head, verification.n_differences
    lines = [f"{name}: {counted(events, 'event')} checked, all as they were written; head {head}"]
    for stretch in verification.engines:
        engine = ", ".join(f"{what} {value}" for what, value in stretch.engine.items()) or "an unknown version"
        lines.append(f"events {stretch.first:,} to {stretch.last:,} were written by {engine}")
    if not n:
        return [*lines, "this version would have decided the same everywhere"]
    lines.append(
        f"this version would have made {counted(n, 'decision')} otherwise; that is information "
        "and no failure: what was decided stays"
    )
    listed = verification.differences[:MOST_LINES]
    lines += [f"  {one.decision_id}  {one.recorded or '-'}, now {one.chosen or '-'}" for one in listed]
    return [*lines, f"  and {n - len(listed):,} more"] if n > len(listed) else lines


@command(app, panel=_KEEPING, example="doral campaign health kits")
@on_campaign(changes=False)
def health(campaign: Campaign, as_json: Json = False) -> None:
    """Say whether a campaign can be used, and what needs attention. Exits with 1 if its store does not work."""
    state = campaign.health()
    show(str(state), state.to_dict(), as_json=as_json)
    if not (state.is_readable and state.is_writable):
        raise typer.Exit(FAILED)


@command(app, panel=_KEEPING, example="doral campaign backup copy.db --keys")
def backup(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="To make; it is a store itself.")],
    only: Campaigns = None,
    keys: Annotated[bool, typer.Option("--keys", help=_KEYS_HELP)] = False,
    as_json: Json = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Copy all campaigns, also while others write."""
    with opened(storage) as store:
        count = store.backup(path, names=only or None, keys=keys)
        n_keys = len(store.books.all_keys())
        copied = f" and {counted(n_keys, 'key')}" if keys else ""
        content = {"campaigns": count, "keys": n_keys if keys else 0, "file": str(path)}
        show(f"wrote {counted(count, 'campaign')}{copied} to {path}", content, as_json=as_json)
        if n_keys and not keys:
            say("doral: not in it: keys (--keys copies them), sessions, administrative acts and alarms of the service")
        elif n_keys:
            say("doral: not in it: sessions, administrative acts and alarms of the service")


@command(app, panel=_KEEPING, example="doral campaign restore copy.db --storage sqlite:///new.db")
def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="As `backup` wrote it.")],
    name: Annotated[
        str | None,
        typer.Option("--campaign", "-c", metavar="CAMPAIGN", help="Only this campaign of it. Without it, all."),
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Its keys, too, where they are not there yet.")] = False,
    as_json: Json = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Bring campaigns back from a backup, into this store, all or none."""
    path.stat()  # before a store is made for what is not there
    with opened(storage, create=True) as store:
        restored = store.restore(path, name=name, keys=keys)
        show("\n".join(f"restored {one}" for one in restored), {"restored": restored}, as_json=as_json)


@command(app, panel=_KEEPING, example="doral campaign forget kits visit-8812 --dry-run")
@on_campaign()
def forget(
    campaign: Campaign, key: Annotated[str, typer.Argument(metavar="KEY", help="As it was given with --key.")]
) -> Result:
    """Erase a person's key. Decisions and budget stay, and the key still counts as used."""
    count = campaign.forget(key)
    text = f"erased the key from {counted(count, 'event')}" if count else "this key was erased before"
    return text, {"campaign": campaign.name, "events": count}


@command(app, panel=_KEEPING, example="doral campaign delete kits --dry-run")
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
    dry_run: DryRun = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Remove a campaign with all its decisions, for good. Asks for its name again."""
    with opened(storage, dry_run=[name] if dry_run else None) as store:
        names = store.list()
        if name not in names:
            raise UnknownName("campaign", name, names)
        if not (yes or dry_run):
            confirm_name(name, thing="delete")
        store.delete(name)
        show(f"deleted {name}", {"deleted": name}, as_json=as_json)
