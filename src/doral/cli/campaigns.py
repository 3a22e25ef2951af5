"""`doral campaign ...`: campaigns on the command line. What the commands need is imported when they run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doral.cli.campaign_words import decision_line, json_line, parse_option, read_problem
from doral.cli.exits import exit_codes

if TYPE_CHECKING:
    from doral.live.store import Store

app = typer.Typer(name="campaign", help="Live campaigns: decide, take answers, report.", no_args_is_help=True)

_STORAGE_HELP = "sqlite:///file.db or postgresql://user@host/database."
_PROBLEM_HELP = "JSON as `Problem.to_dict` writes it: arms, contexts, budget, horizon, deadline."
_OPTION_HELP = "An option of the policy, such as accept=3. May be given again."
_CLOCK_HELP = "What delays, deadline and cut-off are measured in: seconds or rounds."
_AVAILABLE_HELP = "An arm that can be had now; may be given again. Without it, all."
_AT_HELP = "Timestamp in seconds since 1970 (or a round), for back-fill."

Storage = Annotated[str, typer.Option("--storage", "-s", envvar="DORAL_STORAGE", metavar="URL", help=_STORAGE_HELP)]
Name = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="Name of the campaign.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]
Key = Annotated[str | None, typer.Option(help="The same key again gives the same answer, and changes nothing.")]
At = Annotated[float | None, typer.Option(help=_AT_HELP)]
DecisionId = Annotated[str, typer.Argument(metavar="DECISION", help="Id of the decision.")]

_DEFAULT_STORAGE = "sqlite:///campaigns.db"


@contextmanager
def _opened(storage: str) -> Iterator[Store]:
    """The store; what goes wrong becomes one line and an exit code that scripts can use."""
    with exit_codes():
        from doral.live.store import open as open_store

        with open_store(storage) as store:
            yield store


@app.command()
def create(
    name: Name,
    problem: Annotated[Path, typer.Option("--problem", "-f", metavar="FILE", help=_PROBLEM_HELP)],
    policy: Annotated[str, typer.Option("--policy", "-p", help="A name from `doral policies`.")] = "doral-otf",
    option: Annotated[list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help=_OPTION_HELP)] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the policy's coin; drawn if not given.")] = None,
    clock: Annotated[str, typer.Option(help=_CLOCK_HELP)] = "seconds",
    storage: Storage = _DEFAULT_STORAGE,
) -> None:
    """Start a campaign."""
    with _opened(storage) as store:
        from doral.engine.presets import policy as policy_by_name
        from doral.problem import Problem

        stored = read_problem(problem)
        options = policy_by_name(policy, **dict(parse_option(one) for one in option or ()))
        store.create(name, Problem.from_dict(stored), policy=options, seed=seed, clock=clock)
        typer.echo(f"created {name}")


@app.command("list")
def list_campaigns(storage: Storage = _DEFAULT_STORAGE) -> None:
    """The names of all campaigns."""
    with _opened(storage) as store:
        for name in store.list():
            typer.echo(name)


@app.command()
def show(name: Name, as_json: Json = False, storage: Storage = _DEFAULT_STORAGE) -> None:
    """Where a campaign stands: budget, decisions, rewards, arms."""
    with _opened(storage) as store:
        report = store.campaign(name).report()
        typer.echo(json_line(report.to_dict()) if as_json else str(report))


@app.command()
def decide(
    name: Name,
    context: Annotated[str, typer.Argument(help="Context of the arrival.")],
    available: Annotated[list[str] | None, typer.Option("--available", "-a", help=_AVAILABLE_HELP)] = None,
    key: Key = None,
    at: At = None,
    as_json: Json = False,
    storage: Storage = _DEFAULT_STORAGE,
) -> None:
    """Decide for one arrival. The answer is printed after it is stored."""
    with _opened(storage) as store:
        decision = store.campaign(name).decide(context, available=available or None, key=key, at=at)
        typer.echo(decision_line(decision, as_json=as_json))


@app.command()
def feedback(
    name: Name,
    decision: DecisionId,
    reward: Annotated[float, typer.Argument(help="What came back; 0 is an answer, too.")],
    key: Key = None,
    actual_cost: Annotated[float | None, typer.Option(help="What it cost after all; the rest is given back.")] = None,
    at: At = None,
    as_json: Json = False,
    storage: Storage = _DEFAULT_STORAGE,
) -> None:
    """The answer to a decision. Twice the same counts once."""
    with _opened(storage) as store:
        answered = store.campaign(name).feedback(decision, reward, key=key, actual_cost=actual_cost, at=at)
        typer.echo(decision_line(answered, as_json=as_json))


@app.command()
def cancel(name: Name, decision: DecisionId, as_json: Json = False, storage: Storage = _DEFAULT_STORAGE) -> None:
    """A decision that was not carried out: its budget comes back."""
    with _opened(storage) as store:
        typer.echo(decision_line(store.campaign(name).cancel(decision), as_json=as_json))


@app.command()
def export(
    name: Name,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="To write to: .parquet or .csv.")],
    storage: Storage = _DEFAULT_STORAGE,
) -> None:
    """Every decision into a file."""
    with _opened(storage) as store:
        count = store.campaign(name).export(path)
        typer.echo(f"wrote {count:,} decisions to {path}")


@app.command()
def close(name: Name, storage: Storage = _DEFAULT_STORAGE) -> None:
    """End a campaign: no more decisions; answers are still taken."""
    with _opened(storage) as store:
        store.campaign(name).close()
        typer.echo(f"closed {name}")
