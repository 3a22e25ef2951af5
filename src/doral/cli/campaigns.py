"""`doral campaign ...`: campaigns on the command line. What the commands need is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doral.cli import campaign_batches, campaign_changes, campaign_decisions, campaign_keeping, completing
from doral.cli.campaign_options import (
    DEFAULT_STORAGE,
    At,
    Json,
    Key,
    Name,
    Storage,
    TakesNumbers,
    Tolerance,
    opened,
    refuse_unkept,
)
from doral.cli.campaign_words import json_line, parse_given_time, parse_option
from doral.cli.exits import exit_codes
from doral.cli.help_text import Grouped
from doral.cli.next_steps import say_next

app = typer.Typer(
    name="campaign", help="Live campaigns: decide, take answers, report.", no_args_is_help=True, cls=Grouped
)

_PROBLEM_HELP = (
    "TOML or JSON as `doral init` writes it: arms, contexts, budget, horizon (or until), deadline. "
    "The deadline is a number of seconds, or 14d, 36h (with --clock rounds: of rounds)."
)
_UNTIL_HELP = "The end, in place of the problem's: 2027-03-31 (that day included, UTC) or 2027-03-31T18:00Z."
_OPTION_HELP = "An option of the policy, such as accept=3. May be given again."
_SERVED_HELP = "Who is served, too, by each feature of people; reads all decisions."
_HTML_HELP = "Write a page of it instead, to be opened in a browser: charts, tables, the latest decisions."
_FILE_HELP = "Where --html writes to; NAME.html if not given."
_CLOCK_HELP = "What delays, deadline and cut-off are measured in: seconds or rounds."


@app.command()
def create(
    name: Name,
    problem: Annotated[Path, typer.Option("--problem", "-f", metavar="FILE", help=_PROBLEM_HELP)],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            help="A name from `doral policies`, except those in Python.",
            autocompletion=completing.presets,
        ),
    ] = "doral-otf",
    option: Annotated[list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help=_OPTION_HELP)] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the policy's coin; drawn if not given.")] = None,
    clock: Annotated[str, typer.Option(help=_CLOCK_HELP)] = "seconds",
    at: At = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help=_UNTIL_HELP)] = None,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Start a campaign. With --at in the past, what was decided since then can be recorded."""
    with exit_codes():  # before a file is made
        refuse_unkept(storage)
        from doral.cli.problem_files import read_problem
        from doral.engine.options import make_policy as policy_by_name

        began = parse_given_time("at", at)
        stored = read_problem(problem, clock=clock, until=until)
        options = policy_by_name(policy, **dict(parse_option(one) for one in option or ()))
    with opened(storage, create=True, clock_tolerance=clock_tolerance) as store:
        store.create(name, stored.problem, policy=options, seed=seed, clock=clock, at=began, until=stored.until)
        typer.echo(f"created {name}")
    say_next(name, stored.problem, storage)


@app.command("list")
def list_campaigns(as_json: Json = False, storage: Storage = DEFAULT_STORAGE) -> None:
    """The names of all campaigns."""
    with opened(storage) as store:
        names = store.list()
        if as_json:
            typer.echo(json_line(names))
            return
        for name in names:
            typer.echo(name)


@app.command()
def show(
    name: Name,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help=_FILE_HELP, show_default=False)] = None,
    html: Annotated[bool, typer.Option("--html", help=_HTML_HELP)] = False,
    served: Annotated[bool, typer.Option("--served", help=_SERVED_HELP)] = False,
    as_json: Json = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Where a campaign stands: budget, decisions, rewards, arms. With --html, as a page to look at."""
    if html:
        _write_page(name, file, is_only_page=not (served or as_json), storage=storage)
        return
    with exit_codes():
        if file is not None:
            from doral.errors import InvalidValue

            raise InvalidValue("FILE", str(file), "is where a page is written to: say --html, too")
    with opened(storage) as store:
        report = store.campaign(name).report()
        if as_json:
            typer.echo(json_line({**report.to_dict(), **({"served": report.served()} if served else {})}))
        else:
            typer.echo("\n".join([str(report), *(report.served_lines() if served else [])]))


def _write_page(name: str, file: Path | None, *, is_only_page: bool, storage: str) -> None:
    with exit_codes():
        from doral.errors import InvalidValue
        from doral.live.page.file import page_name, page_path

        if not is_only_page:
            raise InvalidValue("--html", True, "shows all there is, who is served included: leave out --served, --json")
        path = page_path(page_name(name) if file is None else file)
    with opened(storage) as store:
        store.campaign(name).page(path)
        typer.echo(f"wrote {path}")


@app.command()
def pause(name: Name, key: Key = None, storage: Storage = DEFAULT_STORAGE) -> None:
    """Skip every arrival until the campaign is resumed; answers are taken."""
    with opened(storage) as store:
        store.campaign(name).pause(key=key)
        typer.echo(f"paused {name}")


@app.command()
def resume(name: Name, key: Key = None, storage: Storage = DEFAULT_STORAGE) -> None:
    """Decide again after a pause."""
    with opened(storage) as store:
        store.campaign(name).resume(key=key)
        typer.echo(f"resumed {name}")


@app.command()
def close(name: Name, storage: Storage = DEFAULT_STORAGE) -> None:
    """End a campaign: no more decisions; answers are still taken."""
    with opened(storage) as store:
        store.campaign(name).close()
        typer.echo(f"closed {name}")


_COMMANDS = {  # in the order in which the help lists them
    "Decisions": (
        campaign_decisions.decide,
        campaign_decisions.feedback,
        campaign_decisions.correct,
        campaign_decisions.cancel,
        campaign_decisions.expire,
        campaign_decisions.record,
        campaign_decisions.decisions,
        campaign_decisions.export,
    ),
    "Batches from CSV": (
        campaign_batches.decide_many,
        campaign_batches.feedback_many,
        campaign_batches.record_many,
    ),
    "Changes while it runs": (
        campaign_changes.top_up,
        campaign_changes.extend,
        campaign_changes.repair_clock,
    ),
    "Keeping": (
        campaign_keeping.verify,
        campaign_keeping.health,
        campaign_keeping.backup,
        campaign_keeping.restore,
        campaign_keeping.forget,
        campaign_keeping.delete,
    ),
}
_HAVE_NUMBERS = (
    campaign_decisions.feedback,
    campaign_decisions.correct,
    campaign_changes.top_up,
    campaign_changes.extend,
)  # that may be negative, or are refused for being so

for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        app.command(cls=TakesNumbers if _command in _HAVE_NUMBERS else None, rich_help_panel=_panel)(_command)
app.add_typer(campaign_changes.arms, rich_help_panel="Changes while it runs")
