"""`doral campaign decide`, and what becomes of decisions."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from doral.cli.campaign_options import (
    DEFAULT_STORAGE,
    ActualCost,
    At,
    DecisionId,
    Json,
    Key,
    Name,
    Reward,
    Storage,
    Tolerance,
    opened,
)
from doral.cli.campaign_people import Deadline, Features, Weight, parse_person
from doral.cli.campaign_words import counted, decision_line, parse_given_time, parse_time

_AVAILABLE_HELP = "An arm that can be had now; may be given again. Without it, all."
_MADE_HELP = "When it was decided: seconds since 1970 or 2026-03-01T12:00Z (or a round)."
_ONLY_HELP = "Context of the arrival; can be left out where there is only one."
_STATE_HELP = "Only those that are skipped, pending, returned, expired, late or cancelled."

Context = Annotated[str, typer.Argument(metavar="CONTEXT", help="Context of the arrival; - where there is only one.")]


def decide(
    name: Name,
    context: Annotated[str | None, typer.Argument(metavar="[CONTEXT]", help=_ONLY_HELP)] = None,
    available: Annotated[list[str] | None, typer.Option("--available", "-a", help=_AVAILABLE_HELP)] = None,
    feature: Features = None,
    weight: Weight = None,
    deadline: Deadline = None,
    key: Key = None,
    at: At = None,
    as_json: Json = False,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Decide for one arrival. The answer is printed after it is stored."""
    with opened(storage, clock_tolerance=clock_tolerance) as store:
        when = parse_given_time("at", at)
        campaign = store.campaign(name)
        decision = campaign.decide(
            context,
            available=available or None,
            key=key,
            at=when,
            features=parse_person(campaign.problem, feature) if feature else None,
            weight=weight,
            deadline=deadline,
        )
        typer.echo(decision_line(decision, as_json=as_json))


def feedback(
    name: Name,
    decision: DecisionId,
    reward: Reward,
    key: Key = None,
    actual_cost: ActualCost = None,
    at: At = None,
    as_json: Json = False,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """The answer to a decision. Twice the same counts once."""
    with opened(storage, clock_tolerance=clock_tolerance) as store:
        when = parse_given_time("at", at)
        answered = store.campaign(name).feedback(decision, reward, key=key, actual_cost=actual_cost, at=when)
        typer.echo(decision_line(answered, as_json=as_json))


def correct(
    name: Name,
    decision: DecisionId,
    reward: Reward,
    key: Key = None,
    actual_cost: ActualCost = None,
    at: At = None,
    as_json: Json = False,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """A better value in the place of an answer that was given."""
    with opened(storage, clock_tolerance=clock_tolerance) as store:
        when = parse_given_time("at", at)
        corrected = store.campaign(name).correct(decision, reward, key=key, actual_cost=actual_cost, at=when)
        typer.echo(decision_line(corrected, as_json=as_json))


def cancel(
    name: Name,
    decision: DecisionId,
    key: Key = None,
    at: At = None,
    as_json: Json = False,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """A decision that was not carried out: its budget comes back."""
    with opened(storage, clock_tolerance=clock_tolerance) as store:
        cancelled = store.campaign(name).cancel(decision, key=key, at=parse_given_time("at", at))
        typer.echo(decision_line(cancelled, as_json=as_json))


def expire(
    name: Name,
    now: Annotated[str | None, typer.Option(metavar="TIME", help="The time to judge by, if not now.")] = None,
    key: Key = None,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Open decisions too old for an answer to count expire."""
    with opened(storage, clock_tolerance=clock_tolerance) as store:
        count = store.campaign(name).expire(parse_given_time("now", now), key=key)
        typer.echo(f"{counted(count, 'decision')} expired")


def record(
    name: Name,
    context: Context,
    arm: Annotated[str, typer.Argument(metavar="ARM", help="What was chosen; - for somebody who got nothing.")],
    at: Annotated[str, typer.Option(metavar="TIME", help=_MADE_HELP)],
    reward: Annotated[float | None, typer.Option(help="What came back, together with --answered-at.")] = None,
    answered_at: Annotated[str | None, typer.Option(metavar="TIME", help="When it came back.")] = None,
    cost: Annotated[float | None, typer.Option(help="What it cost, if not what the arm costs.")] = None,
    probability: Annotated[float | None, typer.Option(help="That of this choice, where it is known.")] = None,
    spend: Annotated[bool, typer.Option("--spend", help="Pay it from the budget, and count the arrival.")] = False,
    feature: Features = None,
    weight: Weight = None,
    deadline: Deadline = None,
    key: Key = None,
    as_json: Json = False,
    clock_tolerance: Tolerance = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """A decision that was made elsewhere, to learn from."""
    with opened(storage, clock_tolerance=clock_tolerance) as store:
        campaign = store.campaign(name)
        recorded = campaign.record(
            None if context == "-" else context,
            None if arm == "-" else arm,
            parse_time("at", at),
            reward=reward,
            answered_at=parse_given_time("answered_at", answered_at),
            cost=cost,
            probability=probability,
            spend=spend,
            key=key,
            features=parse_person(campaign.problem, feature) if feature else None,
            weight=weight,
            deadline=deadline,
        )
        typer.echo(decision_line(recorded, as_json=as_json))


def decisions(
    name: Name,
    state: Annotated[str | None, typer.Option(help=_STATE_HELP)] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="So many at most.")] = None,
    as_json: Json = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Decisions in their order, one per line."""
    with opened(storage) as store:
        for decision in islice(store.campaign(name).decisions(state=state), limit):
            typer.echo(decision_line(decision, as_json=as_json))


def export(
    name: Name,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="To write to: .parquet or .csv.")],
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Every decision into a file."""
    with opened(storage) as store:
        count = store.campaign(name).export(path)
        typer.echo(f"wrote {counted(count, 'decision')} to {path}")
