"""`doral campaign top-up`, `extend`, `arm ...`: changes while a campaign runs."""

from __future__ import annotations

from typing import Annotated

import typer

from doral.cli.campaign_options import DEFAULT_STORAGE, Key, Name, Storage, TakesNumbers, Tolerance, opened
from doral.cli.campaign_words import parse_cost, parse_features, parse_given_time

arms = typer.Typer(name="arm", help="Arms that come, rest and go: add, pause, resume, retire.", no_args_is_help=True)

_FEATURES_HELP = 'As many numbers as the other arms have, such as "0.5,0.5". May be given again.'
_COST_HELP = 'What one use takes from the budget; by context as in {"near": 8, "far": 20}.'

ArmName = Annotated[str, typer.Argument(metavar="ARM", help="Name of the arm.")]


def top_up(
    name: Name,
    amount: Annotated[float, typer.Argument(metavar="AMOUNT", help="What is added to the budget.")],
    key: Key = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """More budget. With a key, a repeated command adds it once."""
    with opened(storage) as store:
        campaign = store.campaign(name)
        campaign.top_up(amount, key=key)
        ledger = campaign.ledger()
        typer.echo(f"the budget of {name} is {ledger.total}, of which {ledger.left} is left")


def extend(
    name: Name,
    rounds: Annotated[int | None, typer.Argument(metavar="ARRIVALS", help="So many more arrivals.")] = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help="To this date, where the end is one.")] = None,
    key: Key = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """More arrivals are expected, or the end is a later date. With a key, a repeated command counts once."""
    with opened(storage) as store:
        campaign = store.campaign(name)
        campaign.extend(rounds, key=key, until=until)
        report = campaign.report()
        typer.echo(f"{name} expects {report.horizon:,} arrivals, of which {report.arrivals:,} have come")


def repair_clock(
    name: Name,
    to: Annotated[str | None, typer.Option(metavar="TIME", help="To this time, if not to this host's.")] = None,
    key: Key = None,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Set the clock back after a wrong one carried it away."""
    with opened(storage, clock_tolerance=clock_tolerance) as store:
        store.campaign(name).repair_clock(parse_given_time("to", to), key=key)
        typer.echo(f"the clock of {name} shows {to or 'the time of this host'}")


@arms.command(cls=TakesNumbers)
def add(
    name: Name,
    arm: ArmName,
    features: Annotated[list[str] | None, typer.Option(metavar="NUMBERS", help=_FEATURES_HELP)] = None,
    cost: Annotated[str, typer.Option(metavar="COST", help=_COST_HELP)] = "1",
    key: Key = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """A new arm, about which nothing is known yet."""
    with opened(storage) as store:
        from doral.problem import Arm

        new = Arm(arm, features=parse_features(features or ()), cost=parse_cost(cost))
        store.campaign(name).add_arm(new, key=key)
        typer.echo(f"added {arm} to {name}")


@arms.command()
def pause(name: Name, arm: ArmName, key: Key = None, storage: Storage = DEFAULT_STORAGE) -> None:
    """Stop offering an arm until it is resumed."""
    with opened(storage) as store:
        store.campaign(name).pause_arm(arm, key=key)
        typer.echo(f"paused {arm}")


@arms.command()
def resume(name: Name, arm: ArmName, key: Key = None, storage: Storage = DEFAULT_STORAGE) -> None:
    """Offer a paused arm again."""
    with opened(storage) as store:
        store.campaign(name).resume_arm(arm, key=key)
        typer.echo(f"resumed {arm}")


@arms.command()
def retire(name: Name, arm: ArmName, key: Key = None, storage: Storage = DEFAULT_STORAGE) -> None:
    """Stop offering an arm for good; answers to it are still taken."""
    with opened(storage) as store:
        store.campaign(name).retire_arm(arm, key=key)
        typer.echo(f"retired {arm}")
