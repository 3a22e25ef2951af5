"""`doral campaign decide|feedback|correct|cancel|expire|record|decisions`: decisions, one by one or from a file."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doral.cli.command import command, counted, if_interrupted, json_line, say
from doral.cli.options import (
    DEFAULT_STORAGE,
    At,
    Json,
    Key,
    Name,
    Result,
    Storage,
    Tolerance,
    on_campaign,
    parse_number,
    parse_optional_time,
    parse_time,
)
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.live.campaign import Campaign
    from doral.live.views.decision import Decision
    from doral.person import Feature
    from doral.problem import Problem

_MOST = 100_000
_PANEL = "Decisions"
_OF_PEOPLE = ("features", "weight", "deadline", "base", "effects")

_ONLY_HELP = "Context of the arrival; can be left out where there is only one."
_AVAILABLE_HELP = "An arm that is available now; may be given again. Without it, all."
_FEATURE_HELP = "A feature of the arrival, such as age=71; may be given again."
_WEIGHT_HELP = "What a unit of reward of this arrival is worth, if not as in the context."
_DEADLINE_HELP = "How long the answer of this arrival counts, in seconds (or rounds, by the campaign's clock)."
_FROM_HELP = "Many, from a file: CSV with a header (- reads standard input), .jsonl or .parquet."
_MADE_HELP = "When it was decided: seconds since 1970 or 2026-03-01T12:00Z (or a round)."
_STATE_HELP = "Only those that are skipped, pending, returned, expired, late or cancelled."
_OUT_HELP = "Write all of them to this file instead, .parquet or .csv, with every column."
_INTERRUPTED = "batches that were finished are stored; rows with keys can be given again"

Context = Annotated[str | None, typer.Argument(metavar="CONTEXT", help=_ONLY_HELP)]
DecisionId = Annotated[str, typer.Argument(metavar="DECISION", help="Id of the decision.")]
ActualCost = Annotated[
    float | None, typer.Option("--actual-cost", help="What it cost after all; the rest is given back.")
]
Features = Annotated[list[str] | None, typer.Option("--feature", "-f", metavar="NAME=VALUE", help=_FEATURE_HELP)]
Weight = Annotated[float | None, typer.Option("--weight", help=_WEIGHT_HELP)]
Deadline = Annotated[float | None, typer.Option("--deadline", help=_DEADLINE_HELP)]
From = Annotated[Path | None, typer.Option("--from", metavar="FILE", help=_FROM_HELP)]
Batch = Annotated[
    int, typer.Option("--batch", min=1, max=_MOST, help="With --from: rows that are stored together, all or none.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to `doral campaign`."""
    for function, example, renamed in (
        (decide, "doral campaign decide kits elderly --key visit-8812", None),
        (feedback, "doral campaign feedback kits 5f0c2a91-2 0.7", None),
        (correct, "doral campaign correct kits 5f0c2a91-2 0.6", None),
        (cancel, "doral campaign cancel kits 5f0c2a91-10", None),
        (expire, "doral campaign expire kits", {"--now": "--at"}),
        (record, "doral campaign record kits adult clinic-b --at 2026-01-07T09:00Z", None),
        (decisions, "doral campaign decisions kits --state returned --limit 5", {"-n": "--limit"}),
    ):
        takes_numbers = function in (feedback, correct)
        command(app, panel=_PANEL, example=example, renamed=renamed, takes_numbers=takes_numbers)(function)
    for old, function in (("decide-many", decide), ("feedback-many", feedback), ("record-many", record)):
        command(app, old, example="", hidden=True)(_old_batch(old, function))
    command(app, example="", hidden=True)(export)


def _old_batch(old: str, function: Callable[..., None]) -> Callable[..., None]:
    def many(
        name: Name,
        path: Annotated[Path, typer.Argument(metavar="FILE")],
        batch: Batch = _MOST,
        as_json: Json = False,
        clock_tolerance: Tolerance = None,
        storage: Storage = DEFAULT_STORAGE,
    ) -> None:
        new = f"{function.__name__} --from FILE"
        say(f"doral: `{old} FILE` is now `{new}`; the old spelling ends with the next release")
        function(name, from_=path, batch=batch, as_json=as_json, clock_tolerance=clock_tolerance, storage=storage)

    return many


def export(
    name: Name, path: Annotated[Path, typer.Argument(metavar="FILE")], storage: Storage = DEFAULT_STORAGE
) -> None:
    """Write every decision to a file."""
    say("doral: `export FILE` is now `decisions --out FILE`; the old spelling ends with the next release")
    decisions(name, out=path, storage=storage)


@on_campaign(has_clock=True)
def decide(
    campaign: Campaign,
    context: Context = None,
    available: Annotated[
        list[str] | None, typer.Option("--available", "-a", metavar="ARM", help=_AVAILABLE_HELP)
    ] = None,
    feature: Features = None,
    weight: Weight = None,
    deadline: Deadline = None,
    key: Key = None,
    at: At = None,
    from_: From = None,
    batch: Batch = _MOST,
    as_json: Json = False,
) -> Result:
    """Decide for one arrival, or for many. Decisions are printed after they are stored.

    Columns of a file: context (unless there is only one); available (a list in JSON), key, at; and where people have
    features, one for each, weight, deadline. Prints the decisions as CSV.
    """
    problem = campaign.problem
    if from_ is not None:
        from doral.cli.rows import arrival_table, gathered, store_rows

        others = {"CONTEXT": context, "available": available, "feature": feature, "key": key, "at": at}
        _refuse_beside(from_, **others, weight=weight, deadline=deadline)

        def step(rows: list[dict[str, Any]]) -> list[Decision]:
            return campaign.decide_many([gathered(problem, row) for row in rows])

        with if_interrupted(_INTERRUPTED):
            store_rows(from_, arrival_table(problem), batch, step, _printer(as_json=as_json, person=problem.person))
        return None
    decision = campaign.decide(
        context,
        available=available or None,
        key=key,
        at=parse_optional_time("at", at),
        features=_person(problem, feature),
        weight=weight,
        deadline=deadline,
    )
    return _line(decision), _content(decision)


@on_campaign(has_clock=True)
def feedback(
    campaign: Campaign,
    decision: Annotated[str | None, typer.Argument(metavar="DECISION", help="Id of the decision.")] = None,
    reward: Annotated[float | None, typer.Argument(metavar="REWARD", help="The reward; 0 is an answer, too.")] = None,
    key: Key = None,
    actual_cost: ActualCost = None,
    at: At = None,
    from_: From = None,
    batch: Batch = _MOST,
) -> Result:
    """Take the answer to a decision, or to many. Twice the same counts once.

    Columns of a file: decision_id (or id, as decisions are written), reward; actual_cost, key, at.
    """
    if from_ is None:
        id_, value = _needed("DECISION", decision), _needed("REWARD", reward)
        when = parse_optional_time("at", at)
        answered = campaign.feedback(id_, value, key=key, actual_cost=actual_cost, at=when)
        return _line(answered), _content(answered)
    from doral.cli.rows import answer_table, store_rows

    _refuse_beside(from_, DECISION=decision, REWARD=reward, actual_cost=actual_cost, key=key, at=at)
    states: Counter[str] = Counter()

    def tell(made: list[Decision]) -> None:
        states.update(one.state for one in made)

    with if_interrupted(_INTERRUPTED):
        store_rows(from_, answer_table(), batch, campaign.feedback_many, tell)
    listed = ", ".join(f"{n:,} {state}" for state, n in states.most_common())
    text = f"took {counted(states.total(), 'answer')}: {listed}" if states else "there are no answers in it"
    return text, {"answers": states.total(), "states": dict(states)}


@on_campaign(has_clock=True)
def correct(
    campaign: Campaign,
    decision: DecisionId,
    reward: Annotated[float, typer.Argument(metavar="REWARD", help="The better value.")],
    key: Key = None,
    actual_cost: ActualCost = None,
    at: At = None,
) -> Result:
    """Put a better value in the place of an answer that was given."""
    when = parse_optional_time("at", at)
    corrected = campaign.correct(decision, reward, key=key, actual_cost=actual_cost, at=when)
    return _line(corrected), _content(corrected)


@on_campaign(has_clock=True)
def cancel(campaign: Campaign, decision: DecisionId, key: Key = None, at: At = None) -> Result:
    """Cancel a decision that was not carried out: its budget comes back."""
    cancelled = campaign.cancel(decision, key=key, at=parse_optional_time("at", at))
    return _line(cancelled), _content(cancelled)


@on_campaign(has_clock=True)
def expire(
    campaign: Campaign,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="The time to judge by, if not now.")] = None,
    key: Key = None,
) -> Result:
    """Expire pending decisions that are too old for an answer to count."""
    count = campaign.expire(parse_optional_time("at", at), key=key)
    return f"{counted(count, 'decision')} expired", {"expired": count}


@on_campaign(has_clock=True)
def record(
    campaign: Campaign,
    context: Annotated[
        str | None, typer.Argument(metavar="CONTEXT", help="Context of the arrival; - where there is only one.")
    ] = None,
    arm: Annotated[str | None, typer.Argument(metavar="ARM", help="What was chosen; - for a skip.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help=_MADE_HELP)] = None,
    reward: Annotated[float | None, typer.Option(help="The reward, together with --answered-at.")] = None,
    answered_at: Annotated[str | None, typer.Option(metavar="TIME", help="When the answer came.")] = None,
    cost: Annotated[float | None, typer.Option(help="What it cost, if not what the arm costs.")] = None,
    probability: Annotated[float | None, typer.Option(help="That of this choice, where it is known.")] = None,
    spend: Annotated[bool, typer.Option("--spend", help="Pay it from the budget, and count the arrival.")] = False,
    feature: Features = None,
    weight: Weight = None,
    deadline: Deadline = None,
    key: Key = None,
    from_: From = None,
    batch: Batch = _MOST,
    as_json: Json = False,
) -> Result:
    """Record a decision that was made elsewhere, or many, to learn from.

    Columns of a file: context (unless there is only one), arm (empty: a skip), at; reward, answered_at, cost,
    probability, spend (true or false), key; and where people have features, one for each, weight, deadline. Prints the
    decisions as CSV.
    """
    problem = campaign.problem
    if from_ is not None:
        from doral.cli.rows import gathered, record_table, store_rows

        others = {"CONTEXT": context, "ARM": arm, "at": at, "reward": reward, "answered_at": answered_at, "cost": cost}
        more = {"probability": probability, "spend": spend or None, "feature": feature, "weight": weight}
        _refuse_beside(from_, **others, **more, deadline=deadline, key=key)

        def step(rows: list[dict[str, Any]]) -> list[Decision]:
            return campaign.record_many([gathered(problem, row) for row in rows])

        with if_interrupted(_INTERRUPTED):
            store_rows(from_, record_table(problem), batch, step, _printer(as_json=as_json, person=problem.person))
        return None
    context, arm = _needed("CONTEXT", context), _needed("ARM", arm)
    recorded = campaign.record(
        None if context == "-" else context,
        None if arm == "-" else arm,
        parse_time("at", _needed("--at", at)),
        reward=reward,
        answered_at=parse_optional_time("answered_at", answered_at),
        cost=cost,
        probability=probability,
        spend=spend,
        key=key,
        features=_person(problem, feature),
        weight=weight,
        deadline=deadline,
    )
    return _line(recorded), _content(recorded)


@on_campaign(changes=False)
def decisions(
    campaign: Campaign,
    state: Annotated[str | None, typer.Option(metavar="STATE", help=_STATE_HELP)] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="So many at most.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help=_OUT_HELP)] = None,
    as_json: Json = False,
) -> Result:
    """List decisions in their order, one per line; or write all of them to a file."""
    if out is None:
        most = None if limit is None else min(limit, sys.maxsize)
        for decision in islice(campaign.decisions(state=state), most):
            typer.echo(json_line(_content(decision)) if as_json else _line(decision))
        return None
    if state is not None or limit is not None:
        raise InvalidValue("out", str(out), "gets all decisions; leave out --state and --limit")
    count = campaign.export(out)
    return f"wrote {counted(count, 'decision')} to {out}", {"decisions": count, "file": str(out)}


def _needed(name: str, value: Any) -> Any:
    """Return what must be given where no file is."""
    if value is None:
        raise typer.BadParameter("must be given, or --from FILE", param_hint=f"'{name}'")
    return value


def _refuse_beside(path: Path | None, **others: object) -> None:
    """Refuse what a file says for each row."""
    for name, value in others.items():
        if path is not None and value not in (None, []):
            typed = name if name.isupper() else f"--{name.replace('_', '-')}"
            raise InvalidValue("--from", str(path), f"says it for each row: leave out {typed}")


def _person(problem: Problem, words: Sequence[str] | None) -> dict[str, Any] | None:
    """Return features from words such as age=71; names that are not known are left to the campaign to refuse."""
    from doral.person import Number

    if not words:
        return None
    kinds = {one.name: one for one in problem.person}
    features: dict[str, Any] = {}
    for word in words:
        name, is_there, value = word.partition("=")
        if not is_there:
            raise InvalidValue("feature", word, "must be written NAME=VALUE, such as age=71")
        if name in features:
            raise InvalidValue("feature", word, "is given twice")
        is_number = isinstance(kinds.get(name), Number)
        features[name] = parse_number(f"feature {name!r}", value) if is_number else value
    return features


def _content(decision: Decision) -> dict[str, Any]:
    """Return the fields of a decision; those of people where it is for one."""
    content = {one.name: getattr(decision, one.name) for one in fields(decision)}
    if all(content[name] is None for name in _OF_PEOPLE):
        content = {name: value for name, value in content.items() if name not in _OF_PEOPLE}
    return {**content, "reason": decision.reason, "delay": decision.delay}


def _line(decision: Decision) -> str:
    """Return a decision in one line."""
    reward = "" if decision.reward is None else f"  reward {decision.reward:g}"
    return f"{decision.id}  {decision.arm or '-'}  {decision.state}{reward}  ({decision.reason}){_features(decision)}"


def _features(decision: Decision) -> str:
    """Return the features of an arrival, and what each spoke for the arm."""
    if not decision.features:
        return ""
    effects = decision.effects or {}
    words = []
    for name, value in decision.features.items():
        shown = "?" if value is None else value if isinstance(value, str) else f"{value:g}"
        words.append(f"{name}={shown}" + (f" ({effects[name]:+.3g})" if name in effects else ""))
    return "  " + ", ".join(words)


def _printer(*, as_json: bool, person: Iterable[Feature]) -> Callable[[list[Decision]], None]:
    """Return what prints each batch once it is stored."""
    is_first = True

    def tell(made: list[Decision]) -> None:
        nonlocal is_first
        if as_json:
            for one in made:
                typer.echo(json_line(_content(one)))
        else:
            from doral.live.views.export import write_csv_rows

            part = BytesIO()
            write_csv_rows(part, made, has_header=is_first, person=tuple(person))
            typer.echo(part.getvalue(), nl=False)
        is_first = False

    return tell
